//! Clients that the operator does not know: paths, framing, pace, shares, and what they may see.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_gateway::{GatewayConfig, KeyConfig};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{Answer, Running};

fn keys(operator: &str) -> BTreeMap<String, KeyConfig> {
    let key = |name: &str| {
        let sha256 = plimsoll_engine::digest(name.as_bytes());
        (name.to_owned(), KeyConfig { sha256, tenant: None, operator: name == operator })
    };
    ["ann", "bob"].map(key).into()
}

fn own_key(config: &mut GatewayConfig) {
    for upstream in config.upstreams.values_mut() {
        upstream.key_env = Some("UPSTREAM_KEY".to_owned());
    }
}

#[tokio::test]
async fn the_operators_key_opens_known_paths_only() {
    let upstream = ScriptedServer::start((0..3).map(|_| Scripted::body(200, "{}"))).await;
    let gateway = Running::start(upstream.address(), |config| {
        own_key(config);
        if let Some(openai) = config.upstreams.get_mut("openai") {
            openai.paths = vec!["GET /files".to_owned()];
        }
    })
    .await;
    for (method, path) in [
        ("POST", "/v1/files"),
        ("GET", "/v1/files/f1"),
        ("DELETE", "/v1/models/m"),
        ("GET", "/v1/organization/admin_api_keys"),
        ("GET", "/upstream/anthropic/v1/messages/batches"),
        ("POST", "/v1beta/models/m:predict"),
    ] {
        let answer = gateway.send(method, path, &[], b"").await;
        assert_eq!(answer.status, 403, "{method} {path}");
        assert_eq!(answer.header("x-plimsoll-refused"), Some("not_allowed"));
    }
    assert!(upstream.requests().is_empty());
    for (method, path) in [("GET", "/v1/models"), ("GET", "/v1/files"), ("POST", "/v1/embeddings")]
    {
        assert_eq!(gateway.send(method, path, &[], b"").await.status, 200, "{method} {path}");
    }
}

#[tokio::test]
async fn no_path_leaves_the_upstreams_base() {
    let upstream = ScriptedServer::start([]).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    for path in ["/v1/../admin", "/upstream/openai/../x", "/v1/%2e%2e/admin", "/v1/..%2fadmin"] {
        let answer = gateway.send("GET", path, &[], b"").await;
        assert_eq!(
            (answer.status, answer.header("x-plimsoll-refused")),
            (400, Some("path")),
            "{path}"
        );
    }
    assert!(upstream.requests().is_empty());
}

async fn begin(gateway: &Running, key: &str, length: usize) -> TcpStream {
    let mut stream = gateway.connect().await;
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {}\r\nx-plimsoll-key: {key}\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n",
        gateway.address
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut seen = vec![0; 25];
    // The gateway asks for the body: from here on it reads.
    stream.read_exact(&mut seen).await.expect("100 continue");
    stream
}

#[tokio::test]
async fn an_announced_length_takes_no_room() {
    let upstream = ScriptedServer::start([Scripted::body(200, "{}")]).await;
    let gateway = Running::start(upstream.address(), |config| {
        config.keys = keys("");
        config.limits.in_flight_bytes = 1000;
        config.limits.body_bytes = 1000;
    })
    .await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(begin(&gateway, "ann", 1000).await);
    }
    let key = [("x-plimsoll-key", "bob"), ("x-plimsoll-mode", "off")];
    assert_eq!(gateway.post("/v1/responses", &key, &[b' '; 900]).await.status, 200);
}

#[tokio::test]
async fn a_body_has_a_least_rate_and_an_end() {
    let upstream = ScriptedServer::start([]).await;
    for (rate, whole, waits) in [(10, 1000, 5), (0, 12, 2)] {
        let gateway = Running::start(upstream.address(), |config| {
            config.timeouts.body = 8;
            config.limits.body_rate = rate;
            config.timeouts.whole_body = whole;
        })
        .await;
        let mut stream = begin(&gateway, "", 100_000).await;
        // A byte each 7 s is soon enough for the time between two pieces.
        for _ in 0..waits {
            if stream.write_all(b"x").await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
            gateway.clock.advance(Duration::from_secs(7));
        }
        assert_eq!(Answer::read(&mut stream).await.status, 408, "{rate} {whole}");
    }
}

#[tokio::test]
async fn a_tenant_takes_no_more_than_its_share() {
    let upstream = ScriptedServer::start([Scripted::never(), Scripted::body(200, "{}")]).await;
    let gateway = Running::start(upstream.address(), |config| {
        config.keys = keys("");
        config.limits.in_flight_bytes = 1000;
        config.limits.tenant_bytes = 500;
    })
    .await;
    let mut first = begin(&gateway, "ann", 400).await;
    first.write_all(&[b' '; 400]).await.expect("sent");
    upstream.received(1).await;
    let post = async |key| {
        let headers = [("x-plimsoll-key", key), ("x-plimsoll-mode", "off")];
        gateway.post("/v1/responses", &headers, &[b' '; 400]).await.status
    };
    assert_eq!(post("ann").await, 503);
    assert_eq!(post("bob").await, 200);
}

