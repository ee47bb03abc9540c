//! A client's side of a conversation on all wires, and the provider's answers to it.

use plimsoll_testkit::upstream::Scripted;
use plimsoll_wire::{Ending, Events, ProviderAnswer, Watch, Wire, check};
use serde_json::{Value, json};

/// Those on which calls have ids.
pub(crate) const WIRES: [Wire; 3] =
    [Wire::AnthropicMessages, Wire::ChatCompletions, Wire::Responses];

/// A call: id, name, arguments.
pub(crate) type Call = (&'static str, &'static str, Value);

/// What a client has of a conversation.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    wire: Wire,
    streams: bool,
    items: Vec<Value>,
    tools: Vec<Tool>,
}

/// A tool: name, description, schema.
pub(crate) type Tool = (String, String, Value);

impl Talk {
    pub(crate) fn new(wire: Wire, streams: bool, task: &str) -> Self {
        let schema = json!({"type": "object", "properties": {}});
        let tools = vec![("read".to_owned(), "reads".to_owned(), schema)];
        let mut talk = Self { wire, streams, items: Vec::new(), tools };
        talk.asks(task);
        talk
    }

    /// Offers these tools beside `read`.
    pub(crate) fn offering(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    pub(crate) fn path(&self) -> &'static str {
        match self.wire {
            Wire::AnthropicMessages => "/v1/messages",
            Wire::ChatCompletions => "/v1/chat/completions",
            Wire::Responses => "/v1/responses",
            Wire::Gemini if self.streams => {
                "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
            }
            Wire::Gemini => "/v1beta/models/gemini-2.5-pro:generateContent",
        }
    }

    /// Writes the next request.
    pub(crate) fn body(&self) -> Vec<u8> {
        let (items, stream) = (&self.items, self.streams);
        let each =
            |write: &dyn Fn(&Tool) -> Value| self.tools.iter().map(write).collect::<Vec<_>>();
        let body = match self.wire {
            Wire::AnthropicMessages => json!({
                "model": "claude-sonnet-4-5", "max_tokens": 1000, "stream": stream, "system": "You help.",
                "tools": each(&|(name, told, schema)| json!({"name": name, "description": told, "input_schema": schema})),
                "messages": items,
            }),
            Wire::ChatCompletions => {
                let system = json!({"role": "system", "content": "You help."});
                let all: Vec<&Value> = std::iter::once(&system).chain(items).collect();
                json!({
                    "model": "gpt-4.1", "stream": stream,
                    "tools": each(&|(name, told, schema)| json!({"type": "function", "function": {"name": name, "description": told, "parameters": schema}})),
                    "messages": all,
                })
            }
            Wire::Gemini => json!({
                "systemInstruction": {"parts": [{"text": "You help."}]},
                "tools": [{"functionDeclarations": each(&|(name, told, schema)| json!({"name": name, "description": told, "parameters": schema}))}],
                "contents": items,
            }),
            Wire::Responses => json!({
                "model": "gpt-5", "stream": stream, "store": false, "instructions": "You help.",
                "tools": each(&|(name, told, schema)| json!({"type": "function", "name": name, "description": told, "strict": false, "parameters": schema})),
                "input": items,
            }),
        };
        let body = serde_json::to_vec(&body).expect("plain data");
        assert_eq!(check(self.wire, &body), [], "the client itself keeps the rules");
        body
    }

