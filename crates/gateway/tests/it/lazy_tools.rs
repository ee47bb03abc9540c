//! Lazy tools: the client's large tools go out as outlines, and tell what they take inside the gateway, on every wire.

use plimsoll_core::Tokenizer;
use plimsoll_engine::{ReceiptRecord, SessionId, TenantId};
use plimsoll_gateway::GatewayConfig;
use plimsoll_testkit::upstream::{ReceivedRequest, Scripted, ScriptedServer};
use plimsoll_wire::{Wire, check};
use serde_json::{Value, json};

use crate::harness::Running;
use crate::talk::{Call, Talk, Tool, terminal};

/// Tools as servers of tools offer them: a paragraph, and some fields each with a sentence.
fn tools() -> Vec<Tool> {
    let fields = [
        (
            "project",
            "The project that is meant, by its path or its number; that of the workspace where it is left out.",
        ),
        (
            "query",
            "Words that what is found holds. Put a phrase in quotation marks; a minus leaves out what holds the word behind it.",
        ),
        ("state", "Only what is in this state: open, closed or all. Without it, what is open."),
        (
            "labels",
            "Only what has all of these labels, as they are written in the project, with commas between them.",
        ),
        (
            "since",
            "Only what changed after this moment, as a date and a time of ISO 8601 with the zone.",
        ),
        ("limit", "The most that is returned, from 1 to 100; more is asked for by the page."),
        (
            "page",
            "The page of what was found, counted from 1, each with as many as the limit says.",
        ),
    ];
    let properties: serde_json::Map<String, Value> = fields
        .into_iter()
        .map(|(name, told)| (name.to_owned(), json!({"type": "string", "description": told})))
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": ["query"]});
    let things =
        ["issues", "branches", "commits", "releases", "pipelines", "reviews", "members", "files"];
    let verbs = [
        (
            "list",
            "Lists",
            "A list has the newest first, and of each its number, title, state and who made it.",
        ),
        (
            "search",
            "Searches",
            "What fits best comes first; what nobody may see who asks is left out, and is not counted.",
        ),
        (
            "export",
            "Exports",
            "The file is made in the workspace and replaces one of the same name; it is returned where it lies.",
        ),
    ];
    let mut all = Vec::new();
    for thing in things {
        for (verb, does, more) in verbs {
            let told = format!(
                "{does} {thing} of a project. {more} Use it when the user speaks of {thing}, and not to find out whether there are any. It asks the server each time."
            );
            all.push((format!("{verb}_{thing}"), told, schema.clone()));
        }
    }
    all
}

fn lazy(config: &mut GatewayConfig) {
    config.add.lazy_tools = true;
}

fn describe(id: &'static str) -> Call {
    (id, "describe_tool", json!({"name": "search_issues"}))
}

fn begun(wire: Wire, streams: bool) -> Talk {
    Talk::new(wire, streams, "What is open?").offering(tools())
}

/// Returns the bytes in which a request's tools stand.
fn tools_of(request: &ReceivedRequest) -> String {
    let body: Value = serde_json::from_slice(&request.body).expect("JSON");
    body["tools"].to_string()
}

/// Returns why a cache cannot have had a request's prefix.
fn misses(receipt: &ReceiptRecord) -> Vec<String> {
    let receipt: Value = serde_json::from_str(&receipt.receipt).expect("JSON");
    serde_json::from_value(receipt["request"]["misses"].clone()).expect("a list")
}

/// Returns how often each request tells what the tool takes.
fn told(sent: &[ReceivedRequest]) -> Vec<usize> {
    sent.iter()
        .map(|request| request.text().matches("Put a phrase in quotation marks").count())
        .collect()
}

#[tokio::test]
async fn off_until_asked_for() {
    for wire in Wire::ALL {
        let talk = begun(wire, false);
        let upstream = ScriptedServer::start([talk.answer("None.", &[])]).await;
        let gateway = Running::start(upstream.address(), |config| {
            config.add.tools = plimsoll_gateway::OwnTools::Off;
        })
        .await;
        let body = talk.body();
        gateway.post(talk.path(), &[], &body).await;
        assert_eq!(upstream.requests()[0].body, body, "{wire}");
    }
}

