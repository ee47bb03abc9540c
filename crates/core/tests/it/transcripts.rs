//! Random transcripts as agents make them, random policies, and what a replay of one under the other sends.

use std::fmt::Write as _;

use plimsoll_core::context::{Receipt, State, bound};
use plimsoll_core::cost::{Prices, Pricing};
use plimsoll_core::plan::{Context, Plan};
use plimsoll_core::policy::{
    BoundThinking, Bounds, Budget, Cadence, IntraPhase, Need, Policy, PreserveErrors,
    RequestSettings, Settle,
};
use plimsoll_core::terms::Terms;
use plimsoll_core::{
    Block, Image, Message, MillisSinceEpoch, Opaque, Role, Thinking, Tokenizer, ToolCall,
    ToolResult, Transcript,
};
use proptest::prelude::*;

/// What a text is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Code,
    Log,
    Json,
    Diff,
    Listing,
    Table,
    Search,
    Prose,
    Unicode,
    LongLine,
    Ansi,
    Blank,
    Empty,
}

/// A text: the same matter gives the same text, so that a small range of seeds makes repeated reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matter {
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
    pub(crate) lines: usize,
}

/// What a call does, which decides its name and the form of its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tool {
    Read,
    ReadPart,
    Bash,
    /// Quotes lines of the file.
    Edit,
    /// Has a whole text in its arguments.
    Write,
    /// Arguments that are free text.
    Patch,
    /// Arguments that are JSON, but no object, or cut short.
    Odd,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) tool: Tool,
    pub(crate) file: u64,
    pub(crate) answer: Matter,
    pub(crate) image: bool,
    pub(crate) failed: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Ask {
        text: Matter,
        image: bool,
    },
    System(Matter),
    Say {
        text: Matter,
        thinking: bool,
        opaque: bool,
    },
    /// Parallel calls and their results, in reverse order or in one message if so.
    Work {
        says: Option<Matter>,
        thinking: bool,
        calls: Vec<Call>,
        reversed: bool,
        together: bool,
    },
    /// A result that answers nobody.
    Orphan(Matter),
    /// A second answer to the newest call, while the model has not spoken again.
    Again(Matter),
}

/// A session as generated: steps with the seconds before each, and whether the last calls are still open.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) steps: Vec<(Step, u32)>,
    pub(crate) timed: bool,
    pub(crate) open: bool,
}

/// A generator of numbers that needs no crate (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % below as u64) as usize
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.next(words.len())]
    }
}

const SYMBOLS: &[&str] = &[
    "parse_header",
    "readConfig",
    "TokenStream",
    "MAX_SIZE",
    "os.path.join",
    "frame",
    "buffer",
    "retry_limit",
    "HttpClient",
    "decode",
    "flush_all",
    "self.state",
];
const WORDS: &[&str] = &[
    "the", "function", "reads", "a", "file", "and", "then", "writes", "what", "it", "found",
    "into", "another", "place", "where", "nobody", "looks", "at", "first",
];

