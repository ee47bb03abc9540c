//! Codex: JSON lines of response items, wrapped in `payload` since version 0.30, bare before.
//!
//! `event_msg` lines repeat what response items say and are passed over, except for the token counts.

use std::sync::Arc;

use plimsoll_core::json_text::compact;
use plimsoll_core::{Block, MillisSinceEpoch, Opaque, Role, ToolCall, ToolResult, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::arguments;
use crate::blocks::Content;
use crate::draft::{Draft, Recorded, usage};
use crate::json::{self, Count, Stamp, Text};
use crate::requests::Asked;
use crate::session::{Compaction, ReadOptions};

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(default)]
    timestamp: Stamp,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    id: Option<Text<'a>>,
    instructions: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    role: Option<Text<'a>>,
    #[serde(default)]
    content: Content<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    name: Option<Text<'a>>,
    call_id: Option<Text<'a>>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    cwd: Option<Text<'a>>,
    model: Option<Text<'a>>,
    #[serde(default)]
    timestamp: Stamp,
    instructions: Option<Text<'a>>,
    base_instructions: Option<Instructions<'a>>,
}

#[derive(Deserialize)]
struct Instructions<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    model_context_window: Option<Count>,
    info: Option<TokenInfo>,
}

#[derive(Deserialize)]
struct TokenInfo {
    total_token_usage: Option<TokenUsage>,
    last_token_usage: Option<TokenUsage>,
    model_context_window: Option<Count>,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names are the wire's")]
struct TokenUsage {
    input_tokens: Count,
    cached_input_tokens: Count,
    cache_write_input_tokens: Count,
    output_tokens: Count,
    reasoning_output_tokens: Count,
}

impl TokenUsage {
    fn usage(&self) -> Option<Usage> {
        let usage = usage(self.input_tokens.0, self.cached_input_tokens.0, self.output_tokens.0)?;
        Some(Usage { written_tokens: self.cache_write_input_tokens.0, ..usage })
    }
}

/// The account of one response.
#[derive(Deserialize)]
struct UsageRecord<'a> {
    #[serde(borrow)]
    response_id: Option<Text<'a>>,
    #[serde(default)]
    usage: TokenUsage,
}

#[derive(Deserialize)]
struct Compacted<'a> {
    #[serde(borrow)]
    message: Option<Text<'a>>,
    replacement_history: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
    success: Option<bool>,
}

/// Requests as two kinds of lines tell them.
#[derive(Default)]
struct Account {
    /// By `token_count` events, which may repeat; the total of the last one tells.
    counted: Vec<Asked>,
    last_total: Option<TokenUsage>,
    /// By `token_usage_record` lines, one a response; where there are some, they are exact.
    recorded: Vec<Asked>,
    model: Option<Arc<str>>,
    /// Messages before the end of the last request.
    told: usize,
}

impl Account {
    fn asked(
        &mut self,
        draft: &Draft,
        number: u32,
        time: Option<MillisSinceEpoch>,
        counts: &TokenUsage,
    ) -> Option<Asked> {
        let usage = counts.usage()?;
        // The answer is what the model wrote since the last one.
        let new = draft.recorded.iter().enumerate().skip(self.told);
        let answer = new.clone().find(|(_, recorded)| recorded.message.role == Role::Assistant);
        Some(Asked {
            before: answer.map_or(draft.recorded.len(), |(index, _)| index),
            source: number,
            time,
            model: self.model.clone(),
            usage,
            thinking_tokens: Some(counts.reasoning_output_tokens.0),
            ..Asked::default()
        })
    }
}

