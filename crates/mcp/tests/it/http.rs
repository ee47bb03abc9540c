//! Streamable HTTP on loopback: both kinds of versions, and requests of other sites refused.

use std::fmt::Write as _;

use plimsoll_mcp::{HttpSettings, McpServeError, serve_http};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::client::{NEWEST, meta};

async fn serving(settings: HttpSettings) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let server = crate::server().await;
    tokio::spawn(serve_http(listener, server, settings, std::future::pending()));
    port
}

/// Posts a body with these headers and returns the status and the body of the answer.
async fn post(port: u16, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
    let body = body.to_string();
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        let _ = write!(request, "{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server accepts");
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, body.to_owned())
}

fn search() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_context", "arguments": {"query": "ledger"}, "_meta": meta()}})
}

/// Returns the headers of the newest version for a call of `search_context`.
fn newest() -> Vec<(&'static str, &'static str)> {
    vec![
        ("MCP-Protocol-Version", NEWEST),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "search_context"),
    ]
}

#[tokio::test]
async fn the_newest_version_calls_a_tool_without_a_session() {
    let port = serving(HttpSettings::default()).await;
    let host = format!("127.0.0.1:{port}");
    let mut headers = newest();
    headers.push(("Host", &host));
    let (status, body) = post(port, &headers, &search()).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("7443"), "{body}");
}

#[tokio::test]
async fn an_older_version_initializes_and_calls_a_tool() {
    let port = serving(HttpSettings::default()).await;
    let host = format!("localhost:{port}");
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let (status, body) = post(port, &[("Host", &host)], &initialize).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("2025-06-18"), "{body}");
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "search_context", "arguments": {"query": "ledger"}}});
    let headers = [("Host", host.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
    let (status, body) = post(port, &headers, &call).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("7443"), "{body}");
}

#[tokio::test]
async fn other_hosts_and_origins_are_refused() {
    let port = serving(HttpSettings::default()).await;
    let own = format!("127.0.0.1:{port}");
    let rebound = format!("evil.example:{port}");
    for (host, origin) in [
        (rebound.as_str(), None),
        ("127.0.0.1:1", None),
        (own.as_str(), Some("https://evil.example")),
        (own.as_str(), Some("null")),
        (own.as_str(), Some("http://127.0.0.1:1")),
    ] {
        let mut headers = newest();
        headers.push(("Host", host));
        headers.extend(origin.map(|origin| ("Origin", origin)));
        let (status, body) = post(port, &headers, &search()).await;
        assert_eq!(status, 403, "{host} {origin:?}: {body}");
        assert!(!body.contains("7443"), "{body}");
    }
}

#[tokio::test]
async fn named_hosts_and_origins_are_answered() {
    let settings = HttpSettings {
        hosts: vec!["plimsoll.test:80".to_owned()],
        origins: vec!["https://inspector.test".to_owned()],
    };
    let port = serving(settings).await;
    let mut headers = newest();
    headers.push(("Host", "plimsoll.test:80"));
    headers.push(("Origin", "https://inspector.test"));
    let (status, body) = post(port, &headers, &search()).await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test]
async fn an_address_that_others_reach_is_refused() {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a free port");
    let server = crate::server().await;
    let done = serve_http(listener, server, HttpSettings::default(), std::future::pending()).await;
    assert!(matches!(done, Err(McpServeError::Open { .. })), "{done:?}");
}
