//! Requests of OpenAI Chat Completions, as OpenAI, OpenRouter, Ollama, llama.cpp and vLLM speak it.

use plimsoll_core::{Block, Image, Message, Role};
use plimsoll_engine::{ChatRequest, ModelError, Response};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Delivery, forbids_tools, images, raw, text_in, text_of, written};
use crate::config::JsonBy;
use crate::provider::Provider;

#[derive(Serialize)]
struct ChatCompletionsRequest<'a> {
    model: &'a str,
    messages: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(flatten)]
    max_tokens: serde_json::Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ChatResponseFormat>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    r#type: &'static str,
    function: ChatFunction<'a>,
}

#[derive(Serialize)]
struct ChatFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatResponseFormat {
    JsonObject,
    JsonSchema { json_schema: Schema },
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the API's own names")]
struct Schema {
    name: &'static str,
    schema: Box<RawValue>,
    // The strict kind takes a part of JSON schema only; the answer is checked in any case.
    strict: bool,
}

pub(super) fn body(
    request: &ChatRequest,
    provider: &Provider,
    model: &str,
    delivery: Delivery,
) -> Result<Vec<u8>, ModelError> {
    let tool = |tool: &'_ plimsoll_engine::Tool| raw(&tool.schema, "the schema of a tool");
    let tools = request.tools.iter().map(|each| {
        let function = ChatFunction {
            name: &each.name,
            description: &each.description,
            parameters: tool(each)?,
        };
        Ok(ChatTool { r#type: "function", function })
    });
    let response_format = match (&request.response, provider.json) {
        (Response::Json { schema }, JsonBy::Schema) => Some(ChatResponseFormat::JsonSchema {
            json_schema: Schema {
                name: "answer",
                schema: raw(schema, "the schema of the answer")?,
                strict: false,
            },
        }),
        (Response::Json { .. }, JsonBy::Object) => Some(ChatResponseFormat::JsonObject),
        _ => None,
    };
    let streamed = (delivery == Delivery::Streamed).then_some(true);
    written(&ChatCompletionsRequest {
        model,
        messages: messages(&request.messages),
        tools: tools.collect::<Result<_, ModelError>>()?,
        max_tokens: [(provider.max_tokens_field.clone(), json!(request.max_tokens))]
            .into_iter()
            .collect(),
        temperature: request.temperature,
        response_format,
        stop: &request.stop,
        tool_choice: forbids_tools(request).then_some("none"),
        stream: streamed,
        stream_options: streamed.map(|_| json!({"include_usage": true})),
    })
}

/// Results come before anything else of their message, directly behind the call; their images, which a tool's message cannot
/// hold, follow the last result as a user's message.
fn messages(messages: &[Message]) -> Vec<Value> {
    let mut out = Vec::new();
    let mut images: Vec<&Image> = Vec::new();
    for message in messages {
        for result in message.results() {
            out.push(
                json!({"role": "tool", "tool_call_id": &*result.call_id, "content": &*result.text}),
            );
            images.extend(&result.images);
        }
        if message.role == Role::Tool {
            continue;
        }
        if !images.is_empty() {
            out.push(with_images(&mut images));
        }
        match message.role {
            Role::System => {
                out.extend(text_of(message).map(|text| json!({"role": "system", "content": text})));
            }
            Role::Assistant => out.extend(assistant(message)),
            Role::User | Role::Tool => out.extend(user(message)),
        }
    }
    if !images.is_empty() {
        out.push(with_images(&mut images));
    }
    out
}

fn with_images(images: &mut Vec<&Image>) -> Value {
    let parts: Vec<Value> = images.drain(..).map(image_part).collect();
    json!({"role": "user", "content": parts})
}

fn image_part(image: &Image) -> Value {
    json!({"type": "image_url", "image_url": {"url": images::address(image)}})
}

fn user(message: &Message) -> Option<Value> {
    let has_image = message.blocks.iter().any(|block| matches!(block, Block::Image(_)));
    if !has_image {
        return text_of(message).map(|text| json!({"role": "user", "content": text}));
    }
    let parts = message.blocks.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image_part(image)),
        block => text_in(block).map(|text| json!({"type": "text", "text": text})),
    });
    Some(json!({"role": "user", "content": parts.collect::<Vec<_>>()}))
}

fn assistant(message: &Message) -> Option<Value> {
    let calls: Vec<Value> = message
        .calls()
        .map(|call| {
            let function = json!({"name": &*call.name, "arguments": &*call.arguments});
            json!({"id": &*call.id, "type": "function", "function": function})
        })
        .collect();
    let text = text_of(message);
    if calls.is_empty() {
        return text.map(|text| json!({"role": "assistant", "content": text}));
    }
    Some(json!({"role": "assistant", "content": text, "tool_calls": calls}))
}
