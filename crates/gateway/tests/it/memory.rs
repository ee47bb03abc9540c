//! What is known beside the conversation: in the budget, in the receipt, and the same bytes in every later request.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use plimsoll_core::memory::MemoryKind;
use plimsoll_core::memory::frame::Frames;
use plimsoll_core::policy::RequestSettings;
use plimsoll_core::{Message, MillisSinceEpoch};
use plimsoll_engine::assemble::{ASSEMBLE, FrameBook};
use plimsoll_engine::live::AddedMemory;
use plimsoll_engine::{
    HistoryStore, KnowledgeStore as _, MemoryConfig, MemoryRecord, SessionId, TenantId,
};
use plimsoll_gateway::{Memory, Recalled, StoredMemory};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_testkit::{ManualClock, MemoryStore, sample};
use plimsoll_wire::{Wire, check};
use serde_json::{Value, json};

use crate::harness::Running;
use crate::talk::{Talk, WIRES};

/// Knows something else each time that it is asked.
#[derive(Debug, Default)]
struct Changing(AtomicUsize);

#[async_trait]
impl Memory for Changing {
    async fn recalled(
        &self,
        _: &TenantId,
        _: &SessionId,
        messages: &[Arc<Message>],
        _: &BTreeSet<Arc<str>>,
        _: Option<u64>,
    ) -> Option<Recalled> {
        messages.last().filter(|message| message.role == plimsoll_core::Role::User)?;
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        let text = format!("KNOWN {asked}: {}", "the boat lies at berth 14. ".repeat(20)).into();
        Some(Recalled { added: AddedMemory { text, records: Vec::new() }, assembly: None })
    }
}

