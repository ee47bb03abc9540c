//! Limits: each refuses at once, in the provider's shape, and lets go of what it held.

use std::io::Write as _;
use std::time::Duration;

use plimsoll_gateway::Mode;
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::harness::{Answer, Running};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

#[tokio::test]
async fn bodies_are_counted_decoded() {
    let upstream = ScriptedServer::start([Scripted::body(200, "{}")]).await;
    let gateway = Running::start(upstream.address(), |config| {
        config.mode = Mode::Off;
        config.limits.body_bytes = 1000;
    })
    .await;
    let bomb = gzip(&vec![b' '; 1_000_000]);
    let refused = [
        (vec![b' '; 1001], None),
        (bomb, Some(("content-encoding", "gzip"))),
        (
            b"3e8\r\n"
                .iter()
                .copied()
                .chain([b' '; 1000])
                .chain(*b"\r\n1\r\n \r\n0\r\n\r\n")
                .collect(),
            Some(("transfer-encoding", "chunked")),
        ),
    ];
    for (body, header) in refused {
        let answer = gateway.post("/v1/messages", header.as_slice(), &body).await;
        assert_eq!(answer.status, 413);
        assert_eq!(answer.header("x-plimsoll-refused"), Some("too_large"));
        assert!(answer.text().contains("request_too_large"));
    }
    // A sound one goes on as it came.
    let small = gzip(b"{}");
    let answer = gateway.post("/v1/messages", &[("content-encoding", "gzip")], &small).await;
    assert_eq!(answer.status, 200);
    assert_eq!(upstream.requests()[0].body, small);
    for (encoding, body) in [
        ("gzip", "no gzip"),
        ("br", "\u{7f}\u{7f}?"),
        ("zstd", "?"),
        ("lzma", "?"),
        ("gzip, gzip", "?"),
    ] {
        let headers = [("content-encoding", encoding)];
        let answer = gateway.post("/v1/messages", &headers, body.as_bytes()).await;
        assert_eq!(answer.status, 415, "{encoding}");
    }
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_crowd_is_refused_at_the_door() {
    let upstream = ScriptedServer::start([Scripted::never(), Scripted::body(200, "{}")]).await;
    let gateway = Running::start(upstream.address(), |config| {
        config.mode = Mode::Off;
        config.limits.in_flight_bytes = 100;
    })
    .await;
    let body = [b'1'; 60];
    let mut first = gateway.connect().await;
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {}\r\ncontent-length: 60\r\n\r\n",
        gateway.address
    );
    first.write_all(head.as_bytes()).await.expect("sent");
    first.write_all(&body).await.expect("sent");
    upstream.received(1).await;
    let answer = gateway.post("/v1/responses", &[], &body).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert_eq!(answer.header("x-plimsoll-refused"), Some("busy"));
    // What leaves gives its room back.
    first.set_zero_linger().expect("set");
    drop(first);
    upstream.closed(1).await;
    let answer = gateway.post("/v1/responses", &[], &body).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn who_would_wait_for_a_processor_in_vain_is_refused_before_the_body_is_read() {
    let upstream = ScriptedServer::start([Scripted::body(200, "{}")]).await;
    let gateway = Running::start(upstream.address(), |config| config.limits.waiting = 0).await;
    let mut client = gateway.connect().await;
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {}\r\ncontent-length: 60\r\n\r\n",
        gateway.address
    );
    client.write_all(head.as_bytes()).await.expect("sent");
    let answer = Answer::read(&mut client).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert_eq!(answer.header("x-plimsoll-refused"), Some("busy"));
    // What needs no work of ours does not wait for it.
    let answer = gateway.post("/v1/responses", &[("x-plimsoll-mode", "off")], b"{}").await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn connections_are_counted() {
    let upstream = ScriptedServer::start([]).await;
    let gateway = Running::start(upstream.address(), |config| config.limits.connections = 1).await;
    let mut first = gateway.connect().await;
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", gateway.address);
    first.write_all(request.as_bytes()).await.expect("sent");
    let mut seen = vec![0; 12];
    first.read_exact(&mut seen).await.expect("an answer");
    let mut second = gateway.connect().await;
    let answer = Answer::read(&mut second).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert!(answer.is_whole);
}

#[tokio::test]
async fn headers_are_bounded() {
    let upstream = ScriptedServer::start([]).await;
    let gateway =
        Running::start(upstream.address(), |config| config.limits.header_bytes = 8192).await;
    let long = "x".repeat(10_000);
    let answer = gateway.send("GET", "/healthz", &[("x-long", &long)], b"").await;
    assert_eq!(answer.status, 431);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let upstream = ScriptedServer::start([]).await;
    let gateway = Running::start(upstream.address(), |config| config.timeouts.body = 3).await;
    let mut stream = gateway.connect().await;
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {}\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n",
        gateway.address
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut seen = vec![0; 25];
    // The gateway asks for the body: from here on it waits.
    stream.read_exact(&mut seen).await.expect("100 continue");
    assert!(seen.starts_with(b"HTTP/1.1 100"));
    gateway.clock.advance(Duration::from_secs(4));
    assert_eq!(Answer::read(&mut stream).await.status, 408);
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn stopping_lets_answers_end_and_then_cuts_them() {
    let upstream = ScriptedServer::start([Scripted::chunks(["data: 1\n\n"]).then_silence()]).await;
    let mut gateway = Running::start(upstream.address(), |config| config.timeouts.drain = 5).await;
    let mut stream = gateway.connect().await;
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {}\r\ncontent-length: 2\r\n\r\n{{}}",
        gateway.address
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("data: 1") {
        assert!(stream.read_buf(&mut seen).await.expect("open") > 0);
    }
    gateway.stop();
    // Until the listener is gone.
    while tokio::net::TcpStream::connect(gateway.address).await.is_ok() {}
    gateway.clock.advance(Duration::from_secs(6));
    let _ = stream.read_to_end(&mut seen).await;
    assert!(!Answer::parse(&seen).is_whole);
    gateway.stopped().await;
}

#[tokio::test]
async fn depth_and_the_size_of_answers_are_settings() {
    let body = br#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[{"name":"t","input_schema":{"type":"object"}}]}"#;
    let whole = r#"{"type":"message","role":"assistant","content":[],"stop_reason":"end_turn"}"#;
    for (depth, most, status) in [(128, 1000, 200), (3, 1000, 400), (128, 10, 502)] {
        let scripted = Scripted::body(200, whole).header("content-type", "application/json");
        let upstream = ScriptedServer::start([scripted]).await;
        let gateway = Running::start(upstream.address(), |config| {
            config.limits.depth = depth;
            config.limits.answer_bytes = most;
        })
        .await;
        let answer = gateway.post("/v1/messages", &[], body).await;
        assert_eq!(answer.status, status, "{depth} {most}: {}", answer.text());
    }
}

#[tokio::test]
async fn answers_take_a_bounded_part_of_the_memory() {
    let body =
        br#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"t","input_schema":{"type":"object"}}]}"#;
    // One event without an end, one answer of many events, and one for which all answers together have no room.
    let (endless, event) = ("data: ".to_owned() + &"x".repeat(2000), "data: {}\n\n".repeat(300));
    for (chunk, event_bytes, answer_bytes, answers_bytes) in [
        (&endless, 1000, 1 << 20, 1 << 20),
        (&event, 1000, 2000, 1 << 20),
        (&event, 1000, 1 << 20, 2000),
    ] {
        let script = Scripted::chunks([chunk.as_bytes()]).then_silence();
        let upstream =
            ScriptedServer::start([script.header("content-type", "text/event-stream")]).await;
        let gateway = Running::start(upstream.address(), |config| {
            config.limits.event_bytes = event_bytes;
            config.limits.answer_bytes = answer_bytes;
            config.limits.answers_bytes = answers_bytes;
        })
        .await;
        let answer = gateway.post("/v1/messages", &[], body).await;
        assert!(!answer.is_whole, "{}", answer.text());
        assert!(answer.text().contains("error"), "{}", answer.text());
        // The upstream is let go, though it would go on.
        upstream.closed(1).await;
    }
}
