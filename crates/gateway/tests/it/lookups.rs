//! Our own tools: answered within the gateway, unseen by the client, on every wire.

use plimsoll_core::ContentHash;
use plimsoll_engine::{SessionId, TenantId};
use plimsoll_testkit::upstream::{ReceivedRequest, Scripted, ScriptedServer};
use plimsoll_wire::{Wire, check};
use serde_json::json;

use crate::harness::Running;
use crate::talk::{Talk, WIRES, terminal};

const FILE: &str = "fn first() {}\nfn second() {}\n";

fn own(id: &'static str) -> (&'static str, &'static str, serde_json::Value) {
    let original = plimsoll_core::Message::result("call_0", FILE);
    let reference = format!("ref:message:{}", ContentHash::of(&original));
    (id, "expand_ref", json!({"ref": reference}))
}

fn read(id: &'static str) -> (&'static str, &'static str, serde_json::Value) {
    (id, "read", json!({"path": "a.rs"}))
}

/// A client that has read a file.
fn begun(wire: Wire, streams: bool) -> Talk {
    let mut talk = Talk::new(wire, streams, "Read.");
    talk.said("", &[read("call_0")]);
    talk.result("call_0", FILE);
    talk
}

#[tokio::test]
async fn a_lookup_is_answered_and_not_seen() {
    for wire in WIRES {
        for streams in [true, false] {
            let talk = begun(wire, streams);
            let upstream = ScriptedServer::start([
                talk.answer("Let me look.", &[own("own_1")]),
                talk.answer("It has two functions.", &[]),
            ])
            .await;
            let gateway = Running::start(upstream.address(), |_| {}).await;
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            let text = answer.text();
            assert_eq!(answer.status, 200, "{wire} {streams}: {text}");
            assert!(
                text.contains("Let me look.") && text.contains("It has two functions."),
                "{wire} {streams}: {text}"
            );
            assert!(
                !text.contains("expand_ref") && !text.contains("own_1"),
                "{wire} {streams}: {text}"
            );
            if streams {
                assert_eq!(
                    text.matches(terminal(wire)).count(),
                    if wire == Wire::ChatCompletions { 1 } else { 2 },
                    "{text}"
                );
            }
            let sent = upstream.requests();
            assert_eq!(sent.len(), 2);
            for request in &sent {
                assert_eq!(check(wire, &request.body), [], "{wire} {streams}");
                assert!(
                    request.text().contains("search_context"),
                    "offered from the first request on"
                );
            }
            let again = sent[1].text();
            assert!(
                again.contains("own_1") && again.matches("fn second() {}").count() == 2,
                "{again}"
            );
            // The prefix of what was sent before is kept: only something is added behind it.
            let session = answer.header("x-plimsoll-session").expect("a session");
            let session = SessionId::new(session).expect("an id");
            let kept = gateway.store.messages(&TenantId::default(), &session, 0, 9).await;
            let last = kept.expect("a store").pop().expect("messages");
            assert_eq!(
                last.message.usage.map(|usage| usage.output_tokens),
                Some(14),
                "{wire} {streams}"
            );
        }
    }
}

/// Returns whether `next` begins with all that `before` says.
fn goes_on_from(before: &str, next: &str) -> bool {
    let alike = before.bytes().zip(next.bytes()).take_while(|(one, other)| one == other).count();
    // The list of messages ends in one and goes on in the other.
    before[alike..].starts_with(']') && next[alike..].starts_with(',')
}

