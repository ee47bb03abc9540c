//! Results that an agent writes as text: the messages of the user by which it answers the model's last turn.
//!
//! smolagents and agents in the manner of `ReAct` use no results of the interface. Such a message is what a tool said, and nobody's word.

use std::sync::Arc;

use plimsoll_core::{Block, Message, Role, ToolResult};

use crate::content::LocatedBlock;

/// The word with which the text of a result begins.
const OBSERVATION: &str = "Observation:";

/// Returns the blocks of a user's message with its texts as results, where it answers `before` in the manner of such an agent.
///
/// Only a message directly behind one of the model can be a result, so the task never is. Taking a person's text for a result gives
/// it less authority, never more.
pub(super) fn results(
    before: Option<&Arc<Message>>,
    place: usize,
    found: Vec<LocatedBlock>,
) -> (Role, Vec<LocatedBlock>) {
    let follows = before.is_some_and(|before| before.role == Role::Assistant);
    let first = found.iter().find_map(|(_, block)| match block {
        Block::Text(text) => Some(text.trim_start()),
        _ => None,
    });
    if !follows || !first.is_some_and(|text| text.starts_with(OBSERVATION)) {
        return (Role::User, found);
    }
    // Its place is the id, for results need ids that differ.
    let call_id: Arc<str> = format!("observation {place}").into();
    let result = |text| {
        let call_id = call_id.clone();
        Block::ToolResult(ToolResult { call_id, text, images: Vec::new(), is_error: false })
    };
    let blocks = found.into_iter().map(|(node, block)| match block {
        Block::Text(text) => (node, result(text)),
        other => (node, other),
    });
    (Role::Tool, blocks.collect())
}
