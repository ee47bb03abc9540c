//! mini-swe-agent: chat messages in which the command stands in the assistant's text and its output in a user message.
//!
//! Each assistant message gets a call `c{index}` of `bash` without arguments, so that command and output are an exchange.

use std::sync::Arc;

use plimsoll_core::{Block, Role, ToolCall, ToolResult};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::draft::{Draft, Recorded};
use crate::error::ReadError;
use crate::json::{self, Stamp, Text};
use crate::openai::{self, WireMessage, WireUsage};
use crate::requests::Asked;

#[derive(Deserialize)]
struct Trajectory<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    instance_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct WithExtra<'a> {
    #[serde(borrow)]
    extra: Option<Extra<'a>>,
}

#[derive(Deserialize)]
struct Extra<'a> {
    #[serde(borrow)]
    response: Option<Response<'a>>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    model: Option<Text<'a>>,
    id: Option<Text<'a>>,
    #[serde(default)]
    created: Stamp,
    usage: Option<WireUsage>,
}

/// Reads a mini-swe-agent trajectory.
pub(crate) fn read(text: &str) -> Result<Draft, ReadError> {
    let trajectory: Trajectory<'_> = serde_json::from_str(text).map_err(ReadError::json)?;
    let mut draft = Draft::of_elements();
    draft.header.id = trajectory.instance_id.map(|id| id.0.into_owned());
    json::each_element(&trajectory.messages, &mut draft, |draft, number, text| {
        let message: WireMessage<'_> = serde_json::from_str(text)?;
        if message.role.as_str() == "exit" {
            return Ok(());
        }
        let Some(recorded) = openai::from_message(number, &message) else {
            draft.skip(number, "its role is unknown");
            return Ok(());
        };
        push(draft, number, recorded);
        if let Some(recorded) = draft.open_assistant()
            && let Ok(WithExtra { extra: Some(Extra { response: Some(response) }) }) =
                serde_json::from_str(text)
        {
            recorded.message.usage = response.usage.as_ref().and_then(WireUsage::usage);
            if let Some(model) = response.model {
                recorded.message.model = Some(model.shared());
                draft.header.model = Some(model.0.into_owned());
            }
            let thinking = response.usage.as_ref().and_then(WireUsage::thinking);
            if let Some(asked) = asked(draft, number, thinking) {
                draft.requests.push(Asked {
                    id: response.id.as_ref().map(Text::shared),
                    time: asked.time.or(response.created.0),
                    ..asked
                });
            }
        }
        Ok(())
    });
    Ok(draft)
}

/// Returns the call of the model whose answer is the newest message.
fn asked(draft: &mut Draft, number: u32, thinking_tokens: Option<u64>) -> Option<Asked> {
    let message = &draft.open_assistant()?.message;
    let (usage, time, model) = (message.usage?, message.time, message.model.clone());
    let before = draft.recorded.len() - 1;
    Some(Asked { before, source: number, time, model, usage, thinking_tokens, ..Asked::default() })
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
    let text = match &texts[..] {
        [only] => only.clone(),
        _ => Arc::from(texts.join("\n")),
    };
    let result = ToolResult { call_id, text, images, is_error: false };
    Recorded::new(Role::Tool, record, recorded.message.time, [(None, Block::ToolResult(result))])
}
