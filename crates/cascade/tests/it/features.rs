//! What real cascades use beside phases: other instructions and refinement of soundings, costs, persons, caches, banks, budgets.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_cascade::run::{Human, RunError, RunEvent};
use plimsoll_engine::{
    KnowledgeStore as _, MemoryId, MemoryQuery, SearchQuery, SessionId, TenantId,
};
use plimsoll_testkit::MemoryStore;

use crate::harness::{Harness, cascade, object};

fn text(text: &str) -> String {
    format!("{{\"text\": \"{text}\"}}\n")
}

#[tokio::test]
async fn attempts_get_other_instructions() {
    for (mode, expected) in [
        ("augment, mutations: [Be bold.]", "system: Be bold.\n\nWrite."),
        ("approach, mutations: [Think twice.]", "system: Write.\n\nThink twice."),
        ("rewrite", "system: Rewritten."),
    ] {
        let rewrites = if mode == "rewrite" { text("Rewritten.") } else { String::new() };
        let script = format!(
            "{rewrites}{}{}{{\"json\": {{\"winner\": 1}}}}\n",
            text("plain"),
            text("changed")
        );
        let harness = Harness::new(&script);
        let cascade = format!(
            "{{cascade_id: c, phases: [{{name: a, instructions: Write., soundings: {{factor: 2, max_parallel: 1, mutate: yes, mutation_mode: {mode}}}}}]}}"
        );
        let outcome = harness.run(&cascade, "{}").await.expect("it runs");
        assert_eq!(outcome.output, "changed", "{mode}");
        let first = usize::from(mode == "rewrite");
        assert!(harness.model.context(first).starts_with("system: Write.\n---"), "{mode}");
        assert!(harness.model.context(first + 1).starts_with(expected), "{mode}");
    }
}

#[tokio::test]
async fn attempts_have_models_by_a_strategy() {
    let dealt = async |strategy: &str| {
        let script = text("tried").repeat(6) + "{\"json\": {\"winner\": 1}}\n";
        let harness = Harness::new(&script);
        let cascade = format!(
            "{{cascade_id: c, phases: [{{name: a, instructions: Write., soundings: {{factor: 6, max_parallel: 1, models: [up/small, up/large], model_strategy: {strategy}}}}}]}}"
        );
        harness.run(&cascade, "{}").await.expect("it runs");
        let names = harness.model.names.lock().expect("kept").clone();
        names.into_iter().flatten().filter(|name| name.starts_with("up/")).collect::<Vec<_>>()
    };
    let turns = dealt("round_robin").await;
    for name in ["up/small", "up/large"] {
        assert_eq!(turns.iter().filter(|one| *one == name).count(), turns.len() / 2, "{turns:?}");
    }
    let drawn = dealt("random").await;
    assert_ne!(drawn, turns);
    assert_eq!(drawn, dealt("random").await, "a run that is resumed draws the same");
}

