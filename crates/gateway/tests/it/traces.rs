//! Traces: a span for each turn, and a collector that nobody waits for.

use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_wire::Wire;
use serde_json::Value;

use crate::harness::Running;
use crate::talk::Talk;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Returns the spans that a collector was sent.
fn spans(collector: &ScriptedServer) -> Vec<Value> {
    let bodies = collector.requests().into_iter().map(|request| {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/traces"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        serde_json::from_slice::<Value>(&request.body).expect("JSON")
    });
    let all = bodies.flat_map(|body| {
        let scopes = &body["resourceSpans"][0]["scopeSpans"];
        scopes[0]["spans"].as_array().cloned().expect("spans")
    });
    all.collect()
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let attributes = span["attributes"].as_array().expect("attributes");
    let found = attributes.iter().find(|attribute| attribute["key"] == key)?;
    let value = &found["value"];
    value["stringValue"].as_str().or_else(|| value["intValue"].as_str())
}

#[tokio::test]
async fn a_turn_is_a_span() {
    for wire in Wire::ALL {
        for streams in [true, false] {
            let talk = Talk::new(wire, streams, "Say hello.");
            let failed = Scripted::body(429, "{}");
            let upstream = ScriptedServer::start([talk.answer("hello", &[]), failed]).await;
            let collector =
                ScriptedServer::start([Scripted::body(200, "{}"), Scripted::body(200, "{}")]).await;
            let mut gateway = Running::start(upstream.address(), |config| {
                config.otlp_endpoint = Some(collector.address().to_owned());
            })
            .await;
            let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
            let headers = [("traceparent", parent.as_str())];
            let answer = gateway.post(talk.path(), &headers, &talk.body()).await;
            gateway.post(talk.path(), &[], &talk.body()).await;
            // What waits is sent before it stops.
            gateway.stop();
            gateway.stopped().await;
            let spans = spans(&collector);
            assert_eq!(spans.len(), 2);
            let (first, second) = (&spans[0], &spans[1]);
            assert_eq!(first["traceId"], TRACE);
            assert_eq!(first["parentSpanId"], "b7ad6b7169203331");
            assert_eq!(
                (&first["status"]["code"], &second["status"]["code"]),
                (&1.into(), &2.into())
            );
            assert_eq!(second["traceId"].as_str().map(str::len), Some(32));
            assert!(second["parentSpanId"].is_null() && first["spanId"] != second["spanId"]);
            assert_eq!(attribute(second, "error.type"), Some("429"));
            let (operation, provider, model) = match wire {
                Wire::AnthropicMessages => ("chat", "anthropic", "claude-sonnet-4-5"),
                Wire::ChatCompletions => ("chat", "openai", "gpt-4.1"),
                Wire::Responses => ("chat", "openai", "gpt-5"),
                Wire::Gemini => ("generate_content", "gcp.gemini", "gemini-2.5-pro"),
            };
            let session = answer.header("x-plimsoll-session");
            let saved = answer.header("x-plimsoll-tokens-saved");
            for (key, value) in [
                ("gen_ai.operation.name", Some(operation)),
                ("gen_ai.provider.name", Some(provider)),
                ("gen_ai.system", Some(provider)),
                ("gen_ai.request.model", Some(model)),
                ("gen_ai.usage.input_tokens", Some("15")),
                ("gen_ai.usage.output_tokens", Some("7")),
                ("plimsoll.outcome", answer.header("x-plimsoll-outcome")),
                ("plimsoll.policy", Some("plimsoll")),
                ("plimsoll.session", session),
                ("plimsoll.tokens.saved", saved),
                ("plimsoll.cache_misses", Some("first")),
                ("error.type", None),
            ] {
                assert_eq!(attribute(first, key), value, "{wire} {streams} {key}");
            }
            assert_eq!(first["name"], format!("{operation} {model}"));
        }
    }
}

#[tokio::test]
async fn no_request_waits_for_a_collector() {
    let talk = Talk::new(Wire::ChatCompletions, true, "Say hello.");
    let upstream =
        ScriptedServer::start([talk.answer("hello", &[]), talk.answer("hello", &[])]).await;
    // It takes the first span and never answers; the second waits behind it.
    let collector = ScriptedServer::start([Scripted::never(), Scripted::body(500, "")]).await;
    let gateway = Running::start(upstream.address(), |config| {
        config.otlp_endpoint = Some(collector.address().to_owned());
    })
    .await;
    for _ in 0..2 {
        let answer = gateway.post(talk.path(), &[], &talk.body()).await;
        assert!(answer.status == 200 && answer.text().contains("[DONE]"));
        collector.received(1).await;
    }
    gateway.clock.advance(std::time::Duration::from_secs(11));
    collector.received(2).await;
    collector.closed(2).await;
    let figures = gateway.send("GET", "/metrics", &[], b"").await.text();
    assert!(figures.contains("plimsoll_spans_total{result=\"failed\"} 2"), "{figures}");
    assert!(figures.contains("plimsoll_spans_total{result=\"sent\"} 0"), "{figures}");
}
