//! Pins and drops: by header, by the log of the session and by the agent, kept through a compaction and a restart.

use std::fmt::Write as _;
use std::sync::Arc;

use plimsoll_core::pins::{Wish, WishKind};
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Ref};
use plimsoll_engine::{HistoryStore, SessionId, TenantId, wishes};
use plimsoll_gateway::Mode;
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_wire::{Wire, check};
use serde_json::json;

use crate::harness::Running;
use crate::talk::{Call, Talk, WIRES};

const IDS: [&str; 8] =
    ["call_0", "call_1", "call_2", "call_3", "call_4", "call_5", "call_6", "call_7"];

fn call(turn: usize) -> Call {
    (IDS[turn], "read", json!({"path": format!("src/file{turn}.rs")}))
}

fn lines(turn: usize) -> String {
    let mut out = String::new();
    for line in 0..120 {
        let _ = writeln!(out, "turn {turn} line {line} of a file that was read");
    }
    out
}

fn reference(turn: usize) -> String {
    Ref::message(ContentHash::of(&Message::result(IDS[turn], lines(turn)))).to_string()
}

const WINDOW: (&str, &str) = ("x-plimsoll-policy", "window");

/// Plays six turns of reads, the headers with each; a gateway is made anew before the turns in `restarts`.
async fn play(
    wire: Wire,
    headers: &[(&str, &str)],
    wish: Option<(usize, WishKind)>,
    restarts: &[usize],
) -> (Vec<Vec<u8>>, Arc<dyn HistoryStore>) {
    let mut talk = Talk::new(wire, true, "Read all files.");
    let script: Vec<Scripted> = (0..6).map(|turn| talk.answer("On.", &[call(turn)])).collect();
    let upstream = ScriptedServer::start(script).await;
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
    let mut gateway = Running::with_store(upstream.address(), store.clone(), |_| {}).await;
    for (turn, id) in IDS.into_iter().enumerate().take(6) {
        if restarts.contains(&turn) {
            gateway = Running::with_store(upstream.address(), store.clone(), |_| {}).await;
        }
        let answer = gateway.post(talk.path(), headers, &talk.body()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        talk.said("On.", &[call(turn)]);
        talk.result(id, &lines(turn));
        if let Some((at, kind)) = wish.filter(|(at, _)| *at == turn) {
            let session = answer.header("x-plimsoll-session").expect("a session");
            let session = SessionId::new(session).expect("an id");
            let wish = Wish::of_user(kind, &reference(at)).expect("a ref");
            let now = MillisSinceEpoch(1_000_000);
            let kept = wishes::wish(&*store, &TenantId::default(), &session, wish, now).await;
            kept.expect("a store");
        }
    }
    let bodies = upstream.requests().into_iter().map(|request| request.body);
    let bodies: Vec<Vec<u8>> = bodies.collect();
    assert!(bodies.iter().all(|body| check(wire, body).is_empty()));
    (bodies, store)
}

fn shows(body: &[u8], turn: usize) -> bool {
    String::from_utf8_lossy(body).contains(&format!("turn {turn} line 77 "))
}

#[tokio::test]
async fn what_a_header_or_the_log_pins_stays_whole_also_after_a_restart() {
    for wire in WIRES {
        let (plain, _) = play(wire, &[WINDOW], None, &[]).await;
        assert!(!shows(&plain[5], 0) && !shows(&plain[5], 2), "{wire}");
        let short = &reference(0)["ref:message:".len()..][..8];
        let headers = [WINDOW, ("x-plimsoll-pin", short)];
        let (pinned, store) = play(wire, &headers, None, &[]).await;
        assert!(shows(&pinned[5], 0) && !shows(&pinned[5], 2), "{wire}");
        let (again, _) = play(wire, &headers, None, &[1, 2, 3, 4, 5]).await;
        assert!(pinned == again, "{wire}: a restart before each turn");
        let tenant = TenantId::default();
        let session = store.sessions(&tenant, 1).await.expect("a store").remove(0).session;
        let receipts = store.receipts(&tenant, &session).await.expect("a store");
        let last = receipts.last().expect("receipts");
        assert!(last.receipt.contains(r#""pins":{"pinned":[{"position""#), "{}", last.receipt);
        let (logged, _) = play(wire, &[WINDOW], Some((2, WishKind::Pin)), &[]).await;
        assert!(!shows(&logged[5], 0) && shows(&logged[5], 2), "{wire}");
        let (again, _) = play(wire, &[WINDOW], Some((2, WishKind::Pin)), &[3, 5]).await;
        assert!(logged == again, "{wire}");
    }
}

#[tokio::test]
async fn what_is_dropped_goes_at_the_next_turn_of_a_policy_without_a_cache() {
    let (plain, _) = play(Wire::ChatCompletions, &[], None, &[]).await;
    assert!(shows(&plain[5], 3));
    let drop = Some((3, WishKind::Drop));
    let (dropped, _) = play(Wire::ChatCompletions, &[WINDOW], drop, &[]).await;
    // The newest result is still awaited at the turn behind the wish.
    assert!(shows(&dropped[4], 3) && !shows(&dropped[5], 3));
}

#[tokio::test]
async fn a_header_without_a_ref_is_refused() {
    let talk = Talk::new(Wire::AnthropicMessages, false, "Read.");
    let upstream = ScriptedServer::start([]).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    for header in ["x-plimsoll-pin", "x-plimsoll-drop"] {
        let answer = gateway.post(talk.path(), &[(header, "abc")], &talk.body()).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains(header), "{}", answer.text());
    }
}

const RULES: &str = "Every berth has a number.\nBoats are moored by day only.\n";

#[tokio::test]
async fn what_a_compaction_took_is_added_behind_the_summary_once() {
    let mut sent = Vec::new();
    for restarts in [false, true] {
        let name = ("x-claude-code-session-id", "harbour");
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
        let mut talk = Talk::new(Wire::AnthropicMessages, false, "Moor the boat.");
        let rules: Call = ("call_0", "read", json!({"path": "/w/CLAUDE.md"}));
        let upstream = ScriptedServer::start([
            talk.answer("First the rules.", std::slice::from_ref(&rules)),
            talk.answer("Moored.", &[]),
            talk.answer("A summary.", &[]),
            talk.answer("Going on.", &[]),
            talk.answer("Done.", &[]),
        ])
        .await;
        let start = async || Running::with_store(upstream.address(), store.clone(), |_| {}).await;
        let mut gateway = start().await;
        gateway.post(talk.path(), &[name], &talk.body()).await;
        talk.said("First the rules.", &[rules]);
        talk.result("call_0", RULES);
        gateway.post(talk.path(), &[name], &talk.body()).await;
        talk.said("Moored.", &[]);
        talk.asks("Put your thoughts in <analysis> and the summary in <summary> tags.");
        gateway.post(talk.path(), &[name], &talk.body()).await;
        if restarts {
            gateway = start().await;
        }
        let summary = "This session is being continued from a previous conversation: a boat.";
        let mut talk = Talk::new(Wire::AnthropicMessages, false, summary);
        gateway.post(talk.path(), &[name], &talk.body()).await;
        if restarts {
            gateway = start().await;
        }
        talk.said("Going on.", &[]);
        talk.asks("And now?");
        gateway.post(talk.path(), &[name], &talk.body()).await;
        let bodies: Vec<String> = upstream
            .requests()
            .iter()
            .map(plimsoll_testkit::upstream::ReceivedRequest::text)
            .collect();
        assert_eq!(bodies.len(), 5);
        let boats = |body: &String| body.matches("Boats are moored by day only.").count();
        assert_eq!(bodies.iter().map(boats).collect::<Vec<_>>(), [0, 1, 1, 1, 1]);
        assert!(bodies[3].contains("/w/CLAUDE.md; ref:message:"), "{}", bodies[3]);
        let alike = bodies[3].bytes().zip(bodies[4].bytes()).take_while(|(a, b)| a == b).count();
        assert!(alike > bodies[3].find("by day only.").expect("the rules"), "its bytes stay");
        sent.push(bodies);
    }
    assert!(sent[0] == sent[1], "a restart changes no byte");
}

#[tokio::test]
async fn the_model_gives_up_a_message_with_a_reason() {
    for (offered, expected) in [(true, 1), (false, 0)] {
        let mut talk = Talk::new(Wire::ChatCompletions, false, "Read.");
        talk.said("", &[call(0)]);
        talk.result(IDS[0], &lines(0));
        let given = json!({"ref": reference(0), "reason": "it was the wrong file"});
        let script = if offered {
            vec![
                talk.answer("", &[("own_1", "drop_from_context", given)]),
                talk.answer("Next.", &[call(1)]),
                talk.answer("Done.", &[]),
            ]
        } else {
            vec![talk.answer("Next.", &[call(1)]), talk.answer("Done.", &[])]
        };
        let upstream = ScriptedServer::start(script).await;
        let gateway =
            Running::start(upstream.address(), |config| config.add.drop_tool = offered).await;
        gateway.post(talk.path(), &[], &talk.body()).await;
        talk.said("Next.", &[call(1)]);
        talk.result(IDS[1], &lines(1));
        let answer = gateway.post(talk.path(), &[], &talk.body()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let first = upstream.requests()[0].text();
        assert_eq!(first.contains("drop_from_context"), offered);
        let tenant = TenantId::default();
        let session = SessionId::new(answer.header("x-plimsoll-session").expect("a session"));
        let session = session.expect("an id");
        let kept = wishes::wishes(&*gateway.store, &tenant, &session).await.expect("a store");
        assert_eq!(kept.len(), expected);
        let receipts = gateway.store.receipts(&tenant, &session).await.expect("a store");
        let why = receipts.iter().filter(|one| one.receipt.contains("\"dropped\":["));
        let why = why.filter(|one| one.receipt.contains("it was the wrong file")).count();
        assert_eq!(why, expected, "the receipt says why");
    }
}

#[tokio::test]
async fn what_is_observed_has_a_preview_of_a_large_change() {
    let mut talk = Talk::new(Wire::AnthropicMessages, false, "Read.");
    let script: Vec<Scripted> = (0..4).map(|turn| talk.answer("", &[call(turn)])).collect();
    let upstream = ScriptedServer::start(script).await;
    let gateway = Running::start(upstream.address(), |config| config.mode = Mode::Observe).await;
    let mut previews = Vec::new();
    for (turn, id) in IDS.into_iter().enumerate().take(4) {
        let answer = gateway.post(talk.path(), &[WINDOW], &talk.body()).await;
        previews.push(answer.header("x-plimsoll-preview").map(str::to_owned));
        talk.said("", &[call(turn)]);
        talk.result(id, &lines(turn));
    }
    assert_eq!(previews[..2], [None, None]);
    let preview = previews[3].as_deref().expect("a large change");
    assert!(preview.starts_with("tokens=") && preview.contains("; messages="), "{preview}");
    let gateway = Running::start(upstream.address(), |_| {}).await;
    let answer = gateway.post(talk.path(), &[WINDOW], &talk.body()).await;
    assert_eq!(answer.header("x-plimsoll-preview"), None, "it was made");
}
