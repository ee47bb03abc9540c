//! Sessions: bounded by their policy, kept before their end, the same after a restart.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::{MillisSinceEpoch, Role};
use plimsoll_engine::{HistoryStore, SessionId, TenantId};
use plimsoll_gateway::{Durability, Mode, StoreFailure};
use plimsoll_testkit::upstream::{ReceivedRequest, Scripted, ScriptedServer};
use plimsoll_testkit::{ManualClock, MemoryStore};
use plimsoll_wire::{Wire, check};
use serde_json::json;

use crate::harness::Running;
use crate::talk::{Call, Talk, WIRES, terminal};

const IDS: [&str; 8] =
    ["call_0", "call_1", "call_2", "call_3", "call_4", "call_5", "call_6", "call_7"];

fn id(turn: usize) -> &'static str {
    IDS[turn]
}

fn lines(turn: usize) -> String {
    let mut out = String::new();
    for line in 0..120 {
        let _ = writeln!(out, "turn {turn} line {line} of a file that was read");
    }
    out
}

fn call(turn: usize) -> Call {
    (id(turn), "read", json!({"path": format!("src/file{turn}.rs")}))
}

fn session(answer: &crate::harness::Answer) -> SessionId {
    let id = answer.header("x-plimsoll-session").expect("a session is named");
    SessionId::new(id).expect("an id")
}

/// Plays a session of `turns` turns; a gateway is made anew before the turns in `restarts`.
async fn play(
    wire: Wire,
    policy: &'static str,
    turns: usize,
    restarts: &[usize],
    pause: u64,
) -> Vec<ReceivedRequest> {
    let mut talk = Talk::new(wire, true, "Read all files and tell me what is in them.");
    let script: Vec<Scripted> =
        (0..turns).map(|turn| talk.answer("I read on.", &[call(turn)])).collect();
    let upstream = ScriptedServer::start(script).await;
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
    let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), Duration::ZERO));
    let start = async || {
        let (store, clock) = (store.clone(), clock.clone());
        Running::with_clock(upstream.address(), store, clock, |config| {
            policy.clone_into(&mut config.policy);
        })
        .await
    };
    let mut gateway = start().await;
    for turn in 0..turns {
        if restarts.contains(&turn) {
            gateway = start().await;
        }
        let answer = gateway.post(talk.path(), &[], &talk.body()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().contains(terminal(wire)) && answer.is_whole);
        talk.said("I read on.", &[call(turn)]);
        // Every text is read twice, so that something is said again.
        talk.result(id(turn), &lines(turn - turn % 2));
        clock.advance(Duration::from_secs(pause));
    }
    let requests = upstream.requests();
    for request in &requests {
        assert_eq!(check(wire, &request.body), []);
    }
    requests
}

#[tokio::test]
async fn a_restart_between_any_two_turns_changes_no_byte() {
    for (wire, policy, pause) in [
        (Wire::AnthropicMessages, "plimsoll", 30),
        (Wire::AnthropicMessages, "window", 30),
        (Wire::ChatCompletions, "window", 400),
        (Wire::Responses, "plimsoll", 400),
    ] {
        let bodies = |requests: Vec<ReceivedRequest>| -> Vec<Vec<u8>> {
            requests.into_iter().map(|request| request.body).collect()
        };
        let through = bodies(play(wire, policy, 7, &[], pause).await);
        let whole: usize = (0..6).map(|turn| lines(turn - turn % 2).len()).sum();
        assert!(through[6].len() < whole, "{wire} {policy}: nothing was bounded");
        for turn in 1..7 {
            let restarted = bodies(play(wire, policy, 7, &[turn], pause).await);
            assert!(through == restarted, "{wire} {policy}: a restart before turn {turn}");
        }
        let every = bodies(play(wire, policy, 7, &[1, 2, 3, 4, 5, 6], pause).await);
        assert!(through == every, "{wire} {policy}");
    }
}

