//! `OpenAI` Chat Completions: deltas of the first choice, calls by their index.

use std::fmt::Write as _;
use std::sync::Arc;

use plimsoll_core::Usage;

use super::{AnswerDraft, AnswerHead, AnswerPiece, number, owned};
use crate::document::{Value, quoted};

#[derive(Debug, Default)]
pub(super) struct ChatDraft {
    text: String,
    refusal: String,
    /// Servers differ in the name of the field.
    reasoning: Option<(&'static str, String)>,
    calls: Vec<Call>,
    /// A whole message as the provider wrote it.
    whole: Option<String>,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    is_custom: bool,
}

impl AnswerDraft for ChatDraft {
    fn take(&mut self, data: Value<'_>, head: &mut AnswerHead) -> bool {
        told(data, head);
        let Some(choice) = data.first_at("choices") else { return false };
        if let Some(delta) = choice.get("delta") {
            self.grow(delta, head);
        }
        if let Some(reason) = owned(choice.get("finish_reason")) {
            head.stop = Some(reason);
            // Not every server announces the end; the reason is what none leaves out.
            head.ended = true;
        }
        false
    }

    fn body(&mut self, body: Value<'_>, head: &mut AnswerHead) {
        told(body, head);
        let choice = body.first_at("choices");
        let Some(message) = choice.and_then(|choice| choice.get("message")) else { return };
        head.stop = choice.and_then(|choice| owned(choice.get("finish_reason")));
        head.ended = true;
        self.whole = Some(message.raw().to_owned());
    }

    fn items(&self) -> Vec<Arc<str>> {
        if let Some(whole) = &self.whole {
            return vec![Arc::from(whole.as_str())];
        }
        let is_empty = self.text.is_empty() && self.refusal.is_empty() && self.calls.is_empty();
        if is_empty && self.reasoning.is_none() {
            return Vec::new();
        }
        let content = if self.text.is_empty() { "null".to_owned() } else { quoted(&self.text) };
        let mut raw = format!(r#"{{"role":"assistant","content":{content}"#);
        if let Some((key, text)) = &self.reasoning {
            let _ = write!(raw, r#","{key}":{}"#, quoted(text));
        }
        if !self.refusal.is_empty() {
            let _ = write!(raw, r#","refusal":{}"#, quoted(&self.refusal));
        }
        if !self.calls.is_empty() {
            let calls: Vec<String> = self.calls.iter().map(Call::whole).collect();
            let _ = write!(raw, r#","tool_calls":[{}]"#, calls.join(","));
        }
        raw.push('}');
        vec![Arc::from(raw)]
    }
}

impl ChatDraft {
    fn grow(&mut self, delta: Value<'_>, head: &mut AnswerHead) {
        let more = |key: &str| delta.get(key).and_then(Value::text);
        for key in ["reasoning_content", "reasoning"] {
            // Some servers send it under both names.
            if let Some(text) = more(key).filter(|text| !text.is_empty()) {
                let (_, all) = self.reasoning.get_or_insert((key, String::new()));
                all.push_str(&text);
                head.text(&text, AnswerPiece::Reasoning);
                break;
            }
        }
        for (key, all) in [("content", &mut self.text), ("refusal", &mut self.refusal)] {
            let text = more(key).unwrap_or_default();
            all.push_str(&text);
            head.text(&text, AnswerPiece::Text);
        }
        for call in delta.elements_at("tool_calls") {
            let at = call_index(call, self.calls.len());
            let index = at as u32;
            if at == self.calls.len() {
                self.calls.push(Call::default());
                let id = call.shared_at("id");
                let name = Arc::from(call_name(call).unwrap_or_default());
                head.piece(|| AnswerPiece::CallBegun { index, id, name });
            }
            let more = self.calls[at].grow(call);
            if !more.is_empty() {
                head.piece(|| AnswerPiece::CallArguments { index, text: more });
            }
        }
    }
}

/// Returns which call an element of a delta is part of, when `begun` calls have begun.
///
/// A server that numbers nothing sends each call whole, with its name.
pub(crate) fn call_index(call: Value<'_>, begun: usize) -> usize {
    let named = call_name(call).is_some_and(|name| !name.is_empty());
    let last = begun.saturating_sub(usize::from(!named));
    number(Some(call), &["index"]).map_or(last, |index| index as usize).min(begun)
}

/// Returns the name in an element of a delta.
fn call_name(call: Value<'_>) -> Option<String> {
    let function = call.any(&["function", "custom"])?;
    owned(function.get("name"))
}

impl Call {
    /// Takes an element of a delta and returns what it adds to the arguments.
    fn grow(&mut self, call: Value<'_>) -> String {
        if self.id.is_empty() {
            self.id = owned(call.get("id")).unwrap_or_default();
        }
        self.is_custom |= call.get("custom").is_some_and(Value::is_object);
        let Some(function) = call.any(&["function", "custom"]) else { return String::new() };
        if self.name.is_empty() {
            self.name = owned(function.get("name")).unwrap_or_default();
        }
        let more = function.any(&["arguments", "input"]);
        let more = more.filter(|more| !more.is_null());
        let more = more.map(|more| more.text().unwrap_or_else(|| more.raw().into()));
        let more = more.unwrap_or_default().into_owned();
        self.arguments.push_str(&more);
        more
    }

    fn whole(&self) -> String {
        let (id, name) = (quoted(&self.id), quoted(&self.name));
        let arguments = quoted(&self.arguments);
        if self.is_custom {
            return format!(
                r#"{{"id":{id},"type":"custom","custom":{{"name":{name},"input":{arguments}}}}}"#
            );
        }
        format!(
            r#"{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#
        )
    }
}

fn told(data: Value<'_>, head: &mut AnswerHead) {
    head.model = owned(data.get("model")).or(head.model.take());
    head.id = owned(data.get("id")).or(head.id.take());
    let Some(usage) = data.object_at("usage") else { return };
    let details = usage.get("prompt_tokens_details");
    let of = |keys: &[&str]| number(Some(usage), keys).unwrap_or(0);
    let written = number(details, &["cache_write_tokens", "cache_creation_tokens"]);
    let usage = Usage {
        prompt_tokens: of(&["prompt_tokens"]),
        cached_tokens: number(details, &["cached_tokens"])
            .unwrap_or_else(|| of(&["prompt_cache_hit_tokens"])),
        written_tokens: written.unwrap_or(0),
        written_long_tokens: 0,
        output_tokens: of(&["completion_tokens"]),
    };
    head.usage = Some(usage.into());
}
