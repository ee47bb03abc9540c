//! The command line as clap sees it.

mod bill;
mod cache;
mod config;
mod models;
mod replay;
mod tools;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use bill::{BillArguments, By};
pub(crate) use cache::{CacheArguments, CacheCommand, CheckArguments};
pub(crate) use config::{ConfigArguments, ConfigCommand};
pub(crate) use models::{ModelsArguments, ModelsCommand, PricesArguments};
pub(crate) use replay::{PriceOverrides, ReplayArguments};
pub(crate) use tools::{ToolsArguments, ToolsCommand};

/// What a model sees, bounded, priced and explained
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, about, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show where the money of recorded sessions went, and which settings would have saved some; without a file, of all sessions on this machine
    Bill(BillArguments),
    /// Look at a recorded session: what it holds, where its tokens are; without a file, list the sessions on this machine
    Inspect(InspectArguments),
    /// Show how full a session makes its context window
    Pressure(PressureArguments),
    /// Write a smaller session in its own format
    Trim(TrimArguments),
    /// Replay a recorded session: what would have been sent at each turn, what it would have cost, what it would have missed
    Replay(ReplayArguments),
    /// Read the unified log of a store: messages and context decisions
    Log(LogArguments),
    /// Get back what a ref stands for, list refs, or remove those whose time is over
    Ref(RefArguments),
    /// Put messages into a store: dialogue lines, or recorded sessions of any known format
    Import(ImportArguments),
    /// Recall the messages of a store that a question asks for, within a budget and without a model
    Recall(RecallArguments),
    /// Search the messages of a store
    Search(SearchArguments),
    /// Explain one turn: every message's treatment, reason, size and ref
    Explain(ExplainArguments),
    /// Show which providers of models are configured and reachable, and what models cost
    Models(ModelsArguments),
    /// Check cascades: one line for each problem
    Validate(ValidateArguments),
    /// Draw a cascade: its phases, where they lead, and what they see
    Graph(GraphArguments),
    /// Run a cascade: its phases one after another, each with the context that is chosen for it
    Run(RunArguments),
    /// Show context cards: what each message of a store is about, and what would be selected for a task
    Cards(CardsArguments),
    /// Work on what waits in a store: summaries and vectors of context cards
    Work(WorkArguments),
    /// What is known: write it, search it, confirm, supersede and forget it
    Memory(crate::memory::arguments::MemoryArguments),
    /// Put together what a model should see for a turn: rules, what is known, what was said, within a budget
    Assemble(crate::memory::arguments::AssembleArguments),
    /// Look after cached answers: list, show and evict them, and try the guard that serves them
    Cache(CacheArguments),
    /// Keep schemas of tools: list, add and show them, and print the directory that stands for them in a request
    Tools(ToolsArguments),
    /// Serve the gateway: a proxy in front of the OpenAI, Anthropic and Gemini APIs that bounds what a model sees
    Serve(ServeArguments),
    /// Print what a client needs so that it speaks to the gateway
    Env(EnvArguments),
    /// Run a client behind the gateway, and tell what that saved: `plimsoll run-agent -- claude`
    RunAgent(RunAgentArguments),
    /// Show the settings in force and where they come from, and check the files that hold them
    Config(ConfigArguments),
    /// Look whether a gateway would work here: settings, store, port, upstreams, clients
    Doctor(DoctorArguments),
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
}

/// A session, and how it is read, counted and priced.
#[derive(Debug, Clone, Args)]
pub(crate) struct SessionArguments {
    /// The recorded session; its format is recognised by content
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
}

/// How a session is read, counted and priced.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReadingArguments {
    /// Count tokens by `o200k`, `cl100k`, `claude`, `estimate`, `chars:N` or `o200k:FACTOR` instead of by the session's model
    #[arg(long, value_name = "TOKENIZER")]
    pub(crate) tokens: Option<String>,
    /// Prices and cache rules over the user's `pricing.toml` and the shipped one
    #[arg(long, value_name = "FILE")]
    pub(crate) pricing: Option<PathBuf>,
    /// Price as this model instead of the recorded one
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// List each skipped or repaired record
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Keep the session's messages and receipts in this store, so that its refs resolve later
    #[arg(long, value_name = "PATH|URL")]
    pub(crate) store: Option<String>,
    /// Keep them in this ClickHouse, beside the store: clickhouse://[user[:password]@]host[:port][/database]
    #[arg(long, value_name = "URL")]
    pub(crate) history: Option<String>,
}