#[tokio::test]
async fn a_tool_tells_what_it_takes_when_it_is_asked_and_the_client_sees_nothing_of_it() {
    for wire in Wire::ALL {
        for streams in [true, false] {
            let talk = begun(wire, streams);
            let search = ("call_1", "search_issues", json!({"query": "login"}));
            let upstream = ScriptedServer::start([
                talk.answer("Let me see. ", &[describe("own_1")]),
                talk.answer("I search.", std::slice::from_ref(&search)),
            ])
            .await;
            let gateway = Running::start(upstream.address(), lazy).await;
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            let text = answer.text();
            assert_eq!(answer.status, 200, "{wire} {streams}: {text}");
            for shown in ["Let me see.", "I search.", "search_issues"] {
                assert!(text.contains(shown), "{wire} {streams}: {text}");
            }
            assert!(!streams || text.contains(terminal(wire)), "{text}");
            assert!(!text.contains("describe_tool") && !text.contains("own_1"), "{wire}: {text}");

            let sent = upstream.requests();
            assert_eq!(told(&sent), [0, 1], "{wire} {streams}: late");
            for request in &sent {
                assert_eq!(check(wire, &request.body), [], "{wire} {streams}: {}", request.text());
                assert_eq!(tools_of(request), tools_of(&sent[0]), "{wire} {streams}");
            }
            let offered = tools_of(&sent[0]);
            assert!(offered.contains("search_issues") && offered.contains("describe_tool"));
            assert!(offered.contains("Searches issues of a project (describe_tool first)"));
        }
    }
}

#[tokio::test]
async fn what_is_said_in_the_event_that_asks_is_no_end() {
    let wire = Wire::Gemini;
    let talk = begun(wire, true);
    let parts = json!([{"text": "Let me see."}, {"functionCall": {"name": "describe_tool", "args": {"name": "search_issues"}}}]);
    let event = json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]});
    let asks = Scripted::chunks([format!("data: {event}\n\n")]);
    let upstream = ScriptedServer::start([asks, talk.answer("It searches.", &[])]).await;
    let gateway = Running::start(upstream.address(), lazy).await;
    let text = gateway.post(talk.path(), &[], &talk.body()).await.text();
    assert!(text.contains("Let me see.") && text.contains("It searches."), "{text}");
    assert_eq!(text.matches(terminal(wire)).count(), 1, "{text}");
}