#[tokio::test]
async fn what_is_observed_goes_out_as_it_came() {
    let mut talk = Talk::new(Wire::AnthropicMessages, false, "Read.");
    let script: Vec<Scripted> = (0..5).map(|turn| talk.answer("", &[call(turn)])).collect();
    let upstream = ScriptedServer::start(script).await;
    let gateway = Running::start(upstream.address(), |config| config.mode = Mode::Observe).await;
    let mut saved = 0;
    for turn in 0..5 {
        let body = talk.body();
        let answer = gateway.post(talk.path(), &[("x-plimsoll-policy", "window")], &body).await;
        assert_eq!(upstream.requests()[turn].body, body);
        assert_eq!(answer.header("x-plimsoll-outcome"), Some("observed"));
        let number = |name: &str| answer.header(name).and_then(|n| n.parse::<i64>().ok());
        assert_eq!(number("x-plimsoll-tokens-saved"), Some(0), "nothing is saved");
        let before = number("x-plimsoll-tokens-before");
        assert_eq!(before, number("x-plimsoll-tokens-after"));
        saved =
            before.zip(number("x-plimsoll-tokens-observed")).map_or(0, |(all, sent)| all - sent);
        talk.said("", &[call(turn)]);
        talk.result(id(turn), &lines(turn));
    }
    assert!(saved > 1000, "what would have been saved is told: {saved}");
}

#[tokio::test]
async fn headers_choose_mode_policy_budget_and_session() {
    let mut talk = Talk::new(Wire::ChatCompletions, false, "Read.");
    for turn in 0..4 {
        talk.said("", &[call(turn)]);
        talk.result(id(turn), &lines(turn));
    }
    let body = talk.body();
    let upstream = ScriptedServer::start((0..7).map(|_| talk.answer("done", &[]))).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    let post = async |headers: &[(&str, &str)]| gateway.post(talk.path(), headers, &body).await;
    let off = post(&[("x-plimsoll-mode", "off")]).await;
    assert_eq!(off.header("x-plimsoll-session"), None);
    assert_eq!(upstream.requests()[0].body, body);
    let full = post(&[("x-plimsoll-policy", "full"), ("x-plimsoll-session", "a")]).await;
    assert!(session(&full).as_str().starts_with("a:"));
    assert_eq!(full.header("x-plimsoll-tokens-saved"), Some("0"));
    let small = post(&[("x-plimsoll-budget", "3000"), ("x-plimsoll-session", "b")]).await;
    let tokens = small.header("x-plimsoll-tokens-after").and_then(|n| n.parse::<u64>().ok());
    assert!(tokens.is_some_and(|tokens| tokens <= 3000), "{tokens:?}");
    assert_eq!(check(Wire::ChatCompletions, &upstream.requests()[2].body), []);
    let over = post(&[("x-plimsoll-budget", "50"), ("x-plimsoll-session", "c")]).await;
    let by = over.header("x-plimsoll-over-budget").and_then(|n| n.parse::<u64>().ok());
    let tokens = over.header("x-plimsoll-tokens-after").and_then(|n| n.parse::<u64>().ok());
    assert_eq!(by.map(|by| by + 50), tokens, "what is new goes out whole, and that is said");
    let other = post(&[("x-plimsoll-policy", "full"), ("x-plimsoll-session", "b")]).await;
    assert_eq!(other.header("x-plimsoll-tokens-saved"), Some("0"), "`full` sends everything");
    for bad in
        [("x-plimsoll-mode", "maybe"), ("x-plimsoll-policy", "x"), ("x-plimsoll-budget", "many")]
    {
        assert_eq!(post(&[bad]).await.status, 400, "{bad:?}");
    }
    assert_eq!(upstream.requests().len(), 5);
}

