//! The label of a pointer's target: the tool with its file or command, in the model's own words.

use std::sync::Arc;

use crate::json_text::each_text;
use crate::message::{Block, Message, ToolCall};
use crate::text::{one_line, push_shortened};

/// Characters of a command in a label; equal labels are told apart by a number.
const LONGEST: usize = 20;
/// The arguments that name a file, and those that best describe another call.
const FILES: [&str; 6] =
    ["file_path", "path", "filePath", "notebook_path", "file", "absolute_path"];
const ASKED: [&str; 6] = ["command", "cmd", "script", "pattern", "query", "url"];

/// Returns the name of a call: `Read lib.rs`, or `` `cargo test` ``.
pub(super) fn label(call: &ToolCall, message: &Message) -> Arc<str> {
    let arguments: Option<serde_json::Value> = serde_json::from_str(&call.arguments).ok();
    let field = |names: &[&str]| {
        let fields = arguments.as_ref()?.as_object()?;
        names.iter().find_map(|name| fields.get(*name))
    };
    if let Some(file) = field(&FILES).and_then(serde_json::Value::as_str) {
        let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
        return named(&call.name, file);
    }
    let first = || arguments.as_ref()?.as_object()?.values().next();
    let asked = match field(&ASKED).or_else(first) {
        Some(value) => argument_text(value),
        None if arguments.is_none() => call.arguments.to_string(),
        None => String::new(),
    };
    let asked = if asked.trim().is_empty() { fenced(message).unwrap_or_default() } else { asked };
    let asked = one_line(&asked);
    if asked.is_empty() {
        return call.name.clone();
    }
    let mut out = String::from("`");
    push_shortened(&mut out, &asked, LONGEST);
    out.push('`');
    out.into()
}

fn named(tool: &str, file: &str) -> Arc<str> {
    let mut out = format!("{tool} ");
    push_shortened(&mut out, file, 3 * LONGEST);
    // A name of several lines would end the pointer's own.
    out.replace(['\n', '\r', ']'], " ").into()
}

fn argument_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        // The last word of `["bash", "-lc", "COMMAND"]` is the command itself.
        serde_json::Value::Array(words) => words.last().map(argument_text).unwrap_or_default(),
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns the first line of the first block of code, for agents that write their calls as text.
fn fenced(message: &Message) -> Option<String> {
    let text = message.blocks.iter().find_map(|block| match block {
        Block::Text(text) => text.split_once("```"),
        _ => None,
    });
    let (_, code) = text?;
    code.lines().nth(1).map(str::to_owned)
}

/// Returns the texts of more than two lines in a call's arguments.
pub(super) fn long_arguments(call: &ToolCall) -> Vec<Arc<str>> {
    let mut found = Vec::new();
    let mut add_if_long = |text: &str| {
        if text.bytes().filter(|byte| *byte == b'\n').count() > 1 {
            found.push(text.into());
        }
    };
    match serde_json::from_str(&call.arguments) {
        Ok(value) => each_text(&value, &mut add_if_long),
        Err(_) => add_if_long(&call.arguments),
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    fn of(name: &str, arguments: &str) -> String {
        let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() };
        label(&call, &Message::text(Role::Assistant, "look:\n```bash\nls -la\n```")).to_string()
    }

    #[test]
    fn a_call_is_called_by_its_file_or_command() {
        assert_eq!(of("Read", r#"{"file_path":"/a/b/lib.rs","limit":3}"#), "Read lib.rs");
        assert_eq!(of("bash", r#"{"command":"cargo  test"}"#), "`cargo test`");
        assert_eq!(of("shell", r#"{"command":["bash","-lc","rg -n x"]}"#), "`rg -n x`");
        assert_eq!(of("bash", ""), "`ls -la`");
        assert_eq!(of("odd", r#"{"a":"x\ny"}"#), "`x y`");
        assert_eq!(of("Read", "{\"path\":\"a\\nb]c\"}"), "Read a b c");
        assert_eq!(of("apply", "*** Begin Patch\nx"), "`*** Begin Patch x`");
    }
}
