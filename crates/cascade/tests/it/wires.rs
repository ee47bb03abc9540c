//! The contexts of phases as each API receives them: those of the documented examples byte for byte, and those of any cascade
//! without anything that a provider refuses.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_cascade::run::RunError;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::cost::Pricing;
use plimsoll_engine::{ChatModel, ChatRequest};
use plimsoll_models::{Chance, Models, ModelsConfig, Outside};
use plimsoll_testkit::ManualClock;
use plimsoll_testkit::provider::strict;
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_wire::Wire;
use proptest::prelude::*;
use serde_json::Value;

use crate::harness::Harness;

const WIRES: [(&str, Wire); 3] = [
    ("anthropic", Wire::AnthropicMessages),
    ("chat", Wire::ChatCompletions),
    ("responses", Wire::Responses),
];

#[derive(Debug)]
struct NoChance;

impl Chance for NoChance {
    fn draw(&self) -> f64 {
        0.5
    }
}

/// Returns the bodies in which requests go out on an API.
async fn bodies(api: &str, requests: &[ChatRequest]) -> Vec<Vec<u8>> {
    // The answer does not matter: what was sent is kept before it.
    let script: Vec<Scripted> = requests.iter().map(|_| Scripted::body(400, "{}")).collect();
    let upstream = ScriptedServer::start(script).await;
    let config = format!("[providers.up]\napi = '{api}'\nbase_url = '{}/v1'\n", upstream.address());
    let config: ModelsConfig = toml::from_str(&config).expect("a sound configuration");
    let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000), Duration::from_mins(1)));
    let outside = Outside { clock, chance: Arc::new(NoChance) };
    let models = Models::new(config, Pricing::shipped(), outside, &|_| None).expect("sound");
    let model: Arc<dyn ChatModel> = models.chat("up/m").expect("a model");
    for request in requests {
        model.complete(request).await.expect_err("a refusal");
    }
    upstream.requests().into_iter().map(|received| received.body).collect()
}

/// An example of the documents: its cascade, its input and what the model answers.
struct Example {
    name: &'static str,
    cascade: &'static str,
    input: &'static str,
    script: String,
}

/// Returns texts as a model's answers.
fn said(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{{\"text\": \"{text}\"}}\n")).collect()
}

/// Returns an answer that searches.
fn looks(turn: usize) -> String {
    let call = format!("{{\"name\": \"web_search\", \"arguments\": {{\"q\": \"tide {turn}\"}}}}");
    format!("{{\"text\": \"I look at part {turn}.\", \"calls\": [{call}]}}\n")
}

/// Returns the examples of `context-injection.md` and `auto-context.md`, their prompts in words of our own.
fn examples() -> Vec<Example> {
    let mut all = injected();
    all.push(auto_context());
    all
}

fn auto_context() -> Example {
    Example {
        name: "auto_context",
        cascade: "
cascade_id: auto_context
auto_context:
  intra_phase: {enabled: true, window: 5, mask_observations_after: 3, compress_loops: true, loop_history_limit: 3}
  inter_phase:
    enabled: true
    strategy: heuristic
    anchors: {window: 3, from_phases: [previous], include: [output, callouts, input]}
    selection: {max_tokens: 30000, recency_weight: 0.3, keyword_weight: 0.4, callout_weight: 0.3}
phases:
  - name: research
    instructions: Read about the tides.
    tackle: [web_search]
    rules: {max_turns: 30}
    intra_context: {window: 3, mask_observations_after: 2}
  - {name: analysis, instructions: Explain the tides., context: {mode: auto}}
  - name: synthesis
    instructions: Sum up the tides.
    context:
      mode: auto
      anchors: {window: 5, from_phases: [research, analysis], include: [output, callouts]}
      selection: {strategy: heuristic, max_tokens: 40000}
",
        input: r#"{"topic": "tides"}"#,
        script: (1..=6).map(looks).collect::<String>()
            + &said(&["The moon draws the tides.", "The tides follow the moon.", "Moon and tides."]),
    }
}

