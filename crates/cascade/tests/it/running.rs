//! What a run does: turns, tools, ways through the phases, loops, soundings, cascades inside cascades.

use plimsoll_cascade::run::{RunError, RunEvent};
use plimsoll_engine::ToolAnswer;
use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn phases_run_in_their_order_and_see_what_went_before() {
    let harness =
        Harness::new("{\"text\": \"one\"}\n{\"expect\": \"Carry out\", \"text\": \"two\"}");
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: 'First {{ input.what }}'}
  - {name: b, instructions: 'Second, after {{ outputs.a }}'}
";
    let outcome = harness.run(cascade, r#"{"what": "thing"}"#).await.expect("it runs");
    assert_eq!(outcome.output, "two");
    insta::assert_snapshot!(harness.model.context(1), @r#"
    user: [Original Input]:
    {
      "what": "thing"
    }
    ---
    system: First thing
    ---
    user: Carry out the phase `a`.
    ---
    assistant: one
    ---
    system: Second, after one
    ---
    user: Carry out the phase `b`.
    "#);
}

#[tokio::test]
async fn tools_are_called_until_the_model_has_said_all() {
    let script = r#"{"calls": [{"name": "look", "arguments": {"at": "quay"}}]}
{"expect": "seven boats", "calls": [{"name": "set_state", "arguments": {"key": "boats", "value": 7}}]}
{"text": "There are seven."}
{"expect": "Carry out", "text": "end"}"#;
    let harness = Harness::new(script).with_tool("look", "seven boats");
    let cascade = "
cascade_id: c
phases:
  - {name: count, instructions: Count the boats., tackle: [look, set_state]}
  - {name: tell, instructions: 'Say that there are {{ state.boats }}.', context: {from: []}}
";
    let outcome = harness.run(cascade, "{}").await.expect("it runs");
    assert_eq!(outcome.past.state["boats"], json!(7));
    assert!(harness.model.context(3).starts_with("system: Say that there are 7."));
    assert_eq!(harness.calls("look"), 1);
}

#[tokio::test]
async fn the_model_chooses_the_way_on_among_the_handoffs() {
    let script = r#"{"calls": [{"name": "route_to", "arguments": {"target": "nowhere"}}]}
{"expect": "is one of: left, right", "calls": [{"name": "route_to", "arguments": {"target": "right"}}]}
{"text": "went right"}"#;
    let harness = Harness::new(script);
    let cascade = "
cascade_id: c
phases:
  - {name: fork, instructions: Choose., rules: {max_turns: 3}, handoffs: [left, right]}
  - {name: left, instructions: L}
  - {name: right, instructions: R}
";
    let outcome = harness.run(cascade, "{}").await.expect("it runs");
    let ran: Vec<&str> = outcome.past.runs.iter().map(|ran| ran.phase.as_str()).collect();
    assert_eq!(ran, ["fork", "right"]);
}

#[tokio::test]
async fn a_circle_of_handoffs_is_bounded() {
    let line = r#"{"calls": [{"name": "route_to", "arguments": {"target": "a"}}]}"#;
    let harness = Harness::new(&[line; 20].join("\n"));
    let cascade = "
cascade_id: c
max_visits: 4
phases:
  - {name: a, instructions: Again., handoffs: [a]}
";
    let error = harness.run(cascade, "{}").await.expect_err("it ends");
    assert!(matches!(&error, RunError::Failed { why, .. } if why.contains("4 times")), "{error}");
    assert_eq!(harness.model.requests(), 4);
}

#[tokio::test]
async fn a_loop_goes_on_until_it_is_valid_and_retries_are_short() {
    // Attempts must be longer than what a retry shows of them, else going on costs less than beginning again.
    let long = "The quay is long. ".repeat(100);
    let script = format!(
        r#"{{"text": "try one {long}"}}
{{"expect": "Attempt #2", "text": "try two {long}"}}
{{"expect": "Attempt #3", "text": "try three"}}"#
    );
    let bad = r#"{"valid": false, "reason": "too short"}"#;
    let answers = format!("{bad}\n{bad}\n{{\"valid\": true, \"reason\": \"\"}}");
    let harness = Harness::new(&script).with_tool("check", &answers);
    let cascade = "
cascade_id: c
auto_context: {intra_phase: {}}
phases:
  - name: write
    instructions: Write.
    rules: {loop_until: check, max_attempts: 5}
";
    let outcome = harness.run(cascade, "{}").await.expect("it runs");
    assert_eq!(outcome.output, "try three");
    let context = harness.model.context(2);
    insta::assert_snapshot!(context.replace("The quay is long. ", ""), @"
    system: Write.

    Your answer will be checked by `check` (Does check.). You have 5 attempts.
    ---
    user: [Original Task]
    Carry out the phase `write`.
    ---
    assistant: [Attempt #1]
    try one The qu...
    ---
    user: [Validation Failed]
    too short
    ---
    assistant: [Attempt #2]
    try two The qu...
    ---
    user: [Validation Failed]
    too short
    ---
    user: Please try again (Attempt #3). Address the validation issues noted above.
    ");
}

#[tokio::test]
async fn settings_of_loops_change_what_a_retry_sees() {
    let bad = r#"{"valid": false, "reason": "too short"}"#;
    let long = "The quay is long. ".repeat(100);
    for (setting, header, first) in [
        ("{}", true, true),
        ("{compress_loops: no}", false, true),
        ("{loop_history_limit: 1}", true, false),
    ] {
        let harness = Harness::new(&format!(
            "{{\"text\": \"one {long}\"}}\n{{\"text\": \"two {long}\"}}\n{{\"text\": \"three\"}}"
        ))
        .with_tool("check", &format!("{bad}\n{bad}\n{{\"valid\": true, \"reason\": \"\"}}"));
        let cascade = format!(
            "
cascade_id: c
auto_context: {{intra_phase: {setting}}}
phases:
  - name: write
    instructions: Write.
    rules: {{loop_until: check, max_attempts: 5}}
"
        );
        harness.run(&cascade, "{}").await.expect("it runs");
        let context = harness.model.context(2);
        assert_eq!(context.contains("[Attempt #2]"), header, "{setting}: {context}");
        assert_eq!(context.contains("one"), first, "{setting}: {context}");
    }
}

#[tokio::test]
async fn a_loop_without_end_fails_its_phase() {
    let harness = Harness::new("{\"text\": \"a\"}\n{\"text\": \"b\"}")
        .with_tool("check", r#"{"valid": false, "reason": "never"}"#);
    let cascade = "
cascade_id: c
phases:
  - {name: write, instructions: Write., rules: {loop_until: check, max_attempts: 2, loop_until_silent: yes}}
";
    let error = harness.run(cascade, "{}").await.expect_err("it fails");
    assert_eq!(error.to_string(), "phase `write` failed: not valid after 2 attempts: never");
    assert!(harness.model.context(0).starts_with("system: Write.\n---"));
}

#[tokio::test]
async fn an_output_is_held_to_its_schema() {
    let script = r#"{"text": "no json"}
{"expect": "holds no JSON", "text": "{\"n\": \"x\"}"}
{"expect": "not of type", "text": "Here: ```json\n{\"n\": 3}\n```"}"#;
    let harness = Harness::new(script);
    let cascade = "
cascade_id: c
phases:
  - name: number
    instructions: A number.
    output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}
    output_extraction: {pattern: '\"n\": (\\d+)', store_as: n, format: json}
";
    let outcome = harness.run(cascade, "{}").await.expect("it runs");
    assert_eq!(outcome.past.state["n"], json!(3));
}

#[tokio::test]
async fn soundings_have_contexts_of_their_own_and_an_evaluator_picks() {
    let script = r#"{"text": "first"}
{"text": "second"}
{"text": "third"}
{"expect": "ATTEMPT 2:\nthird", "json": {"winner": 1, "reason": "liveliest"}}
{"expect": "Carry out", "text": "end"}"#;
    let harness = Harness::new(script);
    let cascade = "
cascade_id: c
phases:
  - name: draft
    instructions: 'Draft {{ sounding_index }}.'
    soundings: {factor: 3, evaluator_instructions: Take the liveliest.}
  - {name: after, instructions: 'Go on from {{ outputs.draft }}.', context: {from: []}}
";
    harness.run(cascade, "{}").await.expect("it runs");
    assert!(harness.model.context(1).starts_with("system: Draft 1."));
    assert!(!harness.model.context(2).contains("first"));
    assert!(harness.model.context(4).starts_with("system: Go on from second."));
    let events = harness.events.0.lock().expect("kept");
    assert!(
        events
            .iter()
            .any(|event| matches!(event, RunEvent::SoundingsEvaluated { winner: 1, of: 3, .. }))
    );
}

#[tokio::test]
async fn a_whole_cascade_can_be_sounded() {
    let script = r#"{"text": "one"}
{"text": "two"}
{"expect": "ATTEMPT 0:", "json": {"winner": 1}}"#;
    let harness = Harness::new(script);
    let cascade = "
cascade_id: c
soundings: {factor: 2, max_parallel: 1, evaluator_instructions: Pick.}
phases: [{name: a, instructions: A}]
";
    assert_eq!(harness.run(cascade, "{}").await.expect("it runs").output, "two");
    let once = Harness::new(script);
    let cascade = cascade.replace("factor: 2", "factor: 1");
    assert_eq!(once.run(&cascade, "{}").await.expect("it runs").output, "one");
    assert_eq!(once.model.requests(), 1);
}

#[tokio::test]
async fn state_flows_into_a_cascade_inside_and_back() {
    let script = r#"{"calls": [{"name": "set_state", "arguments": {"key": "code", "value": "BLUE"}}]}
{"calls": [{"name": "set_state", "arguments": {"key": "done", "value": true}}]}
{"expect": "Carry out", "text": "verified"}"#;
    let harness = Harness::new(script).with_cascade(
        "child.yaml",
        "
cascade_id: child
phases: [{name: step, instructions: 'The code is {{ input.code }}.', rules: {max_turns: 1}, tackle: [set_state]}]
",
    );
    let cascade = "
cascade_id: parent
phases:
  - {name: setup, instructions: Set., rules: {max_turns: 1}, tackle: [set_state]}
  - {name: verify, instructions: 'State: {{ state.done }}', context: {from: []}, sub_cascades: [{ref: child.yaml}]}
";
    let outcome = harness.run(cascade, "{}").await.expect("it runs");
    assert_eq!(outcome.past.state["done"], json!(true));
    assert!(harness.model.context(1).contains("The code is BLUE."));
    assert!(harness.model.context(2).contains("[Output from child]:"));
}

#[tokio::test]
async fn cascades_that_call_each_other_in_a_circle_are_stopped() {
    let text = "
cascade_id: snake
phases: [{name: bite, instructions: B, sub_cascades: [snake.yaml]}]
";
    let harness = Harness::new("").with_cascade("snake.yaml", text);
    let error = harness.run(text, "{}").await.expect_err("it is stopped");
    assert!(error.to_string().contains("in a circle"), "{error}");
}

#[tokio::test]
async fn a_phase_can_be_one_call_of_a_tool_that_chooses_the_way_on() {
    let harness = Harness::new("{\"text\": \"fresh\"}")
        .with_tool("look_up", r#"{"hit": false, "_route": "make"}"#);
    let cascade = "
cascade_id: c
phases:
  - name: cache
    tool: look_up
    inputs: {key: '{{ input.q }}', deep: {list: ['{{ input.q }}', 3]}}
    handoffs: [cached, make]
  - {name: cached, instructions: C}
  - {name: make, instructions: 'Make; hit was {{ outputs.cache.hit }}.', context: {from: [cache]}}
";
    let outcome = harness.run(cascade, r#"{"q": "tides"}"#).await.expect("it runs");
    assert_eq!(outcome.output, "fresh");
    let calls = harness.tools.calls.lock().expect("kept");
    assert_eq!(calls[0].1, r#"{"key":"tides","deep":{"list":["tides",3]}}"#);
    drop(calls);
    let context = harness.model.context(0);
    assert!(context.contains("hit was False") && !context.contains("_route"), "{context}");
}

#[tokio::test]
async fn a_failure_is_met_as_the_phase_says() {
    for (on_error, end) in
        [("rescue", "rescued"), ("continue", "[failed: phase `a` failed: broken]")]
    {
        let harness = Harness::new("{\"text\": \"rescued\"}")
            .with_answer("break", ToolAnswer::failed("broken"));
        let cascade = format!(
            "
cascade_id: c
phases:
  - {{name: a, tool: break, on_error: {on_error}, handoffs: [end_here]}}
  - {{name: rescue, instructions: R}}
  - {{name: end_here, tool: fine}}
"
        );
        let harness = harness.with_tool("fine", "fine");
        let outcome = harness.run(&cascade, "{}").await.expect("it goes on");
        assert!(
            outcome.past.runs.iter().any(|ran| ran.output == end),
            "{on_error}: {:?}",
            outcome.past
        );
    }
    let script = r#"{"expect": "\"n\":1", "json": {"n": 2}}"#;
    let harness = Harness::new(script).with_answer("break", ToolAnswer::failed("broken"));
    let cascade = "
cascade_id: c
phases: [{name: a, tool: break, inputs: {n: 1}, on_error: {auto_fix: {max_attempts: 1}}}]
";
    assert!(harness.run(cascade, "{}").await.is_err());
    assert_eq!(harness.calls("break"), 2);
}

#[tokio::test]
async fn a_call_that_was_mended_leads_on_as_any_other() {
    let script = "{\"json\": {\"n\": 2}}\n{\"text\": \"right\"}";
    let harness =
        Harness::new(script).with_failing_once("mend", "not yet", r#"{"n": 2, "_route": "right"}"#);
    let cascade = "
cascade_id: c
phases:
  - {name: a, tool: mend, inputs: {n: 1}, on_error: auto_fix, handoffs: [left, right], output_extraction: {pattern: '\"n\":(\\d)', store_as: n}}
  - {name: left, instructions: L}
  - {name: right, instructions: R}
";
    let outcome = harness.run(cascade, "{}").await.expect("it is mended");
    assert_eq!(outcome.output, "right");
    assert_eq!(outcome.past.state["n"], json!("2"));
}

#[tokio::test]
async fn a_session_that_cannot_be_a_folder_is_refused() {
    let harness = Harness::new("");
    let cascade = crate::harness::cascade("{cascade_id: c, phases: [{name: a, instructions: A}]}");
    for id in ["..", ".", ":x"] {
        let session = plimsoll_engine::SessionId::new(id).expect("an id");
        let input = serde_json::Map::new();
        let error =
            harness.runner.run(cascade.clone(), input, &session).await.expect_err("refused");
        assert!(matches!(error, RunError::Missing { .. }), "{error}");
    }
    assert_eq!(harness.model.requests(), 0);
}

#[tokio::test]
async fn wards_block_warn_and_try_again() {
    let no = r#"{"valid": false, "reason": "rude"}"#;
    let blocked = Harness::new("").with_tool("check", no);
    let cascade = |wards: &str| {
        format!("{{cascade_id: c, phases: [{{name: a, instructions: A, wards: {wards}}}]}}")
    };
    let error =
        blocked.run(&cascade("{pre: [{validator: check}]}"), "{}").await.expect_err("blocked");
    assert!(error.to_string().contains("rude"), "{error}");
    let warned = Harness::new("{\"text\": \"x\"}").with_tool("check", no);
    let advisory = cascade("{post: [{validator: check, mode: advisory}]}");
    warned.run(&advisory, "{}").await.expect("it goes on");
    assert!(warned.events.notes().iter().any(|note| note.contains("rude")));
    let script = "{\"text\": \"x\"}\n{\"expect\": \"rude\", \"text\": \"y\"}";
    let again = Harness::new(script).with_tool("check", &format!("{no}\n{{\"valid\": true}}"));
    let retry = cascade("{post: [{validator: check, mode: retry, max_attempts: 3}]}");
    assert_eq!(again.run(&retry, "{}").await.expect("it runs").output, "y");
}

#[tokio::test]
async fn what_is_missing_is_said_before_anything_is_done() {
    let harness = Harness::new("");
    let cascade = "{cascade_id: c, phases: [{name: a, instructions: A, tackle: [set_sate]}]}";
    let error = harness.run(cascade, "{}").await.expect_err("missing");
    let said =
        "phase `a` needs the tool `set_sate`, and no source has it, the nearest is `set_state`";
    assert_eq!(error.to_string(), said);
    let cascade =
        "{cascade_id: c, phases: [{name: a, instructions: A, rules: {loop_until: judge}}]}";
    let error = harness.run(cascade, "{}").await.expect_err("missing");
    assert!(error.to_string().contains("the validator `judge`"), "{error}");
    assert_eq!(harness.model.requests(), 0);
}

#[tokio::test]
async fn a_model_picks_its_tools_from_the_manifest() {
    let script = r#"{"expect": "look: Does look.", "json": {"tools": ["look", "fly"]}}
{"text": "done"}"#;
    let harness = Harness::new(script).with_tool("look", "seen");
    let cascade = "{cascade_id: c, phases: [{name: a, instructions: A, tackle: manifest}]}";
    harness.run(cascade, "{}").await.expect("it runs");
    let asked = harness.model.asked.lock().expect("kept");
    let tools: Vec<&str> = asked[1].tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(tools, ["look"]);
    assert_eq!(harness.events.notes(), ["no such tools: fly"]);
}

#[tokio::test]
async fn turns_without_calls_go_on_only_where_the_rules_say_so() {
    let line = "{\"text\": \"x\"}\n".repeat(5);
    let run = async |rules: &str, tackle: &str| {
        let harness = Harness::new(&line).with_tool("look", "seen");
        let cascade = format!(
            "{{cascade_id: c, phases: [{{name: a, instructions: A, tackle: [{tackle}], rules: {rules}}}]}}"
        );
        harness.run(&cascade, "{}").await.expect("it runs");
        harness.model.requests()
    };
    assert_eq!(run("{}", "").await, 1);
    assert_eq!(run("{max_turns: 3}", "").await, 3);
    assert_eq!(run("{max_turns: 3}", "look").await, 1);
    assert_eq!(run("{max_turns: 3, turn_prompt: 'Turn {{ turn }}'}", "look").await, 3);
}

#[tokio::test]
async fn what_is_left_out_can_be_looked_up_and_that_takes_no_turn() {
    let lines: Vec<String> = (0..400).map(|line| format!("line {line} of a long result")).collect();
    let long = lines.join("\n");
    let look = r#"{"calls": [{"name": "look"}]}"#;
    let expand = r#"{"calls": [{"name": "expand_ref", "arguments": {"ref": "REF", "first_line": 200, "last_line": 200}}]}"#;
    let answer = r#"{"text": "seen all"}"#;
    let first = [[look; 8].join("\n"), answer.to_owned()].join("\n");
    let first = Harness::new(&first).with_tool("look", &long);
    let cascade = "
cascade_id: c
auto_context: {intra_phase: {cadence: every_turn, mask_observations_after: 1}}
phases: [{name: a, instructions: A, tackle: [look], rules: {max_turns: 8}}]
";
    first.run(cascade, "{}").await.expect("it runs");
    let context = first.model.context(5);
    let (_, rest) = context.split_once("ref:message:").expect("something was left out");
    let reference = format!("ref:message:{}", &rest[..16]);
    let mut script = [look; 8].map(str::to_owned);
    script[5] = expand.replace("REF", &reference);
    let script =
        format!("{}\n{{\"expect\": \"line 199 of\", \"text\": \"x\"}}", script[..6].join("\n"));
    let again = Harness::new(&script).with_tool("look", &long);
    let cascade = cascade.replace("max_turns: 8", "max_turns: 6");
    assert_eq!(again.run(&cascade, "{}").await.expect("it runs").output, "x");
    let asked = again.model.asked.lock().expect("kept");
    let offers =
        |request: usize| asked[request].tools.iter().any(|tool| &*tool.name == "expand_ref");
    // The tool costs in every request, so it is offered from the first ref on.
    assert!(!offers(0) && offers(5));
}

#[tokio::test]
async fn a_known_payload_is_kept_with_what_it_is_about() {
    let items: Vec<String> = (0..40)
        .map(|n| format!(r#"{{"full_name": "quay/boat-{n}", "html_url": "https://example.org/quay/boat-{n}", "stargazers_count": {n}, "updated_at": "2026-01-02T03:04:05Z"}}"#))
        .collect();
    let search = format!(r#"{{"total_count": 40, "items": [{}]}}"#, items.join(", "));
    let script = "{\"calls\": [{\"name\": \"search\"}]}\n{\"text\": \"x\"}";
    let harness = Harness::new(script).with_tool("search", &search);
    let cascade = "{cascade_id: c, phases: [{name: a, instructions: A, tackle: [search]}]}";
    harness.run(cascade, "{}").await.expect("it runs");
    let query = plimsoll_engine::RefQuery { limit: 9, ..plimsoll_engine::RefQuery::default() };
    let kept = harness.runner.knowledge.artefacts(&harness.runner.tenant, &query).await;
    let kept = kept.expect("refs");
    assert_eq!(kept[0].reference.kind.0, "github_search");
    let view = kept[0].compressed.as_deref().expect("a view");
    assert!(view.contains("quay/boat-0") && view.len() < search.len() / 2, "{view}");
}

#[tokio::test]
async fn images_are_saved_under_session_and_phase() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = r#"{"calls": [{"name": "draw"}]}
{"text": "drawn"}"#;
    let mut harness = Harness::new(script).with_image("draw", "aGk=");
    harness.runner.settings.images = Some(folder.path().to_owned());
    let cascade = "{cascade_id: c, phases: [{name: chart, instructions: Draw., tackle: [draw]}]}";
    harness.run(cascade, "{}").await.expect("it runs");
    let file = folder.path().join("images/run/chart/image_0.png");
    assert_eq!(std::fs::read(file).expect("an image"), b"hi");
}
