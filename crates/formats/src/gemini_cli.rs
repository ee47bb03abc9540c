//! Gemini CLI: a chat document in which a call and its result stand in one message.

use std::sync::Arc;

use plimsoll_core::json_text::compact;
use plimsoll_core::{Block, Role, Thinking, ToolCall, ToolResult};
use serde_json::value::RawValue;

use crate::content::{self, either, joined};
use crate::draft::{RecordedMessage, RecordedRequest, SessionDraft, usage};
use crate::error::ReadError;
use crate::object::Object;

/// Reads a Gemini CLI chat.
pub(crate) fn read(text: &str) -> Result<SessionDraft, ReadError> {
    let (mut draft, chat, messages) = SessionDraft::of_document(text, "messages")?;
    draft.header.id = chat.owned("sessionId");
    draft.header.started = chat.time("startTime");
    draft.each_element(&messages, message);
    Ok(draft)
}

/// Appends a message of a chat.
pub(crate) fn message(draft: &mut SessionDraft, number: u32, message: &Object<'_>) {
    match &*message.text("type").unwrap_or_default() {
        "user" => {
            let time = message.time("timestamp");
            let blocks = content::blocks(message.get("content"));
            draft.messages.push(RecordedMessage::new(Role::User, number, time, blocks));
        }
        "gemini" => gemini(draft, number, message),
        // Errors, warnings and the output of the program's own commands are shown to the user only.
        _ => {}
    }
}

fn gemini(draft: &mut SessionDraft, number: u32, message: &Object<'_>) {
    let time = message.time("timestamp");
    let mut recorded = RecordedMessage::new(Role::Assistant, number, time, []);
    for thought in message.objects("thoughts") {
        let text = |key| thought.text(key).unwrap_or_default();
        let text = format!("{}: {}", text("subject"), text("description")).into();
        let thinking = Thinking { text, signature: "".into() };
        recorded.push(number, None, Block::Thinking(thinking));
    }
    for (index, block) in content::blocks(message.get("content")) {
        recorded.push(number, index, block);
    }
    let calls = message.objects("toolCalls");
    for (index, call) in (0..).zip(&calls) {
        let call = ToolCall {
            id: call.shared("id"),
            name: call.shared("name"),
            arguments: call.arguments("args"),
        };
        recorded.push(number, Some(index), Block::ToolCall(call));
    }
    let tokens = message.object("tokens").unwrap_or_default();
    let thoughts = tokens.tokens("thoughts");
    let output = tokens.tokens("output") + thoughts;
    recorded.message.usage = usage(tokens.tokens("input"), tokens.tokens("cached"), output);
    if let Some(model) = message.text("model") {
        recorded.message.model = Some(Arc::from(&*model));
        draft.header.model = Some(model.into_owned());
    }
    if let Some(usage) = recorded.message.usage {
        draft.requests.push(RecordedRequest {
            before: draft.messages.len(),
            source: number,
            time,
            model: recorded.message.model.clone(),
            usage,
            thinking_tokens: Some(thoughts),
            ..RecordedRequest::default()
        });
    }
    draft.messages.push(recorded);
    for (index, call) in (0..).zip(&calls) {
        let Some(text) = call.value("result").and_then(result_text) else { continue };
        let is_error = call.text("status").as_deref() == Some("error");
        let result = ToolResult { call_id: call.shared("id"), text, images: Vec::new(), is_error };
        let time = call.time("timestamp").or(time);
        draft.messages.push(RecordedMessage::result(number, time, Some(index), result));
    }
}

/// Returns the text of a result: its `output` or `error`, else the response as JSON.
fn result_text(raw: &str) -> Option<Arc<str>> {
    let Ok(parts) = serde_json::from_str::<Vec<&RawValue>>(raw) else { return Some(compact(raw)) };
    let parts: Option<Vec<Object<'_>>> =
        parts.into_iter().map(|part| Object::parse(part.get())).collect();
    let Some(parts) = parts else { return Some(compact(raw)) };
    let texts: Vec<Arc<str>> = parts
        .iter()
        .filter_map(|part| {
            let answer = part.object("functionResponse").unwrap_or_default();
            match answer.value("response") {
                Some(response) => Some(response_text(response)),
                None => part.text("text").map(Arc::from),
            }
        })
        .collect();
    (!texts.is_empty()).then(|| joined(&texts))
}

fn response_text(raw: &str) -> Arc<str> {
    let response = Object::parse(raw).unwrap_or_default();
    let text = response.text(either(&response, "output", "error"));
    text.map_or_else(|| compact(raw), Arc::from)
}
