//! `OpenAI` Chat Completions.

use std::sync::Arc;

use plimsoll_core::{Block, Role, Thinking, ToolResult};

use super::{MessageList, Place, RequestError, list_at};
use crate::content::{self, LocatedBlock};
use crate::document::Value;

pub(super) fn read(root: Value<'_>, out: &mut MessageList) -> Result<(), RequestError> {
    let list = list_at(root, "messages", "it has no list of messages")?;
    for (index, message) in list.elements().enumerate() {
        let place = Place::Items(index..index + 1);
        let role = message.text_at("role");
        match &*role {
            "system" | "developer" => out.push(Role::System, place, said(message)),
            "assistant" => out.push(Role::Assistant, place, assistant(message)),
            // The older calls without ids are answered by name.
            "tool" | "function" => {
                let (text, images) = content::answer(message.get("content"));
                let call_id = message.shared_any(&["tool_call_id", "name"]);
                let result = ToolResult { call_id, text, images, is_error: false };
                out.push(Role::Tool, place, vec![(message.id(), Block::ToolResult(result))]);
            }
            _ => out.push(Role::User, place, said(message)),
        }
    }
    Ok(())
}

fn said(message: Value<'_>) -> Vec<LocatedBlock> {
    content::parts(message.get("content"), content::part)
}

/// Reads what a model said: reasoning, text, calls.
pub(crate) fn assistant(message: Value<'_>) -> Vec<LocatedBlock> {
    let mut found = Vec::new();
    let reasoning = message.any(&["reasoning_content", "reasoning"]).filter(|text| text.is_text());
    if let Some((node, Block::Text(text))) = reasoning.and_then(content::text) {
        found.push((node, Block::Thinking(Thinking { text, signature: Arc::from("") })));
    }
    found.extend(said(message));
    found.extend(message.get("refusal").and_then(content::text));
    for call in message.elements_at("tool_calls") {
        let id = call.shared_at("id");
        let block = match (call.get("function"), call.get("custom")) {
            (Some(function), _) => {
                content::call(id, function.shared_at("name"), function.get("arguments"))
            }
            (None, Some(custom)) => {
                content::call(id, custom.shared_at("name"), custom.get("input"))
            }
            (None, None) => content::opaque("tool_call", call),
        };
        found.push((call.id(), block));
    }
    if let Some(function) = message.object_at("function_call") {
        let name = function.shared_at("name");
        let call = content::call(name.clone(), name, function.get("arguments"));
        found.push((function.id(), call));
    }
    found
}
