//! Labels: a message in a few words, enough to recognise it.

use crate::message::{Block, Message, Role, ToolCall};
use crate::text::{Limit, line, tail};
use crate::transcript::{Position, Transcript};

/// Returns a label of at most `most` characters for the message at `position`; paths are shown from `folder`.
///
/// The label of a result is the call that it answers: its own text seldom says what it is of. The text comes from a session:
/// whoever prints it replaces its control characters.
pub fn message_label(
    transcript: &Transcript,
    position: Position,
    folder: Option<&str>,
    most: usize,
) -> String {
    let entries = transcript.entries();
    let Some(entry) = entries.get(position) else { return String::new() };
    let message = &entry.message;
    let answered = message.results().next().and_then(|result| {
        let exchange = transcript.exchanges().get(entry.exchange?)?;
        entries[exchange.call].message.calls().find(|call| call.id == result.call_id)
    });
    let call = answered.or_else(|| {
        // A message without a text is its first call.
        message.calls().next().filter(|_| message.role == Role::Assistant && is_silent(message))
    });
    match call {
        Some(call) => call_label(call, folder, most),
        None => line(message.shown().trim_start(), most),
    }
}

fn is_silent(message: &Message) -> bool {
    message.blocks.iter().all(|block| match block {
        Block::Text(text) => text.trim().is_empty(),
        _ => true,
    })
}

/// Returns the tool of a call and its first argument, which for most tools is what they work on.
fn call_label(call: &ToolCall, folder: Option<&str>, most: usize) -> String {
    let arguments: Option<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(&call.arguments).ok();
    let first = arguments.as_ref().and_then(|all| all.values().find_map(|value| value.as_str()));
    let given = first.unwrap_or(&call.arguments);
    let inside = folder
        .filter(|folder| folder.len() > 1)
        .and_then(|folder| given.strip_prefix(folder)?.strip_prefix('/'))
        .unwrap_or(given);
    let name = line(&call.name, most / 2);
    let room = most.saturating_sub(name.chars().count() + 1);
    format!("{name} {}", shortened(inside, room))
}

/// Cuts a path at its beginning, since its end names the file, and any other text at its end.
fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    let is_path = text.contains('/') && !text.contains(char::is_whitespace);
    if !is_path || length <= most {
        return line(text, most);
    }
    let tail = tail(text, Limit::Characters(most.saturating_sub(1)));
    format!("…{}", line(tail, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &str, folder: Option<&str>, expected: &str) {
        let call = ToolCall { id: "1".into(), name: "read".into(), arguments: arguments.into() };
        assert_eq!(call_label(&call, folder, 24), expected);
    }

    #[test]
    fn a_call_is_told_by_what_it_works_on() {
        check(r#"{"path": "src/a.rs", "lines": 3}"#, None, "read src/a.rs");
        check(
            r#"{"path": "/home/ada/harbour/src/a.rs"}"#,
            Some("/home/ada/harbour"),
            "read src/a.rs",
        );
        check(r#"{"path": "/home/ada/harbour/src/a.rs"}"#, None, "read …a/harbour/src/a.rs");
        check(r#"{"command": "rg quay crates/harbour | head"}"#, None, "read rg quay crates/har…");
        check(r#"{"n": 3}"#, None, r#"read {"n": 3}"#);
        check("free text", None, "read free text");
    }
}