#[tokio::test]
async fn what_was_said_is_kept_with_what_the_provider_counted() {
    for wire in WIRES {
        for streams in [true, false] {
            let talk = Talk::new(wire, streams, "Say hello.");
            let upstream = ScriptedServer::start([talk.answer("hello", &[])]).await;
            let gateway = Running::start(upstream.address(), |_| {}).await;
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            assert_eq!(answer.status, 200);
            let tenant = TenantId::default();
            let id = session(&answer);
            let kept = gateway.store.messages(&tenant, &id, 0, 10).await.expect("a store");
            let roles: Vec<Role> = kept.iter().map(|record| record.message.role).collect();
            assert_eq!(roles, [Role::System, Role::User, Role::Assistant], "{wire} {streams}");
            let last = &kept[2].message;
            assert_eq!(last.shown(), "hello");
            assert_eq!(
                last.usage.map(|usage| (usage.prompt_tokens, usage.output_tokens)),
                Some((15, 7))
            );
            let receipts = gateway.store.receipts(&tenant, &id).await.expect("a store");
            let receipt: serde_json::Value =
                serde_json::from_str(&receipts[0].receipt).expect("JSON");
            assert_eq!(receipt["request"]["usage"]["output_tokens"], 7);
            assert_eq!(receipt["request"]["misses"], json!(["first"]));
        }
    }
}

#[tokio::test]
async fn going_back_begins_a_branch_and_forgets_nothing() {
    let mut talk = Talk::new(Wire::AnthropicMessages, false, "Read.");
    let upstream = ScriptedServer::start((0..4).map(|turn| talk.answer("", &[call(turn)]))).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    let headers = [("x-claude-code-session-id", "s")];
    let mut ids = Vec::new();
    for turn in 0..2 {
        ids.push(session(&gateway.post(talk.path(), &headers, &talk.body()).await));
        talk.said("", &[call(turn)]);
        talk.result(id(turn), &lines(turn));
    }
    talk.back_to(3);
    talk.asks("Something else instead.");
    let other = session(&gateway.post(talk.path(), &headers, &talk.body()).await);
    assert_eq!(ids[0], ids[1]);
    assert_eq!(other.as_str(), format!("{}.2", ids[0]));
    let count = async |id: &SessionId| {
        let kept = gateway.store.messages(&TenantId::default(), id, 0, 100).await;
        kept.expect("a store").len()
    };
    // System, task, call, result, call; and of the branch system, task, call, result, question, call.
    assert_eq!((count(&ids[0]).await, count(&other).await), (5, 6));
    // Another agent within the same session of the client.
    let agent = Talk::new(Wire::AnthropicMessages, false, "You are another agent.");
    let agent = session(&gateway.post(agent.path(), &headers, &agent.body()).await);
    assert!(agent != ids[0] && agent.as_str().starts_with("s:"));
}

#[tokio::test]
async fn the_first_branch_is_remembered_however_many_left_it() {
    const EDITS: usize = 20;
    let mut talk = Talk::new(Wire::AnthropicMessages, false, "Read.");
    let script = (0..EDITS + 3).map(|turn| talk.answer("", &[call(turn.min(2))]));
    let upstream = ScriptedServer::start(script).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    let headers = [("x-claude-code-session-id", "s")];
    let mut ids = Vec::new();
    for turn in 0..2 {
        ids.push(session(&gateway.post(talk.path(), &headers, &talk.body()).await));
        talk.said("", &[call(turn)]);
        talk.result(id(turn), &lines(turn));
    }
    let mut edited = talk.clone();
    for edit in 0..EDITS {
        edited.back_to(3);
        edited.asks(&format!("Something else: {edit}."));
        let branch = session(&gateway.post(talk.path(), &headers, &edited.body()).await);
        assert_eq!(branch.as_str(), format!("{}.{}", ids[0], edit + 2));
    }
    let last = gateway.post(talk.path(), &headers, &talk.body()).await;
    assert_eq!((last.status, session(&last)), (200, ids[0].clone()));
}

