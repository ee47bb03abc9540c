//! Codex: JSON lines of response items, wrapped in `payload` since version 0.30, bare before.
//!
//! `event_msg` lines repeat response items; only their token counts are read.

use std::sync::Arc;

use plimsoll_core::json_text::compact;
use plimsoll_core::{Block, MillisSinceEpoch, Role, ToolCall, ToolResult, Usage};

use crate::content::{self, either, is_content, opaque, text_and_images};
use crate::draft::{RecordedMessage, RecordedRequest, SessionDraft, usage};
use crate::object::Object;
use crate::session::{Compaction, ReadOptions};

/// The requests of a session, which two kinds of lines report.
#[derive(Default)]
struct UsageAccount {
    /// From `token_count` events. A repeated event has the total of the one before it.
    counted: Vec<RecordedRequest>,
    last_total: Option<TokenCounts>,
    /// From `token_usage_record` lines, one for each response. They are exact, so they replace `counted`.
    recorded: Vec<RecordedRequest>,
    model: Option<Arc<str>>,
    /// The number of messages up to the last reported request.
    messages: usize,
}

#[derive(Clone, Copy, PartialEq)]
struct TokenCounts {
    usage: Option<Usage>,
    reasoning: u64,
}

impl TokenCounts {
    fn of(counts: &Object<'_>) -> Self {
        let cached = counts.tokens("cached_input_tokens");
        let usage = usage(counts.tokens("input_tokens"), cached, counts.tokens("output_tokens"));
        let written_tokens = counts.tokens("cache_write_input_tokens");
        Self {
            usage: usage.map(|usage| Usage { written_tokens, ..usage }),
            reasoning: counts.tokens("reasoning_output_tokens"),
        }
    }
}

impl UsageAccount {
    fn request(
        &self,
        draft: &SessionDraft,
        number: u32,
        time: Option<MillisSinceEpoch>,
        counts: &TokenCounts,
    ) -> Option<RecordedRequest> {
        // The response is the first assistant message since the last request.
        let mut new = draft.messages.iter().enumerate().skip(self.messages);
        let answer = new.find(|(_, recorded)| recorded.message.role == Role::Assistant);
        Some(RecordedRequest {
            before: answer.map_or(draft.messages.len(), |(index, _)| index),
            source: number,
            time,
            model: self.model.clone(),
            usage: counts.usage?,
            thinking_tokens: Some(counts.reasoning),
            ..RecordedRequest::default()
        })
    }
}

/// Reads a Codex session of either generation.
pub(crate) fn read(bytes: &[u8], options: ReadOptions) -> SessionDraft {
    let mut draft = SessionDraft::of_lines();
    // Reasoning and server-side calls stand before the assistant message that they belong to.
    let mut pending: Vec<(u32, Block)> = Vec::new();
    let mut account = UsageAccount::default();
    draft.each_line(bytes, |draft, number, line| {
        let time = line.time("timestamp");
        if !line.has("payload") {
            if line.has("type") {
                item(draft, &mut pending, number, time, line);
            } else if let Some(instructions) = line.owned("instructions") {
                draft.header.id = line.owned("id");
                draft.header.instructions = Some(instructions);
                draft.header.started = time;
            }
            return;
        }
        match (&*line.text("type").unwrap_or_default(), line.object("payload")) {
            ("response_item", Some(payload)) => item(draft, &mut pending, number, time, &payload),
            ("session_meta" | "turn_context", Some(payload)) => {
                meta(draft, &payload);
                account.model = draft.header.model.as_deref().map(Arc::from);
            }
            ("event_msg", Some(payload)) => event(draft, &mut account, number, time, &payload),
            ("token_usage_record", Some(payload)) => {
                usage_record(draft, &mut account, number, time, &payload);
            }
            ("compacted", Some(payload)) if options.compaction == Compaction::Honour => {
                honour(draft, &mut pending, number, time, &payload);
            }
            ("compacted", Some(_)) => draft.compacted(number, None),
            (
                "response_item" | "session_meta" | "turn_context" | "event_msg"
                | "token_usage_record" | "compacted",
                None,
            ) => draft.skip(number, "its payload is not an object"),
            _ => {}
        }
    });
    draft.requests = if account.recorded.is_empty() { account.counted } else { account.recorded };
    draft
}

fn meta(draft: &mut SessionDraft, meta: &Object<'_>) {
    let base = meta.object("base_instructions").map(|base| base.shared("text").to_string());
    let instructions = base.or_else(|| meta.owned("instructions"));
    let instructions = instructions.filter(|text| !text.is_empty());
    let header = &mut draft.header;
    header.id = header.id.take().or_else(|| meta.owned("id"));
    header.working_directory = header.working_directory.take().or_else(|| meta.owned("cwd"));
    header.model = meta.owned("model").or(header.model.take());
    header.instructions = header.instructions.take().or(instructions);
    header.started = header.started.or(meta.time("timestamp"));
}