/// The texts of all messages of the user in a request.
fn users(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).expect("JSON");
    let items = body.get("messages").or(body.get("input")).and_then(Value::as_array).cloned();
    let of_user = items.unwrap_or_default().into_iter().filter(|item| item["role"] == "user");
    of_user.map(|item| item.to_string()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_text_stands_in_later_requests_as_it_was_sent() {
    for wire in WIRES {
        let mut talk = Talk::new(wire, false, "Where does the boat lie?");
        let script: Vec<Scripted> = (0..4).map(|_| talk.answer("At berth 14.", &[])).collect();
        let upstream = ScriptedServer::start(script).await;
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
        let memory: Arc<dyn Memory> = Arc::new(Changing::default());
        for turn in 0..4 {
            // A restart before each turn: what was sent comes from the store.
            let gateway =
                Running::with_memory(upstream.address(), store.clone(), memory.clone(), |_| {})
                    .await;
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            talk.said("At berth 14.", &[]);
            talk.asks(&format!("And number {turn}?"));
        }
        let requests = upstream.requests();
        let sent: Vec<String> = requests.iter().map(|request| users(&request.body)).collect();
        for (turn, (request, said)) in requests.iter().zip(&sent).enumerate() {
            assert_eq!(check(wire, &request.body), []);
            for known in 0..=turn {
                assert!(said.contains(&format!("KNOWN {known}: ")), "{wire} {turn}: {said}");
            }
            assert!(!said.contains(&format!("KNOWN {}: ", turn + 1)));
        }
        for (earlier, later) in sent.iter().zip(&sent[1..]) {
            assert!(later.starts_with(earlier), "{wire}: {earlier}\n{later}");
        }
    }
}

#[tokio::test]
async fn it_counts_in_the_budget_the_receipt_and_the_headers() {
    let number = |answer: &crate::harness::Answer, name: &str| -> u64 {
        answer.header(name).and_then(|value| value.parse().ok()).unwrap_or_default()
    };
    let ask = async |budget: &str| {
        let talk = Talk::new(Wire::AnthropicMessages, false, "Where does the boat lie?");
        let upstream = ScriptedServer::start(vec![talk.answer("At berth 14.", &[])]).await;
        let store = Arc::new(MemoryStore::default());
        let memory = Arc::new(Changing::default());
        let gateway = Running::with_memory(upstream.address(), store.clone(), memory, |_| {}).await;
        let answer =
            gateway.post(talk.path(), &[("x-plimsoll-budget", budget)], &talk.body()).await;
        let session = SessionId::new(answer.header("x-plimsoll-session").expect("named"));
        let receipts =
            store.receipts(&TenantId::default(), &session.expect("an id")).await.expect("kept");
        let receipt: Value = serde_json::from_str(&receipts[0].receipt).expect("JSON");
        let is_known = users(&upstream.requests()[0].body).contains("KNOWN");
        (number(&answer, "x-plimsoll-tokens-after"), receipt, is_known)
    };
    let (with, receipt, is_known) = ask("1000").await;
    assert!(is_known);
    assert!(receipt["components"]["memory"].as_u64() > Some(100), "{receipt}");
    assert_eq!(receipt["tokens"], json!(with));
    // A budget that the text would pass: it stays out, and nothing is over.
    let (without, receipt, is_known) = ask("60").await;
    assert!(!is_known && without <= 60, "{receipt}");
    assert_eq!(receipt["components"]["memory"], json!(0));
    assert_eq!(receipt["over_budget"], json!(0));
}

fn record(id: &str, kind: MemoryKind, micro: &str) -> MemoryRecord {
    let record = sample::memory("t", id, micro);
    MemoryRecord { tenant: TenantId::default(), kind, ..record }
}

/// A memory with a constraint that always stands, and a fact for each of two subjects.
async fn stored(store: &Arc<MemoryStore>) -> Arc<dyn Memory> {
    let constraint = MemoryRecord {
        details: r#"{"severity": "block"}"#.to_owned(),
        origin: "operator".to_owned(),
        ..record("rule", MemoryKind::Censor, "never cast off in fog")
    };
    let berth = record("berth", MemoryKind::Fact, "boats moor at berth fourteen");
    let fuel = record("fuel", MemoryKind::Fact, "engines burn heavy diesel");
    for one in [constraint, berth, fuel] {
        store.put_memory(&one).await.expect("kept");
    }
    let frames = FrameBook::new(Frames::built_in(), None).await.expect("frames");
    let clock = Arc::new(ManualClock::new(MillisSinceEpoch(2_000), std::time::Duration::ZERO));
    Arc::new(StoredMemory::new(
        &MemoryConfig::default(),
        &RequestSettings::default(),
        frames,
        (store.clone(), store.clone()),
        None,
        clock,
    ))
}

#[tokio::test]
async fn what_is_known_stays_when_tools_are_called_and_is_refreshed_by_appending() {
    for (wire, restarts) in WIRES.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let call = ("call_0", "look", json!({}));
        let mut talk = Talk::new(wire, true, "At which berth do boats moor?");
        let script = vec![
            talk.answer("I look.", std::slice::from_ref(&call)),
            talk.answer("At fourteen.", &[]),
            talk.answer("There too.", &[]),
            talk.answer("Diesel.", &[]),
        ];
        let upstream = ScriptedServer::start(script).await;
        let store = Arc::new(MemoryStore::default());
        let begin = async || {
            let memory = stored(&store).await;
            Running::with_memory(upstream.address(), store.clone(), memory, |_| {}).await
        };
        let mut gateway = begin().await;
        let ask = async |gateway: &Running, talk: &Talk| {
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        };
        ask(&gateway, &talk).await;
        assert_eq!(assemblies(&store).await, 1, "{wire}: the first one of a session counts");
        talk.said("I look.", &[call]);
        talk.result("call_0", "a chart of the harbour");
        ask(&gateway, &talk).await;
        if restarts {
            gateway = begin().await;
        }
        talk.said("At fourteen.", &[]);
        talk.asks("And at which berth do the other boats moor?");
        ask(&gateway, &talk).await;
        talk.said("There too.", &[]);
        talk.asks("Which diesel do engines burn?");
        ask(&gateway, &talk).await;
        let requests = upstream.requests();
        let sent: Vec<String> = requests.iter().map(|request| users(&request.body)).collect();
        let counts = |text: &str| -> Vec<usize> {
            sent.iter().map(|said| said.matches(text).count()).collect()
        };
        assert_eq!(counts("never cast off in fog"), [1, 1, 1, 1], "{wire}: {sent:#?}");
        assert_eq!(counts("boats moor at berth fourteen"), [1, 1, 1, 1], "{wire}: {sent:#?}");
        assert_eq!(counts("engines burn heavy diesel"), [0, 0, 0, 1], "{wire}: {sent:#?}");
        for (earlier, later) in sent.iter().zip(&sent[1..]) {
            assert!(later.starts_with(earlier), "{wire}: {earlier}\n{later}");
        }
        for request in &requests {
            assert_eq!(check(wire, &request.body), []);
        }
    }
}

/// Counts the assemblies that are recorded in all sessions.
async fn assemblies(store: &MemoryStore) -> usize {
    let tenant = TenantId::default();
    let sessions = store.sessions(&tenant, 10).await.expect("read");
    let mut count = 0;
    for session in sessions {
        let receipts = store.receipts(&tenant, &session.session).await.expect("read");
        count += receipts.iter().filter(|receipt| receipt.strategy == ASSEMBLE).count();
    }
    count
}

#[tokio::test]
async fn who_agrees_to_a_proposal_gets_what_is_known_about_it() {
    for wire in WIRES {
        let mut talk = Talk::new(wire, true, "How shall the ferry be driven?");
        let proposal = "I would let its engines burn heavy diesel.";
        let script = vec![talk.answer(proposal, &[]), talk.answer("Done.", &[])];
        let upstream = ScriptedServer::start(script).await;
        let store = Arc::new(MemoryStore::default());
        let memory = stored(&store).await;
        let diesel =
            record("diesel", MemoryKind::Decision, "no engines with heavy diesel: too dirty");
        store.put_memory(&diesel).await.expect("kept");
        let gateway = Running::with_memory(upstream.address(), store, memory, |_| {}).await;
        gateway.post(talk.path(), &[], &talk.body()).await;
        talk.said(proposal, &[]);
        talk.asks("Yes, do it.");
        gateway.post(talk.path(), &[], &talk.body()).await;
        let requests = upstream.requests();
        let known: Vec<bool> =
            requests.iter().map(|request| users(&request.body).contains("too dirty")).collect();
        assert_eq!(known, [false, true], "{wire}");
    }
}