#[tokio::test]
async fn a_lookup_that_stood_alone_is_in_the_next_requests_as_the_provider_saw_it() {
    for wire in WIRES {
        for streams in [true, false] {
            let mut talk = begun(wire, streams);
            let upstream = ScriptedServer::start([
                talk.answer("Let me look. ", &[own("own_1")]),
                talk.answer("", &[own("own_2"), own("own_3")]),
                talk.answer("It has two functions.", &[read("call_1")]),
                talk.answer("Done.", &[]),
                talk.answer("Gladly.", &[]),
            ])
            .await;
            let mut gateway = Running::start(upstream.address(), |_| {}).await;
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            talk.repeats(&answer.body);
            talk.result("call_1", "a file");
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            talk.repeats(&answer.body);
            let figures = gateway.send("GET", "/metrics", &[], b"").await.text();
            assert!(figures.contains(r#"misses_total{cause="expansion"} 0"#), "{figures}");
            let store = gateway.store.clone();
            gateway = Running::with_store(upstream.address(), store, |_| {}).await;
            talk.asks("Thanks.");
            gateway.post(talk.path(), &[], &talk.body()).await;
            let sent: Vec<String> = upstream.requests().iter().map(ReceivedRequest::text).collect();
            assert_eq!(sent.len(), 5);
            for (before, next) in sent.iter().zip(&sent[1..]) {
                assert_eq!(check(wire, next.as_bytes()), [], "{wire} {streams}: {next}");
                assert!(goes_on_from(before, next), "{wire} {streams}:\n{before}\n{next}");
            }
        }
    }
}

#[tokio::test]
async fn a_size_counts_what_was_looked_up() {
    let mut talk = begun(Wire::AnthropicMessages, false);
    let upstream = ScriptedServer::start([
        talk.answer("Let me look.", &[own("own_1")]),
        talk.answer("Two.", &[]),
        talk.answer("Gladly.", &[]),
        Scripted::body(200, r#"{"input_tokens":1}"#),
    ])
    .await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    let answer = gateway.post(talk.path(), &[], &talk.body()).await;
    talk.repeats(&answer.body);
    talk.asks("Thanks.");
    gateway.post(talk.path(), &[], &talk.body()).await;
    gateway.post("/v1/messages/count_tokens", &[], &talk.body()).await;
    let sent = upstream.requests();
    assert_eq!(sent[3].text(), sent[2].text());
}

#[tokio::test]
async fn a_lookup_that_has_no_place_is_named_once() {
    for wire in WIRES {
        for streams in [true, false] {
            let mut talk = begun(wire, streams);
            // Nothing of the answer is left for the client to repeat.
            let upstream = ScriptedServer::start([
                talk.answer("", &[own("own_1")]),
                talk.answer("", &[]),
                talk.answer("Two.", &[]),
                talk.answer("Gladly.", &[]),
            ])
            .await;
            let gateway = Running::start(upstream.address(), |_| {}).await;
            gateway.post(talk.path(), &[], &talk.body()).await;
            talk.asks("How many?");
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            talk.repeats(&answer.body);
            talk.asks("Thanks.");
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            let sent: Vec<String> = upstream.requests().iter().map(ReceivedRequest::text).collect();
            assert!(!goes_on_from(&sent[1], &sent[2]), "{}", sent[2]);
            assert!(goes_on_from(&sent[2], &sent[3]), "{}", sent[3]);
            let figures = gateway.send("GET", "/metrics", &[], b"").await.text();
            assert!(figures.contains(r#"misses_total{cause="expansion"} 1"#), "{wire}: {figures}");
            let session = SessionId::new(answer.header("x-plimsoll-session").expect("a session"));
            let session = session.expect("an id");
            let receipts = gateway.store.receipts(&TenantId::default(), &session).await;
            let named = receipts.expect("a store").into_iter().map(|one| one.receipt);
            let named: Vec<bool> = named.map(|text| text.contains(r#""expansion""#)).collect();
            assert_eq!(named, [false, true, false], "{wire} {streams}");
        }
    }
}

#[tokio::test]
async fn a_lookup_beside_the_clients_call_is_put_back_also_after_a_restart() {
    for wire in WIRES {
        for streams in [true, false] {
            let mut talk = begun(wire, streams);
            let upstream = ScriptedServer::start([
                talk.answer("Both.", &[own("own_1"), read("call_1")]),
                talk.answer("Done.", &[]),
            ])
            .await;
            let gateway = Running::start(upstream.address(), |_| {}).await;
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            let text = answer.text();
            assert!(text.contains("call_1") && !text.contains("own_1"), "{wire} {streams}: {text}");
            let store = gateway.store.clone();
            drop(gateway);
            let gateway = Running::with_store(upstream.address(), store, |_| {}).await;
            talk.said("Both.", &[read("call_1")]);
            talk.result("call_1", "a file");
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let sent = upstream.requests()[1].clone();
            assert_eq!(check(wire, &sent.body), [], "{wire} {streams}: {}", sent.text());
            let text = sent.text();
            assert!(text.contains("own_1"), "{wire} {streams}: {text}");
            assert_eq!(text.matches("fn second() {}").count(), 2, "{wire} {streams}: {text}");
        }
    }
}

/// A model that looks up so often before it answers.
fn stubborn(talk: &Talk, times: usize) -> Vec<Scripted> {
    let mut script: Vec<Scripted> = (0..times)
        .map(|n| {
            // The answer borrows its ids for the whole test.
            talk.answer("", &[own(format!("own_{n}").leak())])
        })
        .collect();
    script.push(talk.answer("It has two functions.", &[]));
    script
}

#[tokio::test]
async fn twenty_lookups_in_a_row_end_in_an_answer() {
    for wire in WIRES {
        for streams in [true, false] {
            let talk = begun(wire, streams);
            let upstream = ScriptedServer::start(stubborn(&talk, 20)).await;
            let gateway = Running::start(upstream.address(), |_| {}).await;
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            let text = answer.text();
            assert_eq!(answer.status, 200, "{wire} {streams}: {text}");
            assert!(answer.is_whole && text.contains("It has two functions."), "{text}");
            let sent: Vec<String> = upstream.requests().iter().map(ReceivedRequest::text).collect();
            assert_eq!(sent.len(), 21, "{wire} {streams}");
            // Eight are answered, and then the model is told, until it is no longer offered the tools.
            for (number, request) in sent.iter().enumerate() {
                assert_eq!(request.matches("No more lookups").count(), number.saturating_sub(8));
                assert_eq!(check(wire, request.as_bytes()), [], "{wire} {streams}");
                assert_eq!(request.contains("search_context"), number < 10, "{number}");
            }
        }
    }
}

#[tokio::test]
async fn a_model_that_never_stops_looking_up_gets_no_error_to_the_client() {
    for wire in WIRES {
        for streams in [true, false] {
            let talk = begun(wire, streams);
            let upstream = ScriptedServer::start(stubborn(&talk, 40)).await;
            let gateway =
                Running::start(upstream.address(), |config| config.limits.expansions = 2).await;
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            let text = answer.text();
            assert_eq!(answer.status, 200, "{wire} {streams}: {text}");
            assert!(answer.is_whole, "{wire} {streams}: {text}");
            assert!(!streams || text.contains(terminal(wire)), "{wire}: {text}");
            assert!(!text.contains("own_1") && !text.contains("tool_use"), "{wire}: {text}");
            assert!(!text.contains("tool_calls"), "{wire} {streams}: {text}");
            assert_eq!(upstream.requests().len(), 1 + 2 + 16, "{wire} {streams}");
        }
    }
}

#[tokio::test]
async fn without_the_setting_nothing_is_offered() {
    let talk = Talk::new(Wire::AnthropicMessages, false, "Read.");
    let upstream = ScriptedServer::start([talk.answer("x", &[])]).await;
    let gateway = Running::start(upstream.address(), |config| {
        config.add.tools = plimsoll_gateway::OwnTools::Off;
    })
    .await;
    let body = talk.body();
    gateway.post(talk.path(), &[], &body).await;
    assert_eq!(upstream.requests()[0].body, body);
}

#[tokio::test]
async fn a_search_finds_what_was_said_before() {
    let talk = begun(Wire::ChatCompletions, false);
    let search = ("own_1", "search_context", json!({"query": "second"}));
    let nothing = ("own_2", "expand_ref", json!({"ref": "ref:message:0000000000000000"}));
    let upstream =
        ScriptedServer::start([talk.answer("", &[search, nothing]), talk.answer("Found.", &[])])
            .await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    gateway.post(talk.path(), &[], &talk.body()).await;
    let text = upstream.requests()[1].text();
    assert!(
        text.contains("(tool, message 3)") && text.contains("There is nothing behind"),
        "{text}"
    );
}

#[tokio::test]
async fn our_tools_stay_out_where_the_provider_keeps_the_conversation() {
    for (kept, offered) in [("true", false), ("false", true)] {
        let talk = begun(Wire::Responses, false);
        let body = String::from_utf8(talk.body()).expect("text");
        let body = body.replace("\"store\":false", &format!("\"store\":{kept}"));
        let upstream = ScriptedServer::start([talk.answer("Done.", &[])]).await;
        let gateway = Running::start(upstream.address(), |_| {}).await;
        let answer = gateway.post(talk.path(), &[], body.as_bytes()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let asked = upstream.requests();
        let asked = String::from_utf8_lossy(&asked[0].body);
        assert_eq!(asked.contains("expand_ref"), offered, "store {kept}");
    }
}