    /// Repeats what the model said.
    pub(crate) fn said(&mut self, text: &str, calls: &[Call]) {
        let arguments = |call: &Call| call.2.to_string();
        match self.wire {
            Wire::AnthropicMessages => {
                let mut content: Vec<Value> = Vec::new();
                if !text.is_empty() {
                    content.push(json!({"type": "text", "text": text}));
                }
                content.extend(calls.iter().map(
                    |(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input}),
                ));
                self.items.push(json!({"role": "assistant", "content": content}));
            }
            Wire::ChatCompletions => {
                let mut message = json!({"role": "assistant", "content": text});
                if !calls.is_empty() {
                    let calls: Vec<Value> = calls.iter().map(|call| json!({"id": call.0, "type": "function", "function": {"name": call.1, "arguments": arguments(call)}})).collect();
                    message["tool_calls"] = json!(calls);
                }
                self.items.push(message);
            }
            Wire::Gemini => {
                self.items.push(json!({"role": "model", "parts": parts(text, calls)}));
            }
            Wire::Responses => {
                if !text.is_empty() {
                    self.items.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}));
                }
                self.items.extend(calls.iter().map(|call| json!({"type": "function_call", "call_id": call.0, "name": call.1, "arguments": arguments(call)})));
            }
        }
    }

    /// Repeats an answer as it came.
    pub(crate) fn repeats(&mut self, body: &[u8]) {
        let answer = if self.streams {
            let (mut events, mut watch) = (Events::default(), Watch::new(self.wire));
            events.push(body);
            while let Some(event) = events.next_event() {
                watch.see(&event);
            }
            watch.answer().clone()
        } else {
            ProviderAnswer::of_body(self.wire, body)
        };
        assert_eq!(answer.ending, Ending::Complete);
        let items = answer.items.iter();
        self.items.extend(items.map(|item| serde_json::from_str::<Value>(item).expect("JSON")));
    }

    /// Answers a call.
    pub(crate) fn result(&mut self, id: &str, text: &str) {
        self.items.push(match self.wire {
            Wire::AnthropicMessages => json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}),
            Wire::ChatCompletions => json!({"role": "tool", "tool_call_id": id, "content": text}),
            Wire::Gemini => {
                let name = self.called(id);
                json!({"role": "user", "parts": [{"functionResponse": {"id": id, "name": name, "response": {"output": text}}}]})
            }
            Wire::Responses => json!({"type": "function_call_output", "call_id": id, "output": text}),
        });
    }

    /// Returns the name of the tool that a call of Gemini called.
    fn called(&self, id: &str) -> Value {
        let parts = self.items.iter().filter_map(|item| item["parts"].as_array()).flatten();
        let mut calls = parts.map(|part| &part["functionCall"]);
        calls.find(|call| call["id"] == id).map_or(Value::Null, |call| call["name"].clone())
    }

    pub(crate) fn asks(&mut self, text: &str) {
        self.items.push(match self.wire {
            Wire::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            _ => json!({"role": "user", "content": text}),
        });
    }

    /// Goes back to the first `items` of what was said.
    pub(crate) fn back_to(&mut self, items: usize) {
        self.items.truncate(items);
    }

    /// Writes an answer as the provider does.
    pub(crate) fn answer(&self, text: &str, calls: &[Call]) -> Scripted {
        if self.streams {
            Scripted::chunks(events(self.wire, text, calls))
        } else {
            let body = whole(self.wire, text, calls).to_string();
            Scripted::body(200, body).header("content-type", "application/json")
        }
    }

    /// Returns the bytes of an answer.
    pub(crate) fn answered(&self, text: &str, calls: &[Call]) -> Vec<u8> {
        if self.streams {
            events(self.wire, text, calls).concat().into_bytes()
        } else {
            whole(self.wire, text, calls).to_string().into_bytes()
        }
    }
}