fn injected() -> Vec<Example> {
    let draws = "{\"calls\": [{\"name\": \"create_chart\"}]}\n";
    vec![
        Example {
            name: "chart_analysis_pipeline",
            cascade: "
cascade_id: chart_analysis_pipeline
phases:
  - {name: generate_chart, instructions: 'Draw the sales of {{ input.data }}.', tackle: [create_chart]}
  - {name: validate_chart, instructions: Check this chart., context: {from: [generate_chart]}}
  - {name: process_inventory, instructions: Read the inventory., context: {from: []}}
  - {name: generate_forecast, instructions: Make a forecast., context: {from: []}}
  - name: final_report
    instructions: Write the report.
    context:
      from:
        - {phase: generate_chart, include: [images]}
        - {phase: validate_chart, include: [output]}
        - {phase: generate_forecast, include: [output]}
",
            input: r#"{"data": [1]}"#,
            script: draws.to_owned()
                + &said(&["charted", "accurate", "inventory", "forecast", "report"]),
        },
        Example {
            name: "deep_research",
            cascade: "
cascade_id: deep_research
phases:
  - {name: initial_research, instructions: 'Read about {{ input.topic }}.', tackle: [web_search], rules: {max_turns: 5}}
  - {name: fact_check, instructions: Check the claims., context: {from: [{phase: initial_research, include: [messages]}]}}
  - name: synthesize
    instructions: Write it up.
    context:
      include_input: no
      from:
        - {phase: initial_research, include: [messages]}
        - {phase: fact_check, include: [messages]}
",
            input: r#"{"topic": "tides"}"#,
            script: looks(1) + &said(&["Three points.", "They hold.", "The report."]),
        },
        Example {
            name: "iterative_refinement",
            cascade: "
cascade_id: iterative_refinement
phases:
  - {name: generate_v1, instructions: Draw it., tackle: [create_chart], context_retention: output_only}
  - {name: critique, instructions: Say what is wrong.}
  - {name: generate_v2, instructions: Draw it better.}
  - {name: compare, instructions: Compare both., inject_from: [{phase: generate_v1, include: [images]}]}
",
            input: "{}",
            script: draws.to_owned() + &said(&["v1", "too loud", "v2", "compared"]),
        },
        Example {
            name: "clean_slate",
            cascade: "
cascade_id: clean_slate
phases:
  - {name: a, instructions: Think about it.}
  - {name: fresh_perspective, instructions: 'Solve {{ input.problem }} from nothing.', context: {from: [], include_input: true}}
",
            input: r#"{"problem": "fog"}"#,
            script: said(&["thought", "solved"]),
        },
    ]
}

fn harness(script: &str) -> Harness {
    let page = "The tide rises twice a day.\n".repeat(40);
    Harness::new(script).with_image("create_chart", "aGk=").with_tool("web_search", &page)
}

/// The contexts that each phase's last request has on each API; `PLIMSOLL_WRITE_DOCS=1` writes them anew.
#[tokio::test]
async fn the_documented_examples_are_sent_as_they_were_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let writes = std::env::var_os("PLIMSOLL_WRITE_DOCS").is_some();
    for Example { name, cascade, input, script } in examples() {
        let harness = harness(&script);
        harness.run(cascade, input).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let asked = harness.model.asked.lock().expect("kept").clone();
        for (api, wire) in WIRES {
            let bodies = bodies(api, &asked).await;
            assert_eq!(bodies.len(), asked.len(), "{name} {api}");
            let mut sent = Vec::new();
            for body in &bodies {
                assert_eq!(strict(wire, body), [""; 0], "{name} {api}");
                sent.push(serde_json::from_slice::<Value>(body).expect("JSON"));
            }
            let text = serde_json::to_string_pretty(&sent).expect("JSON") + "\n";
            let path = folder.join(format!("{name}.{api}.json"));
            if writes {
                std::fs::create_dir_all(&folder).expect("a folder");
                std::fs::write(&path, &text).expect("written");
            }
            let golden = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                text == golden,
                "{} is not what is sent; `PLIMSOLL_WRITE_DOCS=1 cargo test -p plimsoll-cascade` writes it anew",
                path.display()
            );
        }
    }
}

