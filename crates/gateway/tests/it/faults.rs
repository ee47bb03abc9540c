//! What goes wrong at an upstream: the client learns of it as it was, and nothing of it is kept as an answer.

use std::time::Duration;

use plimsoll_core::Role;
use plimsoll_engine::{SessionId, TenantId};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_wire::Wire;
use serde_json::json;

use crate::harness::{Answer, Running};
use crate::talk::{Talk, terminal};

/// What an upstream does, and what becomes of it.
struct Fault {
    name: String,
    script: Scripted,
    /// Nothing comes until the gateway has had enough.
    is_silent: bool,
    heard: Heard,
}

/// What the client hears.
enum Heard {
    /// This, as the provider said it.
    Same(u16, Vec<u8>),
    /// The beginning of this, and that it is no more than that.
    Begun(Vec<u8>),
    /// A refusal of the gateway's own, in the provider's shape.
    Refused(u16, &'static str),
}

/// Writes an error as a provider does where an answer was expected.
fn error(wire: Wire, streams: bool) -> String {
    let data = match wire {
        Wire::AnthropicMessages => {
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
        }
        Wire::ChatCompletions => json!({"error": {"message": "busy", "type": "server_error"}}),
        Wire::Responses if streams => {
            json!({"type": "response.failed", "sequence_number": 9, "response": {"id": "resp_1", "status": "failed", "output": [], "error": {"code": "server_error", "message": "busy"}}})
        }
        Wire::Responses => {
            json!({"id": "resp_1", "object": "response", "status": "failed", "output": [], "error": {"code": "server_error", "message": "busy"}})
        }
        Wire::Gemini => {
            json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}})
        }
    };
    match (streams, data["type"].as_str()) {
        (false, _) => data.to_string(),
        (true, Some(name)) => format!("event: {name}\ndata: {data}\n\n"),
        (true, None) => format!("data: {data}\n\n"),
    }
}

fn faults(wire: Wire, streams: bool, talk: &Talk) -> Vec<Fault> {
    let json = |body: &str, status| {
        Scripted::body(status, body).header("content-type", "application/json")
    };
    let mut all = Vec::new();
    let mut add = |name: String, script: Scripted, heard: Heard| {
        all.push(Fault { name, script, is_silent: false, heard });
    };
    for status in [401, 404, 413, 429, 500, 502, 503, 529] {
        let told = error(wire, false);
        let script = json(&told, status).header("retry-after", "7");
        add(format!("status {status}"), script, Heard::Same(status, told.into_bytes()));
    }
    let page = "<html>a proxy's page</html>";
    for (name, kind) in
        [("a page", "text/html"), ("a page as JSON", "application/json"), ("no type", "")]
    {
        let mut script = Scripted::body(200, page);
        if !kind.is_empty() {
            script = script.header("content-type", kind);
        }
        add(name.to_owned(), script, Heard::Same(200, page.into()));
    }
    let answered = String::from_utf8(talk.answered("I begin.", &[])).expect("text");
    let failed = error(wire, streams);
    if streams {
        let begun: String = answered.split_inclusive("\n\n").take(2).collect();
        let begun = if begun.contains(terminal(wire)) { String::new() } else { begun };
        let told = begun + &failed;
        add("an error inside".to_owned(), Scripted::chunks([told.clone()]), {
            Heard::Same(200, told.into_bytes())
        });
    } else {
        add(
            "an error inside".to_owned(),
            json(&failed, 200),
            Heard::Same(200, failed.into_bytes()),
        );
    }
    // Up to the event that ends it.
    let end =
        if streams { answered.find(terminal(wire)).expect("it ends") } else { answered.len() };
    // Chosen: a prime, so that cuts fall everywhere in names, values, characters and between events.
    for cut in (0..end).step_by(23).chain([end - 1]) {
        let beginning = &answered.as_bytes()[..cut];
        let (script, heard) = if streams {
            (Scripted::chunks([beginning]), Heard::Begun(answered.clone().into_bytes()))
        } else {
            let script = Scripted::body(200, beginning).header("content-type", "application/json");
            (script, Heard::Refused(502, "unreachable"))
        };
        add(format!("cut at {cut}"), script.cut(), heard);
    }
    add("reset".to_owned(), Scripted::closed(), Heard::Refused(502, "unreachable"));
    add("silence".to_owned(), Scripted::never(), Heard::Refused(504, "silent"));
    if let Some(last) = all.last_mut() {
        last.is_silent = true;
    }
    all
}