#[tokio::test]
async fn what_a_tool_takes_is_known_from_then_on_also_after_a_restart() {
    for wire in Wire::ALL {
        for is_alone in [true, false] {
            let mut talk = begun(wire, true);
            let search = ("call_1", "search_issues", json!({"query": "login"}));
            let script = if is_alone {
                vec![
                    talk.answer("", &[describe("own_1")]),
                    talk.answer("I search.", std::slice::from_ref(&search)),
                ]
            } else {
                vec![talk.answer("I search.", &[describe("own_1"), search.clone()])]
            };
            let upstream =
                ScriptedServer::start(script.into_iter().chain([talk.answer("Two.", &[])])).await;
            let gateway = Running::start(upstream.address(), lazy).await;
            gateway.post(talk.path(), &[], &talk.body()).await;
            let store = gateway.store.clone();
            drop(gateway);
            let gateway = Running::with_store(upstream.address(), store, lazy).await;
            talk.said("I search.", std::slice::from_ref(&search));
            talk.result("call_1", "#1, #2");
            let answer = gateway.post(talk.path(), &[], &talk.body()).await;
            assert_eq!(answer.status, 200, "{}", answer.text());

            let sent = upstream.requests();
            let last = sent.last().expect("requests");
            assert_eq!(check(wire, &last.body), [], "{wire} {is_alone}: {}", last.text());
            assert_eq!(told(&sent).last(), Some(&1), "{wire} {is_alone}: {}", last.text());
            assert_eq!(tools_of(last), tools_of(&sent[0]), "{wire} {is_alone}");
            let session = answer.header("x-plimsoll-session").expect("a session");
            let session = SessionId::new(session).expect("an id");
            let tenant = TenantId::default();
            let receipts = gateway.store.receipts(&tenant, &session).await.expect("a store");
            assert!(!misses(&receipts[1]).contains(&"tools".to_owned()), "{wire} {is_alone}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_was_never_described_is_called_all_the_same() {
    for wire in Wire::ALL {
        let mut talk = begun(wire, true);
        let search = ("call_1", "search_issues", json!({"query": "login"}));
        let upstream = ScriptedServer::start([
            talk.answer("", std::slice::from_ref(&search)),
            talk.answer("Two.", &[]),
        ])
        .await;
        let gateway = Running::start(upstream.address(), lazy).await;
        let answer = gateway.post(talk.path(), &[], &talk.body()).await;
        assert!(answer.text().contains("call_1"), "{wire}: {}", answer.text());
        talk.said("", std::slice::from_ref(&search));
        talk.result("call_1", "#1, #2");
        gateway.post(talk.path(), &[], &talk.body()).await;
        let sent = upstream.requests();
        assert_eq!(sent.len(), 2, "{wire}: nobody was asked in between");
        assert_eq!(tools_of(&sent[0]), tools_of(&sent[1]), "{wire}");
    }
}

#[tokio::test]
async fn an_unknown_name_is_told_the_nearest() {
    let talk = begun(Wire::AnthropicMessages, false);
    let asks = ("own_1", "describe_tool", json!({"name": "serch_issues"}));
    let upstream = ScriptedServer::start([talk.answer("", &[asks]), talk.answer("Hm.", &[])]).await;
    let gateway = Running::start(upstream.address(), lazy).await;
    gateway.post(talk.path(), &[], &talk.body()).await;
    let text = upstream.requests()[1].text();
    assert!(text.contains("The nearest is `search_issues`") && text.contains("is_error"), "{text}");
}

#[tokio::test]
async fn the_receipt_names_the_tools_where_they_changed() {
    let mut talk = begun(Wire::AnthropicMessages, false);
    let upstream = ScriptedServer::start([talk.answer("a", &[]), talk.answer("b", &[])]).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    gateway.post(talk.path(), &[], &talk.body()).await;
    let store = gateway.store.clone();
    drop(gateway);
    let gateway = Running::with_store(upstream.address(), store, lazy).await;
    talk.said("a", &[]);
    talk.asks("And now?");
    let answer = gateway.post(talk.path(), &[], &talk.body()).await;
    let session = SessionId::new(answer.header("x-plimsoll-session").expect("a session"));
    let tenant = TenantId::default();
    let receipts = gateway.store.receipts(&tenant, &session.expect("an id")).await;
    let receipts = receipts.expect("a store");
    assert_eq!(misses(&receipts[1]), ["tools"]);
}

#[tokio::test]
async fn where_schemas_are_needed_or_wait_already_they_stay() {
    let base = String::from_utf8(begun(Wire::AnthropicMessages, false).body()).expect("text");
    let deferred = base.replacen("\"description\"", "\"defer_loading\":true,\"description\"", 1);
    let taken = base.replace("list_files", "describe_tool");
    let small =
        String::from_utf8(Talk::new(Wire::AnthropicMessages, false, "?").body()).expect("text");
    for body in [deferred, taken, small] {
        assert_ne!(body, base);
        let talk = begun(Wire::AnthropicMessages, false);
        let upstream = ScriptedServer::start([talk.answer("None.", &[])]).await;
        let gateway = Running::start(upstream.address(), |config| {
            lazy(config);
            config.add.tools = plimsoll_gateway::OwnTools::Off;
        })
        .await;
        gateway.post(talk.path(), &[], body.as_bytes()).await;
        assert_eq!(upstream.requests()[0].text(), body);
    }
    let observed =
        ScriptedServer::start([begun(Wire::AnthropicMessages, false).answer("None.", &[])]).await;
    let gateway = Running::start(observed.address(), lazy).await;
    let headers = [("x-plimsoll-mode", "observe")];
    gateway.post("/v1/messages", &headers, base.as_bytes()).await;
    assert_eq!(observed.requests()[0].text(), base);
}

/// The figure of `docs/gateway.md`: tokens of the list of tools as it stands in the body.
#[tokio::test]
async fn most_of_many_tools_is_saved() {
    let count = |body: &[u8]| {
        let body: Value = serde_json::from_slice(body).expect("JSON");
        Tokenizer::for_model("gpt-4.1").count(&body["tools"].to_string())
    };
    let talk = begun(Wire::AnthropicMessages, false);
    let upstream = ScriptedServer::start([talk.answer("None.", &[])]).await;
    let gateway = Running::start(upstream.address(), |config| {
        lazy(config);
        config.add.tools = plimsoll_gateway::OwnTools::Off;
    })
    .await;
    let body = talk.body();
    gateway.post(talk.path(), &[], &body).await;
    let (before, after) = (count(&body), count(&upstream.requests()[0].body));
    assert_eq!((before, after), (7061, 970));
    // By the rule of four characters, and without `describe_tool`.
    let metrics = gateway.send("GET", "/metrics", &[], b"").await.text();
    let saved = metrics.lines().find_map(|line| {
        line.strip_prefix("plimsoll_tokens_total{kind=\"tools_saved\"} ")?.parse::<u64>().ok()
    });
    assert!(saved.is_some_and(|saved| (5000..9000).contains(&saved)), "{saved:?}");
}
