//! Writes lists of `OpenAI` chat messages and Anthropic messages, alone or inside of a recorded request.
//!
//! The list gets the elements of the context in their order; the rest of the document keeps its bytes.

use std::borrow::Cow;
use std::collections::HashSet;

use plimsoll_core::text::EARLIER_LEFT_OUT;
use plimsoll_core::{Block, Message, Role};
use serde_json::value::RawValue;

use crate::error::WriteError;
use crate::json;
use crate::object::{Object, list, quoted};
use crate::write::ContextMessage;
use crate::write::edit;
use crate::write::plan::{BlockPlan, Fate, WritePlan};

/// The interface that the messages are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
}

/// Writes the plan.
pub(crate) fn write(
    plan: &WritePlan<'_>,
    original: &[u8],
    context: &[ContextMessage],
    dialect: Dialect,
) -> Result<Vec<u8>, WriteError> {
    let foreign = WriteError::OtherOriginal { record: 1 };
    let bytes = json::without_mark(original);
    let mut text = json::utf8_document(bytes);
    if parse(&text).is_none()
        && let Some(mended) = str::from_utf8(bytes).ok().and_then(json::mended)
    {
        text = Cow::Owned(mended);
    }
    let Some((start, messages)) = parse(&text) else { return Err(foreign) };
    let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(messages) else {
        return Err(foreign);
    };
    let written = list(self::elements(plan, &elements, context, dialect)?);
    Ok([&text[..start], &written, &text[start + messages.len()..]].concat().into_bytes())
}

/// Returns the list of messages and its offset in the text.
fn parse(text: &str) -> Option<(usize, &str)> {
    let messages = if text.trim_ascii_start().starts_with('[') {
        serde_json::from_str::<&RawValue>(text).ok()?.get()
    } else {
        Object::parse(text)?.recorded("messages")?
    };
    // A raw value is a slice of the text that it was read from.
    Some((messages.as_ptr() as usize - text.as_ptr() as usize, messages))
}

fn elements<'a>(
    plan: &WritePlan<'_>,
    elements: &[&'a RawValue],
    context: &[ContextMessage],
    dialect: Dialect,
) -> Result<Vec<Cow<'a, str>>, WriteError> {
    let mut out: Vec<Cow<'a, str>> = Vec::new();
    let mut done: HashSet<u32> = HashSet::new();
    for (index, written) in context.iter().enumerate() {
        let session = plan.session;
        let position = written.position.filter(|position| {
            let (message, origin) = (&session.messages[*position], &session.origins[*position]);
            // A message that a repair made, or gave another role, has no record of its own kind.
            let made = origin.repaired && origin.pieces.is_empty();
            !made && message.source.is_some() && !is_orphan(plan, elements, *position)
        });
        let Some(record) = position.and_then(|position| session.messages[position].source) else {
            out.push(Cow::Owned(new_message(&written.message, dialect)));
            continue;
        };
        if index == 0 && dialect == Dialect::Anthropic && written.message.role == Role::Assistant {
            let first = Message::text(Role::User, EARLIER_LEFT_OUT);
            out.push(Cow::Owned(new_message(&first, dialect)));
        }
        if !done.insert(record) {
            continue;
        }
        let foreign = WriteError::OtherOriginal { record };
        let Some(raw) = elements.get(record as usize - 1) else { return Err(foreign) };
        let parts = plan.records.get(&record).map_or(&[][..], |record| &record.parts);
        if parts.iter().all(|part| matches!(part.fate, Fate::Kept)) {
            out.push(Cow::Borrowed(raw.get()));
        } else {
            out.push(Cow::Owned(edited(raw.get(), parts).ok_or(foreign)?));
        }
    }
    Ok(out)
}

