//! Anthropic Messages: blocks by their index, usage that grows.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::{Block, ToolCall, Usage};

use super::{AnswerDraft, AnswerHead, AnswerPiece, AnswerUsage, number, owned};
use crate::document::{Value, quoted, scanned};
use crate::patch::Patch;
use crate::request::answered_block;

#[derive(Debug, Default)]
pub(super) struct MessagesDraft {
    blocks: BTreeMap<u64, StreamedBlock>,
    calls: u32,
    usage: Usage,
    /// Tokens of input that were neither read from the cache nor written to it.
    plain: u64,
    dropped_thinking: u64,
    cleared_tool_uses: u64,
}

/// A block as it began, and what came since.
#[derive(Debug, Default)]
struct StreamedBlock {
    start: String,
    text: String,
    thinking: String,
    signature: String,
    input: String,
    citations: Vec<String>,
    /// Which call, counted from 0, it is.
    call: Option<u32>,
}

impl AnswerDraft for MessagesDraft {
    fn take(&mut self, data: Value<'_>, head: &mut AnswerHead) -> bool {
        let kind = data.kind();
        let index = number(Some(data), &["index"]).unwrap_or(0);
        match &*kind {
            "message_start" => {
                let Some(message) = data.get("message") else { return false };
                head.model = owned(message.get("model"));
                head.id = owned(message.get("id"));
                self.dropped(message);
                self.count(message.get("usage"), head);
            }
            "content_block_start" => {
                let block = self.begin(data.get("content_block"), head);
                self.blocks.insert(index, block);
            }
            "content_block_delta" => {
                if let (Some(delta), Some(block)) = (data.get("delta"), self.blocks.get_mut(&index))
                {
                    block.grow(delta, head);
                }
            }
            "content_block_stop" if head.takes_pieces() => {
                let call = self.blocks.get(&index).and_then(|block| block.call.zip(block.called()));
                if let Some((index, call)) = call {
                    head.piece(|| AnswerPiece::Call { index, call });
                }
            }
            "message_delta" => {
                let stop = data.get("delta").and_then(|delta| delta.get("stop_reason"));
                head.stop = owned(stop).or(head.stop.take());
                self.cleared(data);
                self.count(data.get("usage"), head);
            }
            "message_stop" => {
                head.ended = true;
                return true;
            }
            _ => {}
        }
        false
    }

    fn body(&mut self, body: Value<'_>, head: &mut AnswerHead) {
        head.model = owned(body.get("model"));
        head.id = owned(body.get("id"));
        head.stop = owned(body.get("stop_reason"));
        let Some(content) = body.list_at("content") else { return };
        head.ended = true;
        for (index, block) in (0..).zip(content.elements()) {
            self.blocks.insert(
                index,
                StreamedBlock { start: block.raw().to_owned(), ..StreamedBlock::default() },
            );
        }
        self.dropped(body);
        self.cleared(body);
        self.count(body.get("usage"), head);
    }

    fn items(&self) -> Vec<Arc<str>> {
        if self.blocks.is_empty() {
            return Vec::new();
        }
        let blocks: Vec<String> = self.blocks.values().map(StreamedBlock::whole).collect();
        vec![Arc::from(format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(",")))]
    }
}

impl MessagesDraft {
    fn begin(&mut self, block: Option<Value<'_>>, head: &mut AnswerHead) -> StreamedBlock {
        let Some(block) = block else {
            return StreamedBlock { start: "{}".to_owned(), ..StreamedBlock::default() };
        };
        let call = block.has("type", "tool_use").then_some(self.calls);
        if let Some(index) = call {
            self.calls += 1;
            let (id, name) = (block.shared_at("id"), block.shared_at("name"));
            head.piece(|| AnswerPiece::CallBegun { index, id, name });
        }
        head.text_at(block, "text", AnswerPiece::Text);
        head.text_at(block, "thinking", AnswerPiece::Reasoning);
        StreamedBlock { start: block.raw().to_owned(), call, ..StreamedBlock::default() }
    }

