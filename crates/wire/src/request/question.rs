//! Questions: a request as a cache of answers knows it, split into the question and everything else that the answer depends on.

use std::borrow::Cow;
use std::ops::Range;

use plimsoll_core::answer::RequestFacts;
use plimsoll_core::{Block, ContentHash, Message, Role};

use super::ProviderRequest;
use crate::Wire;
use crate::document::Value;

/// A request as a cache of answers knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheQuestion {
    /// The text of the last message.
    pub text: String,
    /// The facts that decide whether a cache may answer at all.
    pub facts: RequestFacts,
    /// The user, in the request's own words; empty where it names none.
    pub user: String,
    pub model: String,
    /// A digest of everything else, 64 hex digits: equal for equal bytes, and for no others.
    pub surroundings: String,
}

/// Fields that name the user.
const USER: &[&str] = &["user", "safety_identifier", "metadata"];
/// Fields that change how an answer is sent, but not its content.
const FORM: &[&str] =
    &["stream", "stream_options", "prompt_cache_key", "prompt_cache_retention", "model"];
/// Fields by which a provider uses tools of its own.
const SERVER_TOOLS: &[&str] =
    &["mcp_servers", "web_search_options", "plugins", "container", "functions"];

impl ProviderRequest {
    /// Returns the question with its surroundings; `beside` is everything outside of the body that the answer depends on.
    ///
    /// Unknown fields count as they are written, so a request with one never equals a request without it.
    pub fn question(&self, beside: &[&str]) -> CacheQuestion {
        let (last, source) = match (self.messages.last(), self.sources.last()) {
            (Some(last), Some(source)) => (Some(last), &*source.blocks),
            _ => (None, &[][..]),
        };
        let mut asked: Vec<Range<usize>> =
            source.iter().map(|node| self.document.value(*node).span()).collect();
        asked.sort_by_key(|span| span.start);
        let mut fields: Vec<(Cow<'_, str>, Value<'_>)> = self
            .root()
            .fields()
            .filter_map(|(key, value)| Some((key.text()?, value)))
            .filter(|(key, _)| !FORM.contains(&&**key))
            .collect();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (mut user, mut all) = (String::new(), String::new());
        for part in [self.wire.as_str()].iter().chain(beside) {
            push(&mut all, part);
        }
        for (key, value) in fields {
            let out = if USER.contains(&&*key) { &mut user } else { &mut all };
            push(out, &key);
            push(out, &without(value, &asked));
        }
        CacheQuestion {
            text: last.map(|last| last.shown()).unwrap_or_default(),
            facts: self.facts(),
            user,
            model: self.model.clone().unwrap_or_default(),
            surroundings: ContentHash::of(&Message::text(Role::System, all)).full(),
        }
    }

    fn facts(&self) -> RequestFacts {
        let root = self.root();
        let settings = match self.wire {
            Wire::Gemini => root.any(&["generationConfig", "generation_config"]),
            _ => Some(root),
        };
        let set = |keys: &[&str]| settings.and_then(|settings| settings.any(keys));
        let is_plain = |block: &Block| matches!(block, Block::Text(_));
        let (last, before) = match self.messages.split_last() {
            Some((last, before)) => (Some(last), before),
            None => (None, &[][..]),
        };
        let answers = set(&["n", "candidateCount", "candidate_count"]);
        let wants_chances = ["logprobs", "top_logprobs", "responseLogprobs", "include"]
            .iter()
            .filter_map(|key| set(&[*key]))
            .any(|value| value.is_true() || value.raw().contains("logprobs"));
        let wants_sound = set(&["audio", "speechConfig", "speech_config"]).is_some();
        RequestFacts {
            tools: !self.tools().is_empty() || root.any(SERVER_TOOLS).is_some(),
            state: self.is_kept_by_the_server()
                || last.is_none_or(|last| last.role != Role::User)
                || before.iter().flat_map(|message| &message.blocks).any(|block| !is_plain(block)),
            attachments: wants_sound || last.is_some_and(|last| !last.blocks.iter().all(is_plain)),
            several: wants_chances || answers.is_some_and(|answers| answers.number() != Some(1)),
            // A temperature that cannot be read is not known to be low.
            temperature: set(&["temperature"]).map(|t| t.raw().parse().unwrap_or(f32::NAN)),
        }
    }
}