/// Returns the context settings of a phase that stands behind `before` others.
fn context(before: usize) -> BoxedStrategy<String> {
    let include = prop::sample::subsequence(vec!["output", "messages", "images", "state"], 1..=3);
    let from = prop::sample::subsequence((0..before).collect::<Vec<_>>(), 0..=before);
    let role = prop::sample::select(vec!["", ", as_role: user", ", as_role: system"]);
    let chosen = (from, include, any::<bool>(), role).prop_map(|(from, include, input, role)| {
        let include = include.join(", ");
        let sources: Vec<String> =
            from.iter().map(|at| format!("{{phase: p{at}, include: [{include}]{role}}}")).collect();
        format!("    context: {{include_input: {input}, from: [{}]}}\n", sources.join(", "))
    });
    let auto = prop::sample::subsequence(vec!["output", "callouts", "input"], 0..=3).prop_map(|include| {
        let include = include.join(", ");
        format!("    context: {{mode: auto, anchors: {{include: [{include}]}}, selection: {{strategy: heuristic}}}}\n")
    });
    prop_oneof![
        2 => Just(String::new()),
        3 => chosen,
        2 => auto,
        1 => Just("    context_retention: output_only\n".to_owned()),
    ]
    .boxed()
}

fn phase(at: usize) -> impl Strategy<Value = String> {
    let tools = prop::sample::select(vec![
        "[]",
        "[web_search]",
        "[create_chart]",
        "[web_search, create_chart]",
    ]);
    let soundings = prop::sample::select(vec![
        "",
        "",
        "    soundings: {factor: 2, mode: aggregate}\n",
        "    soundings: {factor: 2}\n",
    ]);
    let intra = prop::sample::select(vec![
        "",
        "    intra_context: {window: 1, mask_observations_after: 1}\n",
    ]);
    (context(at), tools, 1..4_usize, soundings, intra).prop_map(
        move |(context, tools, turns, soundings, intra)| {
            format!(
                "  - name: p{at}\n    instructions: Do part {at}.\n    tackle: {tools}\n    rules: {{max_turns: {turns}}}\n{context}{soundings}{intra}"
            )
        },
    )
}

fn cascades() -> impl Strategy<Value = String> {
    (1..5_usize).prop_flat_map(|count| {
        let phases: Vec<_> = (0..count).map(|at| phase(at).boxed()).collect();
        phases.prop_map(|phases| format!("cascade_id: any\nphases:\n{}", phases.concat()))
    })
}

/// Returns what a model answers, turn by turn: text, calls of either tool, or both; an evaluator reads `1`.
fn script() -> impl Strategy<Value = String> {
    let turn = prop::sample::select(vec![
        r#"{"text": "1"}"#,
        r#"{"text": "1. I look.", "calls": [{"name": "web_search", "arguments": {"q": "x"}}]}"#,
        r#"{"calls": [{"name": "create_chart"}]}"#,
        r#"{"calls": [{"name": "web_search"}, {"name": "create_chart"}]}"#,
    ]);
    prop::collection::vec(turn, 60).prop_map(|turns| turns.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_context_is_refused_by_any_api(cascade in cascades(), script in script()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let harness = harness(&script);
            // A phase may fail; whatever was asked before has to be valid.
            let ended: Result<_, RunError> = harness.run(&cascade, r#"{"q": 1}"#).await;
            let asked = harness.model.asked.lock().expect("kept").clone();
            assert!(!asked.is_empty(), "{ended:?}\n{cascade}");
            for (api, wire) in WIRES {
                for body in bodies(api, &asked).await {
                    let faults = strict(wire, &body);
                    assert!(faults.is_empty(), "{api}: {faults:?}\n{cascade}\n{}", String::from_utf8_lossy(&body));
                }
            }
        });
    }
}
