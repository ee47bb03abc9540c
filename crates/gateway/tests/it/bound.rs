//! Thinking that is bound to what was sent: nothing is refused or dropped, whatever happens to the gateway.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{HistoryStore, SessionId, TenantId};
use plimsoll_gateway::Mode;
use plimsoll_testkit::provider::{BINDING_BETA, EDITING_BETA, PlanAction, RecordedExchange};
use plimsoll_testkit::{ManualClock, MemoryStore};
use serde_json::{Value, json};

use crate::agent::{Agent, BOUND, FREE, body, file, playing, provider, receipts};
use crate::gate::Gate;
use crate::harness::Running;

const TURNS: usize = 25;

/// Plays a session that reads some files again; a gateway is made anew before the turns that `restarts` holds.
async fn play(restarts: &[usize]) -> (Vec<RecordedExchange>, Vec<Value>) {
    let provider = provider((0..TURNS).map(|turn| turn % 7)).await;
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
    let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), Duration::ZERO));
    let start = async || {
        Running::with_clock(&provider.address(), store.clone(), clock.clone(), |config| {
            config.marks = true;
        })
        .await
    };
    let mut gateway = start().await;
    let mut agent = Agent::new(BOUND, "Read all files.");
    let mut receipt = Vec::new();
    for turn in 0..TURNS {
        if restarts.contains(&turn) {
            gateway = start().await;
        }
        let answer = agent.turn(&gateway).await;
        assert_eq!(answer.header("x-plimsoll-outcome"), Some("bounded"), "turn {turn}");
        clock.advance(Duration::from_secs(30));
        if turn + 1 == TURNS {
            receipt = receipts(&*store, &answer).await;
        }
    }
    (provider.kept(), receipt)
}

#[tokio::test]
async fn a_session_is_played_through_without_refusals() {
    let (kept, receipts) = play(&[]).await;
    assert_eq!(kept.len(), TURNS, "no request was sent twice");
    for (turn, request) in kept.iter().enumerate() {
        assert_eq!((request.status, &*request.violations), (200, &[][..]), "turn {turn}");
        let thinking = request.thinking;
        assert_eq!((thinking.sent, thinking.invalid, thinking.dropped), (turn, 0, 0));
    }
    let reasons: String = receipts.iter().map(|receipt| receipt["changes"].to_string()).collect();
    assert!(reasons.contains("said_once"), "{reasons}");
}

#[tokio::test]
async fn a_restart_between_any_two_turns_changes_no_byte_of_bound_sessions() {
    let bodies = async |restarts: &[usize]| -> Vec<_> {
        play(restarts).await.0.into_iter().map(|request| request.request).collect()
    };
    let through = bodies(&[]).await;
    let every: Vec<usize> = (1..TURNS).collect();
    assert!(through == bodies(&every).await, "a restart before each turn");
    for turn in every {
        assert!(through == bodies(&[turn]).await, "a restart before turn {turn}");
    }
}