fn whole(wire: Wire, text: &str, calls: &[Call]) -> Value {
    match wire {
        Wire::AnthropicMessages => {
            let mut content: Vec<Value> = Vec::new();
            if !text.is_empty() {
                content.push(json!({"type": "text", "text": text}));
            }
            content.extend(calls.iter().map(|(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input})));
            let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": content,
                "stop_reason": stop, "stop_sequence": null, "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 7}})
        }
        Wire::ChatCompletions => {
            let mut message = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                let calls: Vec<Value> = calls.iter().map(|call| json!({"id": call.0, "type": "function", "function": {"name": call.1, "arguments": call.2.to_string()}})).collect();
                message["tool_calls"] = json!(calls);
            }
            let stop = if calls.is_empty() { "stop" } else { "tool_calls" };
            json!({"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-4.1",
                "choices": [{"index": 0, "message": message, "finish_reason": stop}],
                "usage": {"prompt_tokens": 15, "completion_tokens": 7, "total_tokens": 22, "prompt_tokens_details": {"cached_tokens": 5}}})
        }
        Wire::Gemini => json!({
            "candidates": [{"content": {"role": "model", "parts": parts(text, calls)}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 15, "cachedContentTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 22},
            "modelVersion": "gemini-2.5-pro",
        }),
        Wire::Responses => {
            json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "status": "completed",
            "output": output(text, calls),
            "usage": {"input_tokens": 15, "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 7, "total_tokens": 22}})
        }
    }
}

fn parts(text: &str, calls: &[Call]) -> Vec<Value> {
    let said = (!text.is_empty()).then(|| json!({"text": text}));
    let calls = calls
        .iter()
        .map(|(id, name, args)| json!({"functionCall": {"id": id, "name": name, "args": args}}));
    said.into_iter().chain(calls).collect()
}

fn output(text: &str, calls: &[Call]) -> Vec<Value> {
    let mut output: Vec<Value> = Vec::new();
    if !text.is_empty() {
        output.push(json!({"id": "m", "type": "message", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}));
    }
    output.extend(calls.iter().map(|call| json!({"id": format!("fc_{}", call.0), "type": "function_call", "status": "completed", "call_id": call.0, "name": call.1, "arguments": call.2.to_string()})));
    output
}

fn events(wire: Wire, text: &str, calls: &[Call]) -> Vec<String> {
    let mut out: Vec<Value> = Vec::new();
    match wire {
        Wire::AnthropicMessages => {
            out.push(json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}}}));
            let mut index = 0;
            if !text.is_empty() {
                out.push(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}));
                out.push(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}));
                out.push(json!({"type": "content_block_stop", "index": 0}));
                index += 1;
            }
            for (id, name, input) in calls {
                out.push(json!({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}));
                out.push(json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": input.to_string()}}));
                out.push(json!({"type": "content_block_stop", "index": index}));
                index += 1;
            }
            let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
            out.push(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 7}}));
            out.push(json!({"type": "message_stop"}));
        }
        Wire::ChatCompletions => {
            let chunk = |delta: Value, stop: Value| json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1", "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]});
            out.push(chunk(json!({"role": "assistant", "content": ""}), Value::Null));
            if !text.is_empty() {
                out.push(chunk(json!({"content": text}), Value::Null));
            }
            for (index, call) in calls.iter().enumerate() {
                out.push(chunk(json!({"tool_calls": [{"index": index, "id": call.0, "type": "function", "function": {"name": call.1, "arguments": ""}}]}), Value::Null));
                out.push(chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": call.2.to_string()}}]}), Value::Null));
            }
            out.push(chunk(json!({}), json!(if calls.is_empty() { "stop" } else { "tool_calls" })));
            out.push(json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1", "choices": [], "usage": {"prompt_tokens": 15, "completion_tokens": 7, "total_tokens": 22}}));
        }
        Wire::Gemini => {
            for part in parts(text, calls) {
                out.push(json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}));
            }
            let mut last = whole(wire, "", &[]);
            last["candidates"][0]["content"]["parts"] = json!([{"text": ""}]);
            out.push(last);
        }
        Wire::Responses => {
            let whole = whole(wire, text, calls);
            out.push(json!({"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}}));
            for (index, item) in output(text, calls).into_iter().enumerate() {
                out.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
                if item["type"] == "function_call" {
                    out.push(json!({"type": "response.function_call_arguments.delta", "output_index": index, "item_id": item["id"], "delta": item["arguments"]}));
                    out.push(json!({"type": "response.function_call_arguments.done", "output_index": index, "item_id": item["id"], "arguments": item["arguments"]}));
                } else {
                    out.push(json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0, "item_id": item["id"], "delta": text}));
                }
                out.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
            }
            out.push(json!({"type": "response.completed", "response": whole}));
            for (number, event) in out.iter_mut().enumerate() {
                event["sequence_number"] = json!(number);
            }
        }
    }
    let mut written: Vec<String> = out
        .into_iter()
        .map(|event| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    if wire == Wire::ChatCompletions {
        written.push("data: [DONE]\n\n".to_owned());
    }
    written
}

/// What ends a stream of a wire.
pub(crate) fn terminal(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => "message_stop",
        Wire::ChatCompletions => "[DONE]",
        Wire::Responses => "response.completed",
        Wire::Gemini => "finishReason",
    }
}
