//! A client that writes the protocol's messages by hand, so that no library hides a fault.

use plimsoll_mcp::serve_stream;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};

/// The versions that a client may ask for with `initialize`.
pub(crate) const OLDER: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version without `initialize`.
pub(crate) const NEWEST: &str = "2026-07-28";

/// A client at the other end of a pair of streams.
pub(crate) struct Client {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    id: u64,
    meta: Option<Value>,
}

/// Returns the `_meta` that each request of the newest version carries.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

impl Client {
    /// Connects with a version of the protocol.
    pub(crate) async fn connect(version: &str) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let server = crate::server().await;
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(async move { serve_stream(server, reader, writer).await });
        let (reader, writer) = tokio::io::split(ours);
        let mut client = Self { reader: BufReader::new(reader), writer, id: 0, meta: None };
        if version == NEWEST {
            client.meta = Some(meta());
            return client;
        }
        let answer = client
            .ask(
                "initialize",
                json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
            )
            .await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.writer.write_all(line.as_bytes()).await.expect("the server reads");
    }

    /// Sends a request and returns its answer.
    pub(crate) async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.id += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let id = self.id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let mut line = String::new();
            let read = self.reader.read_line(&mut line).await.expect("the server writes");
            assert!(read > 0, "the server closed the stream after {method}");
            let answer: Value = serde_json::from_str(&line).expect("a message a line");
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// Calls a tool and returns its text; `Err` holds the text of a tool error.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        if result["isError"] == true { Err(text.to_owned()) } else { Ok(text.to_owned()) }
    }
}
