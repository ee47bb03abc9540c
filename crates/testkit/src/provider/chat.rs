//! Answers in the words of Chat Completions.

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::ScriptedAnswer;
use super::sse;
use super::usage::ReportedUsage;

pub(crate) fn whole(answer: &ScriptedAnswer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text, "refusal": null});
    if !answer.calls.is_empty() {
        message["tool_calls"] = calls(answer).collect();
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null,
        "finish_reason": finish_reason(answer)});
    let mut body = beginning(answer, "chat.completion");
    body["choices"] = json!([choice]);
    body["usage"] = usage(answer.usage);
    body
}

/// With `usage`, as `stream_options.include_usage` asks, the figures come in a chunk of their own.
pub(crate) fn events(answer: &ScriptedAnswer, reports_usage: bool) -> Vec<Bytes> {
    let mut events = Vec::new();
    let mut push = |choices: Value, figures: Option<Value>| {
        let mut chunk = beginning(answer, "chat.completion.chunk");
        chunk["choices"] = choices;
        if reports_usage {
            chunk["usage"] = figures.unwrap_or(Value::Null);
        }
        events.push(sse::data(&chunk));
    };
    let choice = |delta: Value, finish: Option<&str>| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
    push(choice(json!({"role": "assistant", "content": "", "refusal": null}), None), None);
    for word in sse::words(&answer.text) {
        push(choice(json!({"content": word}), None), None);
    }
    for (index, mut call) in calls(answer).enumerate() {
        let arguments = call["function"]["arguments"].take();
        call["function"]["arguments"] = json!("");
        call["index"] = json!(index);
        push(choice(json!({"tool_calls": [call]}), None), None);
        for part in sse::halves(arguments.as_str().unwrap_or_default()) {
            let delta = json!({"index": index, "function": {"arguments": part}});
            push(choice(json!({"tool_calls": [delta]}), None), None);
        }
    }
    push(choice(json!({}), Some(finish_reason(answer))), None);
    if reports_usage {
        push(json!([]), Some(usage(answer.usage)));
    }
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    events
}

fn beginning(answer: &ScriptedAnswer, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{:06}", answer.request),
        "object": object,
        "created": super::CREATED,
        "model": answer.model,
    })
}

fn calls(answer: &ScriptedAnswer) -> impl Iterator<Item = Value> {
    answer.calls.iter().enumerate().map(|(at, call)| {
        json!({
            "id": answer.id("call", at),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments.to_string()},
        })
    })
}

fn finish_reason(answer: &ScriptedAnswer) -> &'static str {
    if answer.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(usage: ReportedUsage) -> Value {
    let input = usage.input + usage.cache_read + usage.cache_written;
    json!({
        "prompt_tokens": input,
        "completion_tokens": usage.output,
        "total_tokens": input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_written,
        },
    })
}

/// The shape of errors of both APIs of `OpenAI`.
pub(crate) fn error(status: u16, message: &str) -> Value {
    let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}
