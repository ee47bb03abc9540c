//! Anthropic messages: a recorded request, or its list of messages alone.

use plimsoll_core::{Block, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::blocks::Content;
use crate::draft::{Draft, Recorded};
use crate::error::ReadError;
use crate::json::{self, Stamp, Text};

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    model: Option<Text<'a>>,
    #[serde(default)]
    system: Content<'a>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, default)]
    role: Text<'a>,
    #[serde(default)]
    content: Content<'a>,
    #[serde(default)]
    timestamp: Stamp,
    usage: Option<crate::claude_code::WireUsage>,
    model: Option<Text<'a>>,
}

/// Reads a list of Anthropic messages; the system prompt goes into the header.
pub(crate) fn read(text: &str) -> Result<Draft, ReadError> {
    let mut draft = Draft::of_elements();
    let messages = if text.trim_ascii_start().starts_with('[') {
        serde_json::from_str(text).map_err(ReadError::json)?
    } else {
        let request: Request<'_> = serde_json::from_str(text).map_err(ReadError::json)?;
        draft.header.model = request.model.map(|model| model.0.into_owned());
        let (system, _) = request.system.text_and_images();
        draft.header.instructions = (!system.is_empty()).then(|| system.to_string());
        request.messages
    };
    json::each_element(&messages, &mut draft, |draft, number, text| {
        let message: WireMessage<'_> = serde_json::from_str(text)?;
        let time = message.timestamp.0;
        let role = match message.role.as_str() {
            "assistant" => Role::Assistant,
            "user" => Role::User,
            "system" => Role::System,
            _ => {
                draft.skip(number, "its role is unknown");
                return Ok(());
            }
        };
        let (results, rest): (Vec<_>, Vec<_>) =
            message.content.blocks().into_iter().partition(|(_, block)| {
                role == Role::User && matches!(block, Block::ToolResult(_))
            });
        let only_results = !results.is_empty() && rest.is_empty();
        for result in results {
            draft.recorded.push(Recorded::new(Role::Tool, number, time, [result]));
        }
        if !only_results {
            let mut recorded = Recorded::new(role, number, time, rest);
            recorded.message.usage =
                message.usage.as_ref().and_then(crate::claude_code::WireUsage::usage);
            if role == Role::Assistant {
                recorded.message.model = message.model.as_ref().map(Text::shared);
            }
            draft.recorded.push(recorded);
        }
        Ok(())
    });
    Ok(draft)
}
