//! How far a conversation has come in the plan. The provider keeps no state for it: what was asked says it.

use plimsoll_wire::Wire;
use serde_json::Value;

/// The end of a conversation, read backwards.
enum ConversationItem<'a> {
    /// Answers to calls of these ids; an id may be missing.
    Results(Vec<Option<&'a str>>),
    /// Somebody asks something: the plan begins.
    Question,
    /// What clients put in between: instructions, reminders, reasoning.
    Other,
}

/// Returns the turn of the plan that is next: one more than the turn whose calls are answered last.
///
/// Calls carry their turn in their ids (see [`id`]), since a gateway may leave old turns out. Clients that give no
/// ids are counted.
pub(crate) fn next_turn(wire: Wire, body: &Value) -> usize {
    let items = match wire {
        Wire::AnthropicMessages | Wire::ChatCompletions => &body["messages"],
        Wire::Responses => &body["input"],
        Wire::Gemini => &body["contents"],
    };
    let mut counted = 0;
    for item in items.as_array().into_iter().flatten().rev() {
        match last(wire, item) {
            ConversationItem::Results(ids)
                if ids.iter().all(|id| id.is_some_and(|id| id.contains(QUESTION))) => {}
            ConversationItem::Results(ids) => match ids.into_iter().flatten().find_map(turn) {
                Some(turn) => return turn + 1 + counted,
                None => counted += 1,
            },
            ConversationItem::Question => return counted,
            ConversationItem::Other => {}
        }
    }
    counted
}

/// Writes the id of a call.
///
/// Shape: `PREFIX_pTURNxCALL_REQUEST`, unique as requests are counted.
pub fn id(prefix: &str, turn: usize, call: usize, request: u64) -> String {
    format!("{prefix}_p{turn}x{call}_{request:06}")
}

/// What the ids of questions about a tool hold in the place of a turn.
const QUESTION: &str = "_about";

/// Writes the id of a call that asks about a tool: it is no turn, the plan goes on where it stood.
pub(crate) fn question(prefix: &str, call: usize, request: u64) -> String {
    format!("{prefix}{QUESTION}x{call}_{request:06}")
}

fn turn(id: &str) -> Option<usize> {
    let (_, rest) = id.split_once("_p")?;
    rest.split_once('x')?.0.parse().ok()
}

fn last(wire: Wire, item: &Value) -> ConversationItem<'_> {
    let role = item["role"].as_str().unwrap_or_default();
    let content = match wire {
        Wire::Gemini => &item["parts"],
        _ => &item["content"],
    };
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let results: Vec<_> = match wire {
        Wire::AnthropicMessages => {
            let results = blocks.iter().filter(|block| block["type"] == "tool_result");
            results.map(|block| block["tool_use_id"].as_str()).collect()
        }
        Wire::ChatCompletions => {
            if role == "tool" {
                vec![item["tool_call_id"].as_str()]
            } else {
                Vec::new()
            }
        }
        Wire::Responses => {
            let kind = item["type"].as_str().unwrap_or("message");
            if kind.ends_with("_output") { vec![item["call_id"].as_str()] } else { Vec::new() }
        }
        Wire::Gemini => {
            let results = blocks.iter().map(|block| &block["functionResponse"]);
            results.filter(|answer| !answer.is_null()).map(|answer| answer["id"].as_str()).collect()
        }
    };
    if !results.is_empty() {
        return ConversationItem::Results(results);
    }
    let text = content.as_str().or_else(|| blocks.iter().find_map(|block| block["text"].as_str()));
    // Reminders that clients put behind results are in tags.
    match text {
        Some(text) if role == "user" && !text.trim_start().starts_with('<') => {
            ConversationItem::Question
        }
        _ => ConversationItem::Other,
    }
}
