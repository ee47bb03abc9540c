//! What goes through goes through byte for byte, and a failure stays the failure that it was.

use std::fmt::Write as _;

use plimsoll_gateway::Mode;
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use proptest::test_runner::{Config, TestRunner};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::harness::{Answer, Running};

/// A body that any re-serialisation would change.
const ODD: &str = "{ \"model\":\"m\",\"n\":123456789012345678901234567890, \"b\":1,\"a\":2,\t\"x\":\"\\u00e9\\/é\",\"messages\":[]}";

async fn off(upstream: &ScriptedServer) -> Running {
    Running::start(upstream.address(), |config| config.mode = Mode::Off).await
}

#[tokio::test]
async fn a_request_leaves_as_it_came() {
    let upstream =
        ScriptedServer::start([Scripted::body(200, "{}"), Scripted::body(200, "{}")]).await;
    let gateway = off(&upstream).await;
    let headers = [
        ("anthropic-version", "2023-06-01"),
        ("Anthropic-Beta", "one,two"),
        ("X-Api-Key", "sk-client"),
        ("x-plimsoll-session", "s"),
        ("te", "trailers"),
        ("accept-encoding", "gzip, br"),
        ("user-agent", "agent/1"),
        ("content-type", "application/json"),
    ];
    gateway.post("/v1/messages?beta=true", &headers, ODD.as_bytes()).await;
    let sent = &upstream.requests()[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/messages?beta=true"));
    assert_eq!(sent.body, ODD.as_bytes());
    for (name, value) in [
        ("anthropic-beta", "one,two"),
        ("x-api-key", "sk-client"),
        ("accept-encoding", "gzip, br"),
        ("user-agent", "agent/1"),
    ] {
        assert_eq!(sent.header(name), Some(value), "{name}");
    }
    for name in ["x-plimsoll-session", "te", "connection", "transfer-encoding"] {
        assert_eq!(sent.header(name), None, "{name}");
    }
    gateway.send("DELETE", "/v1/files/f1", &[], b"").await;
    let sent = &upstream.requests()[1];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("DELETE", "/v1/files/f1"));
}

#[tokio::test]
async fn an_answer_keeps_status_headers_and_bytes() {
    let refusal = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#;
    let upstream = ScriptedServer::start([Scripted::body(429, refusal)
        .header("retry-after", "7")
        .header("anthropic-ratelimit-requests-remaining", "0")
        .header("request-id", "req_1")
        .header("keep-alive", "timeout=5")])
    .await;
    let gateway = off(&upstream).await;
    let answer = gateway.post("/v1/messages", &[], b"{}").await;
    assert_eq!((answer.status, answer.text().as_str()), (429, refusal));
    assert_eq!(answer.header("retry-after"), Some("7"));
    assert_eq!(answer.header("anthropic-ratelimit-requests-remaining"), Some("0"));
    assert_eq!(answer.header("request-id"), Some("req_1"));
    assert_eq!(answer.header("keep-alive"), None);
    assert!(answer.is_whole);
}

#[test]
fn chunks_change_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let stream = "event: message_start\r\ndata: {\"a\":\"é€𝄞\"}\n\n: ping\n\ndata: [DONE]\n\n";
    let mut runner = TestRunner::new(Config::with_cases(64));
    let splits = proptest::collection::vec(0..stream.len(), 0..12);
    runner
        .run(&splits, |mut splits| {
            splits.extend([0, stream.len()]);
            splits.sort_unstable();
            let chunks: Vec<Vec<u8>> = splits
                .windows(2)
                .map(|pair| stream.as_bytes()[pair[0]..pair[1]].to_vec())
                .collect();
            let answer = runtime.block_on(async {
                let upstream = ScriptedServer::start([Scripted::chunks(chunks)]).await;
                let gateway = off(&upstream).await;
                gateway.post("/v1/chat/completions", &[], b"{}").await
            });
            assert_eq!(answer.text(), stream);
            assert!(answer.is_whole);
            Ok(())
        })
        .expect("every split gives the same bytes");
}

#[tokio::test]
async fn a_piece_goes_on_before_the_next_comes() {
    let upstream = ScriptedServer::start([Scripted::chunks(["data: 1\n\n"]).then_silence()]).await;
    let gateway = off(&upstream).await;
    let mut stream = gateway.connect().await;
    let request = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {}\r\ncontent-length: 2\r\n\r\n{{}}",
        gateway.address
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("data: 1") {
        assert!(stream.read_buf(&mut seen).await.expect("open") > 0, "closed before the piece");
    }
    // The client leaves, and the upstream is let go.
    drop(stream);
    upstream.closed(1).await;
}

