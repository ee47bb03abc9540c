//! Requests of Anthropic Messages.

use plimsoll_core::lazy_tools::NativeSearch;
use plimsoll_core::{Block, Image, Message, Role};
use plimsoll_engine::{Caching, ChatRequest, ModelError, Response, Tool};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Delivery, forbids_tools, images, leading_system, raw, text_in, written};
use crate::config::JsonBy;
use crate::provider::Provider;

#[derive(Serialize)]
struct AnthropicRequest<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    messages: Vec<AnthropicTurn>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AnthropicToolEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum AnthropicToolEntry<'a> {
    Search { r#type: &'static str, name: &'static str },
    Tool(AnthropicTool<'a>),
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Box<RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    defer_loading: bool,
}

#[derive(Serialize)]
struct AnthropicTurn {
    role: &'static str,
    content: Vec<Value>,
}

pub(super) fn body(
    request: &ChatRequest,
    provider: &Provider,
    model: &str,
    delivery: Delivery,
) -> Result<Vec<u8>, ModelError> {
    let (system, rest) = leading_system(&request.messages);
    let mut system: Vec<Value> = system.iter().flat_map(texts).collect();
    let mut turns = turns(rest)?;
    if request.caching == Caching::Prefix {
        let last = turns.last_mut().and_then(|turn| turn.content.last_mut());
        system.last_mut().into_iter().chain(last).for_each(mark);
    }
    let is_deferred = |tool: &Tool| {
        let deferral = request.deferral.as_ref().filter(|with| with.search != NativeSearch::Off);
        deferral.is_some_and(|deferral| deferral.tools.contains(&tool.name))
    };
    let search = request.tools.iter().any(is_deferred).then(|| search_of(request)).flatten();
    let tools = request.tools.iter().map(|tool| {
        let input_schema = raw(&tool.schema, "the schema of a tool")?;
        let (name, description) = (&*tool.name, &*tool.description);
        let defer_loading = is_deferred(tool);
        Ok(AnthropicToolEntry::Tool(AnthropicTool {
            name,
            description,
            input_schema,
            defer_loading,
        }))
    });
    let tools = search.into_iter().map(Ok).chain(tools);
    let output_config = match (&request.response, provider.json) {
        (Response::Json { schema }, JsonBy::Schema) => {
            let schema: Value = serde_json::from_str(schema)
                .map_err(|_| ModelError::Invalid("the schema of the answer is no JSON".into()))?;
            Some(json!({"format": {"type": "json_schema", "schema": schema}}))
        }
        _ => None,
    };
    written(&AnthropicRequest {
        model,
        max_tokens: request.max_tokens,
        system,
        messages: turns,
        tools: tools.collect::<Result<_, ModelError>>()?,
        temperature: request.temperature,
        stop_sequences: &request.stop,
        output_config,
        tool_choice: forbids_tools(request).then(|| json!({"type": "none"})),
        stream: (delivery == Delivery::Streamed).then_some(true),
    })
}

/// Returns the provider's own search; it is never deferred itself.
///
/// Source: platform.claude.com, agents and tools, tool search tool.
fn search_of(request: &ChatRequest) -> Option<AnthropicToolEntry<'static>> {
    match request.deferral.as_ref()?.search {
        NativeSearch::Off => None,
        NativeSearch::Regex => Some(AnthropicToolEntry::Search {
            r#type: "tool_search_tool_regex_20251119",
            name: "tool_search_tool_regex",
        }),
        NativeSearch::Bm25 => Some(AnthropicToolEntry::Search {
            r#type: "tool_search_tool_bm25_20251119",
            name: "tool_search_tool_bm25",
        }),
    }
}

/// Marks a block as the end of what the cache keeps; thinking takes no mark.
fn mark(block: &mut Value) {
    let Value::Object(block) = block else { return };
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    if !kind.ends_with("thinking") {
        block.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
}

fn texts(message: &Message) -> impl Iterator<Item = Value> + '_ {
    message.blocks.iter().filter_map(text_in).map(|text| json!({"type": "text", "text": text}))
}

