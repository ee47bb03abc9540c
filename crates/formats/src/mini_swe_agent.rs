//! mini-swe-agent: chat messages in which the command stands in the assistant's text and its output in a user message.
//!
//! Each assistant message gets a call `c{index}` of `bash` without arguments, so that the output is the result of a call.

use std::sync::Arc;

use plimsoll_core::{Block, Role, ToolCall, ToolResult};

use crate::content::joined;
use crate::draft::{RecordedMessage, RecordedRequest, SessionDraft};
use crate::error::ReadError;
use crate::object::Object;
use crate::openai;

/// Reads a mini-swe-agent trajectory.
pub(crate) fn read(text: &str) -> Result<SessionDraft, ReadError> {
    let (mut draft, trajectory, messages) = SessionDraft::of_document(text, "messages")?;
    draft.header.id = trajectory.owned("instance_id");
    draft.each_element(&messages, |draft, number, message| {
        if message.text("role").as_deref() == Some("exit") {
            return;
        }
        openai::each_message(draft, number, message, |draft, recorded| {
            push(draft, number, recorded);
            let extra = message.object("extra").unwrap_or_default();
            if let Some(response) = extra.object("response") {
                answered(draft, number, &response);
            }
        });
    });
    Ok(draft)
}

/// Gives the newest message the model and the usage of its response.
fn answered(draft: &mut SessionDraft, number: u32, response: &Object<'_>) {
    let before = draft.messages.len().saturating_sub(1);
    let Some(recorded) = draft.open_assistant() else { return };
    let (message, model) = (&mut recorded.message, openai::model_of(response));
    message.usage = openai::usage_of(response);
    message.model = model.clone().or(message.model.take());
    let request = message.usage.map(|usage| RecordedRequest {
        before,
        source: number,
        id: response.text("id").map(Arc::from),
        time: message.time.or(response.time("created")),
        model: message.model.clone(),
        usage,
        thinking_tokens: openai::thinking_of(response),
        ..RecordedRequest::default()
    });
    draft.requests.extend(request);
    if let Some(model) = model {
        draft.header.model = Some(model.to_string());
    }
}

/// Appends a message. An assistant message without calls gets one, and the user message behind it becomes the result.
pub(crate) fn push(draft: &mut SessionDraft, number: u32, mut recorded: RecordedMessage) {
    match recorded.message.role {
        Role::Assistant if recorded.message.calls().next().is_none() => {
            let id = Arc::from(format!("c{}", number - 1));
            let call = ToolCall { id, name: Arc::from("bash"), arguments: Arc::from("") };
            recorded.push(number, None, Block::ToolCall(call));
        }
        Role::User => {
            let call_id = draft
                .open_assistant()
                .and_then(|last| last.message.calls().next().map(|call| call.id.clone()));
            if let Some(call_id) = call_id {
                recorded = as_result(recorded, call_id);
            }
        }
        _ => {}
    }
    draft.messages.push(recorded);
}

fn as_result(recorded: RecordedMessage, call_id: Arc<str>) -> RecordedMessage {
    let record = recorded.message.source.unwrap_or(0);
    let mut texts: Vec<Arc<str>> = Vec::new();
    let mut images = Vec::new();
    for block in recorded.message.blocks {
        match block {
            Block::Text(text) => texts.push(text),
            Block::Image(image) => images.push(image),
            _ => {}
        }
    }
    let result = ToolResult { call_id, text: joined(&texts), images, is_error: false };
    RecordedMessage::result(record, recorded.message.time, None, result)
}
