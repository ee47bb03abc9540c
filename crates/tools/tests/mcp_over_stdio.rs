//! A server of MCP over stdio: it adds numbers, says what it finds in its environment, fails when asked to, and never answers
//! when asked to.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

fn main() {
    for line in std::io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line.expect("a line")) else { continue };
        let Some(id) = request.get("id") else { continue };
        let answer = match request["method"].as_str() {
            Some("initialize") => Some(json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "numbers", "version": "1"},
            })),
            Some("tools/list") => Some(json!({"tools": [
                {"name": "add", "description": "Adds two numbers.", "inputSchema": {
                    "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}},
                {"name": "environment", "inputSchema": {"type": "object"}},
                {"name": "fail", "inputSchema": {"type": "object"}},
                {"name": "hang", "inputSchema": {"type": "object"}},
            ]})),
            Some("tools/call") => called(&request["params"]),
            _ => {
                let error = json!({"code": -32601, "message": "no such method"});
                print(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                continue;
            }
        };
        if let Some(result) = answer {
            print(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        }
    }
}

fn called(params: &Value) -> Option<Value> {
    let arguments = &params["arguments"];
    let text = match params["name"].as_str()? {
        "add" => {
            let number = |name: &str| arguments[name].as_f64().unwrap_or_default();
            (number("a") + number("b")).to_string()
        }
        "environment" => {
            let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
            names.sort();
            names.join(" ")
        }
        "fail" => {
            let content = json!([{"type": "text", "text": "it can't be done"}]);
            return Some(json!({"content": content, "isError": true}));
        }
        _ => return None,
    };
    Some(
        json!({"content": [{"type": "text", "text": text}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]}),
    )
}

fn print(value: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}").expect("a pipe");
    out.flush().expect("a pipe");
}