#[tokio::test]
async fn the_same_asked_again_is_the_same() {
    let mut talk = Talk::new(Wire::ChatCompletions, false, "Read.");
    for turn in 0..4 {
        talk.said("", &[call(turn)]);
        talk.result(id(turn), &lines(turn));
    }
    let script = [Scripted::body(529, "{}"), talk.answer("one", &[]), talk.answer("two", &[])];
    let upstream = ScriptedServer::start(script).await;
    let gateway =
        Running::start(upstream.address(), |config| config.policy = "window".into()).await;
    let body = talk.body();
    let mut ids = Vec::new();
    for status in [529, 200, 200] {
        let answer = gateway.post(talk.path(), &[], &body).await;
        assert_eq!(answer.status, status);
        ids.push(session(&answer));
    }
    let sent = upstream.requests();
    assert!(sent[0].body == sent[1].body && sent[1].body == sent[2].body && sent[0].body != body);
    // Both answers are kept, the second in a branch.
    let branch = SessionId::new(&format!("{}.2", ids[0])).expect("an id");
    for (id, said) in [(&ids[0], "one"), (&branch, "two")] {
        let kept = gateway.store.messages(&TenantId::default(), id, 0, 100).await.expect("a store");
        assert_eq!(kept.last().map(|record| record.message.shown()).as_deref(), Some(said));
    }
}

