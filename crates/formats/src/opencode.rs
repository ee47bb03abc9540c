//! opencode: what `opencode export` writes, a document in which a call and its result stand in one part of a message.

use std::sync::Arc;

use plimsoll_core::{Block, Image, Role, Thinking, ToolCall, ToolResult, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::arguments;
use crate::draft::{Draft, Recorded, usage};
use crate::error::ReadError;
use crate::json::{self, Count, Flag, Lenient, Stamp, Text};
use crate::requests::Asked;

#[derive(Deserialize)]
struct Export<'a> {
    #[serde(borrow)]
    info: Lenient<SessionInfo<'a>>,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct SessionInfo<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    directory: Option<Text<'a>>,
    #[serde(default)]
    time: Lenient<Times>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Times {
    created: Stamp,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow)]
    info: Info<'a>,
    #[serde(borrow, default)]
    parts: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Info<'a> {
    #[serde(borrow, default)]
    role: Text<'a>,
    id: Option<Text<'a>>,
    #[serde(default)]
    time: Lenient<Times>,
    #[serde(rename = "modelID")]
    model: Option<Text<'a>>,
    #[serde(default)]
    tokens: Lenient<Tokens>,
    /// Whether it is the summary that a compaction wrote.
    #[serde(default)]
    summary: Flag,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    total: Option<Count>,
    input: Count,
    output: Count,
    reasoning: Count,
    cache: Lenient<CacheTokens>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct CacheTokens {
    read: Count,
    write: Count,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    text: Text<'a>,
    /// Shown to the user only.
    #[serde(default)]
    ignored: Flag,
    mime: Option<Text<'a>>,
    url: Option<Text<'a>>,
    #[serde(rename = "callID")]
    call: Option<Text<'a>>,
    #[serde(default)]
    tool: Text<'a>,
    #[serde(borrow)]
    state: Option<State<'a>>,
}

#[derive(Deserialize)]
struct State<'a> {
    #[serde(borrow, default)]
    status: Text<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    output: Option<Text<'a>>,
    error: Option<Text<'a>>,
}

impl Tokens {
    fn usage(&self) -> Option<Usage> {
        let cache = self.cache.0.unwrap_or_default();
        let (input, output) = (self.input.0, self.output.0);
        let prompt = input + cache.read.0 + cache.write.0;
        // The output holds the reasoning, unless the total says that it comes on top.
        let apart = self.total.is_some_and(|total| total.0 >= prompt + output + self.reasoning.0);
        let output = if apart { output + self.reasoning.0 } else { output };
        let usage = usage(prompt, cache.read.0, output)?;
        Some(Usage { written_tokens: cache.write.0, ..usage })
    }
}

/// Reads an exported opencode session.
pub(crate) fn read(text: &str) -> Result<Draft, ReadError> {
    let export: Export<'_> = serde_json::from_str(text).map_err(ReadError::json)?;
    let mut draft = Draft::of_elements();
    if let Some(info) = export.info.0 {
        draft.header.id = info.id.map(|id| id.0.into_owned());
        draft.header.working_directory = info.directory.map(|path| path.0.into_owned());
        draft.header.started = info.time.0.and_then(|time| time.created.0);
    }
    json::each_element(&export.messages, &mut draft, |draft, number, text| {
        let message: WireMessage<'_> = serde_json::from_str(text)?;
        let parts: Vec<Part<'_>> =
            message.parts.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
        match message.info.role.as_str() {
            "user" => user(draft, number, &message.info, &parts),
            "assistant" => assistant(draft, number, &message.info, &parts),
            _ => draft.skip(number, "its role is unknown"),
        }
        Ok(())
    });
    Ok(draft)
}

fn user(draft: &mut Draft, number: u32, info: &Info<'_>, parts: &[Part<'_>]) {
    let time = info.time.0.as_ref().and_then(|time| time.created.0);
    if parts.iter().any(|part| part.kind.as_str() == "compaction") {
        draft.compacted(number, None);
    }
    let blocks = (0..).zip(parts).filter_map(|(index, part)| Some((Some(index), said(part)?)));
    let recorded = Recorded::new(Role::User, number, time, blocks);
    if !recorded.message.blocks.is_empty() {
        draft.recorded.push(recorded);
    }
}

fn assistant(draft: &mut Draft, number: u32, info: &Info<'_>, parts: &[Part<'_>]) {
    let time = info.time.0.as_ref().and_then(|time| time.created.0);
    let mut recorded = Recorded::new(Role::Assistant, number, time, []);
    let mut results = Vec::new();
    for (index, part) in (0..).zip(parts) {
        let block = match part.kind.as_str() {
            "reasoning" => {
                let (text, signature) = (part.text.shared(), Arc::from(""));
                Some(Block::Thinking(Thinking { text, signature }))
            }
            "tool" => {
                let id = part.call.clone().unwrap_or_default().shared();
                let state = part.state.as_ref();
                results.extend(state.and_then(|state| result(id.clone(), index, state)));
                let arguments = arguments::from_raw(state.and_then(|state| state.input));
                Some(Block::ToolCall(ToolCall { id, name: part.tool.shared(), arguments }))
            }
            _ => said(part),
        };
        if let Some(block) = block {
            recorded.push(number, Some(index), block);
        }
    }
    let message = &mut recorded.message;
    message.model = info.model.as_ref().map(Text::shared);
    if let Some(model) = &info.model {
        draft.header.model = Some(model.to_string());
    }
    if let Some(tokens) = &info.tokens.0 {
        message.usage = tokens.usage();
        if let Some(usage) = message.usage {
            draft.requests.push(Asked {
                before: draft.recorded.len(),
                source: number,
                id: info.id.as_ref().map(|id| Arc::from(format!("{} {number}", id.as_str()))),
                time,
                model: message.model.clone(),
                usage,
                thinking_tokens: Some(tokens.reasoning.0),
                ..Asked::default()
            });
        }
    }
    let is_empty = message.blocks.is_empty();
    if info.summary.0 && !is_empty {
        // The summary is what the next request begins with.
        message.role = Role::User;
    }
    if !is_empty {
        draft.recorded.push(recorded);
    }
    for (index, result) in results {
        let block = (Some(index), Block::ToolResult(result));
        draft.recorded.push(Recorded::new(Role::Tool, number, time, [block]));
    }
}

fn said(part: &Part<'_>) -> Option<Block> {
    match part.kind.as_str() {
        "text" if !part.ignored.0 && !part.text.is_empty() => Some(Block::Text(part.text.shared())),
        "file" => {
            let media_type = part.mime.as_ref().filter(|mime| mime.starts_with("image/"))?.shared();
            Some(Block::Image(Image { media_type, data: part.url.as_ref()?.shared() }))
        }
        _ => None,
    }
}

fn result(call_id: Arc<str>, index: u32, state: &State<'_>) -> Option<(u32, ToolResult)> {
    let is_error = state.status.as_str() == "error";
    let text = if is_error { state.error.as_ref() } else { state.output.as_ref() };
    let text = text?.shared();
    Some((index, ToolResult { call_id, text, images: Vec::new(), is_error }))
}
