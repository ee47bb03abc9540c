//! OpenAI Chat Completions, as OpenAI, OpenRouter, Ollama, llama.cpp and vLLM speak it.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_core::{Block, Image, Message, Role, Thinking, ToolCall};
use plimsoll_engine::{
    ChatEvent, ChatReply, ChatRequest, ChatUsage, ModelError, Response, StopReason,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Delivery, Growing, Wrong, images, raw, read, text_in, text_of, written};
use crate::config::JsonBy;
use crate::provider::Provider;
use crate::sse::Event;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(flatten)]
    max_tokens: serde_json::Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format {
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
        let function =
            Function { name: &each.name, description: &each.description, parameters: tool(each)? };
        Ok(WireTool { r#type: "function", function })
    });
    let response_format = match (&request.response, provider.json) {
        (Response::Json { schema }, JsonBy::Schema) => Some(Format::JsonSchema {
            json_schema: Schema {
                name: "answer",
                schema: raw(schema, "the schema of the answer")?,
                strict: false,
            },
        }),
        (Response::Json { .. }, JsonBy::Object) => Some(Format::JsonObject),
        _ => None,
    };
    let streamed = (delivery == Delivery::Streamed).then_some(true);
    written(&Body {
        model,
        messages: messages(&request.messages),
        tools: tools.collect::<Result<_, ModelError>>()?,
        max_tokens: [(provider.max_tokens_field.clone(), json!(request.max_tokens))]
            .into_iter()
            .collect(),
        temperature: request.temperature,
        response_format,
        stop: &request.stop,
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

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    model: String,
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
    #[serde(default)]
    finish_reason: Option<String>,
}

/// A message, or a delta of one.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Said {
    content: Option<String>,
    /// Some servers send it under both names.
    reasoning: Option<String>,
    reasoning_content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<WireCall>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireCall {
    index: Option<u32>,
    id: Option<String>,
    function: WireFunction,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireFunction {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl From<WireUsage> for ChatUsage {
    fn from(usage: WireUsage) -> Self {
        let details = usage.prompt_tokens_details.unwrap_or_default();
        Self {
            input: usage.prompt_tokens,
            cached: details.cached_tokens.unwrap_or(0),
            cache_written: details.cache_write_tokens.unwrap_or(0),
            output: usage.completion_tokens,
        }
    }
}

pub(super) fn reply(body: &[u8]) -> Result<ChatReply, Wrong> {
    let answer: Answer = read(body)?;
    let mut assembly = Assembly::default();
    let mut choices = answer.choices.into_iter();
    let choice = choices.next().ok_or_else(|| Wrong::Shape("it has no choice".into()))?;
    assembly.model = answer.model;
    assembly.usage = answer.usage.unwrap_or_default();
    // A whole answer is a stream of one delta.
    assembly.said(choice.message, &mut VecDeque::new());
    assembly.finish = Some(choice.finish_reason.unwrap_or_default());
    Ok(assembly.whole(&mut VecDeque::new()))
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    model: String,
    #[serde(default)]
    choices: Vec<ChunkChoice>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    #[serde(default)]
    delta: Option<Said>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Assembly {
    model: String,
    reasoning: String,
    text: String,
    is_refused: bool,
    calls: Vec<Growing>,
    usage: WireUsage,
    finish: Option<String>,
    is_done: bool,
}

impl std::fmt::Debug for WireUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        ChatUsage::from(*self).fmt(f)
    }
}

impl super::Assembly for Assembly {
    fn take(&mut self, event: &Event, pieces: &mut VecDeque<ChatEvent>) -> Result<(), Wrong> {
        if event.data.trim() == "[DONE]" {
            return self.end(pieces);
        }
        let chunk: Chunk = read(event.data.as_bytes())?;
        if !chunk.model.is_empty() {
            self.model = chunk.model;
        }
        if let Some(usage) = chunk.usage {
            self.usage = usage;
        }
        if let Some(choice) = chunk.choices.into_iter().next() {
            if let Some(delta) = choice.delta {
                self.said(delta, pieces);
            }
            self.finish = choice.finish_reason.or_else(|| self.finish.take());
        }
        Ok(())
    }

    fn end(&mut self, pieces: &mut VecDeque<ChatEvent>) -> Result<(), Wrong> {
        if self.is_done {
            return Ok(());
        }
        // Not every server announces the end; the reason of the end is what none leaves out.
        if self.finish.is_none() {
            return Err(Wrong::Cut);
        }
        self.is_done = true;
        let reply = self.whole(pieces);
        pieces.push_back(ChatEvent::Done(Box::new(reply)));
        Ok(())
    }
}

impl Assembly {
    fn said(&mut self, said: Said, pieces: &mut VecDeque<ChatEvent>) {
        let reasoning = said.reasoning.or(said.reasoning_content);
        if let Some(text) = reasoning.filter(|text| !text.is_empty()) {
            self.reasoning.push_str(&text);
            pieces.push_back(ChatEvent::Reasoning(text));
        }
        self.is_refused |= said.refusal.as_ref().is_some_and(|text| !text.is_empty());
        for text in [said.content, said.refusal].into_iter().flatten() {
            if !text.is_empty() {
                self.text.push_str(&text);
                pieces.push_back(ChatEvent::Text(text));
            }
        }
        for call in said.tool_calls.into_iter().flatten() {
            self.call(call, pieces);
        }
    }

    fn call(&mut self, call: WireCall, pieces: &mut VecDeque<ChatEvent>) {
        let name = call.function.name.unwrap_or_default();
        // A server that numbers nothing sends each call whole, with its name.
        let last = self.calls.len().saturating_sub(usize::from(name.is_empty()));
        let at = call.index.map_or(last, |index| index as usize).min(self.calls.len());
        let index = at as u32;
        if at == self.calls.len() {
            let id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{index}"));
            pieces.push_back(ChatEvent::CallBegun {
                index,
                id: id.as_str().into(),
                name: name.as_str().into(),
            });
            self.calls.push(Growing { id, name, arguments: String::new() });
        }
        let text = match call.function.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
        };
        if !text.is_empty() {
            self.calls[at].arguments.push_str(&text);
            pieces.push_back(ChatEvent::CallArguments { index, text });
        }
    }

    fn whole(&mut self, pieces: &mut VecDeque<ChatEvent>) -> ChatReply {
        let mut blocks = Vec::new();
        if !self.reasoning.is_empty() {
            let text: Arc<str> = std::mem::take(&mut self.reasoning).into();
            blocks.push(Block::Thinking(Thinking { text, signature: "".into() }));
        }
        if !self.text.is_empty() {
            blocks.push(Block::Text(std::mem::take(&mut self.text).into()));
        }
        let calls: Vec<ToolCall> = self.calls.drain(..).map(Growing::whole).collect();
        let stop = match self.finish.as_deref().unwrap_or_default() {
            _ if self.is_refused => StopReason::Refused,
            "length" => StopReason::Length,
            "content_filter" => StopReason::Refused,
            // Some servers say `stop` for calls too.
            _ if !calls.is_empty() => StopReason::Calls,
            "stop" | "" => StopReason::End,
            other => StopReason::Other(other.to_owned()),
        };
        for (index, call) in calls.into_iter().enumerate() {
            pieces.push_back(ChatEvent::Call { index: index as u32, call: call.clone() });
            blocks.push(Block::ToolCall(call));
        }
        ChatReply::new(blocks, self.usage.into(), stop, std::mem::take(&mut self.model))
    }
}
