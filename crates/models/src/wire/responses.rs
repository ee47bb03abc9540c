//! OpenAI Responses, without state on the server: each request holds the whole conversation.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use plimsoll_core::{Block, Image, Message, Opaque, Role, ToolCall};
use plimsoll_engine::{
    ChatEvent, ChatReply, ChatRequest, ChatUsage, ModelError, Response, StopReason,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Delivery, Wrong, images, leading_system, raw, read, text_in, text_of, written};
use crate::config::JsonBy;
use crate::failure;
use crate::provider::Provider;
use crate::sse::Event;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextForm>,
    store: bool,
    include: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: Box<RawValue>,
    strict: bool,
}

#[derive(Serialize)]
struct TextForm {
    format: Format,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format {
    JsonObject,
    JsonSchema { name: &'static str, schema: Box<RawValue>, strict: bool },
}

pub(super) fn body(
    request: &ChatRequest,
    provider: &Provider,
    model: &str,
    delivery: Delivery,
) -> Result<Vec<u8>, ModelError> {
    if !request.stop.is_empty() {
        return Err(ModelError::Invalid("the Responses API takes no stop texts".into()));
    }
    let (system, rest) = leading_system(&request.messages);
    let system: Vec<String> = system.iter().filter_map(text_of).collect();
    let tools = request.tools.iter().map(|tool| {
        Ok(WireTool {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: raw(&tool.schema, "the schema of a tool")?,
            strict: false,
        })
    });
    let format = match (&request.response, provider.json) {
        (Response::Json { schema }, JsonBy::Schema) => Some(Format::JsonSchema {
            name: "answer",
            schema: raw(schema, "the schema of the answer")?,
            strict: false,
        }),
        (Response::Json { .. }, JsonBy::Object) => Some(Format::JsonObject),
        _ => None,
    };
    written(&Body {
        model,
        instructions: (!system.is_empty()).then(|| system.join("\n\n")),
        input: rest.iter().flat_map(items).collect(),
        tools: tools.collect::<Result<_, ModelError>>()?,
        max_output_tokens: request.max_tokens,
        temperature: request.temperature,
        text: format.map(|format| TextForm { format }),
        store: false,
        // What the next request needs to hold of this one's reasoning.
        include: ["reasoning.encrypted_content"],
        stream: (delivery == Delivery::Streamed).then_some(true),
    })
}

/// A message is one item for its words, and one for each call, result and piece of reasoning, in their order.
fn items(message: &Message) -> Vec<Value> {
    let mut items = Vec::new();
    let mut parts = Vec::new();
    let role = match message.role {
        Role::System => "system",
        Role::Assistant => "assistant",
        Role::User | Role::Tool => "user",
    };
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    let end = |parts: &mut Vec<Value>, items: &mut Vec<Value>| {
        if !parts.is_empty() {
            items.push(json!({"role": role, "content": std::mem::take(parts)}));
        }
    };
    for block in &message.blocks {
        match block {
            Block::Text(_) => {
                parts.extend(text_in(block).map(|text| json!({"type": kind, "text": text})));
            }
            Block::Image(image) => parts.push(image_part(image)),
            Block::ToolCall(call) => {
                end(&mut parts, &mut items);
                items.push(json!({
                    "type": "function_call", "call_id": &*call.id, "name": &*call.name,
                    "arguments": &*call.arguments
                }));
            }
            Block::ToolResult(result) => {
                end(&mut parts, &mut items);
                let output = if result.images.is_empty() {
                    json!(&*result.text)
                } else {
                    let text = (!result.text.is_empty())
                        .then(|| json!({"type": "input_text", "text": &*result.text}));
                    text.into_iter().chain(result.images.iter().map(image_part)).collect()
                };
                items.push(json!({
                    "type": "function_call_output", "call_id": &*result.call_id, "output": output
                }));
            }
            Block::Opaque(opaque) if &*opaque.kind == "reasoning" => {
                end(&mut parts, &mut items);
                items.extend(serde_json::from_str::<Value>(&opaque.raw));
            }
            // Another provider's.
            Block::Thinking(_) | Block::Opaque(_) => {}
        }
    }
    end(&mut parts, &mut items);
    items
}

fn image_part(image: &Image) -> Value {
    json!({"type": "input_image", "image_url": images::address(image)})
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Answer {
    model: String,
    status: Option<String>,
    output: Vec<Value>,
    usage: Option<WireUsage>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct WireUsage {
    input_tokens: u64,
    output_tokens: u64,
    input_tokens_details: Option<Details>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl From<WireUsage> for ChatUsage {
    fn from(usage: WireUsage) -> Self {
        let details = usage.input_tokens_details.unwrap_or_default();
        Self {
            input: usage.input_tokens,
            cached: details.cached_tokens.unwrap_or(0),
            cache_written: details.cache_write_tokens.unwrap_or(0),
            output: usage.output_tokens,
        }
    }
}

pub(super) fn reply(body: &[u8]) -> Result<ChatReply, Wrong> {
    let answer: Answer = read(body)?;
    if answer.status.is_none() {
        return Err(Wrong::Shape("it has no status".into()));
    }
    Ok(whole(answer))
}

fn whole(answer: Answer) -> ChatReply {
    let mut blocks = Vec::new();
    let mut is_refused = false;
    for item in &answer.output {
        is_refused |= read_item(item, &mut blocks);
    }
    let reason = answer.incomplete_details.and_then(|details| details.reason);
    let stop = match (answer.status.as_deref(), reason.as_deref()) {
        (_, Some("max_output_tokens")) => StopReason::Length,
        (_, Some("content_filter")) => StopReason::Refused,
        (_, Some(other)) => StopReason::Other(other.to_owned()),
        _ if is_refused => StopReason::Refused,
        _ if blocks.iter().any(|block| matches!(block, Block::ToolCall(_))) => StopReason::Calls,
        (Some("completed") | None, None) => StopReason::End,
        (Some(other), None) => StopReason::Other(other.to_owned()),
    };
    ChatReply::new(blocks, answer.usage.unwrap_or_default().into(), stop, answer.model)
}

/// Appends an item's blocks and tells whether it is a refusal.
fn read_item(item: &Value, blocks: &mut Vec<Block>) -> bool {
    let text = |value: &Value, key: &str| -> Arc<str> {
        value.get(key).and_then(Value::as_str).unwrap_or_default().into()
    };
    let kind = text(item, "type");
    match &*kind {
        "message" => {
            let parts = item.get("content").and_then(Value::as_array);
            let mut is_refused = false;
            for part in parts.into_iter().flatten() {
                is_refused |= &*text(part, "type") == "refusal";
                let said = [text(part, "text"), text(part, "refusal")];
                blocks.extend(said.into_iter().filter(|text| !text.is_empty()).map(Block::Text));
            }
            is_refused
        }
        "function_call" => {
            blocks.push(Block::ToolCall(ToolCall {
                id: text(item, "call_id"),
                name: text(item, "name"),
                arguments: text(item, "arguments"),
            }));
            false
        }
        _ => {
            blocks.push(Block::Opaque(Opaque { kind, raw: item.to_string().into() }));
            false
        }
    }
}

#[derive(Deserialize)]
struct WireEvent {
    r#type: String,
    #[serde(default)]
    output_index: u32,
    #[serde(default)]
    delta: Option<String>,
    #[serde(default)]
    item: Option<Value>,
    #[serde(default)]
    response: Option<Value>,
}

#[derive(Debug, Default)]
pub(super) struct Assembly {
    items: BTreeMap<u32, Value>,
    /// Which call, counted from 0, an item is.
    calls: BTreeMap<u32, u32>,
    is_done: bool,
}

impl super::Assembly for Assembly {
    fn take(&mut self, event: &Event, pieces: &mut VecDeque<ChatEvent>) -> Result<(), Wrong> {
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: WireEvent = read(event.data.as_bytes())?;
        let delta = event.delta.filter(|delta| !delta.is_empty());
        match &*event.r#type {
            "response.output_text.delta" | "response.refusal.delta" => {
                pieces.extend(delta.map(ChatEvent::Text));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                pieces.extend(delta.map(ChatEvent::Reasoning));
            }
            "response.output_item.added" => {
                if let Some(call) = event.item.as_ref().and_then(call_in) {
                    let index = self.calls.len() as u32;
                    self.calls.insert(event.output_index, index);
                    pieces.push_back(ChatEvent::CallBegun { index, id: call.id, name: call.name });
                }
            }
            "response.function_call_arguments.delta" => {
                let index = self.calls.get(&event.output_index).copied();
                pieces.extend(
                    index.zip(delta).map(|(index, text)| ChatEvent::CallArguments { index, text }),
                );
            }
            "response.output_item.done" => {
                let Some(item) = event.item else { return Ok(()) };
                let index = self.calls.get(&event.output_index).copied();
                pieces.extend(
                    index.zip(call_in(&item)).map(|(index, call)| ChatEvent::Call { index, call }),
                );
                self.items.insert(event.output_index, item);
            }
            "response.completed" | "response.incomplete" => {
                let response = event.response.unwrap_or_default();
                let mut answer: Answer = serde_json::from_value(response)
                    .map_err(|error| Wrong::Shape(error.to_string()))?;
                // Some servers leave out at the end what they sent before.
                if answer.output.is_empty() {
                    answer.output = std::mem::take(&mut self.items).into_values().collect();
                }
                self.is_done = true;
                pieces.push_back(ChatEvent::Done(Box::new(whole(answer))));
            }
            "response.failed" => {
                let told = event.response.as_ref().and_then(failure::of);
                return Err(told.map_or_else(
                    || Wrong::Shape("it failed and does not say why".into()),
                    Wrong::Told,
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _: &mut VecDeque<ChatEvent>) -> Result<(), Wrong> {
        if self.is_done { Ok(()) } else { Err(Wrong::Cut) }
    }
}

fn call_in(item: &Value) -> Option<ToolCall> {
    let mut blocks = Vec::new();
    read_item(item, &mut blocks);
    blocks.into_iter().find_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    })
}