fn assert_heard(wire: Wire, fault: &Fault, what: &str, answer: &Answer) {
    match &fault.heard {
        Heard::Same(status, body) => {
            assert_eq!((answer.status, &answer.body), (*status, body), "{what}");
            assert!(answer.is_whole, "{what}");
            if *status != 200 {
                assert_eq!(answer.header("retry-after"), Some("7"), "{what}");
            }
            assert_eq!(answer.header("x-plimsoll-refused"), None, "{what}");
        }
        Heard::Begun(whole) => {
            assert_eq!(answer.status, 200, "{what}");
            assert!(!answer.is_whole, "{what}: {}", answer.text());
            assert!(whole.starts_with(&answer.body), "{what}: {}", answer.text());
        }
        Heard::Refused(status, why) => {
            assert_eq!(answer.status, *status, "{what}: {}", answer.text());
            assert_eq!(answer.header("x-plimsoll-refused"), Some(*why), "{what}");
            let body: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
            let place = if wire == Wire::Gemini { "/error/status" } else { "/error/type" };
            assert!(body.pointer(place).is_some(), "{what}: {body}");
        }
    }
}

#[tokio::test]
async fn a_failure_is_heard_as_it_was_and_never_kept() {
    for wire in Wire::ALL {
        for streams in [true, false] {
            let talk = Talk::new(wire, streams, "Begin.");
            let body = talk.body();
            let faults = faults(wire, streams, &talk);
            let good = talk.answer("Done.", &[]);
            let script = faults.iter().flat_map(|fault| [fault.script.clone(), good.clone()]);
            let upstream = ScriptedServer::start(script).await;
            let gateway = Running::start(upstream.address(), |_| {}).await;
            for (number, fault) in faults.iter().enumerate() {
                let what = format!("{wire}, streams {streams}, {}", fault.name);
                let name = format!("session-{number}");
                let headers = [("x-plimsoll-session", name.as_str())];
                let (answer, ()) =
                    tokio::join!(gateway.post(talk.path(), &headers, &body), async {
                        if fault.is_silent {
                            upstream.received(2 * number + 1).await;
                            gateway.clock.advance(Duration::from_secs(601));
                        }
                    });
                assert_heard(wire, fault, &what, &answer);
                // Asked again, it goes on in the same session, which has no other answer than this one.
                let answer = gateway.post(talk.path(), &headers, &body).await;
                assert_eq!(answer.status, 200, "{what}: {}", answer.text());
                assert!(answer.text().contains(terminal(wire)) || !streams, "{what}");
                let session = answer.header("x-plimsoll-session").expect("a session");
                assert!(!session.contains('.'), "{what}: it left the session for {session}");
                let session = SessionId::new(session).expect("an id");
                let kept = gateway.store.messages(&TenantId::default(), &session, 0, 99).await;
                let kept = kept.expect("a store");
                let answers = kept.iter().filter(|one| one.message.role == Role::Assistant);
                let answers: Vec<String> = answers.map(|one| one.message.shown()).collect();
                assert_eq!(answers, ["Done."], "{what}");
            }
            assert_eq!(upstream.requests().len(), 2 * faults.len());
        }
    }
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_told_in_the_providers_words() {
    for wire in Wire::ALL {
        for streams in [true, false] {
            let talk = Talk::new(wire, streams, "Begin.");
            let gateway = {
                let upstream = ScriptedServer::start([]).await;
                Running::start(upstream.address(), |_| {}).await
            };
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            let heard = Heard::Refused(502, "unreachable");
            let (name, script) = (String::new(), Scripted::closed());
            let fault = Fault { name, script, is_silent: false, heard };
            assert_heard(wire, &fault, &format!("{wire}, streams {streams}"), &answer);
            assert!(!answer.text().contains("127.0.0.1"), "{}", answer.text());
        }
    }
}
