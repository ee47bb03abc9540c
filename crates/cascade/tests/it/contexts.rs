//! The contexts of `context-injection.md`, byte for byte.

use plimsoll_cascade::run::RunEvent;

use crate::harness::Harness;

/// Runs a cascade whose model says `one`, `two` and so on, and returns the context of its last phase.
async fn last_context(cascade: &str, turns: usize, input: &str) -> String {
    let words = ["one", "two", "three", "four", "five"];
    let script: Vec<String> =
        words[..turns].iter().map(|word| format!("{{\"text\": \"{word}\"}}")).collect();
    let harness = Harness::new(&script.join("\n"));
    harness.run(cascade, input).await.expect("it runs");
    harness.model.context(turns - 1)
}

#[tokio::test]
async fn a_phase_with_sources_sees_only_those_in_their_order() {
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: A}
  - {name: b, instructions: B}
  - name: c
    instructions: C
    context: {from: [b, {phase: a, include: [output], as_role: system}]}
";
    insta::assert_snapshot!(last_context(cascade, 3, r#"{"x": 1}"#).await, @r#"
    user: [Original Input]:
    {
      "x": 1
    }
    ---
    user: [Output from b]:
    two
    ---
    system: [Output from a]:
    one
    ---
    system: C
    ---
    user: Carry out the phase `c`.
    "#);
}

#[tokio::test]
async fn a_conversation_is_replayed_with_its_roles() {
    let cascade = |filter: &str| {
        format!(
            "
cascade_id: c
phases:
  - {{name: a, instructions: Research the topic., rules: {{max_turns: 2}}}}
  - name: b
    instructions: B
    context: {{include_input: no, from: [{{phase: a, include: [messages], {filter}}}]}}
"
        )
    };
    insta::assert_snapshot!(last_context(&cascade("messages_filter: all"), 3, "{}").await, @"
    user: [Conversation from a]:
    ---
    user: Research the topic.
    ---
    user: Carry out the phase `a`.
    ---
    assistant: one
    ---
    user: Continue.
    ---
    assistant: two
    ---
    system: B
    ---
    user: Carry out the phase `b`.
    ");
    let only = last_context(&cascade("filter: assistant_only"), 3, "{}").await;
    assert!(
        only.starts_with(
            "user: [Conversation from a]:\n---\nassistant: one\n---\nassistant: two\n---\nsystem: B"
        ),
        "{only}"
    );
    let last = last_context(&cascade("messages_filter: last_turn"), 3, "{}").await;
    assert!(last.starts_with("user: [Conversation from a]:\n---\nuser: Continue.\n---\nassistant: two\n---\nsystem: B"), "{last}");
}

#[tokio::test]
async fn what_is_injected_stands_before_the_flowing_context() {
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: A, context_retention: output_only}
  - {name: b, instructions: B}
  - {name: c, instructions: C, inject_from: [{phase: a, include: [output]}]}
";
    insta::assert_snapshot!(last_context(cascade, 3, "{}").await, @"
    user: [Output from a]:
    one
    ---
    user: [Output from a]:
    one
    ---
    system: B
    ---
    user: Carry out the phase `b`.
    ---
    assistant: two
    ---
    system: C
    ---
    user: Carry out the phase `c`.
    ");
}

#[tokio::test]
async fn words_for_phases_mean_those_that_ran() {
    let cascade = |from: &str| {
        format!(
            "
cascade_id: c
phases:
  - {{name: a, instructions: A}}
  - {{name: b, instructions: B}}
  - {{name: c, instructions: C}}
  - {{name: d, instructions: D, context: {{include_input: no, {from}}}}}
"
        )
    };
    let sources = |context: String| -> Vec<String> {
        let lines = context.lines().filter_map(|line| line.strip_prefix("user: [Output from "));
        lines.map(|line| line.trim_end_matches("]:").to_owned()).collect()
    };
    for (from, expected) in [
        ("from: [first, previous]", &["a", "c"][..]),
        ("from: [all]", &["a", "b", "c"]),
        ("from: [all], exclude: [b]", &["a", "c"]),
        ("from: []", &[]),
        (
            "from: [{phase: a, condition: '{{ state.yes }}'}, {phase: b, condition: '{{ not state.yes }}'}]",
            &["b"],
        ),
    ] {
        assert_eq!(sources(last_context(&cascade(from), 4, "{}").await), expected, "{from}");
    }
}

#[tokio::test]
async fn images_are_injected_once_and_filtered() {
    let script = |turns: usize| {
        let mut lines: Vec<&str> = vec![
            r#"{"calls": [{"name": "draw"}]}"#,
            r#"{"calls": [{"name": "paint"}]}"#,
            r#"{"text": "drawn"}"#,
        ];
        lines.resize(3 + turns, r#"{"text": "seen"}"#);
        lines.join("\n")
    };
    let images = async |from: &str| {
        let harness =
            Harness::new(&script(1)).with_image("draw", "aQ==").with_image("paint", "ag==");
        let cascade = format!(
            "
cascade_id: c
phases:
  - {{name: chart, instructions: Draw., tackle: [draw, paint]}}
  - {{name: look, instructions: Look., context: {{include_input: no, from: [{from}]}}}}
"
        );
        harness.run(&cascade, "{}").await.expect("it runs");
        let context = harness.model.context(3);
        context.matches("[image]").count()
    };
    assert_eq!(images("chart").await, 2);
    assert_eq!(images("{phase: chart, include: [images], images_filter: last}").await, 1);
    assert_eq!(
        images("{phase: chart, include: [images], images_filter: last_n, images_count: 2}").await,
        2
    );
    assert_eq!(images("{phase: chart, include: [images], images_filter: last}, chart").await, 2);
    assert_eq!(images("{phase: chart, include: [output]}").await, 0);
}

#[tokio::test]
async fn the_state_that_a_phase_set_is_injected_as_json() {
    let script = r#"{"calls": [{"name": "set_state", "arguments": {"key": "k", "value": [1]}}]}
{"text": "end"}"#;
    let harness = Harness::new(script);
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: A, tackle: [set_state], rules: {max_turns: 1}}
  - {name: b, instructions: B, context: {include_input: no, from: [{phase: a, include: [state]}]}}
";
    harness.run(cascade, "{}").await.expect("it runs");
    assert!(
        harness
            .model
            .context(1)
            .starts_with("user: [State from a]:\n{\n  \"k\": [\n    1\n  ]\n}\n---\nsystem: B")
    );
}

#[tokio::test]
async fn a_phase_that_did_not_run_injects_nothing_and_says_so() {
    let script = r#"{"calls": [{"name": "route_to", "arguments": {"target": "c"}}]}
{"text": "end"}"#;
    let harness = Harness::new(script);
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: A, handoffs: [b, c]}
  - {name: b, instructions: B, handoffs: [c]}
  - {name: c, instructions: C, context: {include_input: no, from: [b]}}
";
    harness.run(cascade, "{}").await.expect("it runs");
    assert!(harness.model.context(1).starts_with("system: C"));
    assert_eq!(harness.events.notes(), ["nothing is injected from `b`: it did not run"]);
}

#[tokio::test]
async fn mode_auto_takes_anchors_and_what_the_model_chooses() {
    let script = r#"{"text": "The tide turns at six, says the table of the harbour master of the northern quay, which hangs in the hall beside the door, and it turns again at noon, as every sailor there will tell you if you ask him nicely."}
{"text": "two"}
{"expect": "AVAILABLE CONTEXT", "json": {"selected": [], "reasoning": "none"}}
{"text": "end"}"#;
    let harness = Harness::new(script);
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: When does the tide turn?}
  - {name: b, instructions: B}
  - name: c
    instructions: Sum it up.
    context: {mode: auto, selection: {strategy: hybrid}}
";
    harness.run(cascade, r#"{"x": 1}"#).await.expect("it runs");
    insta::assert_snapshot!(harness.model.context(3), @r#"
    user: [Original Input]
    {
      "x": 1
    }
    ---
    assistant: [Output from b]
    two
    ---
    system: Sum it up.
    ---
    user: Carry out the phase `c`.
    "#);
}

#[tokio::test]
async fn a_choice_that_fails_falls_back_and_says_so() {
    let script = r#"{"text": "The tide turns at six."}
{"text": "two"}
{"fault": "unavailable"}
{"text": "end"}"#;
    let harness = Harness::new(script);
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: A}
  - {name: b, instructions: B}
  - {name: c, instructions: When does the tide turn?, context: {mode: auto, selection: {strategy: llm}}}
";
    harness.run(cascade, "{}").await.expect("it runs");
    assert!(harness.model.context(3).contains("The tide turns at six."));
    let notes = harness.events.notes();
    assert!(notes[0].starts_with("the heuristic chose: "), "{notes:?}");
}

#[tokio::test]
async fn what_outlives_its_time_is_no_longer_shown() {
    let script = r#"{"calls": [{"name": "look"}]}
{"calls": [{"name": "look"}]}
{"text": "end"}"#;
    let harness = Harness::new(script).with_tool("look", "a long result");
    let cascade = "
cascade_id: c
phases: [{name: a, instructions: A, tackle: [look], context_ttl: {tool_results: 1}}]
";
    harness.run(cascade, "{}").await.expect("it runs");
    let context = harness.model.context(2);
    assert_eq!(context.matches("a long result").count(), 1, "{context}");
    assert!(context.contains("[Old tool result content cleared; ref:message:"), "{context}");
    let events = harness.events.0.lock().expect("kept");
    let last = events.iter().rev().find_map(|event| match event {
        RunEvent::Turn { full_tokens, sent_tokens, .. } => Some((*full_tokens, *sent_tokens)),
        _ => None,
    });
    let (full, sent) = last.expect("a turn");
    assert_ne!(full, sent, "what is no longer shown is not counted as sent");
}

#[tokio::test]
async fn a_selecting_model_is_sent_no_secrets() {
    let key = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let script = format!(
        "{{\"text\": \"The key is {key}.\"}}\n{{\"text\": \"two\"}}\n{{\"json\": {{\"selected\": []}}}}\n{{\"text\": \"end\"}}"
    );
    let harness = Harness::new(&script);
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: A}
  - {name: b, instructions: B}
  - {name: c, instructions: C, context: {mode: auto, selection: {strategy: llm}}}
";
    harness.run(cascade, "{}").await.expect("it runs");
    let menu = harness.model.context(2);
    assert!(menu.contains("AVAILABLE CONTEXT") && !menu.contains(&key), "{menu}");
}

