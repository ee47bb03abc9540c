//! Requests of OpenAI Responses, without state on the server: each request holds the whole conversation.

use plimsoll_core::{Block, Image, Message, Role};
use plimsoll_engine::{ChatRequest, ModelError, Response};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Delivery, forbids_tools, images, leading_system, raw, text_in, text_of, written};
use crate::config::JsonBy;
use crate::provider::Provider;

#[derive(Serialize)]
struct ResponsesRequest<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    store: bool,
    include: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

#[derive(Serialize)]
struct ResponsesTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: Box<RawValue>,
    strict: bool,
}

#[derive(Serialize)]
struct TextForm {
    format: ResponsesFormat,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesFormat {
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
        Ok(ResponsesTool {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: raw(&tool.schema, "the schema of a tool")?,
            strict: false,
        })
    });
    let format = match (&request.response, provider.json) {
        (Response::Json { schema }, JsonBy::Schema) => Some(ResponsesFormat::JsonSchema {
            name: "answer",
            schema: raw(schema, "the schema of the answer")?,
            strict: false,
        }),
        (Response::Json { .. }, JsonBy::Object) => Some(ResponsesFormat::JsonObject),
        _ => None,
    };
    written(&ResponsesRequest {
        model,
        instructions: (!system.is_empty()).then(|| system.join("\n\n")),
        input: rest.iter().flat_map(items).collect(),
        tools: tools.collect::<Result<_, ModelError>>()?,
        max_output_tokens: request.max_tokens,
        temperature: request.temperature,
        text: format.map(|format| TextForm { format }),
        tool_choice: forbids_tools(request).then_some("none"),
        store: false,
        // The next request needs this part of the reasoning.
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
