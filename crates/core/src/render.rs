//! Rendering: shorter forms of messages.
//!
//! Every form that is not the original says how much is missing and carries the ref of the original.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::hash::Ref;
use crate::json_text::each_text_mut;
use crate::message::{Block, Message, Role, ToolCall, ToolResult};
use crate::policy::IntraPhase;
use crate::text::{Limit, error_lines, head, left_out, one_line, plural, push_shortened, tail};

/// Replaces the result of a call that was never answered.
pub const NO_RESULT: &str = "[no result was recorded]";

/// Characters of old reasoning that are kept (`auto-context.md`, `_process_older_message`).
pub const REASONING_KEPT: usize = 2000;
/// Characters of a call's arguments in a stub; chosen so that a path or a short command fits.
const ARGUMENTS_IN_STUB: usize = 160;
/// Characters of the first line in a stub.
const FIRST_LINE_IN_STUB: usize = 120;
/// Error lines in a stub, and their width.
const ERRORS_IN_STUB: usize = 5;
const ERROR_WIDTH: usize = 300;

/// Returns `message` with `text` applied to each tool result, and without the results' images.
///
/// Returns `None` if there is no result.
pub fn replace_results(
    message: &Message,
    mut text: impl FnMut(&ToolResult) -> String,
) -> Option<Message> {
    message.with_blocks(|_, block| {
        let Block::ToolResult(result) = block else { return None };
        let text = text(result).into();
        Some(Block::ToolResult(ToolResult { text, images: Vec::new(), ..result.clone() }))
    })
}

/// Writes the stub of a result: tool, arguments, size, first line, ref, and its error lines.
pub fn stub_text(
    result: &ToolResult,
    call: Option<&ToolCall>,
    original: Ref,
    errors: bool,
) -> String {
    let mut out = String::from("[");
    match call {
        Some(call) => {
            out.push_str(&call.name);
            if !call.arguments.is_empty() && &*call.arguments != "{}" {
                out.push(' ');
                push_shortened(&mut out, &one_line(&call.arguments), ARGUMENTS_IN_STUB);
            }
        }
        None => out.push_str("result"),
    }
    let lines = result.text.lines().count();
    let characters = result.text.chars().count();
    let _ = write!(out, " gave {lines} {}, {characters} characters", plural(lines, "line"));
    if !result.images.is_empty() {
        let _ = write!(out, ", {} {}", result.images.len(), plural(result.images.len(), "image"));
    }
    if let Some(first) = result.text.lines().find(|line| !line.trim().is_empty()) {
        out.push_str("; first line: ");
        push_shortened(&mut out, first.trim(), FIRST_LINE_IN_STUB);
    }
    let _ = write!(out, "; {original}]");
    if errors {
        for line in error_lines(&result.text).take(ERRORS_IN_STUB) {
            out.push('\n');
            push_shortened(&mut out, line, ERROR_WIDTH);
        }
    }
    out
}

/// Writes the stub of an earlier attempt: its number and its first error line.
pub fn attempt_text(result: &ToolResult, number: u32, original: Ref) -> String {
    let mut out = format!("[attempt {number} of this call failed");
    if let Some(line) = error_lines(&result.text).next() {
        out.push_str(": ");
        push_shortened(&mut out, line.trim(), ERROR_WIDTH);
    }
    let _ = write!(out, "; {original}]");
    out
}

/// Writes the stub of a result that is cleared in a batch.
pub fn cleared_text(original: Ref) -> String {
    format!("[Old tool result content cleared; {original}]")
}

/// Returns an assistant message's reasoning cut to [`REASONING_KEPT`] characters a text block.
pub fn shorten_reasoning(message: &Message, original: Ref) -> Option<Message> {
    replace_texts(message, |text| {
        let kept = head(text, Limit::Characters(REASONING_KEPT));
        (kept.len() < text.len())
            .then(|| format!("{kept}\n[... truncated for context efficiency ...; {original}]"))
    })
}

/// Returns an assistant message as its first line and its size.
pub fn stub_reasoning(message: &Message, original: Ref) -> Option<Message> {
    replace_texts(message, |text| {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
        let mut out = String::new();
        push_shortened(&mut out, first, FIRST_LINE_IN_STUB);
        let _ = write!(out, "\n[{} characters in all; {original}]", text.chars().count());
        (out.len() < text.len()).then_some(out)
    })
}

/// Returns an assistant message with calls whose texts are replaced by the names of the tools that it called.
///
/// Source: `auto-context.md`, `_mask_tool_call_message`; the calls stay, since their results stay too.
pub fn stub_called(message: &Message, original: Ref) -> Option<Message> {
    let names: Vec<&str> = message.calls().map(|call| &*call.name).collect();
    let stub = format!("[Called tools: {}; {original}]", names.join(", "));
    replace_texts(message, |text| (stub.len() < text.len()).then(|| stub.clone()))
}

