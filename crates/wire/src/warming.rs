//! A request that a provider reads and does not answer, so that its cache entries live on.

use super::Wire;
use super::document::Value;
use super::patch::Patch;
use super::request::ProviderRequest;

impl ProviderRequest {
    /// Returns the body for a read without an answer; `None` where the provider has no such request.
    ///
    /// Anthropic reads a prompt and answers nothing with `max_tokens: 0`. It refuses that with `stream`, thinking of a set budget, a
    /// format of the answer and a forced tool. Of these, only `stream` may be taken out: all others are part of what the cache
    /// knows the messages by.
    /// Source: Anthropic, prompt caching, "Pre-warming the cache" (read 2026-11-22).
    pub fn unanswered(&self) -> Option<Vec<u8>> {
        if self.wire() != Wire::AnthropicMessages {
            return None;
        }
        let root = self.root();
        let kind = |key: &str| root.get(key)?.get("type").and_then(Value::text);
        let is_forced = kind("tool_choice").is_some_and(|kind| kind == "tool" || kind == "any");
        let has_format = root.get("output_format").is_some_and(|format| !format.is_null())
            || root.get("output_config").is_some_and(|config| config.get("format").is_some());
        if is_forced || has_format || kind("thinking").is_some_and(|kind| kind == "enabled") {
            return None;
        }
        let mut patch = Patch::new(self.document());
        patch.set(root, "max_tokens", "0".to_owned());
        patch.remove_field(root, "stream");
        patch.apply().ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::{DEFAULT_DEPTH, ProviderRequest, Wire};

    fn unanswered(wire: Wire, body: &str) -> Option<String> {
        let request = ProviderRequest::parse(wire, body.as_bytes(), "", DEFAULT_DEPTH);
        let body = request.expect("a request").unanswered()?;
        Some(String::from_utf8(body).expect("text"))
    }

    #[test]
    fn only_the_answer_is_left_out() {
        let rest = r#""thinking":{"type":"adaptive"},"tool_choice":{"type":"auto"},"messages":[]"#;
        for body in [
            format!(r#"{{"max_tokens":9,"stream":true,{rest}}}"#),
            format!(r#"{{"stream":false,"max_tokens":9,{rest}}}"#),
            format!(r#"{{"max_tokens":9,{rest}}}"#),
        ] {
            let expected = format!(r#"{{"max_tokens":0,{rest}}}"#);
            assert_eq!(unanswered(Wire::AnthropicMessages, &body), Some(expected));
        }
    }

    #[test]
    fn what_a_provider_refuses_to_read_unanswered_is_not_asked() {
        for field in [
            r#""thinking":{"type":"enabled","budget_tokens":1024}"#,
            r#""tool_choice":{"type":"any"}"#,
            r#""tool_choice":{"type":"tool","name":"t"}"#,
            r#""output_config":{"format":{"type":"json_schema"}}"#,
            r#""output_format":{"type":"json_schema"}"#,
        ] {
            let body = format!(r#"{{"max_tokens":9,{field},"messages":[]}}"#);
            assert_eq!(unanswered(Wire::AnthropicMessages, &body), None, "{field}");
        }
        for (wire, body) in [
            (Wire::ChatCompletions, r#"{"max_tokens":9,"messages":[]}"#),
            (Wire::Responses, r#"{"input":"x"}"#),
            (Wire::Gemini, r#"{"contents":[]}"#),
        ] {
            assert_eq!(unanswered(wire, body), None);
        }
    }
}