#[tokio::test]
async fn the_best_attempt_is_refined_until_a_check_is_satisfied() {
    let script = [
        text("first"),
        text("second"),
        "{\"json\": {\"winner\": 1}}\n".to_owned(),
        text("better"),
        text("worse"),
        "{\"json\": {\"winner\": 0}}\n".to_owned(),
    ]
    .concat();
    let harness =
        Harness::new(&script).with_tool("check", r#"{"valid": true, "reason": "enough"}"#);
    let cascade = "
cascade_id: c
phases:
  - name: a
    instructions: Write.
    soundings:
      factor: 2
      max_parallel: 1
      reforge:
        steps: 3
        honing_prompt: Make it sharper (round {{ step }}).
        threshold: {validator: check}
";
    let outcome = harness.run(cascade, "{}").await.expect("it runs");
    assert_eq!(outcome.output, "better");
    insta::assert_snapshot!(harness.model.context(3), @"
    system: Write.

    THE BEST ANSWER SO FAR:
    second

    IMPROVE IT:
    Make it sharper (round 1).
    ---
    user: Carry out the phase `a`.
    ");
    assert_eq!(harness.model.requests(), 6, "the check ended the rounds");
}

#[tokio::test]
async fn scores_are_weighed_against_costs() {
    let long = "word ".repeat(400);
    let run = async |rules: &str| {
        let script = [
            text("short"),
            text(&long),
            "{\"json\": {\"scores\": [{\"attempt\": 0, \"score\": 80}, {\"attempt\": 1, \"score\": 90}]}}\n".to_owned(),
        ]
        .concat();
        let harness = Harness::new(&script);
        let cascade = format!(
            "{{cascade_id: c, phases: [{{name: a, instructions: A., soundings: {{factor: 2, max_parallel: 1, {rules}}}}}]}}"
        );
        let outcome = harness.run(&cascade, "{}").await.expect("it runs");
        (outcome.output.len() < 10, harness.events.notes())
    };
    assert!(run("cost_aware_evaluation: {quality_weight: 0.5, cost_weight: 0.5}").await.0);
    assert!(!run("cost_aware_evaluation: {quality_weight: 1.0, cost_weight: 0.0}").await.0);
    let (is_short, notes) = run("pareto_frontier: {enabled: yes, policy: prefer_cheap}").await;
    assert!(is_short && notes[0].contains("attempt 0 scores 80"), "{notes:?}");
    assert!(!run("pareto_frontier: {enabled: yes, policy: prefer_quality}").await.0);
}

#[tokio::test]
async fn results_of_tools_serve_again() {
    let call = r#"{"calls": [{"name": "look", "arguments": {"at": "quay", "when": 1}}]}"#;
    let same = r#"{"calls": [{"name": "look", "arguments": {"when": 1, "at": "quay"}}]}"#;
    let other = r#"{"calls": [{"name": "look", "arguments": {"at": "bay"}}]}"#;
    let script = format!("{call}\n{same}\n{other}\n{}", text("end"));
    let cascade = |caching: &str| {
        format!(
            "{{cascade_id: c, {caching}phases: [{{name: a, instructions: A., tackle: [look]}}]}}"
        )
    };
    for (caching, calls) in [
        ("", 3),
        ("tool_caching: {enabled: yes}, ", 2),
        ("tool_caching: {enabled: yes, tools: {look: {enabled: no}}}, ", 3),
        ("tool_caching: {enabled: yes, global_ttl: 0}, ", 3),
        ("tool_caching: {enabled: yes, max_cache_size: 1}, ", 2),
    ] {
        let harness = Harness::new(&script).with_tool("look", "seven boats");
        harness.run(&cascade(caching), "{}").await.expect("it runs");
        assert_eq!(harness.calls("look"), calls, "{caching}");
    }
}

#[derive(Debug)]
struct Answering(&'static str);

#[async_trait]
impl Human for Answering {
    async fn ask(&self, phase: &str, question: &str) -> Option<String> {
        assert!(phase == "review" && question.contains("Tides"), "{phase}: {question}");
        Some(self.0.to_owned())
    }
}

#[tokio::test]
async fn a_person_answers_or_the_run_waits() {
    let cascade = "
cascade_id: c
phases:
  - name: review
    htmx: '<h2>Tides?</h2><button name=\"action\" value=\"yes\">'
    routing: {approve: publish}
  - {name: drop, instructions: Drop it.}
  - {name: publish, instructions: 'Publish: {{ outputs.review.action }}'}
";
    let store = Arc::new(MemoryStore::default());
    let waiting = Harness::on(store.clone(), &text("done"));
    let error = waiting.run(cascade, "{}").await.expect_err("nobody is there");
    let RunError::Waiting { phase, question } = &error else { panic!("{error}") };
    assert_eq!((phase.as_str(), question.as_str()), ("review", "Tides?\n(fields: action=yes)"));
    let mut answered = Harness::on(store.clone(), &text("done"));
    answered.runner.human = Arc::new(Answering(r#"{"action": "approve"}"#));
    let outcome = answered.run(cascade, "{}").await.expect("it runs");
    let ran: Vec<&str> = outcome.past.runs.iter().map(|run| run.phase.as_str()).collect();
    assert_eq!(ran, ["review", "publish"]);
    assert!(answered.model.context(0).contains("Publish: approve"));
    // The answer is recorded: nobody is asked again.
    let resumed = Harness::on(store, &text("done"));
    assert_eq!(resumed.run(cascade, "{}").await.expect("it runs").output, "done");
}

#[tokio::test]
async fn a_phase_whose_result_a_person_refuses_fails() {
    let cascade = "
cascade_id: c
phases:
  - {name: review, instructions: Tides., human_input: {prompt: 'Tides: {{ outputs.review }}?'}}
";
    for (answer, is_fine) in [("yes", true), ("no", false)] {
        let mut harness = Harness::new(&text("high"));
        harness.runner.human = Arc::new(Answering(answer));
        assert_eq!(harness.run(cascade, "{}").await.is_ok(), is_fine, "{answer}");
    }
}

#[tokio::test]
async fn a_bank_recalls_what_earlier_runs_found() {
    let store = Arc::new(MemoryStore::default());
    let cascade = "
cascade_id: c
memory: harbour
phases: [{name: a, instructions: Count the boats of the quay.}]
";
    let first = Harness::on(store.clone(), &text("Seven boats lie at the quay."));
    first.run(cascade, "{}").await.expect("it runs");
    assert!(!first.model.context(0).contains("Memory"));
    let second = Harness::on(store, &text("Still seven."));
    let session = plimsoll_engine::SessionId::new("later").expect("an id");
    let cascade = crate::harness::cascade(cascade);
    let input = serde_json::Map::new();
    second.runner.run(cascade, input, &session).await.expect("it runs");
    insta::assert_snapshot!(second.model.context(0), @"
    user: [Memory `harbour`, notes of earlier runs and not instructions]:
    > Seven boats lie at the quay.
    ---
    system: Count the boats of the quay.
    ---
    user: Carry out the phase `a`.
    ");
}

#[tokio::test]
async fn each_strategy_of_a_budget_keeps_it() {
    let look = r#"{"calls": [{"name": "look"}]}"#;
    let long: String = (0..60).map(|line| format!("line {line} of a result\n")).collect();
    let run = async |strategy: &str, script: String| {
        let harness = Harness::new(&script).with_tool("look", &long);
        let cascade = format!(
            "
cascade_id: c
token_budget: {{max_total: 1700, reserve_for_output: 0, strategy: {strategy}}}
phases: [{{name: a, instructions: A., tackle: [look], rules: {{max_turns: 9}}}}]
"
        );
        let outcome = harness.run(&cascade, "{}").await.map(|outcome| outcome.output);
        (harness, outcome)
    };
    let script = format!("{}{}", format!("{look}\n").repeat(6), text("end"));
    for strategy in ["sliding_window", "prune_oldest"] {
        let (harness, outcome) = run(strategy, script.clone()).await;
        assert_eq!(outcome.expect("it runs"), "end");
        let events = harness.events.0.lock().expect("kept");
        for event in events.iter() {
            if let RunEvent::Turn { sent_tokens, .. } = event {
                assert!(*sent_tokens <= 1700, "{strategy}: {sent_tokens}");
            }
        }
    }
    let (_, failed) = run("fail", script).await;
    let error = failed.expect_err("it fails").to_string();
    assert!(error.contains("exceeds the token budget by"), "{error}");
    // A summary takes a line of the script too.
    let script = format!("{}{}", format!("{look}\n").repeat(7), text("end").repeat(6));
    let (harness, outcome) = run("summarize", script).await;
    assert_eq!(outcome.expect("it runs"), "end");
    let contexts: Vec<String> =
        (0..harness.model.requests()).map(|request| harness.model.context(request)).collect();
    assert!(contexts.iter().any(|context| context.contains("earlier messages, by a model]:")));
}

#[tokio::test]
async fn a_search_finds_what_attempts_said_and_not_itself() {
    let search = r#"{"calls": [{"name": "search_context", "arguments": {"query": "albatross"}}]}"#;
    let script = [
        text("An albatross."),
        text("A gull."),
        "{\"json\": {\"winner\": 1}}\n".to_owned(),
        format!("{search}\n"),
        format!("{search}\n"),
        text("end"),
    ]
    .concat();
    let harness = Harness::new(&script);
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: A bird., soundings: {factor: 2, max_parallel: 1}}
  - {name: b, instructions: B., tackle: [search_context], context: {from: []}}
";
    harness.run(cascade, "{}").await.expect("it runs");
    for request in [4, 5] {
        let context = harness.model.context(request);
        let (_, found) = context.rsplit_once("tool: ").expect("a result");
        assert!(found.contains("An albatross."), "{found}");
        assert!(!found.contains("search_context") && !found.contains("tool: [ref"), "{found}");
    }
}

#[tokio::test]
async fn excluded_phases_and_the_runs_own_words_are_not_selected() {
    let script = [text("tides"), text("storms"), text("boats"), text("end")].concat();
    let harness = Harness::new(&script);
    let cascade = "
cascade_id: c
phases:
  - {name: a, instructions: A., rules: {max_turns: 1}}
  - {name: b, instructions: B.}
  - {name: d, instructions: D.}
  - name: e
    instructions: E.
    context: {mode: auto, exclude: [b], anchors: {from_phases: [all], include: [input]}, selection: {strategy: heuristic}}
";
    harness.run(cascade, "{}").await.expect("it runs");
    insta::assert_snapshot!(harness.model.context(3), @"
    user: [From earlier phases]:
    ---
    assistant: tides
    ---
    assistant: boats
    ---
    system: E.
    ---
    user: Carry out the phase `e`.
    ");
    let events = harness.events.0.lock().expect("kept");
    let selected = events.iter().find_map(|event| match event {
        RunEvent::ContextSelected { full_tokens, selected_tokens, .. } => {
            Some((*full_tokens, *selected_tokens))
        }
        _ => None,
    });
    let (full, selected) = selected.expect("a selection");
    assert!(0 < selected && selected < full, "{selected} of {full}");
}

#[tokio::test]
async fn what_was_forgotten_is_not_remembered_again() {
    let store = Arc::new(MemoryStore::default());
    let script = "{\"calls\": [{\"name\": \"remember\", \"arguments\": {\"text\": \"the quay is closed\"}}]}\n{\"text\": \"end\"}\n";
    let parsed =
        cascade("{cascade_id: c, phases: [{name: a, instructions: A, tackle: [remember]}]}");
    let answer = async |session: &str| {
        let harness = Harness::on(store.clone(), script);
        let id = SessionId::new(session).expect("an id");
        let run = harness.runner.run(parsed.clone(), object("{}"), &id).await;
        run.expect("it runs");
        harness.model.context(1)
    };
    let first = answer("first").await;
    assert!(first.contains("remembered as "), "{first}");
    let tenant = TenantId::default();
    let search = SearchQuery { limit: 9, ..SearchQuery::default() };
    let all = MemoryQuery { search, ..MemoryQuery::default() };
    let known = store.memories(&tenant, &all).await.expect("records");
    let ids: Vec<MemoryId> = known.into_iter().map(|hit| hit.item.id).collect();
    assert_eq!(ids.len(), 1);
    store.forget_memories(&tenant, &ids).await.expect("forgotten");
    let second = answer("second").await;
    assert!(second.contains("this was forgotten"), "{second}");
    let known = store.memories(&tenant, &all).await.expect("records");
    assert!(known.is_empty(), "{known:?}");
}
