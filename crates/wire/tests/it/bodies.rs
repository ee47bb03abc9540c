//! Requests of all wires, made from a script of what was said.

use plimsoll_wire::{DEFAULT_DEPTH, ProviderRequest, Wire};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What a model did in one turn, and what came back.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn by itself")]
pub(crate) struct Step {
    pub(crate) thinks: bool,
    pub(crate) speaks: bool,
    /// Without calls it spoke, and the user answered.
    pub(crate) calls: usize,
    pub(crate) lists: bool,
    pub(crate) image: bool,
    pub(crate) fails: bool,
    pub(crate) adds: bool,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flags = any::<[bool; 6]>();
    let step =
        (0..4_usize, flags).prop_map(|(calls, [thinks, speaks, lists, image, fails, adds])| Step {
            thinks,
            speaks,
            calls,
            lists,
            image,
            fails,
            adds,
        });
    prop::collection::vec(step, 0..6)
}

pub(crate) fn wires() -> impl Strategy<Value = Wire> {
    prop::sample::select(Wire::ALL.to_vec())
}

pub(crate) fn parse(wire: Wire, body: &[u8]) -> ProviderRequest {
    ProviderRequest::parse(wire, body, "/v1beta/models/m-1:generateContent", DEFAULT_DEPTH).unwrap()
}

/// Makes the body of a request; a number that no float holds and an unknown field are in it.
pub(crate) fn body(wire: Wire, steps: &[Step]) -> String {
    let value = match wire {
        Wire::AnthropicMessages => anthropic(steps),
        Wire::ChatCompletions => chat(steps),
        Wire::Responses => responses(steps),
        Wire::Gemini => gemini(steps),
    };
    let text = serde_json::to_string_pretty(&value).unwrap();
    text.replace("\"LONG\"", "123456789012345678901234567890")
}

const SIGNATURE: &str = "c2lnbmVk";

fn text_of(kind: &str, index: usize) -> String {
    format!("{kind} {index}: \"quoted\" naïve\n{}", "a line of some words\n".repeat(index % 4 + 1))
}

fn answer_text(step: &Step, index: usize, call: usize) -> Value {
    let text = text_of("result", index * 10 + call);
    if !step.lists {
        return json!(text);
    }
    let mut parts =
        vec![json!({"type": "text", "text": text}), json!({"type": "text", "text": "more"})];
    if step.image {
        let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
        parts.insert(1, json!({"type": "image", "source": source}));
    }
    Value::Array(parts)
}

fn call_id(index: usize, call: usize) -> String {
    format!("call_{index}_{call}")
}

fn arguments(index: usize) -> Value {
    json!({"path": format!("src/file{index}.rs"), "content": "x\n".repeat(300), "n": "LONG"})
}