/// Returns whether a message was read from a result without a call.
fn is_orphan(plan: &WritePlan<'_>, elements: &[&RawValue], position: usize) -> bool {
    let (message, origin) = (&plan.session.messages[position], &plan.session.origins[position]);
    if !origin.repaired || message.role != Role::User {
        return false;
    }
    let Some(piece) = origin.pieces.first() else { return false };
    let element = elements.get(piece.record as usize - 1).map_or("", |raw| raw.get());
    let Some(object) = Object::parse(element) else { return false };
    if object.owned("role").as_deref() == Some("tool") {
        return true;
    }
    edit::is_result(&object, piece.index.unwrap_or(0))
}

fn edited(raw: &str, parts: &[BlockPlan]) -> Option<String> {
    let mended;
    let mut object = if let Some(object) = Object::parse(raw) {
        object
    } else {
        mended = json::mended(raw)?;
        Object::parse(&mended)?
    };
    if object.owned("role").as_deref() == Some("tool") {
        for part in parts {
            if let Fate::Changed(Block::ToolResult(result)) = &part.fate {
                let content = object.get("content").unwrap_or("\"\"").to_owned();
                object.set("content", edit::result_content(&content, result));
            }
        }
        return Some(object.to_string());
    }
    let (calls, rest): (Vec<BlockPlan>, Vec<BlockPlan>) = parts.iter().cloned().partition(|part| {
        matches!(part.was, Block::ToolCall(_)) && object.get("tool_calls").is_some()
    });
    if let Some(raw) = object.get("tool_calls").filter(|_| !calls.is_empty()).map(str::to_owned) {
        let elements: Vec<&RawValue> = serde_json::from_str(&raw).ok()?;
        let mut out = Vec::with_capacity(elements.len());
        for (index, element) in (0..).zip(elements) {
            let part = calls.iter().find(|part| part.index == Some(index));
            match part.map(|part| &part.fate) {
                Some(Fate::Dropped) => {}
                Some(Fate::Changed(Block::ToolCall(call))) => {
                    out.push(Cow::Owned(edited_call(element.get(), &call.arguments)?));
                }
                _ => out.push(Cow::Borrowed(element.get())),
            }
        }
        if out.is_empty() {
            object.remove("tool_calls");
        } else {
            object.set("tool_calls", list(out));
        }
    }
    if let Some(content) = object.get("content").map(str::to_owned) {
        let text_dropped = content.starts_with('"')
            && rest.iter().any(|part| {
                matches!((&part.was, &part.fate), (Block::Text(_), Fate::Dropped))
                    && part.index.is_none()
            });
        let content = match text_dropped {
            // A message may have no text only if it has calls.
            true if object.get("tool_calls").is_some() => "null".to_owned(),
            true => quoted(edit::nonblank("")),
            false => edit::content(&content, &rest)?,
        };
        object.set("content", content);
    }
    Some(object.to_string())
}

fn edited_call(raw: &str, arguments: &str) -> Option<String> {
    let mut object = Object::parse(raw)?;
    let (outer, inner) = if object.get("function").is_some() {
        ("function", "arguments")
    } else {
        ("custom", "input")
    };
    let function = object.get(outer)?.to_owned();
    let mut function = Object::parse(&function)?;
    function.set(inner, quoted(arguments));
    let function = function.to_string();
    object.set(outer, function);
    Some(object.to_string())
}

fn new_message(message: &Message, dialect: Dialect) -> String {
    if let Some(result) = message.results().next() {
        let (id, text) = (quoted(&result.call_id), quoted(edit::nonblank(&result.text)));
        return match dialect {
            Dialect::OpenAi => {
                format!("{{\"role\":\"tool\",\"tool_call_id\":{id},\"content\":{text}}}")
            }
            Dialect::Anthropic => format!(
                "{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":{id},\"content\":{text}}}]}}"
            ),
        };
    }
    let role = match (message.role, dialect) {
        (Role::Assistant, _) => "assistant",
        (Role::System, Dialect::OpenAi) => "system",
        _ => "user",
    };
    let text = message.shown();
    format!("{{\"role\":\"{role}\",\"content\":{}}}", quoted(edit::nonblank(&text)))
}
