//! Edits of raw content: replaces or drops blocks; everything else keeps its bytes.

use std::borrow::Cow;

use plimsoll_core::{Block, ToolResult};
use serde_json::value::RawValue;

use crate::content;
use crate::object::{Object, list, quoted};
use crate::write::plan::{BlockPlan, Fate};

/// Replaces an emptied text, because model interfaces refuse empty texts.
const EMPTY: &str = "[empty]";

/// Sets the prompt sizes of a message's usage to zero, as in an aborted request.
///
/// Otherwise an agent would take them for the size of the changed context.
pub(crate) fn reset_prompt_size(record: &mut Object<'_>, fields: &[&str]) {
    let Some(text) = record.get("message").map(str::to_owned) else { return };
    let Some(mut message) = Object::parse(&text) else { return };
    let Some(mut usage) = message.object("usage") else { return };
    for field in fields {
        if usage.get(field).is_some_and(|value| value != "0") {
            usage.set(field, "0");
        }
    }
    if let Some(usage) = usage.changed() {
        message.set("usage", usage);
        record.set("message", message.to_string());
    }
}

/// Returns a text block.
pub(crate) fn text_block(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quoted(nonblank(text)))
}

/// Returns the text, or [`EMPTY`] if it is blank.
pub(crate) fn nonblank(text: &str) -> &str {
    if text.trim().is_empty() { EMPTY } else { text }
}

/// Returns the content with the changes of `parts`. Errors: `None` if it is not the content of the parts.
pub(crate) fn content(raw: &str, parts: &[BlockPlan]) -> Option<String> {
    if !raw.starts_with('[') {
        return match parts.iter().find(|part| part.index.is_none()).map(|part| &part.fate) {
            Some(Fate::Changed(Block::Text(text))) => Some(quoted(nonblank(text))),
            _ => Some(raw.to_owned()),
        };
    }
    let elements: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    let mut out: Vec<Cow<'_, str>> = Vec::with_capacity(elements.len());
    for (index, element) in (0..).zip(elements) {
        let part = parts.iter().find(|part| part.index == Some(index));
        match part.map(|part| &part.fate) {
            None | Some(Fate::Kept) => out.push(Cow::Borrowed(element.get())),
            Some(Fate::Changed(now)) => out.push(Cow::Owned(block(element.get(), now)?)),
            Some(Fate::Dropped) => {}
        }
    }
    Some(list(out))
}

fn block(raw: &str, now: &Block) -> Option<String> {
    if raw.starts_with('"') {
        let Block::Text(text) = now else { return None };
        return Some(quoted(nonblank(text)));
    }
    let mut object = Object::parse(raw)?;
    match now {
        Block::Text(text) if object.get("text").is_some() => {
            object.set("text", quoted(nonblank(text)));
        }
        Block::Text(text) => return Some(text_block(text)),
        Block::ToolCall(call) => {
            let key = if object.get("arguments").is_some() { "arguments" } else { "input" };
            object.set(key, arguments_object(&call.arguments));
        }
        Block::ToolResult(result) => {
            let content = object.get("content").unwrap_or("\"\"");
            object.set("content", result_content(content, result));
            if result.is_error || object.get("is_error").is_some() {
                object.set("is_error", result.is_error.to_string());
            }
        }
        _ => return None,
    }
    Some(object.to_string())
}

/// Returns whether an element of a message's content is a tool result.
pub(crate) fn is_result(message: &Object<'_>, index: u32) -> bool {
    let element = message.list("content").into_iter().nth(index as usize);
    let block = element.and_then(|raw| Object::parse(raw.get()));
    block.is_some_and(|block| block.owned("type").as_deref() == Some("tool_result"))
}

/// Returns arguments as an object, which model interfaces require.
fn arguments_object(arguments: &str) -> String {
    match Object::parse(arguments) {
        Some(_) => arguments.to_owned(),
        None => format!("{{\"arguments\":{}}}", quoted(arguments)),
    }
}

/// Returns the content of a changed result: its text as a string or a list, as before, and the recorded images.
pub(crate) fn result_content(raw: &str, result: &ToolResult) -> String {
    if !raw.starts_with('[') {
        return quoted(&result.text);
    }
    let elements: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
    let images = elements.iter().map(|element| element.get()).filter(|raw| {
        !result.images.is_empty() && matches!(content::block(raw), Some(Block::Image(_)))
    });
    let text = (!result.text.is_empty()).then(|| Cow::Owned(text_block(&result.text)));
    list(text.into_iter().chain(images.map(Cow::Borrowed)))
}
