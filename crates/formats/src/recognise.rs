//! Recognising: which format a file is, by what is in it.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ReadError;
use crate::json::{self, Text};
use crate::session::Format;

/// The keys that tell formats apart, of a document or of a line.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Probe<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    history: Option<&'a RawValue>,
    #[serde(borrow)]
    trajectory: Option<&'a RawValue>,
    #[serde(borrow)]
    instance_id: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    anthropic_version: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow)]
    record_type: Option<&'a RawValue>,
    #[serde(borrow, rename = "sessionId")]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "projectHash")]
    project_hash: Option<&'a RawValue>,
    #[serde(borrow)]
    uuid: Option<&'a RawValue>,
    #[serde(borrow, rename = "leafUuid")]
    leaf: Option<&'a RawValue>,
    #[serde(borrow, rename = "messageId")]
    message_id: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    call_id: Option<&'a RawValue>,
    trajectory_format: Option<Text<'a>>,
}

/// The keys that tell one element of a list from another.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Element<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    observation: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
}

/// Returns the format of a file.
pub(crate) fn recognise(bytes: &[u8]) -> Result<Format, ReadError> {
    let trimmed = bytes.trim_ascii();
    let Some(first) = trimmed.first() else { return Err(ReadError::Empty) };
    let mut document_error = None;
    if *first == b'[' {
        match list(trimmed) {
            Ok(Some(format)) => return Ok(format),
            Ok(None) => {}
            Err(error) => document_error = Some(error),
        }
    } else if *first == b'{' {
        match document(trimmed) {
            Ok(Some(format)) => return Ok(format),
            Ok(None) => {}
            Err(error) => document_error = Some(error),
        }
    }
    if let Some(format) = json::lines(bytes).find_map(|(_, text)| line(text)) {
        return Ok(format);
    }
    match document_error {
        // Something that is cut off in the middle is worth saying so; anything else is not of our kinds.
        Some(error) if error.is_eof() => Err(ReadError::json(error)),
        Some(error) if trimmed.len() > 1 && looks_like_document(trimmed) => {
            Err(ReadError::json(error))
        }
        _ => Err(ReadError::NotASession { begins: beginning(trimmed) }),
    }
}

/// Returns whether the file begins as an object or a list of objects, so that an error inside is worth its place.
fn looks_like_document(trimmed: &[u8]) -> bool {
    let second = trimmed[1..].trim_ascii_start().first();
    matches!((trimmed[0], second), (b'{', Some(b'"')) | (b'[', Some(b'{')))
}

fn beginning(trimmed: &[u8]) -> String {
    const SHOWN: usize = 40;
    let head = &trimmed[..trimmed.len().min(SHOWN * 4)];
    let text = String::from_utf8_lossy(head);
    let shown = text.chars().take(SHOWN);
    shown.map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Recognises a document that is one JSON object; lines that are one object each fail here and are looked at one by one.
fn document(bytes: &[u8]) -> Result<Option<Format>, serde_json::Error> {
    let first_line = bytes.split(|byte| *byte == b'\n').next().unwrap_or(bytes);
    let mended;
    let text = if let Ok(text) = str::from_utf8(bytes) {
        text
    } else {
        mended = String::from_utf8_lossy(bytes);
        &mended
    };
    // A first line that is complete in itself is either the whole file or the first of many lines.
    let first = str::from_utf8(first_line).ok().and_then(|line| serde_json::from_str(line).ok());
    let probe: Probe<'_> = match first {
        Some(probe) => probe,
        None => serde_json::from_str(text)?,
    };
    Ok(of_document(&probe))
}

