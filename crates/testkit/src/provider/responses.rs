//! Answers in the words of Responses.

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::ScriptedAnswer;
use super::offered::ToolForm;
use super::sse;
use super::usage::ReportedUsage;

pub(crate) fn whole(answer: &ScriptedAnswer) -> Value {
    let usage = usage(answer.usage);
    let mut body = response(answer, "completed");
    body["output"] = items(answer).into();
    body["usage"] = usage;
    body
}

pub(crate) fn events(answer: &ScriptedAnswer) -> Vec<Bytes> {
    let mut events = ResponsesEvents { count: 0, events: Vec::new() };
    let begun = response(answer, "in_progress");
    events.push("response.created", json!({"response": begun}));
    events.push("response.in_progress", json!({"response": begun}));
    for (at, item) in items(answer).into_iter().enumerate() {
        events.item(at, &item);
    }
    events.push("response.completed", json!({"response": whole(answer)}));
    events.events
}

/// The answer of `responses/compact`: what was asked stays, what was done is sealed.
pub(crate) fn compacted(body: &Value, request: u64) -> Value {
    let asked = body["input"].as_array().into_iter().flatten();
    let mut output: Vec<_> = asked.filter(|item| item["role"] == "user").cloned().collect();
    output.push(json!({
        "type": "compaction",
        "id": format!("cmp_{request:06}"),
        "encrypted_content": format!("c2VhbGVk{request:06}"),
    }));
    json!({
        "id": format!("resp_{request:06}"),
        "object": "response.compaction",
        "created_at": super::CREATED,
        "output": output,
        "usage": usage(ReportedUsage { input: 1000, output: 100, ..ReportedUsage::default() }),
    })
}

struct ResponsesEvents {
    count: u64,
    events: Vec<Bytes>,
}

impl ResponsesEvents {
    fn push(&mut self, kind: &str, mut event: Value) {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.count);
        self.count += 1;
        self.events.push(sse::named(kind, &event));
    }

    fn item(&mut self, at: usize, item: &Value) {
        let id = &item["id"];
        let kind = item["type"].as_str().unwrap_or_default();
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        match kind {
            "message" => begun["content"] = json!([]),
            "function_call" => begun["arguments"] = json!(""),
            "custom_tool_call" => begun["input"] = json!(""),
            _ => {}
        }
        self.push("response.output_item.added", json!({"output_index": at, "item": begun}));
        match kind {
            "message" => {
                let part = &item["content"][0];
                let text = part["text"].as_str().unwrap_or_default();
                let place = json!({"item_id": id, "output_index": at, "content_index": 0});
                let with = |key: &str, value: Value| {
                    let mut event = place.clone();
                    event[key] = value;
                    event
                };
                let empty = json!({"type": "output_text", "text": "", "annotations": []});
                self.push("response.content_part.added", with("part", empty));
                for word in sse::words(text) {
                    self.push("response.output_text.delta", with("delta", json!(word)));
                }
                self.push("response.output_text.done", with("text", json!(text)));
                self.push("response.content_part.done", with("part", part.clone()));
            }
            "function_call" | "custom_tool_call" => {
                let (key, events) = if kind == "function_call" {
                    ("arguments", "response.function_call_arguments")
                } else {
                    ("input", "response.custom_tool_call_input")
                };
                for part in sse::halves(item[key].as_str().unwrap_or_default()) {
                    let delta = json!({"item_id": id, "output_index": at, "delta": part});
                    self.push(&format!("{events}.delta"), delta);
                }
                let mut done = json!({"item_id": id, "output_index": at});
                done[key] = item[key].clone();
                self.push(&format!("{events}.done"), done);
            }
            _ => {}
        }
        self.push("response.output_item.done", json!({"output_index": at, "item": item}));
    }
}

fn response(answer: &ScriptedAnswer, status: &str) -> Value {
    json!({
        "id": format!("resp_{:06}", answer.request),
        "object": "response",
        "created_at": super::CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "metadata": {},
        "model": answer.model,
        "output": [],
        "parallel_tool_calls": true,
        "store": false,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "usage": null,
    })
}

fn items(answer: &ScriptedAnswer) -> Vec<Value> {
    let request = answer.request;
    let mut items = Vec::new();
    if let Some(reasoning) = &answer.reasoning {
        items.push(json!({
            "type": "reasoning",
            "id": format!("rs_{request:06}"),
            "summary": [{"type": "summary_text", "text": reasoning}],
            "encrypted_content": format!("gAAAAc2NyaXB0ZWQ{request:06}{}", "c2VhbGVk".repeat(40)),
        }));
    }
    if answer.calls.is_empty() || answer.speaks {
        items.push(json!({
            "type": "message",
            "id": format!("msg_{request:06}"),
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": answer.text, "annotations": []}],
        }));
    }
    for (at, call) in answer.calls.iter().enumerate() {
        let call_id = answer.id("call", at);
        let id = format!("{request:06}x{at}");
        let mut item = match call.kind {
            ToolForm::Function => json!({
                "type": "function_call", "id": format!("fc_{id}"), "call_id": call_id,
                "name": call.name, "arguments": call.arguments.to_string(), "status": "completed",
            }),
            ToolForm::Custom => json!({
                "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": call_id,
                "name": call.name, "input": call.arguments, "status": "completed",
            }),
            ToolForm::LocalShell => json!({
                "type": "local_shell_call", "id": format!("lsh_{id}"), "call_id": call_id,
                "status": "completed",
                "action": {"type": "exec", "command": ["bash", "-lc", call.arguments], "env": {}},
            }),
        };
        if let Some(namespace) = &call.namespace {
            item["namespace"] = json!(namespace);
        }
        items.push(item);
    }
    items
}

fn usage(usage: ReportedUsage) -> Value {
    let input = usage.input + usage.cache_read + usage.cache_written;
    json!({
        "input_tokens": input,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_written,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + usage.output,
    })
}