#[tokio::test]
async fn a_request_with_two_lengths_is_refused() {
    let upstream = ScriptedServer::start([]).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    for headers in [
        "transfer-encoding: chunked\r\ncontent-length: 3",
        "content-length: 3\r\ntransfer-encoding: chunked",
        "content-length: 3\r\ncontent-length: 3",
        "transfer-encoding: gzip, chunked",
    ] {
        let mut stream = gateway.connect().await;
        let request = format!(
            "POST /v1/responses HTTP/1.1\r\nhost: {}\r\n{headers}\r\n\r\n0\r\n\r\n",
            gateway.address
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let answer = Answer::read(&mut stream).await;
        assert_eq!(answer.status, 400, "{headers}");
        assert_eq!(answer.header("connection"), Some("close"), "{headers}");
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let upstream = ScriptedServer::start([]).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    let cross = [("sec-fetch-site", "cross-site")];
    assert_eq!(gateway.send("GET", "/v1/models", &cross, b"").await.status, 403);
    let plain = [("content-type", "text/plain;charset=UTF-8")];
    assert_eq!(gateway.post("/v1/responses", &plain, b"{}").await.status, 403);
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_client_that_closed_its_side_gets_its_answer() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}"#;
    for version in ["1.1", "1.0"] {
        for (answer, end) in [
            (Scripted::body(200, "{\"a\":1}"), "{\"a\":1}"),
            (Scripted::chunks(["data: 1\n\n", "data: [DONE]\n\n"]), "data: [DONE]\n\n"),
        ] {
            let upstream = ScriptedServer::start([answer]).await;
            let gateway = Running::start(upstream.address(), |_| {}).await;
            let mut stream = gateway.connect().await;
            let request = format!(
                "POST /v1/chat/completions HTTP/{version}\r\nhost: {}\r\ncontent-length: {}\r\n\r\n{body}",
                gateway.address,
                body.len()
            );
            stream.write_all(request.as_bytes()).await.expect("sent");
            stream.shutdown().await.expect("closed");
            let mut seen = Vec::new();
            // The clock stands, so that no timeout ends this connection.
            stream.read_to_end(&mut seen).await.expect("open");
            let seen = String::from_utf8_lossy(&seen).into_owned();
            assert!(seen.contains(end), "{version}: {seen}");
        }
    }
}

#[tokio::test]
async fn a_client_that_closes_its_side_while_the_answer_comes_gets_the_rest() {
    let (first, last) = ("data: 1\n\n".to_owned(), "data: [DONE]\n\n".to_owned());
    let pieces = [first, "x".repeat(4 << 20), last];
    let upstream = ScriptedServer::start([Scripted::chunks(pieces)]).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    let mut stream = gateway.connect().await;
    let head = format!("POST /v1/embeddings HTTP/1.1\r\nhost: {}\r\n", gateway.address);
    let request = format!("{head}content-length: 2\r\n\r\n{{}}");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut seen = Vec::new();
    assert!(stream.read_buf(&mut seen).await.expect("open") > 0);
    stream.shutdown().await.expect("closed");
    stream.read_to_end(&mut seen).await.expect("open");
    assert!(String::from_utf8_lossy(&seen).contains("data: [DONE]"), "{} bytes", seen.len());
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_upstreams_work() {
    // Whether it leaves at once, which the next piece shows, or later, while the upstream is silent.
    for (later, pieces) in [(false, 1000), (true, 1)] {
        let pieces = (0..pieces).map(|_| format!("data: {}\n\n", "x".repeat(1 << 16)));
        let answer = Scripted::chunks(pieces).then_silence();
        let upstream = ScriptedServer::start([answer]).await;
        let gateway = Running::start(upstream.address(), |_| {}).await;
        let mut stream = gateway.connect().await;
        let head = format!("POST /v1/embeddings HTTP/1.1\r\nhost: {}\r\n", gateway.address);
        let request = format!("{head}content-length: 2\r\n\r\n{{}}");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut seen = Vec::new();
        assert!(stream.read_buf(&mut seen).await.expect("open") > 0);
        if later {
            gateway.clock.advance(Duration::from_secs(2));
        }
        drop(stream);
        upstream.closed(1).await;
    }
}

#[tokio::test]
async fn an_error_of_the_upstream_does_not_show_the_operators_key() {
    let told = r#"{"error":{"message":"the-real-key may not do this"}}"#;
    let json = |status, body: &str| {
        Scripted::body(status, body)
            .header("content-type", "application/json")
            .header("x-echo", "Bearer the-real-key")
    };
    for mode in ["on", "off"] {
        let refused = r#"{"error":{"message":"Incorrect API key: the-****-key"}}"#;
        let upstream = ScriptedServer::start([json(403, told), json(401, refused)]).await;
        let gateway = Running::start(upstream.address(), own_key).await;
        let body = br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
        for status in [403, 401] {
            let headers = [("x-plimsoll-mode", mode)];
            let answer = gateway.post("/v1/chat/completions", &headers, body).await;
            assert_eq!(answer.status, status, "{mode}");
            let shown = format!("{:?} {}", answer.headers, answer.text());
            assert!(!shown.contains("the-real-key") && !shown.contains("-key\""), "{shown}");
        }
    }
}

#[tokio::test]
async fn no_answer_of_the_upstream_has_the_operators_key_in_its_head() {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode("Bearer the-real-key");
    let moved = Scripted::body(302, "").header("location", "http://x/?key=the%2Dreal-key");
    let fine = Scripted::body(200, "{}").header("x-echo", &encoded);
    let upstream = ScriptedServer::start([moved, fine]).await;
    let gateway = Running::start(upstream.address(), own_key).await;
    for status in [302, 200] {
        let answer = gateway.send("GET", "/v1/models", &[], b"").await;
        assert_eq!(answer.status, status);
        let named = [answer.header("location"), answer.header("x-echo")];
        assert_eq!(named, [None, None]);
    }
}

#[tokio::test]
async fn metrics_are_for_the_operator() {
    let upstream = ScriptedServer::start([]).await;
    let gateway = Running::start(upstream.address(), |config| config.keys = keys("bob")).await;
    for (key, status) in [("ann", 403), ("bob", 200), ("eve", 401)] {
        let answer = gateway.send("GET", "/metrics", &[("x-plimsoll-key", key)], b"").await;
        assert_eq!(answer.status, status, "{key}");
    }
}