/// Returns a message without the refs in its notes about omitted text for which `is_dead` holds; `None` if it has none.
pub fn without_refs(message: &Message, is_dead: impl Fn(&str) -> bool) -> Option<Message> {
    const BEFORE: &str = "; ref:message:";
    let stripped = |text: &str| {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(BEFORE) {
            let reference = at + 2;
            let digits = rest[at + BEFORE.len()..].bytes().take_while(u8::is_ascii_hexdigit);
            let end = at + BEFORE.len() + digits.count();
            let kept = if is_dead(&rest[reference..end]) { at } else { end };
            out.push_str(&rest[..kept]);
            rest = &rest[end..];
        }
        out.push_str(rest);
        (out.len() < text.len()).then(|| std::sync::Arc::from(out))
    };
    message.with_blocks(|_, block| match block {
        Block::Text(text) => Some(Block::Text(stripped(text)?)),
        Block::ToolResult(result) => {
            let text = stripped(&result.text)?;
            Some(Block::ToolResult(ToolResult { text, ..result.clone() }))
        }
        Block::ToolCall(call) => {
            let arguments = stripped(&call.arguments)?;
            Some(Block::ToolCall(ToolCall { arguments, ..call.clone() }))
        }
        _ => None,
    })
}

/// Replaces the text blocks for which `change` returns another text; `None` if it returns none.
pub fn replace_texts(
    message: &Message,
    mut change: impl FnMut(&str) -> Option<String>,
) -> Option<Message> {
    message.with_blocks(|_, block| {
        let Block::Text(text) = block else { return None };
        Some(Block::Text(change(text)?.into()))
    })
}

/// Shortens long values in the arguments of a message's calls to `keep` characters each; `None` if none is longer.
///
/// Shape: a JSON object stays an object with the same keys in the same order, so that the API and the tool accept it; free
/// text stays text.
pub fn shorten_arguments(message: &Message, keep: usize, original: Ref) -> Option<Message> {
    message.with_blocks(|_, block| {
        let Block::ToolCall(call) = block else { return None };
        let arguments = short_arguments(&call.arguments, keep, original)?;
        Some(Block::ToolCall(ToolCall { arguments, ..call.clone() }))
    })
}

fn short_arguments(arguments: &Arc<str>, keep: usize, original: Ref) -> Option<Arc<str>> {
    // Cutting a value only pays where the marker is small beside the text that it replaces.
    if arguments.len() < 2 * keep {
        return None;
    }
    match serde_json::from_str::<serde_json::Value>(arguments) {
        Ok(mut value @ serde_json::Value::Object(_)) => {
            let mut changed = false;
            each_text_mut(&mut value, &mut |text| {
                if text.len() >= 2 * keep {
                    *text = cut_middle(text, keep, original);
                    changed = true;
                }
            });
            changed.then(|| value.to_string().into())
        }
        // A list or number stays; free text is cut as text.
        Ok(_) => None,
        Err(_) => Some(cut_middle(arguments, keep, original).into()),
    }
}

/// Keeps the beginning and the end of `text`, `keep` bytes in all, as whole lines where possible.
pub fn cut_middle(text: &str, keep: usize, original: Ref) -> String {
    let first = back_to_line(head(text, Limit::Bytes(keep * 2 / 3)));
    let last = forward_to_line(tail(text, Limit::Bytes(keep / 3)));
    let hidden = &text[first.len()..text.len() - last.len()];
    let lines = hidden.lines().count();
    let (count, unit) =
        if lines > 2 { (lines, "line") } else { (hidden.chars().count(), "character") };
    format!("{first}{}\n{last}", left_out(count, unit, Some(&original)))
}

fn back_to_line(text: &str) -> &str {
    match text.rfind('\n') {
        Some(end) if end * 2 > text.len() => &text[..=end],
        _ => text,
    }
}

fn forward_to_line(text: &str) -> &str {
    match text.find('\n') {
        Some(end) if end * 2 < text.len() => &text[end + 1..],
        _ => text,
    }
}

/// One failed attempt of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Counted from 1.
    pub number: u32,
    pub output: String,
    /// The validator's own words.
    pub reason: String,
}

/// Characters of an attempt's output in a retry's context (`auto-context.md`, `_build_loop_retry_context`).
const ATTEMPT_SHOWN: usize = 500;

/// Returns the sentence that asks for another attempt, after `failed` attempts.
pub fn retry_request(failed: usize) -> String {
    let next = failed + 1;
    format!("Please try again (Attempt #{next}). Address the validation issues noted above.")
}

