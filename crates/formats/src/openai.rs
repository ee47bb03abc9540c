//! `OpenAI` chat messages: a list of them, or a recorded request that holds one under `messages`.

use std::sync::Arc;

use plimsoll_core::{Block, MillisSinceEpoch, Role, ToolCall, ToolResult};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::arguments;
use crate::blocks::Content;
use crate::draft::{Draft, Recorded, usage};
use crate::error::ReadError;
use crate::json::{self, Count, Stamp, Text};

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    model: Option<Text<'a>>,
    context_window: Option<Count>,
    #[serde(default)]
    timestamp: Stamp,
    response: Option<Response<'a>>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    model: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct WireMessage<'a> {
    #[serde(borrow, default)]
    pub(crate) role: Text<'a>,
    #[serde(default)]
    pub(crate) content: Content<'a>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<&'a RawValue>>,
    pub(crate) tool_call_id: Option<Text<'a>>,
    /// SWE-agent's spelling.
    pub(crate) tool_call_ids: Option<Vec<Text<'a>>>,
    pub(crate) refusal: Option<Text<'a>>,
    pub(crate) reasoning_content: Option<Text<'a>>,
    #[serde(default)]
    pub(crate) timestamp: Stamp,
}

#[derive(Deserialize)]
struct WireCall<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    function: Option<Function<'a>>,
    custom: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, alias = "input")]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct WireUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Option<Count>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<Count>,
}

impl WireUsage {
    /// Returns the part of the output that is reasoning, where it is told.
    pub(crate) fn thinking(&self) -> Option<u64> {
        self.completion_tokens_details.as_ref()?.reasoning_tokens.map(|count| count.0)
    }

    pub(crate) fn usage(&self) -> Option<plimsoll_core::Usage> {
        let details = self.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens).unwrap_or_default();
        usage(self.prompt_tokens.0, cached.0, self.completion_tokens.0)
    }
}

/// Reads a list of chat messages.
pub(crate) fn read(text: &str) -> Result<Draft, ReadError> {
    let mut draft = Draft::of_elements();
    let messages = if text.trim_ascii_start().starts_with('[') {
        serde_json::from_str(text).map_err(ReadError::json)?
    } else {
        let request: Request<'_> = serde_json::from_str(text).map_err(ReadError::json)?;
        let model = request.model.or(request.response.and_then(|response| response.model));
        draft.header.model = model.map(|model| model.0.into_owned());
        draft.header.context_window = request.context_window.map(|count| count.0);
        draft.header.started = request.timestamp.0;
        request.messages
    };
    json::each_element(&messages, &mut draft, |draft, number, text| {
        let message: WireMessage<'_> = serde_json::from_str(text)?;
        match from_message(number, &message) {
            Some(recorded) => draft.recorded.push(recorded),
            None => draft.skip(number, "its role is unknown"),
        }
        Ok(())
    });
    Ok(draft)
}

/// Reads one chat message; calls follow the text. Errors: `None` if the role is unknown.
pub(crate) fn from_message(number: u32, message: &WireMessage<'_>) -> Option<Recorded> {
    let time: Option<MillisSinceEpoch> = message.timestamp.0;
    let role = match message.role.as_str() {
        "assistant" => Role::Assistant,
        "user" => Role::User,
        "system" | "developer" => Role::System,
        "tool" | "function" => {
            let call_id = message
                .tool_call_id
                .as_ref()
                .or(message.tool_call_ids.as_ref().and_then(|ids| ids.first()))
                .map_or_else(|| Arc::from(""), Text::shared);
            let (text, images) = message.content.text_and_images();
            let result = ToolResult { call_id, text, images, is_error: false };
            return Some(Recorded::new(
                Role::Tool,
                number,
                time,
                [(None, Block::ToolResult(result))],
            ));
        }
        _ => return None,
    };
    let mut recorded = Recorded::new(role, number, time, []);
    if let Some(reasoning) = message.reasoning_content.as_ref().filter(|text| !text.is_empty()) {
        let thinking =
            plimsoll_core::Thinking { text: reasoning.shared(), signature: Arc::from("") };
        recorded.push(number, None, Block::Thinking(thinking));
    }
    for (index, block) in message.content.blocks() {
        recorded.push(number, index, block);
    }
    if let Some(refusal) = message.refusal.as_ref().filter(|refusal| !refusal.is_empty()) {
        recorded.push(number, None, Block::Text(refusal.shared()));
    }
    for (index, raw) in (0..).zip(message.tool_calls.iter().flatten()) {
        if let Some(call) = call(raw.get()) {
            recorded.push(number, Some(index), Block::ToolCall(call));
        }
    }
    Some(recorded)
}

/// Reads one element of `tool_calls`.
pub(crate) fn call(raw: &str) -> Option<ToolCall> {
    let wire: WireCall<'_> = serde_json::from_str(raw).ok()?;
    let function = wire.function.or(wire.custom)?;
    Some(ToolCall {
        id: wire.id.shared(),
        name: function.name.shared(),
        arguments: arguments::from_raw(function.arguments),
    })
}
