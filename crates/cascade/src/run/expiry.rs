//! Content past its time, as `context_ttl` of a phase says.

use plimsoll_core::render::{cleared_text, replace_results, replace_texts};
use plimsoll_core::{Block, ContentHash, Message, Ref, Role};

use crate::definition::ContextTtl;

/// Returns a message without content that is past its time; `None` where it keeps everything.
///
/// A ref stands for the content, so exchanges stay whole and the model can get it back.
pub(crate) fn expired(message: &Message, age: u32, ttl: &ContextTtl) -> Option<Message> {
    let is_over = |most: Option<u32>| most.is_some_and(|most| age >= most);
    let original = Ref::message(ContentHash::of(message));
    let of_role = match message.role {
        Role::Tool => ttl.tool_results,
        Role::Assistant => ttl.assistant,
        Role::User => ttl.user,
        Role::System => ttl.system,
    };
    if is_over(of_role) {
        if message.role == Role::Tool {
            return replace_results(message, |_| cleared_text(original));
        }
        return replace_texts(message, |_| Some(format!("[no longer shown; {original}]")));
    }
    if !is_over(ttl.images) {
        return None;
    }
    let mut without = message.clone();
    for block in &mut without.blocks {
        match block {
            Block::Image(_) => {
                *block = Block::Text(format!("[image no longer shown; {original}]").into());
            }
            Block::ToolResult(result) => result.images.clear(),
            _ => {}
        }
    }
    (without != *message).then_some(without)
}
