//! A store that fails: answers that are paid for reach the client, and the history catches up.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{HistoryStore, SessionId, TenantId};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::upstream::ScriptedServer;
use plimsoll_wire::Wire;

use crate::gate::Gate;
use crate::harness::{Answer, Running};
use crate::talk::{Talk, WIRES, terminal};

async fn kept(store: &dyn HistoryStore, answer: &Answer) -> Vec<String> {
    let session = answer.header("x-plimsoll-session").expect("a session");
    let session = SessionId::new(session).expect("an id");
    let kept = store.messages(&TenantId::default(), &session, 0, 99).await.expect("a store");
    kept.iter().map(|record| record.message.shown()).collect()
}

#[tokio::test]
async fn a_full_store_withholds_no_answer_and_catches_up() {
    for wire in WIRES {
        for streams in [true, false] {
            let mut talk = Talk::new(wire, streams, "Say hello.");
            let upstream = ScriptedServer::start([
                talk.answer("hello", &[]),
                talk.answer("again", &[]),
                talk.answer("bye", &[]),
            ])
            .await;
            let gate = Arc::new(Gate::default());
            let gateway = Running::with_store(upstream.address(), gate.clone(), |_| {}).await;
            gate.refuse();
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            assert_eq!(answer.status, 200);
            assert!(answer.text().contains("hello") && answer.is_whole, "{wire}");
            assert!(!streams || answer.text().contains(terminal(wire)), "{wire}");
            let behind = Some("behind").filter(|_| !streams);
            assert_eq!(answer.header("x-plimsoll-history"), behind, "{wire}");
            let ready = gateway.send("GET", "/readyz", &[], b"").await;
            assert_eq!((ready.status, ready.text().contains("behind")), (200, true));
            talk.repeats(&answer.body);
            talk.asks("Again.");
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            assert_eq!(answer.header("x-plimsoll-history"), Some("behind"), "{wire}");
            talk.repeats(&answer.body);
            gate.accept();
            // The next attempt is a second or two away.
            while gateway.send("GET", "/readyz", &[], b"").await.text().contains("behind") {
                gateway.clock.advance(Duration::from_secs(2));
            }
            let kept = kept(&*gate, &answer).await;
            assert!(kept.ends_with(&["again".to_owned()]), "{wire}: {kept:?}");
            talk.asks("Bye.");
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            assert_eq!(answer.header("x-plimsoll-history"), None, "{wire}");
            assert!(!answer.header("x-plimsoll-session").expect("one").contains('.'), "{wire}");
        }
    }
}

#[tokio::test]
async fn without_room_for_turns_that_wait_requests_go_out_unrecorded() {
    let mut talk = Talk::new(Wire::ChatCompletions, false, "Say hello.");
    let upstream = ScriptedServer::start((0..3).map(|_| talk.answer("hello", &[]))).await;
    let gate = Arc::new(Gate::default());
    gate.refuse();
    let gateway = Running::with_store(upstream.address(), gate.clone(), |config| {
        config.limits.backlog_bytes = 1;
    })
    .await;
    let answer = gateway.post(talk.path(), &[], &talk.body()).await;
    talk.repeats(&answer.body);
    talk.asks("More.");
    let answer = gateway.post(talk.path(), &[], &talk.body()).await;
    assert_eq!((answer.status, answer.header("x-plimsoll-outcome")), (200, Some("failed_open")));
    assert_eq!(upstream.requests()[1].body, talk.body());
    gate.accept();
    while gateway.send("GET", "/readyz", &[], b"").await.text().contains("behind") {
        gateway.clock.advance(Duration::from_secs(2));
    }
    talk.repeats(&answer.body);
    talk.asks("And more.");
    let answer = gateway.post(talk.path(), &[], &talk.body()).await;
    let kept = kept(&*gate, &answer).await;
    assert_eq!(kept.iter().filter(|text| *text == "hello").count(), 3, "{kept:?}");
}

#[tokio::test]
async fn a_session_goes_through_two_gateways_by_turns() {
    for wire in WIRES {
        let mut talk = Talk::new(wire, false, "Say one.");
        let upstream =
            ScriptedServer::start((0..6).map(|turn| talk.answer(&format!("answer {turn}"), &[])))
                .await;
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
        let first = Running::with_store(upstream.address(), store.clone(), |_| {}).await;
        let second = Running::with_store(upstream.address(), store.clone(), |_| {}).await;
        let named = [("x-plimsoll-session", "shared")];
        let mut last = None;
        for turn in 0..6 {
            let gateway = if turn % 2 == 0 { &first } else { &second };
            let answer = gateway.post(talk.path(), &named, &talk.body()).await;
            assert_eq!(answer.status, 200, "{wire} {turn}: {}", answer.text());
            talk.repeats(&answer.body);
            talk.asks(&format!("Say {turn}."));
            last = Some(answer);
        }
        let kept = kept(&*store, &last.expect("six turns")).await;
        for turn in 0..6 {
            let answer = format!("answer {turn}");
            assert_eq!(kept.iter().filter(|text| **text == answer).count(), 1, "{wire}: {kept:?}");
        }
    }
}

#[tokio::test]
async fn the_same_session_through_two_gateways_at_once_loses_no_answer() {
    let talk = Talk::new(Wire::ChatCompletions, false, "Say hello.");
    let upstream = ScriptedServer::start([talk.answer("one", &[]), talk.answer("two", &[])]).await;
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
    let first = Running::with_store(upstream.address(), store.clone(), |_| {}).await;
    let second = Running::with_store(upstream.address(), store.clone(), |_| {}).await;
    let named = [("x-plimsoll-session", "shared")];
    let body = talk.body();
    let (one, two) = tokio::join!(
        first.post(talk.path(), &named, &body),
        second.post(talk.path(), &named, &body)
    );
    assert_eq!((one.status, two.status), (200, 200), "{} {}", one.text(), two.text());
    let tenant = TenantId::default();
    let sessions = store.sessions(&tenant, 9).await.expect("a store");
    let mut all = Vec::new();
    for session in sessions {
        let kept = store.messages(&tenant, &session.session, 0, 99).await.expect("a store");
        all.extend(kept.iter().map(|record| record.message.shown()));
    }
    for answer in ["one", "two"] {
        assert!(all.iter().any(|text| text == answer), "{all:?}");
    }
}