/// The document's examples: their phases in short, with what their last phase sees.
#[tokio::test]
async fn the_chart_pipeline_sees_the_chart_its_check_and_the_forecast_alone() {
    let script = r#"{"calls": [{"name": "create_chart"}]}
{"text": "charted"}
{"text": "accurate"}
{"text": "inventory"}
{"text": "forecast"}
{"text": "report"}"#;
    let harness = Harness::new(script).with_image("create_chart", "aGk=");
    let cascade = "
cascade_id: chart_analysis_pipeline
phases:
  - {name: generate_chart, instructions: 'Create a sales chart from: {{ input.data }}', tackle: [create_chart]}
  - {name: validate_chart, instructions: Verify this chart., context: {from: [generate_chart]}}
  - {name: process_inventory, instructions: Analyze inventory., context: {from: []}}
  - {name: generate_forecast, instructions: Create a forecast., context: {from: []}}
  - name: final_report
    instructions: Create a report.
    context:
      from:
        - {phase: generate_chart, include: [images]}
        - {phase: validate_chart, include: [output]}
        - {phase: generate_forecast, include: [output]}
";
    harness.run(cascade, r#"{"data": [1]}"#).await.expect("it runs");
    insta::assert_snapshot!(harness.model.context(2), @r#"
    user: [Original Input]:
    {
      "data": [
        1
      ]
    }
    ---
    user: [Images from generate_chart]:
    [image]
    ---
    user: [Output from generate_chart]:
    charted
    ---
    system: Verify this chart.
    ---
    user: Carry out the phase `validate_chart`.
    "#);
    let input = "user: [Original Input]:\n{\n  \"data\": [\n    1\n  ]\n}\n---\n";
    assert_eq!(
        harness.model.context(3),
        format!(
            "{input}system: Analyze inventory.\n---\nuser: Carry out the phase `process_inventory`."
        )
    );
    assert_eq!(
        harness.model.context(5),
        format!(
            "{input}user: [Images from generate_chart]:\n[image]\n---\nuser: [Output from validate_chart]:\naccurate\n---\n\
             user: [Output from generate_forecast]:\nforecast\n---\nsystem: Create a report.\n---\nuser: Carry out the phase `final_report`."
        )
    );
}

#[tokio::test]
async fn research_is_replayed_with_its_calls_and_results() {
    let script = r#"{"text": "I search.", "calls": [{"name": "web_search", "arguments": {"q": "tides"}}]}
{"text": "Three points."}
{"text": "They hold."}
{"text": "The report."}"#;
    let harness = Harness::new(script).with_tool("web_search", "a page");
    let cascade = "
cascade_id: deep_research
phases:
  - {name: initial_research, instructions: 'Research {{ input.topic }}.', tackle: [web_search], rules: {max_turns: 5}}
  - {name: fact_check, instructions: Verify the claims., context: {from: [{phase: initial_research, include: [messages]}]}}
  - name: synthesize
    instructions: Create the report.
    context:
      include_input: no
      from:
        - {phase: initial_research, include: [messages]}
        - {phase: fact_check, include: [messages]}
";
    harness.run(cascade, r#"{"topic": "tides"}"#).await.expect("it runs");
    insta::assert_snapshot!(harness.model.context(3), @r#"
    user: [Conversation from initial_research]:
    ---
    user: Research tides.
    ---
    user: Carry out the phase `initial_research`.
    ---
    assistant: I search.
    web_search {"q":"tides"}
    ---
    tool: a page
    ---
    assistant: Three points.
    ---
    user: [Conversation from fact_check]:
    ---
    user: Verify the claims.
    ---
    user: Carry out the phase `fact_check`.
    ---
    assistant: They hold.
    ---
    system: Create the report.
    ---
    user: Carry out the phase `synthesize`.
    "#);
}

#[tokio::test]
async fn a_comparison_reaches_back_and_flows_on() {
    let script = r#"{"calls": [{"name": "create_chart"}]}
{"text": "v1"}
{"text": "too loud"}
{"text": "v2"}
{"text": "compared"}"#;
    let harness = Harness::new(script).with_image("create_chart", "aGk=");
    let cascade = "
cascade_id: iterative_refinement
phases:
  - {name: generate_v1, instructions: Create., tackle: [create_chart], context_retention: output_only}
  - {name: critique, instructions: Critique.}
  - {name: generate_v2, instructions: Improve.}
  - {name: compare, instructions: Compare., inject_from: [{phase: generate_v1, include: [images]}]}
";
    harness.run(cascade, "{}").await.expect("it runs");
    let context = harness.model.context(4);
    assert!(context.starts_with("user: [Images from generate_v1]:\n[image]\n---\nuser: [Output from generate_v1]:\nv1\n---\nsystem: Critique."), "{context}");
    assert!(
        context.ends_with(
            "assistant: v2\n---\nsystem: Compare.\n---\nuser: Carry out the phase `compare`."
        ),
        "{context}"
    );
}

#[tokio::test]
async fn a_fresh_start_sees_the_input_alone() {
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: A}
  - {name: fresh_perspective, instructions: 'Approach {{ input.problem }} from scratch.', context: {from: [], include_input: true}}
";
    insta::assert_snapshot!(last_context(cascade, 2, r#"{"problem": "fog"}"#).await, @r#"
    user: [Original Input]:
    {
      "problem": "fog"
    }
    ---
    system: Approach fog from scratch.
    ---
    user: Carry out the phase `fresh_perspective`.
    "#);
}
