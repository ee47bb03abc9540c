//! Anthropic Messages.

use plimsoll_core::{Block, Role, Thinking, ToolResult};

use super::{MessageList, Place, RequestError, list_at};
use crate::content;
use crate::document::Value;

pub(super) fn read(root: Value<'_>, out: &mut MessageList) -> Result<(), RequestError> {
    out.push(Role::System, Place::Field, content::parts(root.get("system"), block));
    let list = list_at(root, "messages", "it has no list of messages")?;
    for (index, message) in list.elements().enumerate() {
        let place = Place::Items(index..index + 1);
        let found = content::parts(message.get("content"), block);
        if message.has("role", "assistant") {
            out.push(Role::Assistant, place, found);
        } else if message.has("role", "system") {
            out.push(Role::System, place, found);
        } else {
            out.push_user(place, found);
        }
    }
    Ok(())
}

/// Reads a block of content.
pub(crate) fn block(value: Value<'_>) -> Option<Block> {
    let kind = value.kind();
    match &*kind {
        "thinking" => Some(Block::Thinking(Thinking {
            text: value.shared_at("thinking"),
            signature: value.shared_at("signature"),
        })),
        "tool_use" => {
            Some(content::call(value.shared_at("id"), value.shared_at("name"), value.get("input")))
        }
        "tool_result" => {
            let (text, images) = content::answer(value.get("content"));
            Some(Block::ToolResult(ToolResult {
                call_id: value.shared_at("tool_use_id"),
                text,
                images,
                is_error: value.is_true_at("is_error"),
            }))
        }
        _ => content::part(value),
    }
}
