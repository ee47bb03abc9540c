//! Answers in the words of Gemini.

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::ScriptedAnswer;
use super::sse;

pub(crate) fn whole(answer: &ScriptedAnswer) -> Value {
    chunk(answer, &parts(answer), true)
}

pub(crate) fn events(answer: &ScriptedAnswer) -> Vec<Bytes> {
    let parts = parts(answer);
    let last = parts.len().saturating_sub(1);
    let parts = parts.into_iter().enumerate();
    parts.map(|(at, part)| sse::data(&chunk(answer, &[part], at == last))).collect()
}

fn chunk(answer: &ScriptedAnswer, parts: &[Value], is_last: bool) -> Value {
    let usage = answer.usage;
    let input = usage.input + usage.cache_read + usage.cache_written;
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if is_last {
        candidate["finishReason"] = json!("STOP");
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": input,
            "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": input + usage.output,
        },
        "modelVersion": answer.model,
        "responseId": format!("resp-{:06}", answer.request),
    })
}

fn parts(answer: &ScriptedAnswer) -> Vec<Value> {
    let mut parts = vec![json!({"text": answer.text})];
    parts.extend(answer.calls.iter().enumerate().map(|(at, call)| {
        let id = answer.id("call", at);
        let mut part =
            json!({"functionCall": {"id": id, "name": call.name, "args": call.arguments}});
        // The first of parallel calls is signed.
        if at == 0 {
            part["thoughtSignature"] = json!(format!("c2NyaXB0ZWQ{:06}", answer.request));
        }
        part
    }));
    parts
}

pub(crate) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "INVALID_ARGUMENT",
        404 => "NOT_FOUND",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": kind}})
}
