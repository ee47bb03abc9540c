//! Cursor: the transcripts of its agent, one message a line, and chats exported as Markdown.
//!
//! A transcript has the calls of tools without ids, and mostly without their results.

use std::sync::Arc;

use plimsoll_core::{Block, Role};

use crate::content;
use crate::draft::{RecordedMessage, SessionDraft};
use crate::json;
use crate::markdown;

/// The headings of an exported chat.
const SPEAKERS: [(&str, Role); 2] = [("**User**", Role::User), ("**Cursor**", Role::Assistant)];

/// Returns whether the bytes are a chat that Cursor exported as Markdown.
pub(crate) fn is_export(bytes: &[u8]) -> bool {
    let is_title = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        line.starts_with("_Exported on ") && line.contains("from Cursor")
    };
    json::lines(bytes).take(3).any(|(_, line)| is_title(line))
        && markdown::has_speaker(bytes, &SPEAKERS)
}

/// Reads a transcript or an exported chat.
pub(crate) fn read(bytes: &[u8]) -> SessionDraft {
    if is_export(bytes) {
        return markdown::read(bytes, &SPEAKERS);
    }
    let mut draft = SessionDraft::of_lines();
    // The calls that have no result yet, oldest first.
    let mut open: Vec<Arc<str>> = Vec::new();
    draft.each_line(bytes, |draft, number, line| {
        let role = match &*line.text("role").unwrap_or_default() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            // Marks such as the end of a turn have a type and no role.
            "" if line.has("type") => return,
            _ => return draft.skip(number, "its role is unknown"),
        };
        let Some(message) = line.object("message") else {
            return draft.skip(number, "it has no message");
        };
        let time = line.time("timestamp").or_else(|| message.time("timestamp"));
        let mut recorded = RecordedMessage::new(role, number, time, []);
        for (index, block) in content::blocks(message.get("content")) {
            match block {
                Block::ToolCall(mut call) => {
                    if call.id.is_empty() {
                        call.id = format!("c{number}-{}", index.unwrap_or(0)).into();
                    }
                    open.push(call.id.clone());
                    recorded.push(number, index, Block::ToolCall(call));
                }
                Block::ToolResult(mut result) => {
                    let known = open.iter().position(|id| *id == result.call_id);
                    // A result without an id answers the oldest call.
                    let is_next = result.call_id.is_empty() && !open.is_empty();
                    if let Some(at) = known.or(is_next.then_some(0)) {
                        result.call_id = open.remove(at);
                    }
                    draft.messages.push(RecordedMessage::result(number, time, index, result));
                }
                block => recorded.push(number, index, block),
            }
        }
        if !recorded.message.blocks.is_empty() {
            draft.messages.push(recorded);
        }
    });
    draft
}
