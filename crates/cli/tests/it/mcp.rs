//! `plimsoll mcp` over the pipes of a process, as a client starts it.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::environment::Environment;

#[test]
fn a_client_over_pipes_asks_the_store_that_was_imported() {
    let environment = Environment::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/session.jsonl");
    let imported = environment.run(&["import", example, "--store", "kept.db"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    let mut process = environment
        .command(&["mcp", "--store", "kept.db"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "timeline", "arguments": {}, "_meta": meta}});
    let mut input = process.stdin.take().expect("a pipe");
    input.write_all(format!("{ask}\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    let mut lines = std::io::BufReader::new(process.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut lines, &mut answer).expect("it answers");
    // The end of its input ends the server.
    drop(input);
    assert!(process.wait().expect("it ends").success());
    let answer: Value = serde_json::from_str(&answer).expect("standard output has messages only");
    assert_eq!(answer["id"], 7, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains(" messages "), "{text}");
}
