//! Invented sessions, small and alike at every run.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Returns the output of a tool at a step; it differs from step to step.
fn listing(step: usize, lines: usize) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let _ = writeln!(
            text,
            "crates/harbour_{step}/src/berth_{line}.rs: quay = {}",
            step * 100 + line
        );
    }
    text
}

/// A session of pi with `steps` calls of a tool; each answer has `lines` lines.
pub(crate) fn pi(steps: usize, lines: usize) -> String {
    let mut records = vec![
        json!({"type": "session", "version": 3, "id": "5eb1", "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/home/ada/harbour"}),
        json!({"type": "model_change", "id": "m0", "parentId": null, "timestamp": "2026-03-01T10:00:00.000Z", "provider": "anthropic", "modelId": "claude-sonnet-4-5"}),
        entry(
            "u0",
            "m0",
            1,
            &json!({"role": "user", "content": [{"type": "text", "text": "Rename every quay in the harbour and tell me which ones you changed."}]}),
        ),
    ];
    let mut parent = "u0".to_owned();
    for step in 0..steps {
        let (call, result) = (format!("a{step}"), format!("r{step}"));
        records.push(entry(&call, &parent, 10 * step + 2, &json!({
            "role": "assistant",
            "content": [
                {"type": "text", "text": format!("I look at part {step} of the harbour.")},
                {"type": "toolCall", "id": format!("call_{step}"), "name": "bash", "arguments": {"command": format!("rg quay crates/harbour_{step}")}}
            ],
        })));
        records.push(entry(&result, &call, 10 * step + 5, &json!({
            "role": "toolResult", "toolCallId": format!("call_{step}"), "toolName": "bash", "isError": step == 1,
            "content": [{"type": "text", "text": listing(step, lines)}],
        })));
        parent = result;
    }
    records.push(entry(
        "end",
        &parent,
        10 * steps + 9,
        &json!({"role": "assistant", "content": [{"type": "text", "text": "All quays are renamed; crates/harbour_0/src/berth_3.rs was the hardest."}]}),
    ));
    lines_of(&records)
}

fn entry(id: &str, parent: &str, second: usize, message: &Value) -> Value {
    let time = format!("2026-03-01T10:{:02}:{:02}.000Z", second / 60, second % 60);
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": time, "message": message})
}

/// A list of `OpenAI` chat messages with `steps` calls of a tool.
pub(crate) fn openai(steps: usize, lines: usize) -> String {
    let mut messages = vec![
        json!({"role": "system", "content": "You tend a harbour."}),
        json!({"role": "user", "content": "Rename every quay."}),
    ];
    for step in 0..steps {
        messages.push(json!({"role": "assistant", "content": format!("Part {step} is next."), "tool_calls": [
            {"id": format!("call_{step}"), "type": "function", "function": {"name": "search", "arguments": format!("{{\"part\":{step}}}")}}
        ]}));
        messages.push(json!({"role": "tool", "tool_call_id": format!("call_{step}"), "content": listing(step, lines)}));
    }
    messages.push(json!({"role": "assistant", "content": "All quays are renamed."}));
    json!(messages).to_string()
}

/// A session of Claude Code with two calls, one answered with an error.
pub(crate) fn claude_code() -> String {
    let record = |kind: &str, id: &str, parent: Option<&str>, message: &Value| {
        json!({
            "type": kind, "uuid": id, "parentUuid": parent, "sessionId": "c1a0de", "cwd": "/home/ada/harbour",
            "timestamp": "2026-03-02T08:00:00.000Z", "isSidechain": false, "message": message,
        })
    };
    lines_of(&[
        record("user", "1", None, &json!({"role": "user", "content": "Which berths are free?"})),
        record(
            "assistant",
            "2",
            Some("1"),
            &json!({"role": "assistant", "id": "m1", "model": "claude-opus-4-6", "content": [
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "berths --free"}}
        ], "usage": {"input_tokens": 10, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90, "output_tokens": 20}}),
        ),
        record(
            "user",
            "3",
            Some("2"),
            &json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": listing(7, 40), "is_error": true}
            ]}),
        ),
        record(
            "assistant",
            "4",
            Some("3"),
            &json!({"role": "assistant", "id": "m2", "model": "claude-opus-4-6", "content": [
                {"type": "text", "text": "Berth 3 is free."}
            ]}),
        ),
    ])
}

/// Messages whose every text tries to become part of the page or of the terminal.
pub(crate) fn hostile() -> String {
    const BAD: &str = "</script></style><script>alert(1)</script>\"'\u{0}\u{1b}[31m\u{202e}<img src=x onerror=alert(2)>&amp;";
    let call = json!({"id": "c", "type": "function", "function": {"name": format!("read{BAD}"), "arguments": json!({"path": format!("src/harbour_master.rs{BAD}")}).to_string()}});
    let mut messages = vec![
        json!({"role": "system", "content": BAD}),
        json!({"role": "user", "content": format!("{BAD} look")}),
        json!({"role": "assistant", "content": BAD, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c", "content": format!("{BAD} src/lighthouse_keeper.rs\n").repeat(60)}),
    ];
    for step in 0..12 {
        messages.push(json!({"role": "assistant", "content": format!("step {step} {BAD} {}", listing(step, 40))}));
        messages.push(json!({"role": "user", "content": format!("go on {step} {BAD}")}));
    }
    messages.push(json!({"role": "assistant", "content": format!("as in {}", listing(0, 12))}));
    json!({"model": format!("claude{BAD}"), "messages": messages}).to_string()
}

fn lines_of(records: &[Value]) -> String {
    let mut text = String::new();
    for record in records {
        let _ = writeln!(text, "{record}");
    }
    text
}
