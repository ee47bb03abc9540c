//! Gemini's `generateContent`: every event is a response, whose parts come one behind the other.

use std::sync::Arc;

use plimsoll_core::{Block, Usage};

use super::{Piece, Seen, number, owned};
use crate::document::{Value, quoted};
use crate::request::{Names, answered_part};

#[derive(Debug, Default)]
pub(super) struct Parts {
    content: Vec<Part>,
    names: Names,
    calls: u32,
}

#[derive(Debug)]
enum Part {
    /// A text that says nothing but itself; what comes behind it of its kind belongs to it.
    Text {
        text: String,
        is_thought: bool,
    },
    Other(String),
}

impl Parts {
    pub(super) fn take(&mut self, data: Value<'_>, seen: &mut Seen) -> bool {
        seen.model = owned(data.get("modelVersion")).or(seen.model.take());
        seen.id = owned(data.get("responseId")).or(seen.id.take());
        let usage = data.object_at("usageMetadata");
        if let Some(usage) = usage {
            let of = |key| number(Some(usage), &[key]).unwrap_or(0);
            let usage = Usage {
                prompt_tokens: of("promptTokenCount").saturating_add(of("toolUsePromptTokenCount")),
                cached_tokens: of("cachedContentTokenCount"),
                output_tokens: of("candidatesTokenCount").saturating_add(of("thoughtsTokenCount")),
                ..Usage::default()
            };
            seen.usage = Some(usage.into());
        }
        let feedback = data.get("promptFeedback");
        if let Some(reason) = feedback.and_then(|feedback| owned(feedback.get("blockReason"))) {
            seen.stop = Some(reason);
            seen.ended = true;
            return true;
        }
        let candidates = data.get("candidates");
        let Some(candidate) = candidates.and_then(|all| all.elements().next()) else {
            return false;
        };
        let content = candidate.get("content").and_then(|content| content.get("parts"));
        for part in content.into_iter().flat_map(Value::elements) {
            self.push(part, seen);
        }
        if let Some(reason) = owned(candidate.get("finishReason")) {
            seen.stop = Some(reason);
            seen.ended = true;
            return true;
        }
        false
    }

    fn push(&mut self, part: Value<'_>, seen: &mut Seen) {
        self.tell(part, seen);
        let plain = part.fields().all(|(key, _)| key.says("text") || key.says("thought"));
        let text = part.get("text").and_then(Value::text).filter(|_| plain);
        let Some(more) = text else {
            self.content.push(Part::Other(part.raw().to_owned()));
            return;
        };
        let thought = part.is_true_at("thought");
        match self.content.last_mut() {
            Some(Part::Text { text, is_thought }) if *is_thought == thought => text.push_str(&more),
            _ => self.content.push(Part::Text { text: more.into(), is_thought: thought }),
        }
    }

    /// Tells the pieces of a part; a call comes whole.
    fn tell(&mut self, part: Value<'_>, seen: &mut Seen) {
        if !seen.takes_pieces() {
            return;
        }
        match answered_part(part, &mut self.names) {
            Some(Block::Text(text)) => seen.text(&text, Piece::Text),
            Some(Block::Thinking(thinking)) => seen.text(&thinking.text, Piece::Reasoning),
            Some(Block::ToolCall(call)) => {
                let index = self.calls;
                self.calls += 1;
                let (id, name, text) =
                    (call.id.clone(), call.name.clone(), call.arguments.to_string());
                seen.piece(|| Piece::CallBegun { index, id, name });
                seen.piece(|| Piece::CallArguments { index, text });
                seen.piece(|| Piece::Call { index, call });
            }
            _ => {}
        }
    }

    pub(super) fn items(&self) -> Vec<Arc<str>> {
        if self.content.is_empty() {
            return Vec::new();
        }
        let parts: Vec<String> = self
            .content
            .iter()
            .map(|part| match part {
                Part::Text { text, is_thought: true } => {
                    format!(r#"{{"text":{},"thought":true}}"#, quoted(text))
                }
                Part::Text { text, .. } => format!(r#"{{"text":{}}}"#, quoted(text)),
                Part::Other(raw) => raw.clone(),
            })
            .collect();
        vec![Arc::from(format!(r#"{{"role":"model","parts":[{}]}}"#, parts.join(",")))]
    }
}
