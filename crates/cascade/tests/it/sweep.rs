//! Properties over many cascades: no budget is exceeded, every wire accepts every context, and nothing is dearer than sending
//! everything.

use plimsoll_cascade::run::{Purpose, RunEvent};
use plimsoll_core::Tokenizer;
use plimsoll_core::cost::{Cache, Prices, Pricing};
use plimsoll_core::plan::Sent;
use plimsoll_core::terms::Terms;
use plimsoll_engine::ChatRequest;
use proptest::prelude::*;

use crate::harness::Harness;

/// The cost of requests as a provider charges them: tools first, then the messages, each prefix cached.
fn charged(requests: &[ChatRequest]) -> f64 {
    let pricing = Pricing::shipped();
    let prices: Prices = pricing.of(Some("claude-sonnet-4-5"), None).prices;
    let tokenizer = Tokenizer::for_model("claude-sonnet-4-5");
    let mut cache = Cache::default();
    let mut cost = 0.0;
    for request in requests {
        let mut terms: Terms = prices.into();
        let tools: String = request
            .tools
            .iter()
            .map(|tool| format!("{}{}{}", tool.name, tool.description, tool.schema))
            .collect();
        terms.around.before = f64::from(tokenizer.count(&tools));
        terms.around.before_key = tools
            .bytes()
            .fold(7, |key: u64, byte| key.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let sent: Vec<Sent> = request
            .messages
            .iter()
            .map(|message| Sent::rendered(None, message.clone(), tokenizer))
            .collect();
        cost += prices.input_cost(&cache.charge(&prices, &terms.pieces(&sent, &[]), None));
    }
    cost
}

struct Shape {
    turns: usize,
    attempts: usize,
    soundings: usize,
    lines: usize,
}

/// Runs a cascade of this shape and returns the requests, and the account's own costs.
async fn requests(shape: &Shape, setting: &str) -> (Vec<ChatRequest>, f64, f64) {
    let Shape { turns, attempts, soundings, lines } = *shape;
    let long: String = (0..lines).map(|line| format!("line {line} of a long result\n")).collect();
    let look = "{\"calls\": [{\"name\": \"look\"}]}\n";
    let answer = format!("{{\"text\": \"an answer: {}\"}}\n", "words ".repeat(150));
    let one = format!("{}{answer}", look.repeat(turns.saturating_sub(1)));
    let mut script = one.repeat(attempts * soundings);
    if soundings > 1 {
        script.push_str("{\"json\": {\"winner\": 0}}\n");
    }
    let bad = r#"{"valid": false, "reason": "too vague"}"#;
    let good = "{\"valid\": true, \"reason\": \"\"}";
    let verdicts = format!("{}{good}\n", format!("{bad}\n").repeat(attempts - 1)).repeat(soundings);
    let harness =
        Harness::new(&script).with_tool("look", &long).with_tool("check", verdicts.trim_end());
    let cascade = format!(
        "
cascade_id: c
{setting}
phases:
  - name: a
    instructions: Look and tell.
    tackle: [look]
    rules: {{max_turns: {turns}, max_attempts: {attempts}, loop_until: check}}
    soundings: {{factor: {soundings}, max_parallel: 1}}
"
    );
    harness.run(&cascade, "{}").await.expect("it runs");
    let events = harness.events.0.lock().expect("kept");
    let (mut cost, mut full_cost) = (0.0, 0.0);
    for event in events.iter() {
        if let RunEvent::Turn { cost: own, full_cost: full, .. } = event {
            cost += own;
            full_cost += full;
        }
    }
    (harness.model.asked.lock().expect("kept").clone(), cost, full_cost)
}

#[tokio::test]
async fn nothing_is_dearer_than_sending_everything() {
    let mut shapes = Vec::new();
    for turns in [1, 2, 5, 7, 8, 12, 20, 30] {
        for lines in [5, 200] {
            shapes.push(Shape { turns, attempts: 1, soundings: 1, lines });
        }
    }
    for attempts in [2, 3, 6, 10] {
        for turns in [1, 3, 8] {
            shapes.push(Shape { turns, attempts, soundings: 1, lines: 60 });
        }
    }
    for soundings in [2, 5, 8] {
        shapes.push(Shape { turns: 4, attempts: 2, soundings, lines: 60 });
    }
    for shape in shapes {
        let (full, ..) = requests(&shape, "").await;
        let (sent, cost, full_cost) = requests(&shape, "auto_context: {}").await;
        let named = format!(
            "{} turns, {} attempts, {} soundings, {} lines",
            shape.turns, shape.attempts, shape.soundings, shape.lines
        );
        let (sent_cost, everything) = (charged(&sent), charged(&full));
        println!("{named}: {:.3}", sent_cost / everything);
        assert!(sent_cost <= everything * 1.000_001, "{named}: {sent_cost} of {everything}");
        assert!(cost <= full_cost * 1.000_001, "{named}: the account has {cost} of {full_cost}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn contexts_never_exceed_their_budget(
        budget in 900_u32..4_000,
        turns in 1_usize..10,
        lines in 1_usize..120,
        strategy in prop::sample::select(vec!["sliding_window", "prune_oldest"]),
        intra in prop::sample::select(vec![
            "", "auto_context: {}", "auto_context: {intra_phase: {cadence: every_turn, window: 2}}",
        ]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let long: String =
                (0..lines).map(|line| format!("line {line} of a long result\n")).collect();
            let look = "{\"text\": \"I look again at all of it.\", \"calls\": [{\"name\": \"look\"}]}\n";
            let script = format!("{}{{\"text\": \"end\"}}\n{{\"text\": \"b\"}}\n", look.repeat(turns));
            let harness = Harness::new(&script).with_tool("look", &long);
            let cascade = format!(
                "
cascade_id: c
{intra}
token_budget: {{max_total: {budget}, reserve_for_output: 100, strategy: {strategy}}}
phases:
  - {{name: a, instructions: A., tackle: [look], rules: {{max_turns: 12}}, output_schema: {{type: string}}}}
  - {{name: b, instructions: B.}}
"
            );
            harness.run(&cascade, "{}").await.expect("it runs");
            let tokenizer = Tokenizer::for_model("claude-sonnet-4-5");
            let notes = harness.events.notes();
            // The smallest context may be larger than the budget; then the run says by how much.
            let is_told = notes.iter().any(|note| note.contains("exceeds the budget by"));
            for request in harness.model.asked.lock().expect("kept").iter() {
                let messages: u32 =
                    request.messages.iter().map(|message| tokenizer.count_message(message)).sum();
                let tools: u32 = request
                    .tools
                    .iter()
                    .map(|tool| {
                        [&tool.name, &tool.description, &tool.schema]
                            .into_iter()
                            .map(|text| tokenizer.count(text))
                            .sum::<u32>()
                    })
                    .sum();
                let tokens = messages + tools;
                assert!(tokens <= budget - 100 || is_told, "{tokens} of {budget} {notes:?}");
            }
        });
    }
}

#[test]
fn lookups_and_selection_are_counted_as_overhead() {
    for (purpose, is_overhead) in [
        (Purpose::Turn, false),
        (Purpose::Judge, false),
        (Purpose::Lookup, true),
        (Purpose::Selector, true),
        (Purpose::Summary, true),
    ] {
        assert_eq!(purpose.is_overhead(), is_overhead, "{}", purpose.as_str());
    }
}
