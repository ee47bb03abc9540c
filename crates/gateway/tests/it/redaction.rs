//! Redaction is a promise: it holds for every byte that leaves, or the request is refused.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::safety::{Action, Handling};
use plimsoll_engine::{HistoryStore, SessionId, TenantId};
use plimsoll_gateway::GatewayConfig;
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_wire::Wire;
use serde_json::json;

use crate::gate::Gate;
use crate::harness::Running;
use crate::talk::{Talk, WIRES};

const MAIL: &str = "ann@example.com";

fn redacts(config: &mut GatewayConfig) {
    config.add.redact = true;
}

fn answered() -> Scripted {
    Scripted::body(200, "{}").header("content-type", "application/json")
}

#[tokio::test]
async fn lone_questions_and_system_prompts_are_redacted_on_every_wire() {
    let bodies = [
        (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 9, "system": MAIL, "messages": [{"role": "user", "content": MAIL}]}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "m", "user": MAIL, "messages": [{"role": "system", "content": MAIL}, {"role": "user", "content": [{"type": "text", "text": MAIL}]}]}),
        ),
        ("/v1/responses", json!({"model": "m", "instructions": MAIL, "input": MAIL})),
        (
            "/v1beta/models/m:generateContent",
            json!({"contents": [{"role": "user", "parts": [{"text": MAIL}]}]}),
        ),
        (
            "/v1/messages/count_tokens",
            json!({"model": "m", "messages": [{"role": "user", "content": MAIL}]}),
        ),
        ("/v1/embeddings", json!({"model": "m", "input": [MAIL, MAIL]})),
    ];
    for mode in ["on", "observe", "off"] {
        for (path, body) in &bodies {
            let upstream = ScriptedServer::start([answered()]).await;
            let gateway = Running::start(upstream.address(), redacts).await;
            let headers = [("x-plimsoll-mode", mode), ("x-mail", MAIL)];
            gateway.post(path, &headers, body.to_string().as_bytes()).await;
            let sent = upstream.requests();
            assert!(sent[0].text().contains("[redacted:email]"), "{mode} {path}");
            assert!(!sent[0].text().contains(MAIL), "{mode} {path}: {}", sent[0].text());
            assert_eq!(sent[0].header("x-mail"), Some("[redacted:email]"));
        }
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_refused() {
    let upstream = ScriptedServer::start([]).await;
    let gateway = Running::start(upstream.address(), redacts).await;
    let with_mark = format!("\u{feff}{{\"input\":\"{MAIL}\"}}");
    let form = format!("--x\r\n\r\n{MAIL}\r\n--x--");
    for body in [with_mark.as_str(), &form, "{\"input\":", MAIL] {
        for mode in ["on", "off"] {
            let headers = [("x-plimsoll-mode", mode)];
            let answer = gateway.post("/v1/responses", &headers, body.as_bytes()).await;
            assert_eq!(answer.status, 400, "{body}: {}", answer.text());
            assert_eq!(answer.header("x-plimsoll-refused"), Some("unredacted"), "{body}");
        }
    }
    let answer = gateway.send("GET", "/v1/models/ann%40example.com", &[], b"").await;
    assert_eq!(answer.status, 400);
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_key_that_stands_twice_is_redacted_twice() {
    let upstream = ScriptedServer::start([answered()]).await;
    let gateway = Running::start(upstream.address(), redacts).await;
    let body = format!(r#"{{"model":"m","input":"{MAIL}","input":"{MAIL}"}}"#);
    gateway.post("/v1/responses", &[], body.as_bytes()).await;
    let mark = "[redacted:email]";
    let expected = format!(r#"{{"model":"m","input":"{mark}","input":"{mark}"}}"#);
    assert_eq!(upstream.requests()[0].text(), expected);
}

#[tokio::test]
async fn an_encoded_body_is_decoded_and_redacted() {
    let upstream = ScriptedServer::start([answered()]).await;
    let gateway = Running::start(upstream.address(), redacts).await;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(format!(r#"{{"input":"{MAIL}"}}"#).as_bytes()).expect("in memory");
    let body = encoder.finish().expect("in memory");
    let headers = [("content-encoding", "gzip"), ("x-plimsoll-mode", "off")];
    gateway.post("/v1/responses", &headers, &body).await;
    let sent = &upstream.requests()[0];
    assert_eq!(sent.text(), r#"{"input":"[redacted:email]"}"#);
    assert_eq!(sent.header("content-encoding"), None);
}

#[tokio::test]
async fn answers_of_our_own_tools_are_redacted() {
    for wire in WIRES {
        let mut talk = Talk::new(wire, false, "Read.");
        talk.said("", &[("call_0", "read", json!({"path": "a"}))]);
        talk.result("call_0", &format!("write to {MAIL}"));
        let search = ("own_1", "search_context", json!({"query": "write"}));
        let upstream =
            ScriptedServer::start([talk.answer("", &[search]), talk.answer("Done.", &[])]).await;
        let gateway = Running::start(upstream.address(), redacts).await;
        gateway.post(talk.path(), &[], &talk.body()).await;
        let sent = upstream.requests();
        assert_eq!(sent.len(), 2, "{wire}");
        for request in &sent {
            assert!(!request.text().contains(MAIL), "{wire}: {}", request.text());
        }
    }
}

#[tokio::test]
async fn a_part_of_a_key_is_looked_up_as_a_part_of_a_key() {
    let letters = "q7Zk2Vx9Lm4Tb8Rw1Ns5Hc3Jd6Pf0Gy".repeat(2);
    let key = format!(
        "before\n-----BEGIN RSA PRIVATE KEY-----\n{letters}\nharbour{letters}\n\
         -----END RSA PRIVATE KEY-----\nafter",
    );
    let original = plimsoll_core::Message::result("call_0", &*key);
    let reference = format!("ref:message:{}", plimsoll_core::ContentHash::of(&original));
    for (tool, arguments) in [
        ("expand_ref", json!({"ref": reference, "lines": "3-4"})),
        ("expand_ref", json!({"ref": reference, "lines": "1-9"})),
        ("expand_ref", json!({"ref": reference, "search": "q7Zk2"})),
        ("search_context", json!({"query": letters})),
        ("search_context", json!({"query": format!("harbour{letters}")})),
    ] {
        let wire = Wire::AnthropicMessages;
        let mut talk = Talk::new(wire, false, "Read.");
        talk.said("", &[("call_0", "read", json!({"path": "a"}))]);
        talk.result("call_0", &key);
        let called = talk.answer("", &[("own_1", tool, arguments.clone())]);
        let upstream = ScriptedServer::start([called, talk.answer("Done.", &[])]).await;
        let gateway = Running::start(upstream.address(), redacts).await;
        gateway.post(talk.path(), &[], &talk.body()).await;
        let sent = upstream.requests();
        assert_eq!(sent.len(), 2, "{arguments}");
        let sent: serde_json::Value = serde_json::from_str(&sent[1].text()).expect("JSON");
        let answer = sent["messages"].as_array().expect("a list").last().expect("the answer");
        assert!(!answer.to_string().contains("q7Zk2"), "{arguments}: {answer}");
    }
}

#[tokio::test]
async fn a_late_request_is_redacted() {
    let talk = Talk::new(Wire::AnthropicMessages, false, MAIL);
    let upstream = ScriptedServer::start([talk.answer("x", &[])]).await;
    let gate = Arc::new(Gate::default());
    let store: Arc<dyn HistoryStore> = gate.clone();
    let gateway = Running::with_store(upstream.address(), store, redacts).await;
    gate.close();
    let body = talk.body();
    let (_, ()) = tokio::join!(gateway.post(talk.path(), &[], &body), async {
        gate.waiting().await;
        gateway.clock.advance(Duration::from_secs(9));
        upstream.received(1).await;
        gate.open();
    });
    assert!(!upstream.requests()[0].text().contains(MAIL));
}

#[tokio::test]
async fn every_other_byte_stays() {
    let odd = "{ \"input\" : \"a\\u00e9\",\t\"n\":123456789012345678901234567890 }";
    let upstream = ScriptedServer::start([answered()]).await;
    let gateway = Running::start(upstream.address(), redacts).await;
    gateway.post("/v1/embeddings", &[], odd.as_bytes()).await;
    assert_eq!(upstream.requests()[0].text(), odd);
}

#[tokio::test]
async fn what_is_redacted_at_ingestion_is_nowhere_in_the_store() {
    let ingestion = Handling { personal: Action::Redact, secrets: Action::Redact };
    for wire in WIRES {
        let mut talk = Talk::new(wire, false, &format!("My mail is {MAIL}."));
        let upstream = ScriptedServer::start([
            talk.answer(&format!("Yours is {MAIL}."), &[]),
            talk.answer("Gladly.", &[]),
        ])
        .await;
        let gateway = Running::with_ingestion(upstream.address(), ingestion, |_| {}).await;
        let answer = gateway.post(talk.path(), &[], &talk.body()).await;
        assert!(answer.text().contains(MAIL), "the client gets what the model says");
        talk.repeats(&answer.body);
        talk.asks("Thanks.");
        let answer = gateway.post(talk.path(), &[], &talk.body()).await;
        assert!(upstream.requests()[1].text().contains(MAIL), "what is sent is another setting");
        let session = answer.header("x-plimsoll-session").expect("a session");
        assert!(!session.contains('.'), "{wire}: it goes on in the same session, not {session}");
        let session = SessionId::new(session).expect("an id");
        let tenant = TenantId::default();
        let kept = gateway.store.messages(&tenant, &session, 0, 99).await.expect("a store");
        let receipts = gateway.store.receipts(&tenant, &session).await.expect("a store");
        let all = format!("{kept:?} {receipts:?}");
        assert!(all.contains("[redacted:email]") && !all.contains(MAIL), "{wire}: {all}");
        assert!(kept.len() >= 4, "{wire}");
    }
}

#[tokio::test]
async fn what_is_written_otherwise_is_redacted_on_every_wire() {
    let written = [
        "ann\\u0040example.com",
        "ann\\\\u0040example.com",
        "ann%40example.com",
        "ann&#64;example.com",
        "ann\u{200b}@example.com",
    ];
    let bodies = [
        (
            "/v1/messages",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"X"}]}"#,
        ),
        ("/v1/chat/completions", r#"{"model":"m","messages":[{"role":"user","content":"X"}]}"#),
        (
            "/v1/chat/completions",
            r#"{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"to\":\"X\"}"}}]},{"role":"tool","tool_call_id":"c","content":"X"}]}"#,
        ),
        ("/v1/responses", r#"{"model":"m","input":"X"}"#),
        (
            "/v1beta/models/m:generateContent",
            r#"{"contents":[{"role":"user","parts":[{"text":"X"}]}]}"#,
        ),
    ];
    for written in written {
        for (path, body) in bodies {
            let upstream = ScriptedServer::start([answered()]).await;
            let gateway = Running::start(upstream.address(), redacts).await;
            let body = body.replace('X', written);
            gateway.post(path, &[], body.as_bytes()).await;
            let sent = upstream.requests()[0].text();
            assert!(!sent.contains("ann") && !sent.contains("example.com"), "{path}: {sent}");
            assert!(sent.contains("[redacted:email]"), "{path}: {sent}");
            assert!(serde_json::from_str::<serde_json::Value>(&sent).is_ok(), "{path}: {sent}");
        }
    }
}

#[tokio::test]
async fn thinking_is_left_out_or_the_request_is_refused() {
    let body = |kind: &str| {
        json!({
            "model": "m", "max_tokens": 9, "thinking": {"type": kind},
            "tools": [{"name": "read", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": format!("He is {MAIL}."), "signature": "c2ln"},
                    {"type": "tool_use", "id": "t", "name": "read", "input": {}},
                ]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "y"}]},
            ],
        })
        .to_string()
    };
    for mode in ["on", "off"] {
        let upstream = ScriptedServer::start([answered()]).await;
        let gateway = Running::start(upstream.address(), redacts).await;
        let headers = [("x-plimsoll-mode", mode)];
        let refused = gateway.post("/v1/messages", &headers, body("enabled").as_bytes()).await;
        assert_eq!(
            (refused.status, refused.header("x-plimsoll-refused")),
            (400, Some("unredacted"))
        );
        assert!(
            refused.text().contains("thinking that the provider asks for"),
            "{}",
            refused.text()
        );
        assert!(upstream.requests().is_empty(), "{mode}");
        gateway.post("/v1/messages", &headers, body("adaptive").as_bytes()).await;
        let sent = upstream.requests()[0].text();
        assert!(!sent.contains(MAIL) && !sent.contains("signature"), "{mode}: {sent}");
        assert!(sent.contains("tool_use"), "{mode}: {sent}");
    }
}