impl Matter {
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        let numbers = &mut Numbers(self.seed * 1000 + self.kind as u64);
        let seed = self.seed;
        if matches!(self.kind, Kind::Json) {
            out.push_str("{\"items\": [\n");
        }
        if matches!(self.kind, Kind::Diff) {
            let _ = writeln!(out, "diff --git a/src/m{seed}.rs b/src/m{seed}.rs\n@@ -1,4 +1,6 @@");
        }
        for line in 0..self.lines {
            let symbol = numbers.pick(SYMBOLS);
            let other = numbers.pick(SYMBOLS);
            let number = numbers.next(9000);
            let _ = match self.kind {
                Kind::Code => writeln!(
                    out,
                    "{:6}\tlet {symbol}_{number} = {other}({number}, \"src/m{seed}.rs\");",
                    line + 1
                ),
                Kind::Log if numbers.next(6) == 0 => writeln!(
                    out,
                    "error[E{number:04}]: mismatched types in unit_{seed}_{line} of src/m{seed}.rs:{number}"
                ),
                Kind::Log => writeln!(out, "test module_{seed}::{symbol}_{number} ... ok"),
                Kind::Json => writeln!(
                    out,
                    "  {{\"id\": {number}, \"name\": \"{symbol}\", \"path\": \"src/m{line}.rs\"}},"
                ),
                Kind::Diff => writeln!(
                    out,
                    "{}    {symbol}({number}, {other});",
                    numbers.pick(&["+", "-", " "])
                ),
                Kind::Listing => writeln!(out, "src/m{seed}/{symbol}_{number}.rs"),
                Kind::Table => writeln!(out, "| {symbol} | {number} | {other} |"),
                Kind::Search => writeln!(out, "src/m{seed}.rs:{number}:    {symbol}({other});"),
                Kind::Unicode => {
                    writeln!(out, "größe.{symbol} → 日本語の行 {number} 🚢 «{other}» straße/öl")
                }
                Kind::LongLine => {
                    for _ in 0..40 {
                        let _ = write!(out, "{symbol}={number};{} ", numbers.pick(WORDS));
                    }
                    Ok(())
                }
                Kind::Ansi => writeln!(
                    out,
                    "\u{1b}[31m{symbol}\u{1b}[0m https://a.example/{number}\u{1b}[0m \\u00{number} \"quoted\"\ttab\r"
                ),
                Kind::Blank => writeln!(out, "   "),
                Kind::Empty => Ok(()),
                Kind::Prose => {
                    for _ in 0..12 {
                        let _ = write!(out, "{} ", numbers.pick(WORDS));
                    }
                    writeln!(out, "{symbol} {number}.")
                }
            };
        }
        if matches!(self.kind, Kind::Json) {
            out.push_str("  {}\n]}\n");
        }
        // A text that does not end in a line break is as common as one that does.
        if seed % 2 == 1 && out.ends_with('\n') {
            out.pop();
        }
        out
    }
}

fn file_text(file: u64) -> String {
    Matter { kind: Kind::Code, seed: file, lines: 30 }.text()
}