/// Reads a Codex session of either generation.
pub(crate) fn read(bytes: &[u8], options: ReadOptions) -> Draft {
    let mut draft = Draft::of_lines();
    // Reasoning and server-side calls stand before the assistant message that they belong to.
    let mut pending: Vec<(u32, Block)> = Vec::new();
    let mut account = Account::default();
    json::each_line(bytes, &mut draft, |draft, number, text| {
        let line: Line<'_> = serde_json::from_str(text)?;
        let time = line.timestamp.0;
        let Some(payload) = line.payload else {
            if line.kind.is_some() {
                item(draft, &mut pending, number, time, text)?;
            } else if let Some(instructions) = line.instructions {
                let header = &mut draft.header;
                header.id = line.id.map(|id| id.0.into_owned());
                header.instructions = Some(instructions.0.into_owned());
                header.started = time;
            }
            return Ok(());
        };
        match line.kind.as_deref().unwrap_or_default() {
            "response_item" => item(draft, &mut pending, number, time, payload.get())?,
            "session_meta" | "turn_context" => {
                meta(draft, serde_json::from_str(payload.get())?);
                account.model = draft.header.model.as_deref().map(Arc::from);
            }
            "event_msg" => {
                let read: Event<'_> = serde_json::from_str(payload.get())?;
                event(draft, &mut account, number, time, read);
            }
            "token_usage_record" => {
                let record: UsageRecord<'_> = serde_json::from_str(payload.get())?;
                usage_record(draft, &mut account, number, time, &record);
            }
            "compacted" => {
                let compacted: Compacted<'_> = serde_json::from_str(payload.get())?;
                if options.compaction == Compaction::Honour {
                    honour(draft, &mut pending, number, time, compacted);
                } else {
                    draft.compacted(number, None);
                }
            }
            _ => {}
        }
        Ok(())
    });
    draft.requests = if account.recorded.is_empty() { account.counted } else { account.recorded };
    draft
}

fn meta(draft: &mut Draft, meta: Meta<'_>) {
    let owned = |text: Option<Text<'_>>| text.map(|text| text.0.into_owned());
    let instructions = meta
        .base_instructions
        .map(|base| base.text)
        .or(meta.instructions)
        .filter(|text| !text.is_empty());
    let header = &mut draft.header;
    header.id = header.id.take().or(owned(meta.id));
    header.working_directory = header.working_directory.take().or(owned(meta.cwd));
    header.model = owned(meta.model).or(header.model.take());
    header.instructions = header.instructions.take().or(owned(instructions));
    header.started = header.started.or(meta.timestamp.0);
}

fn event(
    draft: &mut Draft,
    account: &mut Account,
    number: u32,
    time: Option<MillisSinceEpoch>,
    event: Event<'_>,
) {
    let window = event
        .model_context_window
        .or(event.info.as_ref().and_then(|info| info.model_context_window));
    if let Some(window) = window {
        draft.header.context_window = Some(window.0);
    }
    let info = event.info.filter(|_| event.kind.as_str() == "token_count");
    let Some((counts, total)) =
        info.and_then(|info| Some((info.last_token_usage?, info.total_token_usage)))
    else {
        return;
    };
    // The same event comes again when a session goes on or its limits change.
    let is_repeated = total.is_some() && total == account.last_total;
    account.last_total = total.or(account.last_total);
    if !is_repeated && let Some(asked) = account.asked(draft, number, time, &counts) {
        account.counted.push(asked);
        if account.recorded.is_empty() {
            account.told = draft.recorded.len();
        }
    }
    answered(draft, account, &counts);
}

fn usage_record(
    draft: &mut Draft,
    account: &mut Account,
    number: u32,
    time: Option<MillisSinceEpoch>,
    record: &UsageRecord<'_>,
) {
    let id = record.response_id.as_ref().filter(|id| !id.is_empty()).map(Text::shared);
    if id.is_some() && account.recorded.iter().any(|asked| asked.id == id) {
        return;
    }
    if let Some(asked) = account.asked(draft, number, time, &record.usage) {
        account.recorded.push(Asked { id, ..asked });
        account.told = draft.recorded.len();
    }
    answered(draft, account, &record.usage);
}

/// Puts a usage to the newest answer.
fn answered(draft: &mut Draft, account: &Account, counts: &TokenUsage) {
    if let Some(usage) = counts.usage()
        && let Some(recorded) = draft.last_assistant()
    {
        recorded.message.usage = Some(usage);
        recorded.message.model.clone_from(&account.model);
    }
}

