//! Gemini's `generateContent`: every event is a response, whose parts come one behind the other.

use std::sync::Arc;

use plimsoll_core::{Block, Usage};

use super::{AnswerDraft, AnswerHead, AnswerPiece, number, owned};
use crate::document::{Value, quoted};
use crate::request::{Names, answered_part};

#[derive(Debug, Default)]
pub(super) struct GeminiDraft {
    content: Vec<ContentPart>,
    names: Names,
    calls: u32,
}

#[derive(Debug)]
enum ContentPart {
    /// A text without other fields; a following text of its kind belongs to it.
    Text {
        text: String,
        is_thought: bool,
    },
    Other(String),
}

impl AnswerDraft for GeminiDraft {
    fn take(&mut self, data: Value<'_>, head: &mut AnswerHead) -> bool {
        head.model = owned(data.get("modelVersion")).or(head.model.take());
        head.id = owned(data.get("responseId")).or(head.id.take());
        if let Some(usage) = data.object_at("usageMetadata") {
            let of = |key| number(Some(usage), &[key]).unwrap_or(0);
            let usage = Usage {
                prompt_tokens: of("promptTokenCount").saturating_add(of("toolUsePromptTokenCount")),
                cached_tokens: of("cachedContentTokenCount"),
                output_tokens: of("candidatesTokenCount").saturating_add(of("thoughtsTokenCount")),
                ..Usage::default()
            };
            head.usage = Some(usage.into());
        }
        let feedback = data.get("promptFeedback");
        if let Some(reason) = feedback.and_then(|feedback| owned(feedback.get("blockReason"))) {
            head.stop = Some(reason);
            head.ended = true;
            return true;
        }
        let Some(candidate) = data.first_at("candidates") else { return false };
        let content = candidate.get("content");
        for part in content.into_iter().flat_map(|content| content.elements_at("parts")) {
            self.push(part, head);
        }
        if let Some(reason) = owned(candidate.get("finishReason")) {
            head.stop = Some(reason);
            head.ended = true;
            return true;
        }
        false
    }

    fn body(&mut self, body: Value<'_>, head: &mut AnswerHead) {
        self.take(body, head);
    }

    fn items(&self) -> Vec<Arc<str>> {
        if self.content.is_empty() {
            return Vec::new();
        }
        let parts: Vec<String> = self
            .content
            .iter()
            .map(|part| match part {
                ContentPart::Text { text, is_thought: true } => {
                    format!(r#"{{"text":{},"thought":true}}"#, quoted(text))
                }
                ContentPart::Text { text, .. } => format!(r#"{{"text":{}}}"#, quoted(text)),
                ContentPart::Other(raw) => raw.clone(),
            })
            .collect();
        vec![Arc::from(format!(r#"{{"role":"model","parts":[{}]}}"#, parts.join(",")))]
    }
}

impl GeminiDraft {
    fn push(&mut self, part: Value<'_>, head: &mut AnswerHead) {
        self.tell(part, head);
        let plain = part.fields().all(|(key, _)| key.says("text") || key.says("thought"));
        let text = part.get("text").and_then(Value::text).filter(|_| plain);
        let Some(more) = text else {
            self.content.push(ContentPart::Other(part.raw().to_owned()));
            return;
        };
        let thought = part.is_true_at("thought");
        match self.content.last_mut() {
            Some(ContentPart::Text { text, is_thought }) if *is_thought == thought => {
                text.push_str(&more)
            }
            _ => self.content.push(ContentPart::Text { text: more.into(), is_thought: thought }),
        }
    }

    /// Adds the pieces of a part; a call comes whole.
    fn tell(&mut self, part: Value<'_>, head: &mut AnswerHead) {
        if !head.takes_pieces() {
            return;
        }
        match answered_part(part, &mut self.names) {
            Some(Block::Text(text)) => head.text(&text, AnswerPiece::Text),
            Some(Block::Thinking(thinking)) => head.text(&thinking.text, AnswerPiece::Reasoning),
            Some(Block::ToolCall(call)) => {
                let index = self.calls;
                self.calls += 1;
                let (id, name, text) =
                    (call.id.clone(), call.name.clone(), call.arguments.to_string());
                head.piece(|| AnswerPiece::CallBegun { index, id, name });
                head.piece(|| AnswerPiece::CallArguments { index, text });
                head.piece(|| AnswerPiece::Call { index, call });
            }
            _ => {}
        }
    }
}
