//! The form of a context that every wire accepts: it begins with the user, and no two calls have one id.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_core::{Block, Message, Role};

/// The user's message before a context that would begin with the model's.
const OPENING: &str = "[From earlier phases]:";

/// Returns the messages in a form that every wire accepts.
pub(crate) fn opened(mut messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let first = messages.iter().position(|message| message.role != Role::System);
    if let Some(first) = first.filter(|first| messages[*first].role != Role::User) {
        messages.insert(first, Arc::new(Message::text(Role::User, OPENING)));
    }
    distinct(&mut messages);
    messages
}

/// Gives calls new ids where an earlier one has the same, as when one conversation is shown twice.
fn distinct(messages: &mut [Arc<Message>]) {
    let mut seen: HashMap<Arc<str>, u32> = HashMap::new();
    // The present id of each call whose result is still to come.
    let mut renamed: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    for message in messages {
        let mut changed = (**message).clone();
        for block in &mut changed.blocks {
            match block {
                Block::ToolCall(call) => {
                    let times = seen.entry(call.id.clone()).or_default();
                    *times += 1;
                    let id: Arc<str> = match *times {
                        1 => call.id.clone(),
                        times => format!("{}_again_{times}", call.id).into(),
                    };
                    renamed.insert(call.id.clone(), id.clone());
                    call.id = id;
                }
                Block::ToolResult(result) => {
                    if let Some(id) = renamed.get(&result.call_id) {
                        result.call_id = id.clone();
                    }
                }
                _ => {}
            }
        }
        if changed != **message {
            *message = Arc::new(changed);
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{ToolCall, ToolResult};

    use super::*;

    fn exchange(id: &str) -> [Arc<Message>; 2] {
        let call = ToolCall { id: id.into(), name: "look".into(), arguments: "{}".into() };
        let result = ToolResult {
            call_id: id.into(),
            text: "seen".into(),
            images: Vec::new(),
            is_error: false,
        };
        [
            Arc::new(Message::new(Role::Assistant, vec![Block::ToolCall(call)])),
            Arc::new(Message::new(Role::Tool, vec![Block::ToolResult(result)])),
        ]
    }

    #[test]
    fn contexts_begin_with_the_user_and_have_each_call_once() {
        let messages: Vec<Arc<Message>> = exchange("a").into_iter().chain(exchange("a")).collect();
        let opened = opened(messages);
        let shown: Vec<String> = opened
            .iter()
            .map(|message| {
                let calls = message.calls().map(|call| call.id.to_string());
                let results = message.results().map(|result| result.call_id.to_string());
                let ids: Vec<String> = calls.chain(results).collect();
                format!("{} {}", message.role.as_str(), ids.join(","))
            })
            .collect();
        let expected = ["user ", "assistant a", "tool a", "assistant a_again_2", "tool a_again_2"];
        assert_eq!(shown, expected);
        assert_eq!(super::opened(opened.clone()), opened);
    }
}