impl Call {
    fn call(&self, id: &str) -> ToolCall {
        let file = self.file;
        let path = format!("src/m{file}.rs");
        let object = |fields: &[(&str, &str)]| {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("\"{key}\":{}", serde_json::Value::from(*value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        };
        let (name, arguments) = match self.tool {
            Tool::Read => ("read", object(&[("path", &path)])),
            Tool::ReadPart => {
                ("read", format!("{{\"path\":\"{path}\",\"offset\":10,\"limit\":20}}"))
            }
            Tool::Bash => ("bash", object(&[("command", &format!("cat {path}"))])),
            Tool::Edit => {
                let text = file_text(file);
                let quoted: Vec<&str> = text.lines().skip(file as usize).take(12).collect();
                let new = Matter { kind: Kind::Ansi, seed: file, lines: 12 }.text();
                let old = quoted.join("\n");
                ("edit", object(&[("path", &path), ("oldText", &old), ("newText", &new)]))
            }
            Tool::Write => ("write", object(&[("path", &path), ("content", &self.answer.text())])),
            Tool::Patch => ("apply_patch", format!("*** Begin Patch\n{}", self.answer.text())),
            Tool::Odd if file.is_multiple_of(2) => ("odd", "[1, \"two\\nthree\"]".to_owned()),
            Tool::Odd => ("odd", format!("{{\"path\":\"{path}\",\"content\":\"cut \\n\\n sho")),
        };
        ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
    }

    fn result(&self, id: &str) -> ToolResult {
        let text = match self.tool {
            Tool::Read | Tool::ReadPart | Tool::Bash if self.answer.seed.is_multiple_of(2) => {
                file_text(self.file)
            }
            _ => self.answer.text(),
        };
        let images = if self.image { vec![image()] } else { Vec::new() };
        ToolResult { call_id: id.into(), text: text.into(), images, is_error: self.failed }
    }
}

fn image() -> Image {
    Image { media_type: "image/png".into(), data: "iVBORw0KGgo=".into() }
}

fn thinking() -> Block {
    Block::Thinking(Thinking { text: "let me see".into(), signature: "c2lnbmVk".into() })
}

impl Session {
    /// Returns its messages, oldest first; every call has an id of its own.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        let mut newest = "nobody".to_owned();
        let mut now = 1_700_000_000_000_i64;
        let last = self.steps.len().saturating_sub(1);
        for (order, (step, pause)) in self.steps.iter().enumerate() {
            now += i64::from(*pause) * 1000;
            let from = messages.len();
            match step {
                Step::Ask { text, image: with_image } => {
                    let mut blocks = vec![Block::Text(text.text().into())];
                    if *with_image {
                        blocks.push(Block::Image(image()));
                    }
                    messages.push(Message::new(Role::User, blocks));
                }
                Step::System(text) => messages.push(Message::text(Role::System, text.text())),
                Step::Say { text, thinking: thinks, opaque } => {
                    let mut blocks = Vec::new();
                    if *thinks {
                        blocks.push(thinking());
                    }
                    blocks.push(Block::Text(text.text().into()));
                    if *opaque {
                        let raw = "{\"type\":\"server_tool_use\"}".into();
                        blocks.push(Block::Opaque(Opaque { kind: "server_tool_use".into(), raw }));
                    }
                    messages.push(Message::new(Role::Assistant, blocks));
                }
                Step::Work { says, thinking: thinks, calls, reversed, together } => {
                    let mut blocks = Vec::new();
                    if *thinks {
                        blocks.push(thinking());
                    }
                    blocks.extend(says.map(|says| Block::Text(says.text().into())));
                    let mut answers = Vec::new();
                    for (n, call) in calls.iter().enumerate() {
                        newest = format!("call-{order}-{n}");
                        blocks.push(Block::ToolCall(call.call(&newest)));
                        answers.push(Block::ToolResult(call.result(&newest)));
                    }
                    messages.push(Message::new(Role::Assistant, blocks));
                    if *reversed {
                        answers.reverse();
                    }
                    if self.open && order == last {
                        answers.truncate(answers.len() / 2);
                    }
                    if *together && !answers.is_empty() {
                        messages.push(Message::new(Role::Tool, answers));
                    } else {
                        messages.extend(
                            answers.into_iter().map(|one| Message::new(Role::Tool, vec![one])),
                        );
                    }
                }
                Step::Orphan(text) => messages.push(Message::result("nobody", text.text())),
                // Only before the model speaks again: readers put every answer directly behind its call.
                Step::Again(text) => {
                    let spoke = messages.iter().rfind(|message| message.role == Role::Assistant);
                    if spoke.is_some_and(|spoke| spoke.calls().any(|call| *call.id == newest)) {
                        messages.push(Message::result(newest.as_str(), text.text()));
                    }
                }
            }
            for message in &mut messages[from..] {
                message.time = self.timed.then_some(MillisSinceEpoch(now));
            }
        }
        messages
    }

    pub(crate) fn transcript(&self, tokenizer: Tokenizer) -> Transcript {
        transcript(self.messages(), tokenizer)
    }
}

pub(crate) fn transcript(
    messages: impl IntoIterator<Item = Message>,
    tokenizer: Tokenizer,
) -> Transcript {
    let mut transcript = Transcript::new(tokenizer);
    for message in messages {
        transcript.push(message);
    }
    transcript
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Code),
        4 => Just(Kind::Log),
        2 => Just(Kind::Json),
        2 => Just(Kind::Diff),
        2 => Just(Kind::Listing),
        1 => Just(Kind::Table),
        2 => Just(Kind::Search),
        3 => Just(Kind::Prose),
        1 => Just(Kind::Unicode),
        1 => Just(Kind::LongLine),
        2 => Just(Kind::Ansi),
        1 => Just(Kind::Blank),
        1 => Just(Kind::Empty),
    ]
}

fn matter(most: usize) -> impl Strategy<Value = Matter> {
    (kind(), 0..5_u64, 0..most).prop_map(|(kind, seed, lines)| Matter { kind, seed, lines })
}

