//! Answers in the words of Anthropic Messages.

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::ScriptedAnswer;
use super::sse;
use super::usage::ReportedUsage;

pub(crate) fn whole(answer: &ScriptedAnswer) -> Value {
    let mut message = json!({
        "id": format!("msg_{:06}", answer.request),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": if answer.is_silent { Vec::new() } else { blocks(answer) },
        "stop_reason": stop_reason(answer),
        "stop_sequence": null,
        "usage": usage(answer.usage),
    });
    if let Some(transformations) = &answer.transformations {
        message["input_transformations"] = transformations.clone();
    }
    if let Some(edits) = &answer.edits {
        message["context_management"] = json!({"applied_edits": edits});
    }
    message
}

pub(crate) fn events(answer: &ScriptedAnswer) -> Vec<Bytes> {
    let mut message = whole(answer);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = json!(1);
    // Told at the end.
    let edits = message.get_mut("context_management").map(Value::take);
    let mut events = Vec::new();
    let mut push = |event: Value| {
        events.push(sse::named(event["type"].as_str().unwrap_or_default(), &event));
    };
    push(json!({"type": "message_start", "message": message}));
    push(json!({"type": "ping"}));
    for (index, block) in blocks(answer).into_iter().enumerate() {
        let (start, deltas) = streamed(&block);
        push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        push(json!({"type": "content_block_stop", "index": index}));
    }
    let mut end = json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(answer), "stop_sequence": null},
        "usage": usage(answer.usage),
    });
    if let Some(edits) = edits {
        end["context_management"] = edits;
    }
    push(end);
    push(json!({"type": "message_stop"}));
    events
}

/// Returns how a block starts and the deltas that fill it.
fn streamed(block: &Value) -> (Value, Vec<Value>) {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match text("type") {
        "thinking" => {
            let thinking = json!({"type": "thinking_delta", "thinking": block["thinking"]});
            let signature = json!({"type": "signature_delta", "signature": block["signature"]});
            (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                // Thinking that is not shown has a signature only.
                if text("thinking").is_empty() {
                    vec![signature]
                } else {
                    vec![thinking, signature]
                },
            )
        }
        "tool_use" => {
            let mut start = block.clone();
            start["input"] = json!({});
            let input = block["input"].to_string();
            let parts = sse::halves(&input);
            let delta = |part| json!({"type": "input_json_delta", "partial_json": part});
            (start, parts.map(delta).to_vec())
        }
        _ => {
            let delta = |word| json!({"type": "text_delta", "text": word});
            (json!({"type": "text", "text": ""}), sse::words(text("text")).map(delta).collect())
        }
    }
}

fn blocks(answer: &ScriptedAnswer) -> Vec<Value> {
    let reasoning = answer.reasoning.iter().map(|reasoning| {
        let plain = || format!("c2NyaXB0ZWQ{:06}{:04}", answer.request, answer.turn);
        let signature = answer.signature.clone().unwrap_or_else(plain);
        json!({"type": "thinking", "thinking": reasoning, "signature": signature})
    });
    let calls = answer.calls.iter().enumerate().map(|(at, call)| {
        let id = answer.id("toolu", at);
        json!({"type": "tool_use", "id": id, "name": call.name, "input": call.arguments})
    });
    let text = json!({"type": "text", "text": answer.text});
    reasoning.chain(std::iter::once(text)).chain(calls).collect()
}

fn stop_reason(answer: &ScriptedAnswer) -> &'static str {
    if answer.is_silent {
        return "max_tokens";
    }
    if answer.calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn usage(usage: ReportedUsage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_written - usage.cache_written_long,
            "ephemeral_1h_input_tokens": usage.cache_written_long,
        },
        "output_tokens": usage.output,
    })
}

pub(crate) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        404 => "not_found_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}
