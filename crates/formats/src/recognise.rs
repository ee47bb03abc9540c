//! Recognises the format of a file by its content.

use plimsoll_core::text::{self, Limit};
use serde_json::value::RawValue;

use crate::error::ReadError;
use crate::format::SessionFormat;
use crate::object::Object;
use crate::{cline, copilot_cli, cursor, gemini_log, json};

/// Returns the format of a file.
pub(crate) fn recognise(bytes: &[u8]) -> Result<SessionFormat, ReadError> {
    let trimmed = bytes.trim_ascii();
    let document = match trimmed.first() {
        None => return Err(ReadError::Empty),
        Some(b'[') => list(trimmed),
        Some(b'{') => document(trimmed),
        Some(_) if cursor::is_export(trimmed) => return Ok(SessionFormat::Cursor),
        Some(_) if cline::is_export(trimmed) => return Ok(SessionFormat::Cline),
        Some(_) => Ok(None),
    };
    if let Ok(Some(format)) = document {
        return Ok(format);
    }
    if let Some(format) = json::lines(bytes).find_map(|(_, text)| line(text)) {
        return Ok(format);
    }
    match document {
        Err(error) if error.is_eof() || looks_like_document(trimmed) => Err(ReadError::json(error)),
        _ => Err(ReadError::NotASession { begins: beginning(trimmed) }),
    }
}

/// Returns whether the file begins as an object or a list of objects, so that the place of a JSON error helps the user.
fn looks_like_document(trimmed: &[u8]) -> bool {
    let Some((first, rest)) = trimmed.split_first() else { return false };
    matches!((first, rest.trim_ascii_start().first()), (b'{', Some(b'"')) | (b'[', Some(b'{')))
}

fn beginning(trimmed: &[u8]) -> String {
    const SHOWN: usize = 40;
    let head = &trimmed[..trimmed.len().min(SHOWN * 4)];
    let lossy = String::from_utf8_lossy(head);
    let shown = text::head(&lossy, Limit::Characters(SHOWN));
    shown.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Recognises a document that is one JSON object. A JSON Lines file fails here; its lines are recognised one by one.
fn document(bytes: &[u8]) -> Result<Option<SessionFormat>, serde_json::Error> {
    let first_line = bytes.split(|byte| *byte == b'\n').next().unwrap_or(bytes);
    // A complete first line is either the whole file or the first of many lines.
    if let Some(first) = str::from_utf8(first_line).ok().and_then(Object::parse) {
        return Ok(of_document(&first));
    }
    Object::read(&json::utf8_document(bytes)).map(|document| of_document(&document))
}

fn of_document(document: &Object<'_>) -> Option<SessionFormat> {
    if document.has("history") {
        let is_openhands = document.has("instance_id") || document.has("metadata");
        if is_openhands && !document.has("trajectory") && !document.has("info") {
            return Some(SessionFormat::OpenHands);
        }
        return Some(SessionFormat::SweAgent);
    }
    if document.has("chatMessages") && document.has("sessionId") {
        return Some(SessionFormat::CopilotCli);
    }
    if document.has("traj") && document.has("task_id") {
        return Some(SessionFormat::TauBench);
    }
    if !document.get("messages")?.starts_with('[') {
        return None;
    }
    let trajectory = document.text("trajectory_format");
    if trajectory.is_some_and(|name| document.has("info") || name.starts_with("mini-swe-agent")) {
        return Some(SessionFormat::MiniSweAgent);
    }
    if document.has("sessionId") || document.has("projectHash") {
        return Some(SessionFormat::GeminiCli);
    }
    let messages = document.list("messages");
    let is_opencode = |message: Object<'_>| message.has("info") && message.has("parts");
    if document.has("info") && objects(&messages).any(is_opencode) {
        return Some(SessionFormat::OpenCode);
    }
    let is_anthropic = document.has("system") || document.has("anthropic_version");
    let fallback =
        if is_anthropic { SessionFormat::AnthropicMessages } else { SessionFormat::OpenAiChat };
    Some(of_messages(&messages).unwrap_or(fallback))
}

/// Recognises a document that is one JSON list.
fn list(bytes: &[u8]) -> Result<Option<SessionFormat>, serde_json::Error> {
    let text = json::utf8_document(bytes);
    let elements: Vec<&RawValue> = serde_json::from_str(&text)?;
    let is_event = |element: &Object<'_>| element.has("action") || element.has("observation");
    let is_run = |element: Object<'_>| element.has("traj") && element.has("task_id");
    Ok(if objects(&elements).any(|element| !element.has("role") && is_event(&element)) {
        Some(SessionFormat::OpenHands)
    } else if objects(&elements).any(is_run) {
        Some(SessionFormat::TauBench)
    } else if objects(&elements).any(|element| cline::is_message(&element)) {
        Some(SessionFormat::Cline)
    } else if objects(&elements).any(|element| element.has("role")) {
        Some(of_messages(&elements).unwrap_or(SessionFormat::OpenAiChat))
    } else {
        None
    })
}

fn objects<'a>(elements: &[&'a RawValue]) -> impl Iterator<Item = Object<'a>> {
    elements.iter().filter_map(|raw| Object::parse(raw.get()))
}