/// Which store is meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArguments {
    /// The store, instead of `PLIMSOLL_STORE`, `[store]` of plimsoll.toml or the file in the user's data folder
    #[arg(long, value_name = "PATH|URL")]
    pub(crate) store: Option<String>,
    /// The ClickHouse that keeps the history, instead of `PLIMSOLL_HISTORY` or `[store]`: clickhouse://[user[:password]@]host[:port][/database]
    #[arg(long, value_name = "URL")]
    pub(crate) history: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Settings: [gateway] of plimsoll.toml; docs/gateway.md says what each client needs.\nWhere it listens is printed on standard output. It stops on SIGTERM or Ctrl-C, once the answers under way have ended."
)]
pub(crate) struct ServeArguments {
    /// Where clients are awaited, instead of `listen`; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// What is done with requests, instead of `mode`
    #[arg(long, value_parser = ["on", "observe", "off"])]
    pub(crate) mode: Option<String>,
    /// The policy, instead of `policy`; as for `replay`
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
}

#[derive(Debug, Args)]
pub(crate) struct EnvArguments {
    /// The client
    #[arg(value_enum)]
    pub(crate) client: crate::client::Client,
    /// Where the gateway listens, instead of `listen`
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A gateway that runs where `listen` says is used; without one, one is started for as long as the client runs.\nThe exit code is the client's."
)]
pub(crate) struct RunAgentArguments {
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// The client and its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 all is fine, 1 something is not.")]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Reach for no upstream
    #[arg(long)]
    pub(crate) offline: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// `stats`: how efficient the contexts were, and what providers billed
    #[arg(value_parser = ["stats"])]
    pub(crate) what: Option<String>,
    /// A row of `stats` for each cascade or each session
    #[arg(long, value_name = "WHAT", value_parser = ["cascade", "session"], default_value = "cascade")]
    pub(crate) by: String,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Only rows of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Only `message` or `context_selection` rows
    #[arg(long, value_name = "TYPE", value_parser = ["message", "context_selection"])]
    pub(crate) node_type: Option<String>,
    /// The most rows
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RefArguments {
    #[command(subcommand)]
    pub(crate) command: RefCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RefCommand {
    /// Print what a ref stands for, or a part of it
    Get(RefGetArguments),
    /// List the refs of artefacts, newest first
    List {
        #[command(flatten)]
        store: StoreArguments,
        /// The most refs
        #[arg(long, value_name = "N", default_value_t = 40)]
        limit: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove refs whose time to live is over
    Gc {
        #[command(flatten)]
        store: StoreArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RefGetArguments {
    /// `ref:<kind>:<hex>`, or at least 8 of its hex digits
    pub(crate) reference: String,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Only this field of a JSON content, such as `items[0].title` or `items[*].id`; may be given again
    #[arg(long = "field", value_name = "PATH")]
    pub(crate) fields: Vec<String>,
    /// Only these lines, `FIRST-LAST`, counted from 1
    #[arg(long, value_name = "FIRST-LAST", conflicts_with_all = ["search", "slice"])]
    pub(crate) lines: Option<String>,
    /// Only lines that hold this text
    #[arg(long, value_name = "TEXT", conflicts_with = "slice")]
    pub(crate) search: Option<String>,
    /// Only so many elements of a list, else characters, `OFFSET:LIMIT`, counted from 0
    #[arg(long, value_name = "OFFSET:LIMIT")]
    pub(crate) slice: Option<String>,
    /// Print JSON: the text, how much there is in all, and where to go on
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Settings: [cards], [selection] and [safety] of plimsoll.toml.")]
pub(crate) struct CardsArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Only cards of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Make the cards that are missing, and work until none waits
    #[arg(long)]
    pub(crate) make: bool,
    /// Show what would be selected of the session for this task, and why
    #[arg(long, value_name = "TASK", requires = "session")]
    pub(crate) task: Option<String>,
    /// The most cards
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) limit: usize,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A dialogue has a JSON object in each line: {\"id\", \"session\", \"speaker\", \"time\", \"text\"}, of which only `text` must be there.\nWhat is in the store already is not added again."
)]
pub(crate) struct ImportArguments {
    /// Dialogues and sessions; what a file is, is recognised by content
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// The session of lines that name none, instead of the file's name
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// List each skipped or repaired record
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without `--once` it goes on until it is stopped; what it was at is taken up again by the next.\nExit codes: 0 done, 1 jobs were parked or the store failed, 2 wrong arguments or settings."
)]
pub(crate) struct WorkArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Stop when nothing is due
    #[arg(long)]
    pub(crate) once: bool,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON, one line for each time that nothing is due any more
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "`--batch` reads lines {\"id\", \"query\"}, with a \"session\" where only that one is asked, and writes lines {\"id\", \"ids\"}: the ids of messages, best first.\nWhere several sessions are asked, \"sessions\" stands beside them."
)]
pub(crate) struct RecallArguments {
    /// The question
    #[arg(long, value_name = "TEXT", required_unless_present = "batch", conflicts_with = "batch")]
    pub(crate) query: Option<String>,
    /// The most tokens of what is recalled, headers included
    #[arg(long, value_name = "TOKENS", default_value_t = 4000, conflicts_with = "batch")]
    pub(crate) budget: u64,
    /// Rank for each question of this file
    #[arg(long, value_name = "QUERIES.jsonl", requires = "out")]
    pub(crate) batch: Option<PathBuf>,
    /// Where the rankings of `--batch` go; an existing file is replaced
    #[arg(long, value_name = "RESULTS.jsonl", requires = "batch")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Only messages of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Count tokens by `o200k`, `cl100k`, `claude`, `chars:N` or `o200k:FACTOR` instead of by an estimate
    #[arg(long, value_name = "TOKENIZER", default_value = "estimate")]
    pub(crate) tokens: String,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "batch")]
    pub(crate) json: bool,
    /// Tell what each score is made of
    #[arg(long, conflicts_with = "batch")]
    pub(crate) explain: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// Words to search for, each taken literally
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Only messages of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// The most hits
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which settings decide the context.
#[derive(Debug, Clone, Args)]
pub(crate) struct PolicyArguments {
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The ceiling in tokens, over what the configuration says
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<u64>,
}