#[tokio::test]
async fn a_request_that_goes_out_without_us_asks_that_thinking_is_dropped() {
    let provider = provider((0..16).map(|turn| turn % 3)).await;
    let store = Arc::new(Gate::default());
    let start = async || Running::with_store(&provider.address(), store.clone(), |_| {}).await;
    let gateway = start().await;
    let mut agent = Agent::new(BOUND, "Read all files.");
    for _ in 0..8 {
        agent.turn(&gateway).await;
    }
    let before = provider.kept();
    assert!(before[7].request.len() < agent.body.to_string().len(), "lines were said once");
    // A new gateway has to read the session, which the store refuses.
    store.refuse_reading(true);
    let gateway = start().await;
    let asked = agent.body.clone();
    let answer = agent.turn(&gateway).await;
    assert_eq!(answer.header("x-plimsoll-outcome"), Some("failed_open"));
    let kept = provider.kept();
    assert_eq!(kept.len(), 9);
    let last = &kept[8];
    let betas = last.headers.get("anthropic-beta").and_then(|value| value.to_str().ok());
    assert_eq!(betas, Some(BINDING_BETA));
    let mut expected = asked;
    expected["thinking"]["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
    assert_eq!(body(last), expected);
    assert_eq!(last.status, 200);
    assert!(last.thinking.invalid > 0, "it would have been refused");
    assert_eq!(last.thinking.dropped, last.thinking.invalid);
    // The model thought behind the originals meanwhile, which fits as little: the session goes on all the same.
    store.refuse_reading(false);
    for turn in 9..16 {
        let answer = agent.turn(&gateway).await;
        assert_eq!(answer.header("x-plimsoll-outcome"), Some("bounded"), "turn {turn}");
    }
    let kept = provider.kept();
    assert_eq!(kept.len(), 16, "no request was sent twice");
    assert!(kept.iter().all(|request| request.status == 200));
}

#[tokio::test]
async fn a_request_that_is_late_asks_that_thinking_is_dropped() {
    let provider = provider((0..16).map(|turn| turn % 3)).await;
    let gate = Arc::new(Gate::default());
    let start = async || {
        Running::with_store(&provider.address(), gate.clone(), |config| {
            config.timeouts.rebuild_ms = 500;
        })
        .await
    };
    let gateway = start().await;
    let mut agent = Agent::new(BOUND, "Read all files.");
    for _ in 0..8 {
        agent.turn(&gateway).await;
    }
    // A new gateway has to read the session, and the store takes its time.
    let gateway = start().await;
    gate.close();
    let mut expected = agent.body.clone();
    let (answer, ()) = tokio::join!(agent.turn(&gateway), async {
        gate.waiting().await;
        gateway.clock.advance(Duration::from_secs(1));
        provider.answered(9).await;
        gate.open();
    });
    assert_eq!(answer.header("x-plimsoll-outcome"), Some("late"));
    let kept = provider.kept();
    let last = &kept[8];
    let betas = last.headers.get("anthropic-beta").and_then(|value| value.to_str().ok());
    assert_eq!(betas, Some(BINDING_BETA));
    expected["thinking"]["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
    assert_eq!(body(last), expected);
    assert_eq!((kept.len(), last.status), (9, 200));
    assert!(last.thinking.invalid > 0, "it would have been refused");
    assert_eq!(last.thinking.dropped, last.thinking.invalid);
    for turn in 9..16 {
        let answer = agent.turn(&gateway).await;
        assert_eq!(answer.header("x-plimsoll-outcome"), Some("bounded"), "turn {turn}");
    }
    let kept = provider.kept();
    assert_eq!(kept.len(), 16, "no request was sent twice");
    assert!(kept.iter().all(|request| request.status == 200));
}

#[tokio::test]
async fn a_request_that_comes_again_loses_no_thinking() {
    let provider = provider((0..10).map(|turn| turn % 3)).await;
    let gateway = Running::start(&provider.address(), |_| {}).await;
    let mut agent = Agent::new(BOUND, "Read all files.");
    for _ in 0..10 {
        // The client did not get the answer, and asks again.
        assert_eq!(agent.ask(&gateway).await.status, 200);
        agent.turn(&gateway).await;
    }
    let kept = provider.kept();
    assert_eq!(kept.len(), 20);
    for pair in kept.chunks(2) {
        assert_eq!(pair[0].request, pair[1].request, "the same bytes");
        for request in pair {
            let thinking = request.thinking;
            assert_eq!((request.status, thinking.invalid, thinking.dropped), (200, 0, 0));
        }
    }
}

#[tokio::test]
async fn a_model_may_be_switched_in_the_middle() {
    let provider = provider((0..30).map(|turn| turn % 7)).await;
    let gateway = Running::start(&provider.address(), |config| config.marks = true).await;
    let mut agent = Agent::new(BOUND, "Read all files.");
    for turn in 0..30 {
        agent.body["model"] = json!(if (10..20).contains(&turn) { FREE } else { BOUND });
        let answer = agent.turn(&gateway).await;
        assert_eq!(answer.header("x-plimsoll-outcome"), Some("bounded"), "turn {turn}");
    }
    let kept = provider.kept();
    assert_eq!(kept.len(), 30, "no request was sent twice");
    for (turn, request) in kept.iter().enumerate() {
        assert_eq!((request.status, &*request.violations), (200, &[][..]), "turn {turn}");
    }
}

/// Turns of a long session, each reading another file.
const LONG: usize = 60;

/// A long session that was played.
struct Long {
    kept: Vec<RecordedExchange>,
    receipts: Vec<Value>,
    /// What the store has of it.
    stored: Vec<String>,
}

impl Long {
    /// Returns what the reading turns cost, in dollars.
    fn dollars(&self) -> f64 {
        let bills = self.kept.iter().filter_map(|request| request.bill.as_ref());
        bills.take(LONG).map(|bill| bill.input + bill.output).sum()
    }

    fn count(&self, name: &str) -> u64 {
        self.receipts.iter().filter_map(|receipt| receipt["request"][name].as_u64()).sum()
    }
}

/// Plays a long session under a policy, `off` for none; at its end the model expands a ref, if it was shown any.
async fn long(policy: &str, lines: usize) -> Long {
    let read = |file| vec![PlanAction::Read(format!("file{file}.rs"))];
    let turns = (0..LONG).map(read).chain([vec![PlanAction::Expand]]).collect();
    let provider = playing(turns).await;
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
    let gateway = Running::with_store(&provider.address(), store.clone(), |config| {
        config.marks = true;
        if policy == "off" {
            config.mode = Mode::Off;
        } else {
            policy.clone_into(&mut config.policy);
        }
    })
    .await;
    let mut agent = Agent { lines, marks: true, ..Agent::new(BOUND, "Read all files.") };
    let mut answer = agent.turn(&gateway).await;
    for _ in 0..LONG {
        answer = agent.turn(&gateway).await;
    }
    let (mut shown, mut stored) = (Vec::new(), Vec::new());
    if policy != "off" {
        shown = receipts(&*store, &answer).await;
        let session = SessionId::new(answer.header("x-plimsoll-session").expect("a session"));
        let session = session.expect("an id");
        let messages = store.messages(&TenantId::default(), &session, 0, 1000).await;
        let messages = messages.expect("a store");
        stored = messages.iter().map(|one| one.message.shown()).collect();
    }
    Long { kept: provider.kept(), receipts: shown, stored }
}

/// Says what holds under every setting: nothing is refused, it is not dearer, and everything is kept.
async fn holds(policy: &str, lines: usize) -> Long {
    let (direct, through) = (long("off", lines).await, long(policy, lines).await);
    assert_eq!(direct.kept.len(), LONG + 1);
    for (at, request) in through.kept.iter().enumerate() {
        assert_eq!((request.status, &*request.violations), (200, &[][..]), "request {at}");
    }
    let ratio = through.dollars() / direct.dollars();
    // The bar of `e2e/bill`.
    assert!(ratio <= 1.01, "{policy}: {ratio:.3}");
    for at in 0..LONG {
        let text = file(&path(at), lines);
        assert!(through.stored.iter().any(|one| one.contains(&text)), "file {at} is kept");
    }
    through
}

fn path(at: usize) -> String {
    format!("/project/file{at}.rs")
}

/// Counts the files that stand in a request as they were read.
fn whole(request: &RecordedExchange, lines: usize) -> usize {
    let body = String::from_utf8_lossy(&request.request).into_owned();
    let is_there = |at: &usize| {
        let text = serde_json::to_string(&file(&path(*at), lines)).expect("JSON");
        // An answer of `expand_ref` may end in another way.
        body.contains(text.trim_matches('"').trim_end_matches("\\n"))
    };
    (0..LONG).filter(is_there).count()
}

#[tokio::test]
async fn thinking_may_be_dropped_behind_excerpts() {
    let lines = 175;
    let through = holds("drop", lines).await;
    let is_changed =
        |receipt: &&Value| receipt["changes"].as_array().is_some_and(|all| !all.is_empty());
    assert!(through.receipts.iter().any(|receipt| receipt["rewritten"] == true));
    assert!(through.receipts.iter().filter(is_changed).count() > 1, "results are settled");
    let dropped: usize = through.kept.iter().map(|request| request.thinking.dropped).sum();
    assert!(dropped > 0, "the provider dropped what stood behind them");
    assert_eq!(through.count("dropped_thinking"), dropped as u64);
    let [.., before, last] = &*through.kept else { panic!("the model expanded a ref") };
    assert_eq!(through.kept.len(), LONG + 2);
    assert_eq!(whole(last, lines), whole(before, lines) + 1, "the original came back");
}

#[tokio::test]
async fn old_results_may_be_left_to_the_provider() {
    let lines = 350;
    let through = holds("provider", lines).await;
    assert!(through.count("cleared_tool_uses") > 0, "the provider cleared results");
    assert!(through.receipts.iter().all(|receipt| receipt["rewritten"] == false));
    for (at, request) in through.kept.iter().enumerate() {
        let beta = request.headers.get("anthropic-beta").and_then(|value| value.to_str().ok());
        assert_eq!(beta, Some(EDITING_BETA), "request {at}");
        // Each looks for all files in a body that grows to a megabyte.
        if at % 20 == 19 {
            assert_eq!(whole(request, lines), at, "all results were sent");
        }
    }
}
