//! opencode: the document that `opencode export` writes, in which a call and its result stand in one part of a message.

use std::sync::Arc;

use plimsoll_core::{Block, Image, Role, Thinking, ToolCall, ToolResult, Usage};

use crate::draft::{RecordedMessage, RecordedRequest, SessionDraft, usage};
use crate::error::ReadError;
use crate::object::Object;

/// Reads an exported opencode session.
pub(crate) fn read(text: &str) -> Result<SessionDraft, ReadError> {
    let (mut draft, export, messages) = SessionDraft::of_document(text, "messages")?;
    let info = export.object("info").unwrap_or_default();
    draft.header.id = info.owned("id");
    draft.header.working_directory = info.owned("directory");
    draft.header.started = info.object("time").and_then(|time| time.time("created"));
    draft.each_element(&messages, |draft, number, message| {
        let info = message.object("info").unwrap_or_default();
        let parts = message.objects("parts");
        match &*info.text("role").unwrap_or_default() {
            "user" => user(draft, number, &info, &parts),
            "assistant" => assistant(draft, number, &info, &parts),
            _ => draft.skip(number, "its role is unknown"),
        }
    });
    Ok(draft)
}

fn user(draft: &mut SessionDraft, number: u32, info: &Object<'_>, parts: &[Object<'_>]) {
    let time = info.object("time").and_then(|time| time.time("created"));
    if parts.iter().any(|part| part.text("type").as_deref() == Some("compaction")) {
        draft.compacted(number, None);
    }
    let blocks = (0..).zip(parts).filter_map(|(index, part)| Some((Some(index), block(part)?)));
    let recorded = RecordedMessage::new(Role::User, number, time, blocks);
    if !recorded.message.blocks.is_empty() {
        draft.messages.push(recorded);
    }
}

fn assistant(draft: &mut SessionDraft, number: u32, info: &Object<'_>, parts: &[Object<'_>]) {
    let time = info.object("time").and_then(|time| time.time("created"));
    let mut recorded = RecordedMessage::new(Role::Assistant, number, time, []);
    let mut results = Vec::new();
    for (index, part) in (0..).zip(parts) {
        let block = match &*part.text("type").unwrap_or_default() {
            "reasoning" => {
                let (text, signature) = (part.shared("text"), "".into());
                Some(Block::Thinking(Thinking { text, signature }))
            }
            "tool" => {
                let id = part.shared("callID");
                let state = part.object("state").unwrap_or_default();
                results.extend(result(id.clone(), &state).map(|result| (index, result)));
                let (name, arguments) = (part.shared("tool"), state.arguments("input"));
                Some(Block::ToolCall(ToolCall { id, name, arguments }))
            }
            _ => block(part),
        };
        if let Some(block) = block {
            recorded.push(number, Some(index), block);
        }
    }
    let message = &mut recorded.message;
    message.model = info.text("modelID").map(Arc::from);
    draft.header.model = info.owned("modelID").or(draft.header.model.take());
    let tokens = info.object("tokens").unwrap_or_default();
    message.usage = usage_of(&tokens);
    if let Some(usage) = message.usage {
        draft.requests.push(RecordedRequest {
            before: draft.messages.len(),
            source: number,
            id: info.text("id").map(|id| format!("{id} {number}").into()),
            time,
            model: message.model.clone(),
            usage,
            thinking_tokens: Some(tokens.tokens("reasoning")),
            ..RecordedRequest::default()
        });
    }
    if !message.blocks.is_empty() {
        // The summary of a compaction begins the next request.
        message.role = if info.is_true("summary") { Role::User } else { Role::Assistant };
        draft.messages.push(recorded);
    }
    for (index, result) in results {
        draft.messages.push(RecordedMessage::result(number, time, Some(index), result));
    }
}

fn usage_of(tokens: &Object<'_>) -> Option<Usage> {
    let cache = tokens.object("cache").unwrap_or_default();
    let (cached, written_tokens) = (cache.tokens("read"), cache.tokens("write"));
    let (output, reasoning) = (tokens.tokens("output"), tokens.tokens("reasoning"));
    let prompt = tokens.tokens("input") + cached + written_tokens;
    // The output includes the reasoning, unless the total counts both.
    let apart = tokens.count("total").is_some_and(|total| total >= prompt + output + reasoning);
    let usage = usage(prompt, cached, if apart { output + reasoning } else { output })?;
    Some(Usage { written_tokens, ..usage })
}

fn block(part: &Object<'_>) -> Option<Block> {
    match &*part.text("type")? {
        // An ignored text is shown to the user only.
        "text" if !part.is_true("ignored") => Some(Block::Text(part.words("text")?.into())),
        "file" => {
            let media_type = part.text("mime").filter(|mime| mime.starts_with("image/"))?.into();
            Some(Block::Image(Image { media_type, data: part.text("url")?.into() }))
        }
        _ => None,
    }
}

fn result(call_id: Arc<str>, state: &Object<'_>) -> Option<ToolResult> {
    let is_error = state.text("status").as_deref() == Some("error");
    let text = state.text(if is_error { "error" } else { "output" })?.into();
    Some(ToolResult { call_id, text, images: Vec::new(), is_error })
}