fn event(
    draft: &mut SessionDraft,
    account: &mut UsageAccount,
    number: u32,
    time: Option<MillisSinceEpoch>,
    event: &Object<'_>,
) {
    let info = event.object("info").unwrap_or_default();
    let window = event.count("model_context_window").or(info.count("model_context_window"));
    draft.header.context_window = window.or(draft.header.context_window);
    if event.text("type").as_deref() != Some("token_count") {
        return;
    }
    let counts = |key| info.object(key).map(|counts| TokenCounts::of(&counts));
    let Some(last) = counts("last_token_usage") else { return };
    let total = counts("total_token_usage");
    // Codex repeats an event when a session is resumed or its rate limits change.
    let is_repeated = total.is_some() && total == account.last_total;
    account.last_total = total.or(account.last_total);
    if !is_repeated && let Some(request) = account.request(draft, number, time, &last) {
        account.counted.push(request);
        if account.recorded.is_empty() {
            account.messages = draft.messages.len();
        }
    }
    answered(draft, account, &last);
}

fn usage_record(
    draft: &mut SessionDraft,
    account: &mut UsageAccount,
    number: u32,
    time: Option<MillisSinceEpoch>,
    record: &Object<'_>,
) {
    let id: Option<Arc<str>> = record.words("response_id").map(Arc::from);
    if id.is_some() && account.recorded.iter().any(|request| request.id == id) {
        return;
    }
    let counts = TokenCounts::of(&record.object("usage").unwrap_or_default());
    if let Some(request) = account.request(draft, number, time, &counts) {
        account.recorded.push(RecordedRequest { id, ..request });
        account.messages = draft.messages.len();
    }
    answered(draft, account, &counts);
}

/// Sets the usage and the model of the newest response.
fn answered(draft: &mut SessionDraft, account: &UsageAccount, counts: &TokenCounts) {
    if counts.usage.is_some()
        && let Some(recorded) = draft.last_assistant()
    {
        recorded.message.usage = counts.usage;
        recorded.message.model.clone_from(&account.model);
    }
}

fn honour(
    draft: &mut SessionDraft,
    pending: &mut Vec<(u32, Block)>,
    number: u32,
    time: Option<MillisSinceEpoch>,
    compacted: &Object<'_>,
) {
    if compacted.value("replacement_history").is_some_and(|raw| !raw.starts_with('[')) {
        return draft.skip(number, "its replacement history is not a list");
    }
    draft.forget();
    pending.clear();
    draft.compacted(number, None);
    for replacement in compacted.list("replacement_history") {
        match Object::parse(replacement.get()) {
            Some(replacement) => item(draft, pending, number, time, &replacement),
            None => draft.skip(number, "an item of the replacement history is not an object"),
        }
    }
    if !compacted.has("replacement_history")
        && let Some(message) = compacted.words("message")
    {
        draft.messages.push(RecordedMessage::text(Role::User, number, time, message));
    }
    draft.begun();
}

fn item(
    draft: &mut SessionDraft,
    pending: &mut Vec<(u32, Block)>,
    number: u32,
    time: Option<MillisSinceEpoch>,
    item: &Object<'_>,
) {
    let kind = item.text("type").unwrap_or_default();
    match &*kind {
        "message" => {
            let role = match &*item.text("role").unwrap_or_default() {
                "assistant" => Role::Assistant,
                "user" => Role::User,
                "developer" | "system" => Role::System,
                "tool" => Role::Tool,
                _ => return draft.skip(number, "its role is unknown"),
            };
            let mut recorded = RecordedMessage::new(role, number, time, []);
            if role == Role::Assistant {
                take_pending(&mut recorded, pending);
            }
            for (index, block) in content::blocks(item.get("content")) {
                recorded.push(number, index, block);
            }
            draft.messages.push(recorded);
        }
        "function_call" | "custom_tool_call" | "local_shell_call" => {
            let call = ToolCall {
                id: item.shared("call_id"),
                name: item.text("name").unwrap_or(kind).into(),
                arguments: item.arguments(either(
                    item,
                    "arguments",
                    either(item, "input", "action"),
                )),
            };
            if draft.open_assistant().is_none() {
                draft.messages.push(RecordedMessage::new(Role::Assistant, number, time, []));
            }
            if let Some(recorded) = draft.open_assistant() {
                take_pending(recorded, pending);
                recorded.push(number, None, Block::ToolCall(call));
            }
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let result = output(item.shared("call_id"), item.value("output"));
            draft.messages.push(RecordedMessage::result(number, time, None, result));
        }
        "reasoning" | "web_search_call" | "image_generation_call" | "tool_search_call" => {
            pending.push((number, opaque(&kind, item.raw())));
        }
        // Other items, such as snapshots of the working tree, are never sent to the model.
        _ => {}
    }
}

fn take_pending(recorded: &mut RecordedMessage, pending: &mut Vec<(u32, Block)>) {
    for (number, block) in pending.drain(..) {
        recorded.push(number, None, block);
    }
}

fn output(call_id: Arc<str>, raw: Option<&str>) -> ToolResult {
    let raw = raw.unwrap_or("\"\"");
    let output = Object::parse(raw).unwrap_or_default();
    let is_error = output.get("success") == Some("false");
    let content = if raw.starts_with('{') { output.get("content") } else { Some(raw) };
    let (text, images) = match content {
        Some(_) if is_content(content) => text_and_images(content),
        _ => (compact(raw), Vec::new()),
    };
    ToolResult { call_id, text, images, is_error }
}