fn of_document(probe: &Probe<'_>) -> Option<Format> {
    let mini =
        probe.trajectory_format.as_ref().is_some_and(|name| name.starts_with("mini-swe-agent"));
    if probe.history.is_some() {
        if probe.trajectory.is_some() || probe.info.is_some() {
            return Some(Format::SweAgent);
        }
        if probe.instance_id.is_some() || probe.metadata.is_some() {
            return Some(Format::OpenHands);
        }
        return Some(Format::SweAgent);
    }
    let messages = probe.messages?;
    if !messages.get().starts_with('[') {
        return None;
    }
    if mini || (probe.info.is_some() && probe.trajectory_format.is_some()) {
        return Some(Format::MiniSweAgent);
    }
    if probe.session_id.is_some() || probe.project_hash.is_some() {
        return Some(Format::GeminiCli);
    }
    let elements: Vec<&RawValue> = serde_json::from_str(messages.get()).unwrap_or_default();
    let is_opencode = |message: Element<'_>| message.info.is_some() && message.parts.is_some();
    if probe.info.is_some() && elements.iter().filter_map(element).any(is_opencode) {
        return Some(Format::OpenCode);
    }
    let fallback = if probe.system.is_some() || probe.anthropic_version.is_some() {
        Format::AnthropicMessages
    } else {
        Format::OpenAiChat
    };
    Some(of_messages(&elements).unwrap_or(fallback))
}

/// Recognises a document that is one JSON list.
fn list(bytes: &[u8]) -> Result<Option<Format>, serde_json::Error> {
    let text = String::from_utf8_lossy(bytes);
    let elements: Vec<&RawValue> = serde_json::from_str(&text)?;
    let probes = || elements.iter().filter_map(element);
    if probes().any(|probe| {
        probe.role.is_none() && (probe.action.is_some() || probe.observation.is_some())
    }) {
        return Ok(Some(Format::OpenHands));
    }
    if probes().any(|probe| probe.role.is_some()) {
        return Ok(Some(of_messages(&elements).unwrap_or(Format::OpenAiChat)));
    }
    Ok(None)
}

fn element<'a>(raw: &&'a RawValue) -> Option<Element<'a>> {
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// Tells the two dialects of `messages` apart, if anything in them does.
fn of_messages(elements: &[&RawValue]) -> Option<Format> {
    elements.iter().filter_map(element).find_map(|message| {
        let role = message.role.as_deref().unwrap_or_default();
        if matches!(role, "tool" | "developer" | "function") || message.tool_calls.is_some() {
            return Some(Format::OpenAiChat);
        }
        let content = message.content?.get();
        if !content.starts_with('[') {
            return None;
        }
        let blocks: Vec<&RawValue> = serde_json::from_str(content).ok()?;
        let anthropic = blocks.iter().any(|raw| {
            let kind = raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok());
            let kind: Option<Kind<'_>> = kind.flatten();
            kind.and_then(|kind| kind.kind).is_some_and(|kind| {
                matches!(
                    kind.as_str(),
                    "tool_use"
                        | "tool_result"
                        | "thinking"
                        | "redacted_thinking"
                        | "server_tool_use"
                )
            })
        });
        anthropic.then_some(Format::AnthropicMessages)
    })
}

/// Recognises one line of a JSON Lines file.
fn line(bytes: &[u8]) -> Option<Format> {
    if bytes.first() != Some(&b'{') || bytes.last() != Some(&b'}') {
        return None;
    }
    let text = str::from_utf8(bytes).ok()?;
    let probe: Probe<'_> = serde_json::from_str(text).ok()?;
    let kind = probe.kind.as_deref();
    if probe.payload.is_some() && kind.is_some() {
        return Some(Format::Codex);
    }
    if probe.history.is_some() && probe.instance_id.is_some() {
        return Some(Format::OpenHands);
    }
    let claude = probe.uuid.is_some()
        || probe.session_id.is_some()
        || probe.leaf.is_some()
        || probe.message_id.is_some();
    match kind {
        None if probe.record_type.is_some() => Some(Format::Codex),
        None if probe.instructions.is_some() && probe.id.is_some() => Some(Format::Codex),
        None => None,
        Some("session") => probe.id.map(|_| Format::Pi),
        Some("message") if probe.message.is_some() => Some(Format::Pi),
        Some(
            "model_change"
            | "thinking_level_change"
            | "compaction"
            | "branch_summary"
            | "custom_message"
            | "session_info",
        ) => Some(Format::Pi),
        Some("message") => {
            (probe.role.is_some() && probe.content.is_some()).then_some(Format::Codex)
        }
        Some("reasoning" | "function_call" | "function_call_output" | "custom_tool_call") => {
            (probe.call_id.is_some() || probe.id.is_some()).then_some(Format::Codex)
        }
        Some("user" | "assistant") if probe.message.is_some() => Some(Format::ClaudeCode),
        Some(_) => claude.then_some(Format::ClaudeCode),
    }
}