/// Returns whether `messages` are OpenAI's or Anthropic's, if any of them shows it.
fn of_messages(messages: &[&RawValue]) -> Option<SessionFormat> {
    objects(messages).find_map(|message| {
        let role = message.text("role").unwrap_or_default();
        if matches!(&*role, "tool" | "developer" | "function") || message.has("tool_calls") {
            return Some(SessionFormat::OpenAiChat);
        }
        let is_anthropic = |block: &Object<'_>| {
            matches!(
                &*block.text("type").unwrap_or_default(),
                "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use"
            )
        };
        let blocks = message.objects("content");
        blocks.iter().any(is_anthropic).then_some(SessionFormat::AnthropicMessages)
    })
}

/// Recognises one line of a JSON Lines file.
fn line(bytes: &[u8]) -> Option<SessionFormat> {
    if bytes.first() != Some(&b'{') || bytes.last() != Some(&b'}') {
        return None;
    }
    let line = Object::parse(str::from_utf8(bytes).ok()?)?;
    let has = |key| line.has(key);
    let kind = line.text("type");
    if has("payload") && kind.is_some() {
        return Some(SessionFormat::Codex);
    }
    if has("history") && has("instance_id") {
        return Some(SessionFormat::OpenHands);
    }
    if copilot_cli::is_event(&line) {
        return Some(SessionFormat::CopilotCli);
    }
    if gemini_log::is_line(&line) {
        return Some(SessionFormat::GeminiCli);
    }
    if kind.is_none() && has("role") && line.object("message").is_some() {
        return Some(SessionFormat::Cursor);
    }
    let (is, format) = match kind.as_deref() {
        None => (has("record_type") || (has("instructions") && has("id")), SessionFormat::Codex),
        Some("session") => (has("id"), SessionFormat::Pi),
        Some("message") if has("message") => (true, SessionFormat::Pi),
        Some(
            "model_change"
            | "thinking_level_change"
            | "compaction"
            | "branch_summary"
            | "custom_message"
            | "session_info",
        ) => (true, SessionFormat::Pi),
        Some("message") => (has("role") && has("content"), SessionFormat::Codex),
        Some("reasoning" | "function_call" | "function_call_output" | "custom_tool_call") => {
            (has("call_id") || has("id"), SessionFormat::Codex)
        }
        Some(kind) => {
            let is_message = matches!(kind, "user" | "assistant") && has("message");
            let ids = ["uuid", "sessionId", "leafUuid", "messageId"];
            (is_message || ids.into_iter().any(has), SessionFormat::ClaudeCode)
        }
    };
    is.then_some(format)
}