/// Returns a value's bytes without those of the spans inside of it.
fn without<'a>(value: Value<'a>, spans: &[Range<usize>]) -> Cow<'a, str> {
    let (whole, raw) = (value.span(), value.raw());
    let mut inside = spans.iter().filter(|span| span.start >= whole.start && span.end <= whole.end);
    let Some(first) = inside.next() else { return Cow::Borrowed(raw) };
    let mut out = String::new();
    let mut from = 0;
    for span in std::iter::once(first).chain(inside) {
        let (start, end) = (span.start - whole.start, span.end - whole.start);
        out.push_str(raw.get(from..start).unwrap_or_default());
        // A question in two parts must differ from a question in one.
        out.push('?');
        from = end;
    }
    out.push_str(raw.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// Appends a part behind its length, so that "a" "bc" is not "ab" "c".
fn push(out: &mut String, part: &str) {
    out.push_str(&part.len().to_string());
    out.push(':');
    out.push_str(part);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEFAULT_DEPTH;

    fn question(wire: Wire, body: &str) -> CacheQuestion {
        let path = "/v1beta/models/m:generateContent";
        let request = ProviderRequest::parse(wire, body.as_bytes(), path, DEFAULT_DEPTH);
        request.expect("a request").question(&[])
    }

    const CHAT: &str = r#"{"model":"m","max_tokens":9,"messages":[{"role":"system","content":"s"},{"role":"user","content":"Why?"}]}"#;

    #[test]
    fn all_but_the_question_and_its_form_makes_the_surroundings() {
        let base = question(Wire::ChatCompletions, CHAT);
        assert_eq!((&*base.text, &*base.user, &*base.model), ("Why?", "", "m"));
        assert_eq!(base.facts, RequestFacts::default());
        let with = |from: &str, to: &str| question(Wire::ChatCompletions, &CHAT.replace(from, to));
        let same = |other: &CacheQuestion| other.surroundings == base.surroundings;
        for (from, to) in
            [("Why", "Who"), ("\"m\"", "\"o\""), ("{\"model", "{\"stream\":true,\"model")]
        {
            assert!(same(&with(from, to)), "{to}");
        }
        for (from, to) in [
            ("\"s\"", "\"t\""),
            (":9", ":8"),
            ("{\"model", "{\"seed\":1,\"model"),
            ("\"user\",", "\"user\",\"name\":\"a\","),
            ("\"Why?\"", "[{\"type\":\"text\",\"text\":\"Why?\"}]"),
        ] {
            assert!(!same(&with(from, to)), "{to}");
        }
        let asked = with("{\"model", "{\"user\":\"ann\",\"model");
        assert!(same(&asked) && asked.user.contains("ann"));
        let body = CHAT.as_bytes();
        let request = ProviderRequest::parse(Wire::ChatCompletions, body, "", DEFAULT_DEPTH);
        let beside = request.expect("a request").question(&["elsewhere"]);
        assert!(!same(&beside), "what it depends on outside of the body");
    }

    #[test]
    fn the_same_words_in_two_parts_are_another_question() {
        let body = |parts: &str| {
            let body = format!(r#"{{"messages":[{{"role":"user","content":[{parts}]}}]}}"#);
            question(Wire::AnthropicMessages, &body)
        };
        let one = body(r#"{"type":"text","text":"a"}"#);
        let two = body(r#"{"type":"text","text":"a"},{"type":"text","text":"a"}"#);
        assert_ne!(one.surroundings, two.surroundings);
        let marked = r#"{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}"#;
        assert_eq!(body(marked), one, "a mark of the cache changes no answer");
    }

    #[test]
    fn what_no_cache_may_answer_is_told() {
        let facts = |wire, body: &str| question(wire, body).facts;
        let chat = |more: &str| {
            facts(Wire::ChatCompletions, &CHAT.replace("{\"model", &format!("{{{more},\"model")))
        };
        assert!(chat(r#""tools":[{"type":"function","function":{"name":"t"}}]"#).tools);
        assert!(chat(r#""web_search_options":{}"#).tools);
        assert!(chat(r#""n":2"#).several && !chat(r#""n":1"#).several);
        assert!(chat(r#""logprobs":true"#).several);
        assert!(chat(r#""audio":{"voice":"a"}"#).attachments);
        assert_eq!(chat(r#""temperature":0.5"#).temperature, Some(0.5));
        assert_eq!(chat(r#""temperature":null"#).temperature, None);
        assert!(chat(r#""temperature":"hot""#).temperature.is_some_and(f32::is_nan));
        let responses =
            |store| facts(Wire::Responses, &format!(r#"{{"input":"Why?"{store}}}"#)).state;
        assert!(responses("") && responses(r#","store":true"#), "the provider keeps it");
        assert!(!responses(r#","store":false"#));
        let image = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{}}]}]}"#;
        assert!(facts(Wire::AnthropicMessages, image).attachments);
        let prefill =
            r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#;
        assert!(facts(Wire::AnthropicMessages, prefill).state);
        let called = r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"},{"type":"text","text":"b"}]}]}"#;
        assert!(facts(Wire::AnthropicMessages, called).state);
        let gemini = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"temperature":1,"candidateCount":2}}"#;
        let gemini = facts(Wire::Gemini, gemini);
        assert!(gemini.several && gemini.temperature == Some(1.0));
        assert!(facts(Wire::Gemini, r#"{"contents":[]}"#).state, "nothing is asked");
    }
}