fn honour(
    draft: &mut Draft,
    pending: &mut Vec<(u32, Block)>,
    number: u32,
    time: Option<MillisSinceEpoch>,
    compacted: Compacted<'_>,
) {
    draft.forget();
    pending.clear();
    draft.compacted(number, None);
    for replacement in compacted.replacement_history.iter().flatten() {
        if item(draft, pending, number, time, replacement.get()).is_err() {
            draft.skip(number, "an item of the replacement history is not of the expected shape");
        }
    }
    if compacted.replacement_history.is_none()
        && let Some(message) = compacted.message.filter(|message| !message.is_empty())
    {
        draft.recorded.push(Recorded::text(Role::User, number, time, message.shared()));
    }
    draft.begun();
}

fn item(
    draft: &mut Draft,
    pending: &mut Vec<(u32, Block)>,
    number: u32,
    time: Option<MillisSinceEpoch>,
    raw: &str,
) -> Result<(), serde_json::Error> {
    let item: Item<'_> = serde_json::from_str(raw)?;
    let kind = item.kind.as_str();
    match kind {
        "message" => {
            let role = match item.role.as_deref().unwrap_or_default() {
                "assistant" => Role::Assistant,
                "user" => Role::User,
                "developer" | "system" => Role::System,
                "tool" => Role::Tool,
                _ => {
                    draft.skip(number, "its role is unknown");
                    return Ok(());
                }
            };
            let mut recorded = Recorded::new(role, number, time, []);
            if role == Role::Assistant {
                take_pending(&mut recorded, pending);
            }
            for (index, block) in item.content.blocks() {
                recorded.push(number, index, block);
            }
            draft.recorded.push(recorded);
        }
        "function_call" | "custom_tool_call" | "local_shell_call" => {
            let name = item.name.as_ref().map_or_else(|| Arc::from(kind), Text::shared);
            let arguments = item.arguments.or(item.input).or(item.action);
            let call = ToolCall {
                id: item.call_id.unwrap_or_default().shared(),
                name,
                arguments: arguments::from_raw(arguments),
            };
            if draft.open_assistant().is_none() {
                draft.recorded.push(Recorded::new(Role::Assistant, number, time, []));
            }
            if let Some(recorded) = draft.open_assistant() {
                take_pending(recorded, pending);
                recorded.push(number, None, Block::ToolCall(call));
            }
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let result = output(item.call_id.unwrap_or_default().shared(), item.output);
            let block = Block::ToolResult(result);
            draft.recorded.push(Recorded::new(Role::Tool, number, time, [(None, block)]));
        }
        "reasoning" | "web_search_call" | "image_generation_call" | "tool_search_call" => {
            let opaque = Opaque { kind: Arc::from(kind), raw: Arc::from(raw) };
            pending.push((number, Block::Opaque(opaque)));
        }
        // Snapshots of the working tree and the like are never sent to the model.
        _ => {}
    }
    Ok(())
}

fn take_pending(recorded: &mut Recorded, pending: &mut Vec<(u32, Block)>) {
    for (number, block) in pending.drain(..) {
        recorded.push(number, None, block);
    }
}

fn output(call_id: Arc<str>, raw: Option<&RawValue>) -> ToolResult {
    let raw = raw.map_or("\"\"", RawValue::get);
    let mut is_error = false;
    let content = if raw.starts_with('{') {
        let output = serde_json::from_str::<Output<'_>>(raw).ok();
        is_error = output.as_ref().is_some_and(|output| output.success == Some(false));
        output.map(|output| output.content)
    } else {
        serde_json::from_str::<Content<'_>>(raw).ok()
    };
    let (text, images) = match content {
        Some(content @ (Content::Text(_) | Content::Blocks(_))) => content.text_and_images(),
        Some(Content::Nothing) | None => (compact(raw), Vec::new()),
    };
    ToolResult { call_id, text, images, is_error }
}