/// The context window and its shares.
#[derive(Debug, Clone, Args)]
pub(crate) struct WindowArguments {
    /// The context window in tokens, over what `context.json` or the session says
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Shares and thresholds instead of `context.json` here
    #[arg(long, value_name = "FILE")]
    pub(crate) context_config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// A recorded session, or a folder of them; without it, the places where agents keep theirs
    pub(crate) file: Option<PathBuf>,
    /// Count tokens by `o200k`, `cl100k`, `claude`, `estimate`, `chars:N` or `o200k:FACTOR` instead of by the session's model
    #[arg(long, value_name = "TOKENIZER")]
    pub(crate) tokens: Option<String>,
    /// Count as for this model instead of the recorded one
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Read what the agent had in its context after it compacted, instead of all that was said
    #[arg(long)]
    pub(crate) honour_compaction: bool,
    /// The context window in tokens, over what the session says
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// List each skipped or repaired record
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// The most sessions to list
    #[arg(long, value_name = "N", default_value = "20")]
    pub(crate) limit: std::num::NonZeroUsize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the pressure is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PressureFormat {
    /// The bar and its message
    Text,
    /// A footer for an agent's answer
    Markdown,
    /// The figures
    Json,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Below `showPressureAbove` of context.json (30 % by default) text and Markdown are empty."
)]
pub(crate) struct PressureArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Read what the agent had in its context after it compacted, instead of all that was said
    #[arg(long)]
    pub(crate) honour_compaction: bool,
    #[command(flatten)]
    pub(crate) window: WindowArguments,
    /// How to print it
    #[arg(long, value_enum, default_value_t = PressureFormat::Text)]
    pub(crate) format: PressureFormat,
    /// Print JSON, as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(
    after_help = "Exit codes: 0 written, 1 trimming is not due (nothing is written) or writing failed, 2 wrong arguments or input.\nSo `plimsoll trim S --out T && S=T` uses the trimmed session only where there is one."
)]
pub(crate) struct TrimArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Read what the agent had in its context after it compacted, instead of all that was said
    #[arg(long)]
    pub(crate) honour_compaction: bool,
    #[command(flatten)]
    pub(crate) window: WindowArguments,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file of `--out` where it exists
    #[arg(long, requires = "out")]
    pub(crate) overwrite: bool,
    /// Trim even where it is not due
    #[arg(long, conflicts_with = "policy")]
    pub(crate) force: bool,
    /// Write the context of the next request under `plimsoll`, `window`, `clear-tool-uses[:TRIGGER,KEEP]`, `newest[:BUDGET]` or `full` instead of trimming by context.json
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["window", "context_config"])]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    /// Print the report as JSON on standard output
    #[arg(long, requires = "out")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// As if the agent had never compacted its context, as for `replay`
    #[arg(long)]
    pub(crate) no_compaction: bool,
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    /// The turn, counted from 0; the last one where none is given
    #[arg(long)]
    pub(crate) turn: Option<u32>,
    /// As for `replay`
    #[arg(long, value_name = "POLICY", default_value = "plimsoll")]
    pub(crate) policy: String,
    /// Print a message as it was sent, or the original behind a ref
    #[arg(long, value_name = "MESSAGE|REF")]
    pub(crate) show: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 no errors, 1 at least one error, 2 wrong arguments.\nOf folders, every .json, .yaml and .yml file with phases is checked."
)]
pub(crate) struct ValidateArguments {
    /// Cascades, or folders of them
    #[arg(required_unless_present = "schema")]
    pub(crate) files: Vec<PathBuf>,
    /// Take an unknown key for an error
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the JSON Schema of cascades instead
    #[arg(long, conflicts_with_all = ["files", "strict", "json"])]
    pub(crate) schema: bool,
}

