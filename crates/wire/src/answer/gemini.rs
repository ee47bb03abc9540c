//! Gemini's `generateContent`: every event is a response, whose parts come one behind the other.

use std::sync::Arc;

use super::{AnswerUsage, Seen, number, owned};
use crate::document::{Value, quoted};

#[derive(Debug, Default)]
pub(super) struct Parts {
    parts: Vec<Part>,
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
        let usage = data.get("usageMetadata").filter(|usage| usage.is_object());
        if let Some(usage) = usage {
            let of = |key| number(Some(usage), &[key]).unwrap_or(0);
            seen.usage = Some(AnswerUsage {
                input: of("promptTokenCount").saturating_add(of("toolUsePromptTokenCount")),
                cached: of("cachedContentTokenCount"),
                written: 0,
                written_long: 0,
                dropped_thinking: 0,
                cleared_tool_uses: 0,
                output: of("candidatesTokenCount").saturating_add(of("thoughtsTokenCount")),
            });
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
            self.push(part);
        }
        if let Some(reason) = owned(candidate.get("finishReason")) {
            seen.stop = Some(reason);
            seen.ended = true;
            return true;
        }
        false
    }

    fn push(&mut self, part: Value<'_>) {
        let plain = part.fields().all(|(key, _)| key.says("text") || key.says("thought"));
        let text = part.get("text").and_then(Value::text).filter(|_| plain);
        let Some(more) = text else {
            self.parts.push(Part::Other(part.raw().to_owned()));
            return;
        };
        let thought = part.get("thought").is_some_and(Value::is_true);
        match self.parts.last_mut() {
            Some(Part::Text { text, is_thought }) if *is_thought == thought => text.push_str(&more),
            _ => self.parts.push(Part::Text { text: more.into(), is_thought: thought }),
        }
    }

    pub(super) fn items(&self) -> Vec<Arc<str>> {
        if self.parts.is_empty() {
            return Vec::new();
        }
        let parts: Vec<String> = self
            .parts
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