/// Users and models take turns: what one says in several messages becomes one, results first. A system message behind the
/// first turn is the user's, for older models refuse it there.
fn turns(messages: &[Message]) -> Result<Vec<AnthropicTurn>, ModelError> {
    let mut turns: Vec<AnthropicTurn> = Vec::new();
    let mut results = 0;
    for message in messages {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        for block in &message.blocks {
            let Some(value) = content(block) else { continue };
            if turns.last().is_none_or(|turn| turn.role != role) {
                turns.push(AnthropicTurn { role, content: Vec::new() });
                results = 0;
            }
            let Some(turn) = turns.last_mut() else { continue };
            if matches!(block, Block::ToolResult(_)) {
                turn.content.insert(results, value);
                results += 1;
            } else {
                turn.content.push(value);
            }
        }
    }
    match turns.first() {
        Some(turn) if turn.role == "user" => {}
        _ => {
            return Err(ModelError::Invalid(
                "a conversation begins with a message of the user".into(),
            ));
        }
    }
    if let Some(turn) = turns.last_mut().filter(|turn| turn.role == "assistant") {
        trim_end(turn);
    }
    Ok(turns)
}

/// The beginning of an answer must not end with white space.
fn trim_end(turn: &mut AnthropicTurn) {
    if let Some(Value::String(text)) = turn.content.last_mut().and_then(|last| last.get_mut("text"))
    {
        text.truncate(text.trim_end().len());
    }
}

fn content(block: &Block) -> Option<Value> {
    match block {
        Block::Text(_) => text_in(block).map(|text| json!({"type": "text", "text": text})),
        Block::Image(image) => Some(image_block(image)),
        Block::ToolCall(call) => Some(json!({
            "type": "tool_use", "id": id(&call.id), "name": &*call.name, "input": input(&call.arguments)
        })),
        Block::ToolResult(result) => {
            let mut content = Vec::new();
            if !result.text.is_empty() {
                content.push(json!({"type": "text", "text": &*result.text}));
            }
            content.extend(result.images.iter().map(image_block));
            let mut value = json!({"type": "tool_result", "tool_use_id": id(&result.call_id), "content": content});
            if result.is_error {
                value["is_error"] = json!(true);
            }
            Some(value)
        }
        // Without its proof it is not Anthropic's, and refused.
        Block::Thinking(thinking) if thinking.signature.is_empty() => None,
        Block::Thinking(thinking) => Some(json!({
            "type": "thinking", "thinking": &*thinking.text, "signature": &*thinking.signature
        })),
        Block::Opaque(opaque) if &*opaque.kind == REDACTED => {
            serde_json::from_str(&opaque.raw).ok()
        }
        Block::Opaque(opaque) => serde_json::from_str(&opaque.raw).ok().filter(is_of_search),
    }
}

/// Returns whether a block belongs to the provider's search of tools. The tools that it found stay loaded as long as it is sent back.
fn is_of_search(block: &Value) -> bool {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "server_tool_use" => text("name").starts_with("tool_search_tool"),
        kind => kind == "tool_search_tool_result",
    }
}

const REDACTED: &str = "redacted_thinking";

fn image_block(image: &Image) -> Value {
    let source = match images::source(image) {
        images::ImagePlace::Address(url) => json!({"type": "url", "url": url}),
        images::ImagePlace::Base64 { media_type, data } => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
    };
    json!({"type": "image", "source": source})
}

/// Ids of other providers may hold what this one refuses.
fn id(id: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    id.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

/// The input must be an object: free text stands in one.
fn input(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(input)) => Value::Object(input),
        _ if arguments.trim().is_empty() => Value::Object(Map::new()),
        _ => json!({"input": arguments}),
    }
}