fn anthropic(steps: &[Step]) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "the task"})];
    for (index, step) in steps.iter().enumerate() {
        let mut content = Vec::new();
        if step.thinks {
            content.push(json!({"type": "thinking", "thinking": "hm", "signature": SIGNATURE}));
        }
        if step.speaks || step.calls == 0 {
            content.push(json!({"type": "text", "text": text_of("said", index)}));
        }
        let mut answers = Vec::new();
        for call in 0..step.calls {
            let id = call_id(index, call);
            content.push(
                json!({"type": "tool_use", "id": id, "name": "write", "input": arguments(index)}),
            );
            let mut answer = json!({"tool_use_id": id, "type": "tool_result", "content": answer_text(step, index, call)});
            if step.fails {
                answer["is_error"] = json!(true);
            }
            answers.push(answer);
        }
        messages.push(json!({"role": "assistant", "content": content}));
        if step.calls == 0 {
            messages.push(json!({"role": "user", "content": text_of("asked", index)}));
        } else {
            if step.adds {
                answers.push(json!({"type": "text", "text": "by the way"}));
            }
            messages.push(json!({"role": "user", "content": answers}));
        }
    }
    if let Some(Value::Array(content)) = messages.last_mut().map(|last| &mut last["content"])
        && let Some(last) = content.last_mut()
    {
        last["cache_control"] = json!({"type": "ephemeral"});
    }
    json!({
        "model": "m-1", "max_tokens": 1000, "stream": true,
        "system": [{"type": "text", "text": "be exact", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": messages, "x-unknown": {"b": "LONG", "a": [1.50]},
        "tools": [{"name": "write", "description": "writes", "input_schema": {"type": "object"}}],
    })
}

fn chat(steps: &[Step]) -> Value {
    let mut messages = vec![
        json!({"role": "developer", "content": "be exact"}),
        json!({"role": "user", "content": [{"type": "text", "text": "the task"}]}),
    ];
    for (index, step) in steps.iter().enumerate() {
        let speaks = step.speaks || step.calls == 0;
        let text = if speaks { json!(text_of("said", index)) } else { Value::Null };
        let mut said = json!({"role": "assistant", "content": text});
        if step.thinks {
            said["reasoning_content"] = json!("hm");
        }
        let ids: Vec<String> = (0..step.calls).map(|call| call_id(index, call)).collect();
        if step.calls > 0 {
            let calls = ids.iter().map(|id| {
                json!({"id": id, "type": "function",
                    "function": {"name": "write", "arguments": arguments(index).to_string()}})
            });
            said["tool_calls"] = calls.collect();
        }
        messages.push(said);
        for (call, id) in ids.iter().enumerate() {
            let mut content = answer_text(step, index, call);
            if let Value::Array(parts) = &mut content {
                parts.retain(|part| part["type"] == "text");
            }
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        }
        if step.calls == 0 {
            messages.push(json!({"role": "user", "content": text_of("asked", index)}));
        }
    }
    json!({
        "model": "m-1", "stream": true, "messages": messages, "x-unknown": {"b": "LONG"},
        "tools": [{"type": "function", "function": {"name": "write", "parameters": {"type": "object"}}}],
    })
}

fn responses(steps: &[Step]) -> Value {
    let input_text = |text: String| json!([{"type": "input_text", "text": text}]);
    let mut input = vec![
        json!({"type": "additional_tools", "tools": [{"type": "function", "name": "write", "parameters": {"type": "object"}}]}),
        json!({"type": "message", "role": "user", "content": input_text("the task".into())}),
    ];
    for (index, step) in steps.iter().enumerate() {
        if step.thinks {
            input.push(json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}));
        }
        if step.speaks || step.calls == 0 {
            let text = json!([{"type": "output_text", "text": text_of("said", index)}]);
            input.push(json!({"type": "message", "role": "assistant", "content": text, "phase": "commentary"}));
        }
        for call in 0..step.calls {
            let id = call_id(index, call);
            input.push(if step.fails { json!({"type": "custom_tool_call", "call_id": id, "name": "patch", "input": "x\n".repeat(300)}) } else { json!({"type": "function_call", "call_id": id, "name": "write", "arguments": arguments(index).to_string()}) });
        }
        for call in 0..step.calls {
            let kind = if step.fails { "custom_tool_call_output" } else { "function_call_output" };
            let mut output = answer_text(step, index, call);
            for part in output.as_array_mut().into_iter().flatten() {
                if part["type"] == "text" {
                    part["type"] = json!("input_text");
                } else {
                    *part =
                        json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"});
                }
            }
            input.push(json!({"type": kind, "call_id": call_id(index, call), "output": output}));
        }
        if step.calls == 0 {
            let content = input_text(text_of("asked", index));
            input.push(json!({"type": "message", "role": "user", "content": content}));
        }
    }
    json!({
        "model": "m-1", "stream": true, "store": false, "instructions": "be exact", "input": input,
        "x-unknown": {"b": "LONG"}, "prompt_cache_key": "session-7",
    })
}

fn gemini(steps: &[Step]) -> Value {
    let mut contents = vec![json!({"role": "user", "parts": [{"text": "the task"}]})];
    for (index, step) in steps.iter().enumerate() {
        let mut parts = Vec::new();
        if step.thinks {
            parts.push(json!({"text": "hm", "thought": true}));
        }
        if step.speaks || step.calls == 0 {
            parts.push(json!({"text": text_of("said", index)}));
        }
        let mut answers = Vec::new();
        for call in 0..step.calls {
            let mut asked = json!({"name": "write", "args": arguments(index)});
            let key = if step.fails { "error" } else { "output" };
            let mut told = json!({"name": "write", "response": {key: text_of("result", index)}});
            if step.lists {
                asked["id"] = json!(call_id(index, call));
                told["id"] = json!(call_id(index, call));
            }
            parts.push(json!({"functionCall": asked, "thoughtSignature": SIGNATURE}));
            answers.push(json!({"functionResponse": told}));
        }
        contents.push(json!({"role": "model", "parts": parts}));
        if step.calls == 0 {
            answers.push(json!({"text": text_of("asked", index)}));
        }
        contents.push(json!({"role": "user", "parts": answers}));
    }
    json!({
        "systemInstruction": {"parts": [{"text": "be exact"}]}, "contents": contents,
        "tools": [{"functionDeclarations": [{"name": "write", "parametersJsonSchema": {"type": "object"}}]}],
        "generationConfig": {"maxOutputTokens": 1000, "x-unknown": "LONG"},
    })
}