fn call() -> impl Strategy<Value = Call> {
    let tool = prop_oneof![
        4 => Just(Tool::Read),
        1 => Just(Tool::ReadPart),
        4 => Just(Tool::Bash),
        3 => Just(Tool::Edit),
        2 => Just(Tool::Write),
        1 => Just(Tool::Patch),
        1 => Just(Tool::Odd),
    ];
    let answer = prop_oneof![8 => matter(40), 1 => matter(160)];
    (tool, 0..4_u64, answer, prop::bool::weighted(0.1), prop::bool::weighted(0.1))
        .prop_map(|(tool, file, answer, image, failed)| Call { tool, file, answer, image, failed })
}

fn step() -> impl Strategy<Value = Step> {
    let work = (
        prop::option::of(matter(12)),
        prop::bool::weighted(0.2),
        prop::collection::vec(call(), 1..4),
        any::<bool>(),
        prop::bool::weighted(0.2),
    );
    prop_oneof![
        2 => (matter(12), prop::bool::weighted(0.1)).prop_map(|(text, image)| Step::Ask { text, image }),
        1 => (matter(30), prop::bool::weighted(0.3), prop::bool::weighted(0.1))
            .prop_map(|(text, thinking, opaque)| Step::Say { text, thinking, opaque }),
        12 => work.prop_map(|(says, thinking, calls, reversed, together)| Step::Work {
            says, thinking, calls, reversed, together
        }),
    ]
}

/// Makes sessions of up to 24 steps, most beginning with a system prompt and a task.
pub(crate) fn session() -> impl Strategy<Value = Session> {
    let pause = prop_oneof![8 => 0..40_u32, 1 => 301..4000_u32];
    let rare = prop_oneof![
        matter(6).prop_map(Step::System),
        matter(6).prop_map(Step::Orphan),
        matter(6).prop_map(Step::Again),
    ];
    let steps = prop::collection::vec((prop_oneof![12 => step(), 1 => rare], pause), 1..24);
    (
        prop::option::weighted(0.8, matter(8)),
        prop::option::weighted(0.9, matter(8)),
        steps,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(system, task, mut steps, timed, open)| {
            if let Some(text) = task {
                steps.insert(0, (Step::Ask { text, image: false }, 0));
            }
            if let Some(text) = system {
                steps.insert(0, (Step::System(text), 0));
            }
            Session { steps, timed, open }
        })
}

/// Counts fast enough for many cases; the exact vocabularies have tests of their own.
pub(crate) fn tokenizer() -> impl Strategy<Value = Tokenizer> {
    prop_oneof![
        3 => Just(Tokenizer::Estimate),
        3 => Just(Tokenizer::Characters { per_token: 3.3 }),
        1 => Just(Tokenizer::Characters { per_token: 40.0 }),
    ]
}

pub(crate) fn prices() -> impl Strategy<Value = Terms> {
    let of = |model| Pricing::shipped().of(Some(model), None).prices;
    prop_oneof![
        4 => Just(of("claude-sonnet-4-5")),
        2 => Just(of("gpt-5")),
        1 => Just(Prices { cache_read: 0.0, cache_write: 0.0, ..of("gpt-5") }),
        1 => Just(Prices { input: 0.0, cache_seconds: 0, cache_least: 0, ..of("gpt-5") }),
    ]
    .prop_map(Terms::new)
}

fn whole_number() -> impl Strategy<Value = u32> {
    prop_oneof![2 => 0..8_u32, 2 => 0..200_u32, 2 => 0..6000_u32, 1 => Just(u32::MAX)]
}

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![2 => Just(0.0), 4 => 0.0..2.0_f64, 1 => Just(1e12), 1 => Just(f64::NAN), 1 => Just(-3.0)]
}

fn budget() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0_u64), 3 => 1..2000_u64, 3 => 2000..12_000_u64, 2 => Just(u64::MAX)]
}

