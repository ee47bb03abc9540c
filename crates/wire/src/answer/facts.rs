//! The facts of an answer that decide whether a cache may keep it.

use plimsoll_core::Block;
use plimsoll_core::answer::AnswerFacts;

use super::{Ending, ProviderAnswer};
use crate::Wire;
use crate::document::{Value, scanned};

impl ProviderAnswer {
    /// Returns the facts that decide whether a cache may keep it: an answer is whole if it ended by itself and is text.
    pub fn facts(&self, wire: Wire) -> AnswerFacts {
        let stop = self.stop.as_deref().unwrap_or_default();
        let ends = match wire {
            Wire::AnthropicMessages => "end_turn",
            Wire::ChatCompletions => "stop",
            Wire::Responses => "completed",
            Wire::Gemini => "STOP",
        };
        let blocks = || self.message.iter().flat_map(|message| &message.blocks);
        AnswerFacts {
            error: self.ending != Ending::Complete,
            calls: blocks().any(|block| !matches!(block, Block::Text(_) | Block::Thinking(_))),
            refused: self.is_refusal(),
            cut: stop != ends,
        }
    }

    /// Returns whether the model, or a filter of the provider, refused to answer.
    pub fn is_refusal(&self) -> bool {
        let stop = self.stop.as_deref().unwrap_or_default();
        REFUSED.contains(&stop) || self.items.iter().any(refuses)
    }

    /// Returns the text of the answer, in one piece.
    pub fn text(&self) -> String {
        let blocks = self.message.iter().flat_map(|message| &message.blocks);
        let texts = blocks.filter_map(|block| match block {
            Block::Text(text) => Some(&**text),
            _ => None,
        });
        texts.collect()
    }
}

/// The words of all wires for an answer that the model, or a filter, refused.
const REFUSED: &[&str] = &[
    "refusal",
    "content_filter",
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
];

/// Returns whether a model refuses in an item; such an answer stops as any other.
fn refuses(item: &std::sync::Arc<str>) -> bool {
    let Some(document) = scanned(item) else { return false };
    let item = document.root();
    let says = |value: Value<'_>| value.text().is_some_and(|text| !text.is_empty());
    item.get("refusal").is_some_and(says)
        || item.elements_at("content").any(|part| part.has("type", "refusal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(wire: Wire, body: &str) -> AnswerFacts {
        ProviderAnswer::of_body(wire, body.as_bytes()).facts(wire)
    }

    #[test]
    fn only_what_ended_by_itself_in_words_is_whole() {
        let good = AnswerFacts::default();
        let claude = |content: &str, stop: &str| {
            let body = format!(r#"{{"content":[{content}],"stop_reason":"{stop}"}}"#);
            facts(Wire::AnthropicMessages, &body)
        };
        let text = r#"{"type":"text","text":"so"}"#;
        let thought = r#"{"type":"thinking","thinking":"hm","signature":"s"}"#;
        assert_eq!(claude(text, "end_turn"), good);
        assert_eq!(claude(&format!("{thought},{text}"), "end_turn"), good);
        assert!(claude(text, "max_tokens").cut && claude(text, "stop_sequence").cut);
        assert!(claude(text, "refusal").refused);
        assert!(claude(r#"{"type":"tool_use","id":"1","name":"t","input":{}}"#, "tool_use").calls);
        let chat = |message: &str, stop: &str| {
            let body =
                format!(r#"{{"choices":[{{"message":{message},"finish_reason":"{stop}"}}]}}"#);
            facts(Wire::ChatCompletions, &body)
        };
        assert_eq!(chat(r#"{"role":"assistant","content":"so","refusal":null}"#, "stop"), good);
        assert!(chat(r#"{"role":"assistant","content":"so"}"#, "length").cut);
        assert!(chat(r#"{"role":"assistant","content":null,"refusal":"no"}"#, "stop").refused);
        let response = |part: &str| {
            let body = format!(
                r#"{{"status":"completed","output":[{{"type":"message","role":"assistant","content":[{part}]}}]}}"#
            );
            facts(Wire::Responses, &body)
        };
        assert_eq!(response(r#"{"type":"output_text","text":"so"}"#), good);
        assert!(response(r#"{"type":"refusal","refusal":"no"}"#).refused);
        let gemini =
            r#"{"candidates":[{"content":{"parts":[{"text":"so"}]},"finishReason":"SAFETY"}]}"#;
        assert!(facts(Wire::Gemini, gemini).refused);
        assert!(facts(Wire::Gemini, r#"{"error":{"message":"x"}}"#).error);
        assert!(facts(Wire::ChatCompletions, "{").error, "a body that is cut");
    }
}