    /// Counts the thinking that the provider says it dropped.
    fn dropped(&mut self, message: Value<'_>) {
        let told = message.list_at("input_transformations");
        let dropped = |one: &Value<'_>| one.has("type", "thinking_dropped");
        self.dropped_thinking =
            told.map_or(0, |told| told.elements().filter(dropped).count() as u64);
    }

    /// Counts the tool uses that the provider says it cleared.
    fn cleared(&mut self, told: Value<'_>) {
        let edits = told.get("context_management").and_then(|told| told.get("applied_edits"));
        let Some(edits) = edits.filter(|edits| edits.is_list()) else { return };
        let counts = edits.elements().filter_map(|edit| number(Some(edit), &["cleared_tool_uses"]));
        self.cleared_tool_uses = counts.fold(0, u64::saturating_add);
    }

    /// Takes in counts, which are cumulative; a later event may leave some out.
    fn count(&mut self, usage: Option<Value<'_>>, head: &mut AnswerHead) {
        let Some(usage) = usage else { return };
        let of = |key| number(Some(usage), &[key]);
        let now = &mut self.usage;
        self.plain = of("input_tokens").unwrap_or(self.plain);
        now.cached_tokens = of("cache_read_input_tokens").unwrap_or(now.cached_tokens);
        now.written_tokens = of("cache_creation_input_tokens").unwrap_or(now.written_tokens);
        now.output_tokens = of("output_tokens").unwrap_or(now.output_tokens);
        let long = number(usage.get("cache_creation"), &["ephemeral_1h_input_tokens"]);
        now.written_long_tokens = long.unwrap_or(now.written_long_tokens);
        let cached = now.cached_tokens.saturating_add(now.written_tokens);
        now.prompt_tokens = self.plain.saturating_add(cached);
        head.usage = Some(AnswerUsage {
            tokens: *now,
            dropped_thinking: self.dropped_thinking,
            cleared_tool_uses: self.cleared_tool_uses,
        });
    }
}

impl StreamedBlock {
    fn grow(&mut self, delta: Value<'_>, head: &mut AnswerHead) {
        head.text_at(delta, "text", AnswerPiece::Text);
        head.text_at(delta, "thinking", AnswerPiece::Reasoning);
        let input = delta.get("partial_json").and_then(Value::text).filter(|text| !text.is_empty());
        if let Some((index, text)) = self.call.zip(input) {
            head.piece(|| AnswerPiece::CallArguments { index, text: text.into() });
        }
        let grow = |text: &mut String, key: &str| {
            if let Some(more) = delta.get(key).and_then(Value::text) {
                text.push_str(&more);
            }
        };
        grow(&mut self.text, "text");
        grow(&mut self.thinking, "thinking");
        grow(&mut self.signature, "signature");
        grow(&mut self.input, "partial_json");
        if let Some(citation) = delta.get("citation") {
            self.citations.push(citation.raw().to_owned());
        }
    }

    /// Returns the call with its arguments as the model wrote them.
    fn called(&self) -> Option<ToolCall> {
        let start = scanned(&self.start)?;
        let Some(Block::ToolCall(call)) = answered_block(start.root()) else { return None };
        let is_begun = self.input.trim().is_empty();
        let arguments = if is_begun { call.arguments } else { Arc::from(self.input.as_str()) };
        Some(ToolCall { arguments, ..call })
    }

    fn whole(&self) -> String {
        let Some(document) = scanned(&self.start) else { return self.start.clone() };
        let block = document.root();
        let mut patch = Patch::new(&document);
        for (key, more) in
            [("text", &self.text), ("thinking", &self.thinking), ("signature", &self.signature)]
        {
            if !more.is_empty() {
                let begun = block.get(key).and_then(Value::text).unwrap_or_default();
                patch.set(block, key, quoted(&(begun + more.as_str())));
            }
        }
        if !self.input.trim().is_empty() {
            // An answer that was cut may end inside of its arguments.
            let input = if scanned(&self.input).is_some() { &self.input } else { "{}" };
            patch.set(block, "input", input.to_owned());
        }
        if !self.citations.is_empty() {
            patch.set(block, "citations", format!("[{}]", self.citations.join(",")));
        }
        let whole = patch.apply().ok().and_then(|bytes| String::from_utf8(bytes).ok());
        whole.unwrap_or_else(|| self.start.clone())
    }
}