#[tokio::test]
async fn events_that_come_together_go_out_together() {
    let event =
        |kind: &str, rest: &str| format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n");
    let mut events = vec![
        event(
            "message_start",
            r#","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}"#,
        ),
        event("content_block_start", r#","index":0,"content_block":{"type":"text","text":""}"#),
    ];
    let delta = r#","index":0,"delta":{"type":"text_delta","text":"a word "}"#;
    events.extend(std::iter::repeat_n(event("content_block_delta", delta), 40));
    events.extend([
        event("content_block_stop", r#","index":0"#),
        event(
            "message_delta",
            r#","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":80}"#,
        ),
        event("message_stop", ""),
    ]);
    let mut said =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_owned();
    for event in &events {
        write!(said, "{:x}\r\n{event}\r\n", event.len()).expect("a string");
    }
    said.push_str("0\r\n\r\n");
    let body = br#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"t","input_schema":{"type":"object"}}]}"#;
    for mode in [Mode::Off, Mode::On] {
        // All of it is in one segment, which no scripted upstream promises.
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let said = said.clone();
        let upstream = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("asked");
            let mut asked = Vec::new();
            while !asked.ends_with(b"}]}") {
                stream.read_buf(&mut asked).await.expect("open");
            }
            stream.write_all(said.as_bytes()).await.expect("answered");
            stream
        });
        let gateway = Running::start(&address, |config| config.mode = mode).await;
        let answer = gateway.post("/v1/messages", &[], body).await;
        assert_eq!((answer.text(), answer.is_whole), (events.concat(), true), "{mode:?}");
        // The end waits for the store, and so is by itself.
        assert!(
            answer.chunks <= 3,
            "{mode:?}: {} chunks for {} events",
            answer.chunks,
            events.len()
        );
        drop(upstream.await);
    }
}

#[tokio::test]
async fn a_cut_stays_a_cut() {
    let stream = "data: {\"a\":\"é\"}\n\ndata: [DONE]\n\n";
    for end in 1..stream.len() {
        let upstream =
            ScriptedServer::start([Scripted::chunks([&stream.as_bytes()[..end]]).cut()]).await;
        let gateway = off(&upstream).await;
        let answer = gateway.post("/v1/chat/completions", &[], b"{}").await;
        assert!(!answer.is_whole, "cut at {end}");
        assert!(stream.as_bytes().starts_with(&answer.body));
    }
}

#[tokio::test]
async fn a_dead_upstream_is_told_in_the_providers_words() {
    let gateway = {
        let upstream = ScriptedServer::start([]).await;
        off(&upstream).await
    };
    for (path, pointer) in [
        ("/v1/messages", "/error/type"),
        ("/v1/chat/completions", "/error/type"),
        ("/v1beta/models/m:generateContent", "/error/status"),
    ] {
        let answer = gateway.post(path, &[], b"{}").await;
        assert_eq!(answer.status, 502, "{path}");
        assert_eq!(answer.header("x-plimsoll-refused"), Some("unreachable"));
        let body: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert!(body.pointer(pointer).is_some(), "{path}: {body}");
        assert!(!answer.text().contains(gateway.address.to_string().as_str()));
    }
}

#[tokio::test]
async fn a_silent_upstream_is_left() {
    let upstream = ScriptedServer::start([
        Scripted::never(),
        Scripted::chunks(["data: 1\n\n"]).then_silence(),
    ])
    .await;
    let gateway = off(&upstream).await;
    let waiting = gateway.post("/v1/messages", &[], b"{}");
    let answer = tokio::join!(waiting, async {
        upstream.received(1).await;
        gateway.clock.advance(std::time::Duration::from_secs(601));
    })
    .0;
    assert_eq!(answer.status, 504);
    let mut stream = gateway.connect().await;
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {}\r\ncontent-length: 2\r\n\r\n{{}}",
        gateway.address
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("data: 1") {
        assert!(stream.read_buf(&mut seen).await.expect("open") > 0);
    }
    gateway.clock.advance(std::time::Duration::from_secs(301));
    let _ = stream.read_to_end(&mut seen).await;
    assert!(!Answer::parse(&seen).is_whole);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = ScriptedServer::start([Scripted::body(200, "stolen")]).await;
    let upstream =
        ScriptedServer::start([Scripted::body(307, "").header("location", elsewhere.address())])
            .await;
    let gateway = off(&upstream).await;
    let answer = gateway.post("/v1/messages", &[("x-api-key", "sk")], b"{}").await;
    assert_eq!(answer.status, 307);
    assert!(elsewhere.requests().is_empty());
}