#[tokio::test]
async fn what_must_stay_untouched_does() {
    let bodies = [
        (r#"{"model":"gpt-5","previous_response_id":"r1","input":"hi"}"#, "/v1/responses"),
        (r#"{"model":"gpt-5","input":[]}"#, "/v1/responses/compact"),
        (
            r#"{"model":"m","messages":[{"role":"user","content":"a title?"}]}"#,
            "/v1/chat/completions",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":1,"max_tokens":2}"#,
            "/v1/messages",
        ),
        ("no JSON at all", "/v1/messages"),
    ];
    let upstream = ScriptedServer::start(bodies.map(|_| Scripted::body(200, "{}"))).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    for (number, (body, path)) in bodies.into_iter().enumerate() {
        assert_eq!(gateway.post(path, &[], body.as_bytes()).await.status, 200);
        assert_eq!(upstream.requests()[number].body, body.as_bytes(), "{path}");
    }
    let sessions = gateway.store.sessions(&TenantId::default(), 10).await.expect("a store");
    assert_eq!(sessions, []);
}

#[tokio::test]
async fn nesting_is_counted_before_anything_is_read() {
    let upstream = ScriptedServer::start([]).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    let deep = "[".repeat(100_000);
    for body in [deep.clone(), format!(r#"{{"messages":[],"x":{deep}"#)] {
        let answer = gateway.post("/v1/messages", &[], body.as_bytes()).await;
        assert_eq!((answer.status, answer.header("x-plimsoll-refused")), (400, Some("too_deep")));
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_bounded_request_that_is_refused_goes_out_as_it_came() {
    let talk = Talk::new(Wire::AnthropicMessages, false, "Read.");
    let upstream = ScriptedServer::start([
        Scripted::body(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
        ),
        talk.answer("fine", &[]),
    ])
    .await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    let body = talk.body();
    let answer = gateway.post(talk.path(), &[], &body).await;
    assert_eq!((answer.status, answer.header("x-plimsoll-outcome")), (200, Some("failed_open")));
    let sent = upstream.requests();
    assert!(sent[0].body != body && sent[1].body == body);
}

#[tokio::test]
async fn what_is_not_ready_in_time_goes_out_as_it_came() {
    use crate::gate::Gate;
    for rebuild_ms in [5000, 500] {
        let talk = Talk::new(Wire::AnthropicMessages, true, "Say hello.");
        let upstream = ScriptedServer::start([talk.answer("hello", &[])]).await;
        let gate = Arc::new(Gate::default());
        gate.close();
        let gateway = Running::with_store(upstream.address(), gate.clone(), |config| {
            config.timeouts.rebuild_ms = rebuild_ms;
        })
        .await;
        let body = talk.body();
        let (answer, ()) = tokio::join!(gateway.post(talk.path(), &[], &body), async {
            gate.waiting().await;
            gateway.clock.advance(Duration::from_secs(1));
            if rebuild_ms > 1000 {
                // Its session has to be read first, which may take longer than the rest.
                tokio::task::yield_now().await;
                assert!(upstream.requests().is_empty());
                gateway.clock.advance(Duration::from_secs(6));
            }
            upstream.received(1).await;
            gate.open();
        });
        assert_eq!(answer.header("x-plimsoll-outcome"), Some("late"));
        assert_eq!(upstream.requests()[0].body, body);
        assert!(answer.text().contains("message_stop"));
        // It was kept all the same.
        let sessions = gateway.store.sessions(&TenantId::default(), 9).await.expect("a store");
        assert_eq!(sessions[0].messages, 3);
    }
}

#[tokio::test]
async fn the_end_waits_until_all_is_kept_unless_told_not_to() {
    use crate::gate::Gate;
    for wire in WIRES {
        let talk = Talk::new(wire, true, "Say hello.");
        let upstream =
            ScriptedServer::start([talk.answer("hello", &[]), talk.answer("hello", &[])]).await;
        let gate = Arc::new(Gate::default());
        gate.refuse();
        let gateway = Running::with_store(upstream.address(), gate.clone(), |config| {
            config.on_store_failure = StoreFailure::Refuse;
        })
        .await;
        let answer = gateway.post(talk.path(), &[], &talk.body()).await;
        assert!(answer.text().contains("hello"));
        assert!(!answer.text().contains(terminal(wire)), "{wire}: {}", answer.text());
        assert!(answer.text().contains("could not be kept") && !answer.is_whole);
        let relaxed = Running::with_store(upstream.address(), gate.clone(), |config| {
            config.durability = Durability::Relaxed;
        })
        .await;
        let answer = relaxed.post(talk.path(), &[], &talk.body()).await;
        assert!(answer.text().contains(terminal(wire)) && answer.is_whole);
    }
}

#[tokio::test]
async fn a_size_is_asked_for_as_it_will_be_sent() {
    let mut talk = Talk::new(Wire::AnthropicMessages, false, "Read.");
    let mut script: Vec<Scripted> = (0..5).map(|turn| talk.answer("", &[call(turn)])).collect();
    script.push(Scripted::body(200, r#"{"input_tokens":1}"#));
    let upstream = ScriptedServer::start(script).await;
    let gateway =
        Running::start(upstream.address(), |config| config.policy = "window".into()).await;
    let mut last = Vec::new();
    for turn in 0..5 {
        last = talk.body();
        gateway.post(talk.path(), &[], &last).await;
        talk.said("", &[call(turn)]);
        talk.result(id(turn), "short");
    }
    let before = gateway.store.sessions(&TenantId::default(), 9).await.expect("a store");
    gateway.post("/v1/messages/count_tokens", &[], &last).await;
    let sent = upstream.requests();
    assert!(sent[5].body == sent[4].body && sent[5].body != last);
    let after = gateway.store.sessions(&TenantId::default(), 9).await.expect("a store");
    assert_eq!(before, after, "a prediction is no part of history");
}

#[tokio::test]
async fn secrets_are_taken_out_where_that_is_asked_for() {
    let talk =
        Talk::new(Wire::AnthropicMessages, false, "My mail is ann@example.com, write to it.");
    for (redact, expected) in [(false, true), (true, false)] {
        let upstream = ScriptedServer::start([talk.answer("x", &[])]).await;
        let gateway = Running::start(upstream.address(), |config| config.add.redact = redact).await;
        gateway.post(talk.path(), &[], &talk.body()).await;
        let sent = upstream.requests()[0].clone();
        assert_eq!(sent.text().contains("ann@example.com"), expected);
        assert_eq!(check(Wire::AnthropicMessages, &sent.body), []);
    }
}
