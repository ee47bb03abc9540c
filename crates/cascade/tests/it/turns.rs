//! The turns of a phase: results of the last one are used, and an answer has the form that the phase asks for.

use plimsoll_cascade::run::{Purpose, RunEvent};
use plimsoll_engine::{Response, ToolUse};

use crate::harness::Harness;

fn purposes(harness: &Harness) -> Vec<Purpose> {
    let events = harness.events.0.lock().expect("kept");
    let purposes = events.iter().filter_map(|event| match event {
        RunEvent::Turn { purpose, .. } => Some(*purpose),
        _ => None,
    });
    purposes.collect()
}

#[tokio::test]
async fn results_of_the_last_turn_reach_the_model() {
    let script = r#"{"text": "Looking.", "calls": [{"name": "look"}]}
{"expect": "No turn is left", "text": "Seven boats.", "calls": [{"name": "look"}]}
{"text": "end"}"#;
    let harness = Harness::new(script).with_tool("look", "seven boats");
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: Count., tackle: [look], rules: {max_turns: 1}}
  - {name: b, instructions: 'They are: {{ outputs.a }}', context: {from: []}}
";
    harness.run(cascade, "{}").await.expect("it runs");
    assert_eq!(harness.calls("look"), 1, "the answer's own call is not run");
    insta::assert_snapshot!(harness.model.context(1), @r#"
    system: Count.
    ---
    user: Carry out the phase `a`.
    ---
    assistant: Looking.
    look {}
    ---
    tool: seven boats
    ---
    user: No turn is left for tools. Give your answer now, with what the tools returned.
    "#);
    assert!(harness.model.context(2).starts_with("system: They are: Seven boats."));
    let asked = harness.model.asked.lock().expect("kept");
    assert_eq!((asked[0].tool_use, asked[1].tool_use), (ToolUse::Free, ToolUse::Never));
    assert_eq!(asked[1].tools, asked[0].tools, "the tools of the prefix stay");
    assert_eq!(purposes(&harness), [Purpose::Turn, Purpose::FinalAnswer, Purpose::Turn]);
    let notes = harness.events.notes();
    assert!(notes[0].contains("turn 1 of 1 called tools"), "{notes:?}");
    assert!(notes[1].contains("not called, since no turn is left: look"), "{notes:?}");
}

#[tokio::test]
async fn a_model_is_told_the_schema_of_its_output_and_what_is_wrong_with_it() {
    let script = r#"{"text": "{\"n\": \"x\"}"}
{"expect": "\"x\" is not of type \"integer\" at `/n`", "text": "{\"n\": 3}"}"#;
    let harness = Harness::new(script);
    let cascade = "
cascade_id: c
phases:
  - name: a
    instructions: A number.
    output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}
";
    harness.run(cascade, "{}").await.expect("it runs");
    let asked = harness.model.asked.lock().expect("kept");
    for request in asked.iter() {
        let Response::Json { schema } = &request.response else { panic!("no schema is sent") };
        assert!(schema.contains(r#""n":{"type":"integer"}"#), "{schema}");
    }
}

#[tokio::test]
async fn a_schema_of_a_text_accepts_text() {
    for schema in
        ["{type: string, minLength: 3}", "{type: [string, 'null']}", "{enum: [four, five]}"]
    {
        let harness = Harness::new(r#"{"text": "four"}"#);
        let cascade = format!(
            "{{cascade_id: c, phases: [{{name: a, instructions: A., output_schema: {schema}}}]}}"
        );
        assert_eq!(harness.run(&cascade, "{}").await.expect("it runs").output, "four", "{schema}");
    }
    // One that names fields without a type means an object.
    let harness = Harness::new("{\"text\": \"four\"}\n{\"json\": {\"a\": 1}}");
    let cascade =
        "{cascade_id: c, phases: [{name: a, instructions: A., output_schema: {required: [a]}}]}";
    assert_eq!(harness.run(cascade, "{}").await.expect("it runs").output, r#"{"a":1}"#);
}

#[tokio::test]
async fn contexts_begin_with_the_user_on_every_way() {
    let auto =
        "context: {mode: auto, anchors: {include: [output]}, selection: {strategy: heuristic}}";
    let output =
        "context: {include_input: no, from: [{phase: a, include: [messages], as_role: system}]}";
    for (context, soundings) in
        [(auto, ""), (output, ""), ("tackle: []", "soundings: {factor: 2, mode: aggregate}")]
    {
        let harness = Harness::new(&"{\"text\": \"x\"}\n".repeat(4));
        let cascade = format!(
            "
cascade_id: c
phases:
  - name: a
    instructions: A.
    {soundings}
  - name: b
    instructions: B.
    {context}
"
        );
        harness.run(&cascade, "{}").await.expect("it runs");
        let asked = harness.model.asked.lock().expect("kept");
        let last = asked.last().expect("a request");
        let first = last.messages.iter().find(|message| message.role.as_str() != "system");
        let first = first.expect("a message");
        assert_eq!(first.role.as_str(), "user", "{context}: {:#?}", last.messages);
    }
}

#[tokio::test]
async fn the_account_has_every_call_by_its_purpose() {
    let script = r#"{"text": "one"}
{"text": "two"}
{"json": {"winner": 1, "reason": "longer"}}
{"json": {"valid": true, "reason": "fine"}}
{"json": {"selected_ids": [], "reasoning": "none"}}
{"text": "end"}"#;
    let harness = Harness::new(script);
    let cascade = "
cascade_id: c
validators: {fine: {prompt: Is it fine?}}
phases:
  - {name: a, instructions: A., soundings: {factor: 2, max_parallel: 1, evaluator_instructions: The best.}}
  - {name: b, instructions: B., context: {mode: auto, anchors: {include: [input]}, selection: {strategy: llm}}}
";
    let cascade = cascade.replace(
        "evaluator_instructions: The best.}}",
        "evaluator_instructions: The best.}, rules: {max_attempts: 1}}",
    );
    harness.run(&cascade, "{}").await.expect("it runs");
    let expected =
        [Purpose::Turn, Purpose::Turn, Purpose::Evaluator, Purpose::Selector, Purpose::Turn];
    assert_eq!(purposes(&harness), expected);
    assert_eq!(harness.model.requests(), expected.len());
    let events = harness.events.0.lock().expect("kept");
    for event in events.iter() {
        let RunEvent::Turn { purpose, cost, full_cost, priced_as, reported_tokens, .. } = event
        else {
            continue;
        };
        assert!(*cost > 0.0 && reported_tokens.is_some() && !priced_as.is_empty(), "{event:?}");
        assert_eq!(*full_cost == 0.0, *purpose == Purpose::Selector, "{event:?}");
    }
}