pub(crate) fn intra_phase() -> impl Strategy<Value = IntraPhase> {
    let errors = prop_oneof![
        1 => Just(PreserveErrors::Off),
        2 => Just(PreserveErrors::Lines),
        1 => Just(PreserveErrors::Keyword),
    ];
    let cadence = prop_oneof![1 => Just(Cadence::EveryTurn), 2 => Just(Cadence::CacheAware)];
    (
        prop::bool::weighted(0.95),
        whole_number(),
        whole_number(),
        any::<bool>(),
        whole_number(),
        any::<bool>(),
        errors,
        cadence,
    )
        .prop_map(
            |(
                enabled,
                window,
                mask,
                compress_loops,
                loop_history_limit,
                preserve_reasoning,
                preserve_errors,
                cadence,
            )| {
                IntraPhase {
                    enabled,
                    window,
                    mask_observations_after: mask,
                    compress_loops,
                    loop_history_limit,
                    preserve_reasoning,
                    preserve_errors,
                    cadence,
                }
            },
        )
}

fn settle() -> impl Strategy<Value = Settle> {
    let need = (share(), share(), share(), share()).prop_map(|(reads, finds, runs, others)| Need {
        reads,
        finds,
        runs,
        others,
    });
    let random = (
        (any::<bool>(), whole_number(), whole_number(), whole_number(), whole_number()),
        (whole_number(), whole_number(), share(), share(), share(), share(), need),
        (share(), whole_number(), whole_number()),
    )
        .prop_map(
            |(
                (enabled, floor, least, giant, young),
                (least_calls, most_calls, kept, caution, allowance, least_gain, need),
                (investment, payback, giant_file),
            )| Settle {
                enabled,
                floor: u64::from(floor),
                least,
                giant,
                giant_file,
                kept,
                young,
                least_calls,
                most_calls,
                caution,
                allowance,
                investment,
                payback,
                least_gain,
                need,
            },
        );
    prop_oneof![
        1 => Just(Settle::default()),
        2 => random,
        // Settings under which nearly everything changes.
        2 => (0..1000_u32).prop_map(eager),
    ]
}

/// Settings under which nearly everything changes.
pub(crate) fn eager(giant: u32) -> Settle {
    Settle {
        floor: 0,
        least: 0,
        giant,
        giant_file: giant,
        young: 0,
        caution: 0.0,
        allowance: 1e9,
        least_gain: 0.0,
        need: Need { reads: 0.0, finds: 0.0, runs: 0.0, others: 0.0 },
        ..Settle::default()
    }
}

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let ceiling = prop_oneof![1 => Just(Budget::Auto), 6 => budget().prop_map(Budget::Tokens)];
    let thinking = prop_oneof![
        Just(BoundThinking::Keep),
        Just(BoundThinking::Drop),
        Just(BoundThinking::Provider)
    ];
    let said_once = prop::bool::weighted(0.8);
    let bounds = (ceiling, said_once, thinking, intra_phase(), settle()).prop_map(
        |(budget, said_once, thinking, intra_phase, settle)| {
            let bounds =
                Bounds { budget, said_once, thinking, intra_phase, settle, ..Bounds::default() };
            Policy::Bounded(bounds)
        },
    );
    prop_oneof![
        1 => Just(Policy::Full),
        16 => bounds,
        2 => (budget(), 0..6_usize).prop_map(|(trigger, keep)| Policy::ClearToolUses { trigger, keep }),
        2 => budget().prop_map(|budget| Policy::Newest { budget }),
        1 => budget().prop_map(|total| Policy::WorkingSet(RequestSettings { total, ..RequestSettings::default() })),
    ]
}

/// One request as it was bounded.
#[derive(Debug)]
pub(crate) struct Bounded {
    pub(crate) context: Context,
    pub(crate) receipt: Receipt,
    pub(crate) plan: Plan,
}

/// Bounds every request of a session in order.
pub(crate) fn run(transcript: &Transcript, policy: &Policy, prices: &Terms) -> Vec<Bounded> {
    let mut state = State::default();
    transcript
        .requests()
        .map(|position| {
            let (context, receipt) = bound(transcript, position, policy, prices, &mut state);
            Bounded { context, receipt, plan: state.plan().clone() }
        })
        .collect()
}