/// How a cascade is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GraphFormat {
    /// A Mermaid flowchart
    Mermaid,
    /// A picture that follows the light or dark of the screen
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArguments {
    /// The cascade
    pub(crate) file: PathBuf,
    /// How to draw it; by default what the name of `--out` says, else `mermaid`
    #[arg(long, value_enum)]
    pub(crate) format: Option<GraphFormat>,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file of `--out` where it exists
    #[arg(long, requires = "out")]
    pub(crate) overwrite: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 it ran to its end, 1 a phase failed or a model gave no answer, 2 wrong arguments, input or cascade.\nA run that stopped goes on with `--resume SESSION`: what its models and tools answered is not asked again."
)]
pub(crate) struct RunArguments {
    /// The cascade, in YAML or JSON
    pub(crate) cascade: PathBuf,
    /// What it is given: a JSON object, or `@FILE` that holds one
    #[arg(long, short, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// The model of phases that name none, `provider/model`; `scripted:FILE` answers everything from a file
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// The session's id; by default made of the cascade's and the time
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Go on with a session where its record ends
    #[arg(long, value_name = "SESSION", conflicts_with = "session")]
    pub(crate) resume: Option<String>,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where `images/SESSION/PHASE/` is made, instead of here
    #[arg(long, value_name = "FOLDER")]
    pub(crate) images: Option<PathBuf>,
    /// Answer for tools and validators that nobody has, instead of refusing the cascade
    #[arg(long)]
    pub(crate) stub_tools: bool,
    /// Show what each phase would see, and ask no model
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print each event as a line of JSON, and the account as the last
    #[arg(long)]
    pub(crate) json: bool,
}
