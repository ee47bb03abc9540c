//! A run that was killed goes on where its record ends.

use std::sync::Arc;

use plimsoll_cascade::run::{RunError, RunOutcome};
use plimsoll_engine::{HistoryStore as _, SessionId, TenantId};
use plimsoll_testkit::MemoryStore;

use crate::harness::Harness;

const SCRIPT: &str = r#"{"calls": [{"name": "look", "arguments": {"n": 1}}, {"name": "set_state", "arguments": {"key": "seen", "value": 1}}]}
{"calls": [{"name": "look", "arguments": {"n": 2}}]}
{"text": "looked"}
{"text": "draft one"}
{"text": "draft two"}
{"expect": "ATTEMPT", "json": {"winner": 1}}
{"text": "bad"}
{"text": "good"}
{"calls": [{"name": "route_to", "arguments": {"target": "end_here"}}]}
{"text": "fin"}"#;

const CASCADE: &str = "
cascade_id: c
auto_context: {intra_phase: {}}
phases:
  - {name: search, instructions: Search., tackle: [look, set_state]}
  - {name: draft, instructions: Draft., soundings: {factor: 2, max_parallel: 1, evaluator_instructions: Pick.}}
  - {name: mend, instructions: Mend., rules: {loop_until: check, max_attempts: 3}}
  - {name: fork, instructions: Go., handoffs: [other, end_here]}
  - {name: other, instructions: Never.}
  - {name: end_here, instructions: 'End; seen {{ state.seen }}.'}
";

fn harness(store: Arc<MemoryStore>, turns: usize) -> Harness {
    let script: Vec<&str> = SCRIPT.lines().take(turns).collect();
    with_tools(Harness::on(store, &script.join("\n")))
}

fn with_tools(harness: Harness) -> Harness {
    let no = r#"{"valid": false, "reason": "bad"}"#;
    harness.with_tool("look", "seen").with_tool("check", &format!("{no}\n{{\"valid\": true}}"))
}

async fn run(harness: &Harness) -> Result<RunOutcome, RunError> {
    harness.run(CASCADE, r#"{"q": 1}"#).await
}

#[tokio::test]
async fn a_run_that_is_cut_at_any_turn_ends_as_an_undisturbed_one() {
    let whole = harness(Arc::new(MemoryStore::default()), usize::MAX);
    let undisturbed = run(&whole).await.expect("it runs");
    let turns = SCRIPT.lines().count();
    assert_eq!(whole.model.requests(), turns);
    for cut in 0..turns {
        let store = Arc::new(MemoryStore::default());
        let script: Vec<&str> = SCRIPT.lines().take(cut).collect();
        let first = with_tools(Harness::until_killed(store.clone(), &script.join("\n")));
        tokio::select! {
            ended = run(&first) => panic!("it waits for its model: {ended:?}"),
            () = first.model.end.as_ref().expect("it is to be killed").notified() => {}
        }
        let second = harness(store.clone(), usize::MAX);
        // What the first has answered is not asked again, so its answers have to be where they were.
        let checked = first.calls("check");
        for _ in 0..checked {
            plimsoll_engine::ToolSource::call(&*second.tools, "check", "{}")
                .await
                .expect("passed over");
        }
        let outcome = run(&second).await.expect("it goes on");
        assert_eq!(outcome.output, undisturbed.output, "cut at {cut}");
        assert_eq!(outcome.past.state, undisturbed.past.state, "cut at {cut}");
        let said = |outcome: &RunOutcome| -> Vec<String> {
            let messages = outcome.past.runs.iter().flat_map(|ran| &ran.messages);
            messages.map(|message| message.shown()).collect()
        };
        assert_eq!(said(&outcome), said(&undisturbed), "cut at {cut}");
        assert_eq!(first.calls("look") + second.calls("look"), 2, "cut at {cut}");
        // The first one's script gave as many answers as it had turns.
        assert_eq!(second.model.requests(), turns - cut, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_session_of_another_cascade_or_input_is_refused() {
    let store = Arc::new(MemoryStore::default());
    run(&harness(store.clone(), 2)).await.expect_err("the script has ended");
    let changed = CASCADE.replace("Search.", "Search well.");
    let again = harness(store.clone(), usize::MAX);
    let error = again.run(&changed, r#"{"q": 1}"#).await.expect_err("it was changed");
    assert!(matches!(error, RunError::Changed { .. }), "{error}");
    assert_eq!(again.model.requests(), 0);
}

#[tokio::test]
async fn a_finished_run_is_only_read_again() {
    let store = Arc::new(MemoryStore::default());
    let first = run(&harness(store.clone(), usize::MAX)).await.expect("it runs");
    let session = SessionId::new("run").expect("an id");
    let before = store.messages(&TenantId::default(), &session, 0, usize::MAX).await.expect("kept");
    let again = harness(store.clone(), 0);
    assert_eq!(run(&again).await.expect("read").output, first.output);
    let after = store.messages(&TenantId::default(), &session, 0, usize::MAX).await.expect("kept");
    assert_eq!((before.len(), again.model.requests()), (after.len(), 0));
}

#[tokio::test]
async fn a_phase_that_is_to_fail_is_tried_again_by_whoever_resumes() {
    let cascade = "
cascade_id: c
phases: [{name: a, instructions: A, on_error: fail}]
";
    let store = Arc::new(MemoryStore::default());
    let first = Harness::on(store.clone(), "{\"fault\": \"unavailable\"}");
    first.run(cascade, "{}").await.expect_err("the model is away");
    let again = Harness::on(store, "{\"text\": \"back\"}");
    assert_eq!(again.run(cascade, "{}").await.expect("it runs").output, "back");
}
