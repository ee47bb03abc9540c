//! Gemini CLI: a chat document in which a call and its result stand in one message.

use std::sync::Arc;

use plimsoll_core::json_text::compact;
use plimsoll_core::{Block, Role, Thinking, ToolCall, ToolResult};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::arguments;
use crate::blocks::Content;
use crate::draft::{Draft, Recorded, usage};
use crate::error::ReadError;
use crate::json::{self, Count, Stamp, Text};
use crate::requests::Asked;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chat<'a> {
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(default)]
    start_time: Stamp,
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMessage<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    timestamp: Stamp,
    #[serde(default)]
    content: Content<'a>,
    thoughts: Option<Vec<Thought<'a>>>,
    tokens: Option<Tokens>,
    model: Option<Text<'a>>,
    tool_calls: Option<Vec<WireCall<'a>>>,
}

#[derive(Deserialize)]
struct Thought<'a> {
    #[serde(borrow, default)]
    subject: Text<'a>,
    #[serde(default)]
    description: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    input: Count,
    output: Count,
    cached: Count,
    thoughts: Count,
}

#[derive(Deserialize)]
struct WireCall<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(default)]
    name: Text<'a>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    status: Text<'a>,
    #[serde(default)]
    timestamp: Stamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    function_response: Option<FunctionResponse<'a>>,
    text: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct FunctionResponse<'a> {
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    output: Option<Text<'a>>,
    error: Option<Text<'a>>,
}

/// Reads a Gemini CLI chat.
pub(crate) fn read(text: &str) -> Result<Draft, ReadError> {
    let chat: Chat<'_> = serde_json::from_str(text).map_err(ReadError::json)?;
    let mut draft = Draft::of_elements();
    draft.header.id = chat.session_id.map(|id| id.0.into_owned());
    draft.header.started = chat.start_time.0;
    json::each_element(&chat.messages, &mut draft, |draft, number, text| {
        let message: WireMessage<'_> = serde_json::from_str(text)?;
        let time = message.timestamp.0;
        match message.kind.as_str() {
            "user" => {
                let blocks = message.content.blocks();
                draft.recorded.push(Recorded::new(Role::User, number, time, blocks));
            }
            "gemini" => gemini(draft, number, message),
            // What the program told its user: errors, warnings, the output of its own commands.
            _ => {}
        }
        Ok(())
    });
    Ok(draft)
}

fn gemini(draft: &mut Draft, number: u32, message: WireMessage<'_>) {
    let time = message.timestamp.0;
    let mut recorded = Recorded::new(Role::Assistant, number, time, []);
    for thought in message.thoughts.iter().flatten() {
        let text =
            Arc::from(format!("{}: {}", thought.subject.as_str(), thought.description.as_str()));
        let thinking = Thinking { text, signature: Arc::from("") };
        recorded.push(number, None, Block::Thinking(thinking));
    }
    for (index, block) in message.content.blocks() {
        recorded.push(number, index, block);
    }
    let calls = message.tool_calls.unwrap_or_default();
    for (index, call) in (0..).zip(&calls) {
        let call = ToolCall {
            id: call.id.shared(),
            name: call.name.shared(),
            arguments: arguments::from_raw(call.args),
        };
        recorded.push(number, Some(index), Block::ToolCall(call));
    }
    let thought = message.tokens.as_ref().map(|tokens| tokens.thoughts.0);
    if let Some(tokens) = message.tokens {
        let output = tokens.output.0 + tokens.thoughts.0;
        recorded.message.usage = usage(tokens.input.0, tokens.cached.0, output);
    }
    if let Some(model) = message.model {
        recorded.message.model = Some(model.shared());
        draft.header.model = Some(model.0.into_owned());
    }
    if let Some(usage) = recorded.message.usage {
        draft.requests.push(Asked {
            before: draft.recorded.len(),
            source: number,
            time,
            model: recorded.message.model.clone(),
            usage,
            thinking_tokens: thought,
            ..Asked::default()
        });
    }
    draft.recorded.push(recorded);
    for (index, call) in (0..).zip(&calls) {
        let Some(text) = call.result.and_then(|raw| result_text(raw.get())) else { continue };
        let result = ToolResult {
            call_id: call.id.shared(),
            text,
            images: Vec::new(),
            is_error: call.status.as_str() == "error",
        };
        let time = call.timestamp.0.or(time);
        let block = (Some(index), Block::ToolResult(result));
        draft.recorded.push(Recorded::new(Role::Tool, number, time, [block]));
    }
}

/// Returns the text of a result: its `output` or `error`, else the response as JSON.
fn result_text(raw: &str) -> Option<Arc<str>> {
    if raw == "null" {
        return None;
    }
    let parts: Vec<Part<'_>> = match serde_json::from_str(raw) {
        Ok(parts) => parts,
        Err(_) => return Some(compact(raw)),
    };
    let texts: Vec<Arc<str>> = parts
        .into_iter()
        .filter_map(|part| match part.function_response.and_then(|response| response.response) {
            Some(response) => Some(response_text(response.get())),
            None => part.text.map(|text| text.shared()),
        })
        .collect();
    match &texts[..] {
        [] => None,
        [only] => Some(only.clone()),
        _ => Some(Arc::from(texts.join("\n"))),
    }
}

fn response_text(raw: &str) -> Arc<str> {
    match serde_json::from_str::<Output<'_>>(raw) {
        Ok(Output { output: Some(text), .. } | Output { error: Some(text), .. }) => text.shared(),
        _ => compact(raw),
    }
}
