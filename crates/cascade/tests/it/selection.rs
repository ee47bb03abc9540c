//! What is sent within a phase and between phases under the settings of `auto-context.md`.

use plimsoll_cascade::run::RunEvent;

use crate::harness::Harness;

const TURNS: usize = 6;

/// Runs a phase whose turns have long texts beside their calls, and returns the last context.
async fn texts_beside_calls(intra: &str) -> String {
    let long = "I look at the tide. ".repeat(140);
    let call = format!("{{\"text\": \"{long}\", \"calls\": [{{\"name\": \"look\"}}]}}\n");
    let harness = Harness::new(&(call.repeat(TURNS) + "{\"text\": \"end\"}\n"));
    let harness = harness.with_tool("look", "a result");
    let cascade = format!(
        "
cascade_id: c
phases: [{{name: a, instructions: A, tackle: [look], rules: {{max_turns: 9}}, intra_context: {{{intra}}}}}]
"
    );
    harness.run(&cascade, "{}").await.expect("it runs");
    harness.model.context(TURNS)
}

#[tokio::test]
async fn old_texts_beside_calls_shrink() {
    let intra = "cadence: every_turn, window: 2, mask_observations_after: 1";
    let kept = texts_beside_calls("enabled: no").await;
    let reasoning = texts_beside_calls(intra).await;
    let without = texts_beside_calls(&format!("{intra}, preserve_reasoning: no")).await;
    assert_eq!(kept.matches("[Called tools: look").count(), 0);
    // The document keeps 2,000 characters of reasoning.
    assert!(reasoning.len() + 2_000 < kept.len(), "{} of {}", reasoning.len(), kept.len());
    assert!(without.contains("[Called tools: look"), "{without}");
    assert!(without.len() < reasoning.len(), "{} of {}", without.len(), reasoning.len());
}

/// Three phases of two turns each, and a last one with these settings; returns its context.
async fn behind_three_phases(
    cascade: &str,
    phase: &str,
    asks: bool,
) -> (String, Vec<String>, Harness) {
    let said = |name: &str| {
        format!(
            "{{\"text\": \"{name} looks.\", \"calls\": [{{\"name\": \"look\"}}]}}\n{{\"text\": \"{name} says that the tide turns.\"}}\n"
        )
    };
    let script = ["first", "second", "third"].map(said).concat();
    let choice = if asks { "{\"json\": {\"selected\": []}}\n" } else { "" };
    let script = format!("{script}{choice}{{\"text\": \"end\"}}\n");
    let harness = Harness::new(&script).with_tool("look", "The tide table of the quay.");
    let text = format!(
        "
cascade_id: c
{cascade}
phases:
  - {{name: first, instructions: Look at the tide., tackle: [look]}}
  - {{name: second, instructions: Look at the quay., tackle: [look]}}
  - {{name: third, instructions: Look at the moon., tackle: [look]}}
  - {{name: last, instructions: When does the tide turn?{phase}}}
"
    );
    harness.run(&text, r#"{"port": "Hull"}"#).await.expect("it runs");
    let names = harness.model.names.lock().expect("kept").iter().flatten().cloned().collect();
    (harness.model.context(6 + usize::from(asks)), names, harness)
}

#[tokio::test]
async fn empty_settings_are_the_defaults() {
    let auto = ", context: {mode: auto}";
    let (bare, ..) = behind_three_phases("auto_context: {}", auto, true).await;
    let spelled = "auto_context: {inter_phase: {enabled: yes, strategy: hybrid, anchors: {window: 3, from_phases: [previous], include: [output, callouts, input]}, selection: {max_tokens: 30000, recency_weight: 0.3, keyword_weight: 0.4, callout_weight: 0.3}}}";
    let (said, ..) = behind_three_phases(spelled, auto, true).await;
    assert_eq!(bare, said);
    let (everything, ..) = behind_three_phases("", "", false).await;
    assert_ne!(bare, everything, "the defaults select");
}

#[tokio::test]
async fn anchors_name_their_phases_and_their_window() {
    let anchors = |anchors: &str| {
        format!(
            ", context: {{mode: auto, anchors: {{{anchors}}}, selection: {{strategy: heuristic, max_tokens: 60}}}}"
        )
    };
    let (all, ..) =
        behind_three_phases("", &anchors("from_phases: [first, second], include: [output]"), false)
            .await;
    assert!(all.contains("[Output from first]") && all.contains("[Output from second]"), "{all}");
    assert!(!all.contains("[Output from third]") && !all.contains("[Original Input]"), "{all}");
    let visit = async |window: usize| {
        let script = "{\"text\": \"one\", \"calls\": [{\"name\": \"look\"}]}\n{\"text\": \"two\", \"calls\": [{\"name\": \"route_to\", \"arguments\": {\"phase\": \"b\"}}]}\n{\"text\": \"between\", \"calls\": [{\"name\": \"route_to\", \"arguments\": {\"phase\": \"a\"}}]}\n{\"text\": \"end\"}\n";
        let harness = Harness::new(script).with_tool("look", "a tide table");
        let cascade = format!(
            "
cascade_id: c
phases:
  - {{name: a, instructions: A, tackle: [look], handoffs: [b, c], context: {{mode: auto, anchors: {{window: {window}, include: [output]}}, selection: {{strategy: heuristic, max_tokens: 1}}}}}}
  - {{name: b, instructions: B, handoffs: [a]}}
  - {{name: c, instructions: C}}
"
        );
        let _ = harness.run(&cascade, "{}").await;
        harness.model.context(3)
    };
    let (none, some) = (visit(0).await, visit(3).await);
    assert!(!none.contains("a tide table"), "{none}");
    assert!(some.contains("a tide table"), "{some}");
}

#[tokio::test]
async fn the_selector_is_the_cheap_model_and_the_account_has_what_selection_saved() {
    let auto = ", context: {mode: auto, anchors: {include: [output]}, selection: {strategy: llm}}";
    let (_, names, harness) = behind_three_phases("", auto, true).await;
    assert_eq!(names.last().map(String::as_str), Some("google/gemini-2.5-flash-lite"), "{names:?}");
    let own =
        "auto_context: {inter_phase: {enabled: yes, strategy: llm, selector_model: up/small}}";
    let (_, names, _) = behind_three_phases(own, ", context: {mode: auto}", true).await;
    assert_eq!(names.last().map(String::as_str), Some("up/small"), "{names:?}");
    let events = harness.events.0.lock().expect("kept");
    let selected = events.iter().find_map(|event| match event {
        RunEvent::ContextSelected { full_tokens, selected_tokens, .. } => {
            Some((*full_tokens, *selected_tokens))
        }
        _ => None,
    });
    let (full, selected) = selected.expect("a selection");
    assert!(selected < full, "{selected} of {full}");
}
