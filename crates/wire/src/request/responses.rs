//! `OpenAI` Responses.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_core::json_text::compact;
use plimsoll_core::{Block, Role, ToolResult};

use super::{MessageList, Place, RequestError};
use crate::content::{self, LocatedBlock};
use crate::document::Value;

pub(super) fn read(root: Value<'_>, out: &mut MessageList) -> Result<(), RequestError> {
    out.push(Role::System, Place::Field, content::parts(root.get("instructions"), content::part));
    let Some(input) = root.get("input") else {
        return Ok(());
    };
    if input.is_text() {
        out.push(Role::User, Place::Field, content::parts(Some(input), content::part));
        return Ok(());
    }
    if !input.is_list() && !input.is_null() {
        return Err(RequestError::Shape { what: "its input is neither a string nor a list" });
    }
    let mut answer = AnswerItems::default();
    for (index, item) in input.elements().enumerate() {
        match kind_of(item) {
            ItemKind::Said(role) => {
                answer.end(out);
                let found = content::parts(item.get("content"), content::part);
                out.push(role, Place::Items(index..index + 1), found);
            }
            ItemKind::Result => {
                answer.end(out);
                let result = (item.id(), Block::ToolResult(result(item)));
                out.push(Role::Tool, Place::Items(index..index + 1), vec![result]);
            }
            ItemKind::Model => answer.take(index, item),
            ItemKind::Tools => answer.end(out),
        }
    }
    answer.end(out);
    Ok(())
}

enum ItemKind {
    /// A message of another role than the model's.
    Said(Role),
    /// The result of a tool.
    Result,
    /// A part of the model's answer.
    Model,
    /// Tools that stand among the messages, which are none.
    Tools,
}

fn kind_of(item: Value<'_>) -> ItemKind {
    let kind = item.kind();
    match &*kind {
        "" | "message" => match item.get("role").and_then(Value::text).as_deref() {
            Some("assistant") => ItemKind::Model,
            Some("system" | "developer") => ItemKind::Said(Role::System),
            _ => ItemKind::Said(Role::User),
        },
        "additional_tools" => ItemKind::Tools,
        kind if is_result(kind) => ItemKind::Result,
        _ => ItemKind::Model,
    }
}

/// Returns whether items of a type answer a call with text. A picture of a screen does not, and stays with the call as it is.
fn is_result(kind: &str) -> bool {
    kind.ends_with("_call_output") && kind != "computer_call_output"
}

/// Returns whether items of a type are calls that the client answers; calls that the server answers have no call id.
fn is_call(kind: &str, item: Value<'_>) -> bool {
    kind.ends_with("_call") && kind != "computer_call" && item.any(&["call_id"]).is_some()
}

/// The items of one answer, which are one message in core.
#[derive(Default)]
struct AnswerItems {
    items: Range<usize>,
    found: Vec<LocatedBlock>,
}

impl AnswerItems {
    fn take(&mut self, index: usize, item: Value<'_>) {
        if self.items.is_empty() {
            self.items.start = index;
        }
        self.items.end = index + 1;
        self.found.extend(said(item));
    }

    fn end(&mut self, out: &mut MessageList) {
        let Self { items, found } = std::mem::take(self);
        out.push(Role::Assistant, Place::Items(items), found);
    }
}

/// Reads an item of a model's answer.
pub(crate) fn said(item: Value<'_>) -> Vec<LocatedBlock> {
    let kind = item.kind();
    match &*kind {
        "" | "message" => content::parts(item.get("content"), content::part),
        // A local shell's call has an action and no name.
        kind if is_call(kind, item) => {
            let name = item.get("name").and_then(Value::shared).unwrap_or_else(|| Arc::from(kind));
            let arguments = item.any(&["arguments", "input", "action", "operation"]);
            vec![(item.id(), content::call(item.shared_at("call_id"), name, arguments))]
        }
        kind => vec![(item.id(), content::opaque(kind, item))],
    }
}

fn result(item: Value<'_>) -> ToolResult {
    let output = item.get("output");
    let (text, images) = match output {
        Some(object) if object.is_object() => (compact(object.raw()), Vec::new()),
        _ => content::answer(output),
    };
    ToolResult { call_id: item.shared_at("call_id"), text, images, is_error: false }
}
