//! `OpenAI` chat messages: a list, or a recorded request that holds one under `messages`.

use std::sync::Arc;

use plimsoll_core::{Block, Role, Thinking, ToolCall, ToolResult, Usage};

use crate::content::{self, either, text_and_images};
use crate::draft::{RecordedMessage, SessionDraft, usage};
use crate::error::ReadError;
use crate::object::{Object, text_of};

/// Reads a list of chat messages.
pub(crate) fn read(text: &str) -> Result<SessionDraft, ReadError> {
    let (mut draft, request, messages) = SessionDraft::of_document(text, "messages")?;
    let answered = || request.object("response")?.owned("model");
    draft.header.model = request.owned("model").or_else(answered);
    draft.header.context_window = request.count("context_window");
    draft.header.started = request.time("timestamp");
    draft.each_element(&messages, |draft, number, message| {
        each_message(draft, number, message, |draft, recorded| draft.messages.push(recorded));
    });
    Ok(draft)
}

/// Hands a chat message to `take`; skips one of an unknown role with a note.
pub(crate) fn each_message(
    draft: &mut SessionDraft,
    number: u32,
    message: &Object<'_>,
    take: impl FnOnce(&mut SessionDraft, RecordedMessage),
) {
    match from_message(number, message) {
        Some(recorded) => take(draft, recorded),
        None => draft.skip(number, "its role is unknown"),
    }
}

/// Reads one chat message; calls follow the text. Errors: `None` if the role is unknown.
fn from_message(number: u32, message: &Object<'_>) -> Option<RecordedMessage> {
    let time = message.time("timestamp");
    let role = match &*message.text("role").unwrap_or_default() {
        "assistant" => Role::Assistant,
        "user" => Role::User,
        "system" | "developer" => Role::System,
        "tool" | "function" => {
            // SWE-agent lists the ids.
            let ids = message.list("tool_call_ids");
            let first = ids.first().map(|raw| text_of(raw.get()));
            let call_id = message.text("tool_call_id").or(first).unwrap_or_default().into();
            let (text, images) = text_and_images(message.get("content"));
            let result = ToolResult { call_id, text, images, is_error: false };
            return Some(RecordedMessage::result(number, time, None, result));
        }
        _ => return None,
    };
    let mut recorded = RecordedMessage::new(role, number, time, []);
    if let Some(reasoning) = message.words("reasoning_content") {
        let thinking = Thinking { text: reasoning.into(), signature: "".into() };
        recorded.push(number, None, Block::Thinking(thinking));
    }
    for (index, block) in content::blocks(message.get("content")) {
        recorded.push(number, index, block);
    }
    if let Some(refusal) = message.words("refusal") {
        recorded.push(number, None, Block::Text(refusal.into()));
    }
    for (index, raw) in (0..).zip(message.list("tool_calls")) {
        if let Some(call) = call(raw.get()) {
            recorded.push(number, Some(index), Block::ToolCall(call));
        }
    }
    Some(recorded)
}

/// Reads one element of `tool_calls`.
pub(crate) fn call(raw: &str) -> Option<ToolCall> {
    let call = Object::parse(raw)?;
    let function = call.object("function").or_else(|| call.object("custom"))?;
    Some(ToolCall {
        id: call.shared("id"),
        name: function.shared("name"),
        arguments: function.arguments(either(&function, "arguments", "input")),
    })
}

/// Reads the `usage` of a chat completion.
pub(crate) fn usage_of(completion: &Object<'_>) -> Option<Usage> {
    let counts = completion.object("usage")?;
    let details = counts.object("prompt_tokens_details").unwrap_or_default();
    let (prompt, output) = (counts.tokens("prompt_tokens"), counts.tokens("completion_tokens"));
    usage(prompt, details.tokens("cached_tokens"), output)
}

/// Returns the part of a chat completion's output that is reasoning, where it is reported.
pub(crate) fn thinking_of(completion: &Object<'_>) -> Option<u64> {
    completion.object("usage")?.object("completion_tokens_details")?.count("reasoning_tokens")
}

/// Returns the model of a chat completion.
pub(crate) fn model_of(completion: &Object<'_>) -> Option<Arc<str>> {
    completion.text("model").map(Arc::from)
}
