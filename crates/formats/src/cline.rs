//! Cline: Anthropic messages with fields of its own (`api_conversation_history.json`), and tasks exported as Markdown.

use std::sync::Arc;

use plimsoll_core::{MillisSinceEpoch, Role};

use crate::anthropic;
use crate::draft::{RecordedRequest, SessionDraft, usage};
use crate::error::ReadError;
use crate::markdown;
use crate::object::{self, Object};

/// The headings of an exported task.
const SPEAKERS: [(&str, Role); 2] =
    [("**User:**", Role::User), ("**Assistant:**", Role::Assistant)];

/// Returns whether the bytes are a task that Cline exported as Markdown.
pub(crate) fn is_export(bytes: &[u8]) -> bool {
    bytes.starts_with(b"**User:**") && markdown::has_speaker(bytes, &SPEAKERS)
}

/// Returns whether a message has the fields that Cline adds to its own.
pub(crate) fn is_message(message: &Object<'_>) -> bool {
    message.has("role")
        && (message.has("modelInfo") || message.has("metrics") || message.number("ts").is_some())
}

/// Reads a conversation or an exported task.
pub(crate) fn read(text: &str) -> Result<SessionDraft, ReadError> {
    if is_export(text.as_bytes()) {
        return Ok(markdown::read(text.as_bytes(), &SPEAKERS));
    }
    let mut draft = anthropic::read(text)?;
    let (_, elements) = object::document(text, "messages").map_err(ReadError::json)?;
    for (at, recorded) in draft.messages.iter_mut().enumerate() {
        let Some(number) = recorded.message.source else { continue };
        let element = elements.get(number as usize - 1).and_then(|raw| Object::parse(raw.get()));
        let Some(element) = element else { continue };
        let message = &mut recorded.message;
        message.time = message.time.or(element.time("ts"));
        if message.role != Role::Assistant {
            continue;
        }
        let model = element.object("modelInfo").and_then(|info| info.owned("modelId"));
        if let Some(model) = model {
            message.model = Some(Arc::from(&*model));
            draft.header.model = Some(model);
        }
        message.usage = message.usage.or_else(|| usage_of(&element));
        if let Some(usage) = message.usage {
            draft.requests.push(RecordedRequest {
                before: at,
                source: number,
                time: message.time,
                model: message.model.clone(),
                usage,
                ..RecordedRequest::default()
            });
        }
    }
    draft.header.started = first_time(&draft);
    Ok(draft)
}

fn first_time(draft: &SessionDraft) -> Option<MillisSinceEpoch> {
    draft.messages.iter().find_map(|recorded| recorded.message.time)
}

/// Reads Cline's own count: its prompt includes the cached tokens.
fn usage_of(element: &Object<'_>) -> Option<plimsoll_core::Usage> {
    let tokens = element.object("metrics")?.object("tokens")?;
    usage(tokens.tokens("prompt"), tokens.tokens("cached"), tokens.tokens("completion"))
}
