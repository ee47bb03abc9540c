//! Anthropic messages: a recorded request, or its list of messages alone.

use std::sync::Arc;

use plimsoll_core::{Block, Role, Usage};

use crate::content::{self, text_and_images};
use crate::draft::{RecordedMessage, SessionDraft, usage};
use crate::error::ReadError;
use crate::object::Object;

/// Reads a list of Anthropic messages; the system prompt goes into the header.
pub(crate) fn read(text: &str) -> Result<SessionDraft, ReadError> {
    let (mut draft, request, messages) = SessionDraft::of_document(text, "messages")?;
    draft.header.model = request.owned("model");
    let (system, _) = text_and_images(request.get("system"));
    draft.header.instructions = (!system.is_empty()).then(|| system.to_string());
    draft.each_element(&messages, |draft, number, message| {
        let time = message.time("timestamp");
        let role = match &*message.text("role").unwrap_or_default() {
            "assistant" => Role::Assistant,
            "user" => Role::User,
            "system" => Role::System,
            _ => return draft.skip(number, "its role is unknown"),
        };
        let blocks = content::blocks(message.get("content"));
        let (results, rest): (Vec<_>, Vec<_>) = blocks
            .into_iter()
            .partition(|(_, block)| role == Role::User && matches!(block, Block::ToolResult(_)));
        let only_results = !results.is_empty() && rest.is_empty();
        for result in results {
            draft.messages.push(RecordedMessage::new(Role::Tool, number, time, [result]));
        }
        if !only_results {
            let mut recorded = RecordedMessage::new(role, number, time, rest);
            recorded.message.usage = message.object("usage").as_ref().and_then(usage_of);
            if role == Role::Assistant {
                recorded.message.model = message.text("model").map(Arc::from);
            }
            draft.messages.push(recorded);
        }
    });
    Ok(draft)
}

/// Reads the `usage` of an Anthropic message.
pub(crate) fn usage_of(counts: &Object<'_>) -> Option<Usage> {
    let cached = counts.tokens("cache_read_input_tokens");
    let written_tokens = counts.tokens("cache_creation_input_tokens");
    let prompt = counts.tokens("input_tokens") + written_tokens + cached;
    // Cache writes by lifetime.
    let by_lifetime = counts.object("cache_creation").unwrap_or_default();
    let written_long_tokens = by_lifetime.tokens("ephemeral_1h_input_tokens");
    let usage = usage(prompt, cached, counts.tokens("output_tokens"))?;
    Some(Usage { written_tokens, written_long_tokens, ..usage })
}