/// Builds the short context of a loop's retry; `None` where `settings` send the whole history instead.
///
/// Shape: system prompt, original task, the newest failed attempts with the validator's words, and the sentence that asks
/// again. Source: `auto-context.md`, `_build_loop_retry_context`.
pub fn retry_context(
    history: &[Arc<Message>],
    attempts: &[Attempt],
    settings: &IntraPhase,
) -> Option<Vec<Message>> {
    if !(settings.enabled && settings.compress_loops) {
        return None;
    }
    let mut context = Vec::new();
    if let Some(system) = history.first().filter(|message| message.role == Role::System) {
        context.push((**system).clone());
    }
    if let Some(task) = history.iter().find(|message| message.role == Role::User) {
        context.push(Message::text(Role::User, format!("[Original Task]\n{}", task.shown())));
    }
    let skipped = attempts.len().saturating_sub(settings.loop_history_limit as usize);
    for attempt in &attempts[skipped..] {
        let shown = head(&attempt.output, Limit::Characters(ATTEMPT_SHOWN));
        let more = if shown.len() < attempt.output.len() { "..." } else { "" };
        let output = format!("[Attempt #{}]\n{shown}{more}", attempt.number);
        context.push(Message::text(Role::Assistant, output));
        let verdict = format!("[Validation Failed]\n{}", attempt.reason);
        context.push(Message::text(Role::User, verdict));
    }
    context.push(Message::text(Role::User, retry_request(attempts.len())));
    Some(context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::ContentHash;
    use insta::assert_snapshot;

    fn original() -> Ref {
        Ref::message(ContentHash([0xab; 32]))
    }

    #[test]
    fn a_stub_says_what_was_there_and_how_to_get_it_back() {
        let call = ToolCall {
            id: "1".into(),
            name: "bash".into(),
            arguments: r#"{"command":"make"}"#.into(),
        };
        let result = ToolResult {
            call_id: "1".into(),
            text: "cc -c a.c\na.c:3: error: expected ;\nmake: stopped\n".into(),
            images: vec![],
            is_error: true,
        };
        assert_snapshot!(stub_text(&result, Some(&call), original(), true), @r#"
        [bash {"command":"make"} gave 3 lines, 49 characters; first line: cc -c a.c; ref:message:abababababababab]
        a.c:3: error: expected ;
        "#);
    }

    #[test]
    fn shortened_arguments_stay_an_object_with_the_same_keys() {
        let long = "x\\n".repeat(400);
        let call = ToolCall {
            id: "1".into(),
            name: "write".into(),
            arguments: format!(r#"{{"path":"a.txt","content":"{long}","n":1}}"#).into(),
        };
        let message = Message::new(Role::Assistant, vec![Block::ToolCall(call)]);
        let short = shorten_arguments(&message, 120, original()).expect("long enough");
        let arguments = short.calls().next().expect("one call").arguments.clone();
        let value: serde_json::Value = serde_json::from_str(&arguments).expect("still JSON");
        let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["path", "content", "n"]);
        assert!(arguments.len() < 300 && arguments.contains("ref:message:abab"), "{arguments}");
        assert!(shorten_arguments(&message, 10_000, original()).is_none());
    }

    #[test]
    fn a_retry_sees_the_task_the_last_attempts_and_the_verdicts() {
        let history = [
            Arc::new(Message::text(Role::System, "be exact")),
            Arc::new(Message::text(Role::User, "fix it")),
            Arc::new(Message::text(Role::Assistant, "a long way")),
        ];
        let attempt = |number| Attempt {
            number,
            output: format!("try {number} {}", "z".repeat(600)),
            reason: format!("test {number} fails"),
        };
        let attempts = [attempt(1), attempt(2), attempt(3)];
        let limit = |loop_history_limit| IntraPhase { loop_history_limit, ..IntraPhase::default() };
        let context = |settings| retry_context(&history, &attempts, &settings).expect("compressed");
        let texts: Vec<String> = context(limit(2))
            .iter()
            .map(|message| format!("{}: {:.40}", message.role.as_str(), message.shown()))
            .collect();
        assert_snapshot!(texts.join("\n"), @"
        system: be exact
        user: [Original Task]
        fix it
        assistant: [Attempt #2]
        try 2 zzzzzzzzzzzzzzzzzzzzz
        user: [Validation Failed]
        test 2 fails
        assistant: [Attempt #3]
        try 3 zzzzzzzzzzzzzzzzzzzzz
        user: [Validation Failed]
        test 3 fails
        user: Please try again (Attempt #4). Address t
        ");
        assert_eq!(context(limit(1)).len(), 5);
        for off in [
            IntraPhase { compress_loops: false, ..limit(2) },
            IntraPhase { enabled: false, ..limit(2) },
        ] {
            assert_eq!(retry_context(&history, &attempts, &off), None, "the whole history is sent");
        }
    }

    #[test]
    fn the_middle_is_cut_at_lines() {
        let text = (0..100).fold(String::new(), |text, n| text + &format!("line {n}\n"));
        assert_snapshot!(cut_middle(&text, 60, original()), @"
        line 0
        line 1
        line 2
        line 3
        line 4
        [… 93 lines; ref:message:abababababababab]
        line 98
        line 99
        ");
    }
}
