//! mini-swe-agent: chat messages in which the command stands in the assistant's text and its output in a user message.
//!
//! Each assistant message gets a call `c{index}` of `bash` without arguments, so that command and output are an exchange.

use std::sync::Arc;

use plimsoll_core::{Block, Role, ToolCall, ToolResult};

use crate::content::joined;
use crate::draft::{Asked, Draft, Recorded};
use crate::error::ReadError;
use crate::object::Object;
use crate::openai;

/// Reads a mini-swe-agent trajectory.
pub(crate) fn read(text: &str) -> Result<Draft, ReadError> {
    let (mut draft, trajectory, messages) = Draft::of_document(text, "messages")?;
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

/// Takes the model and the usage of the response that the newest message was read from.
fn answered(draft: &mut Draft, number: u32, response: &Object<'_>) {
    let before = draft.recorded.len().saturating_sub(1);
    let Some(recorded) = draft.open_assistant() else { return };
    let (message, model) = (&mut recorded.message, openai::model_of(response));
    message.usage = openai::usage_of(response);
    message.model = model.clone().or(message.model.take());
    let asked = message.usage.map(|usage| Asked {
        before,
        source: number,
        id: response.text("id").map(Arc::from),
        time: message.time.or(response.time("created")),
        model: message.model.clone(),
        usage,
        thinking_tokens: openai::thinking_of(response),
        ..Asked::default()
    });
    draft.requests.extend(asked);
    if let Some(model) = model {
        draft.header.model = Some(model.to_string());
    }
}

/// Appends a message; pairs an assistant message without calls with the user message behind it.
pub(crate) fn push(draft: &mut Draft, number: u32, mut recorded: Recorded) {
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
    draft.recorded.push(recorded);
}

fn as_result(recorded: Recorded, call_id: Arc<str>) -> Recorded {
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
    Recorded::result(record, recorded.message.time, None, result)
}
