//! Failures as providers tell them: in bodies, in streams, and in answers whose status claims success.

use std::time::Duration;

use plimsoll_engine::ModelError;
use serde_json::Value;

use crate::provider::Provider;

/// What a provider said of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// Its type or code.
    pub(crate) word: Option<String>,
}

/// What the caller can do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Later,
    Denied,
    Invalid,
}

/// Finds the failure that a JSON body tells of.
///
/// Shapes: `{"error": {"message", "type", "code"}}`, `{"error": "…"}`, and where `error` is missing `{"message" | "detail"}`
/// of `{"object": "error"}` and `{"type": "error"}`; anything else is none.
pub(crate) fn read(body: &[u8]) -> Option<Failure> {
    let body: Value = serde_json::from_slice(body).ok()?;
    of(&body)
}

/// As [`read`], of a value.
pub(crate) fn of(body: &Value) -> Option<Failure> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match body.get("error") {
        Some(Value::String(message)) => Some(Failure { message: message.clone(), word: None }),
        Some(error @ Value::Object(_)) => {
            let code = error.get("code").and_then(|code| match code {
                Value::String(code) => Some(code.clone()),
                Value::Number(code) => Some(code.to_string()),
                _ => None,
            });
            let message = text(error, "message").unwrap_or_else(|| error.to_string());
            Some(Failure { message, word: code.or_else(|| text(error, "type")) })
        }
        _ => {
            let says = |key| text(body, key).as_deref() == Some("error");
            let is_error = says("object") || says("type") || body.get("detail").is_some();
            let message = text(body, "message").or_else(|| text(body, "detail"));
            message
                .filter(|_| is_error)
                .map(|message| Failure { message, word: text(body, "code") })
        }
    }
}

/// Says what a status means; a provider's own word is more precise than some.
///
/// Source: the providers' pages on errors; 529 is Anthropic's "overloaded", 402 OpenRouter's "no credits left".
pub(crate) fn meaning(status: u16, word: Option<&str>) -> Meaning {
    match (status, word) {
        // A quota that is used up comes back no sooner than somebody pays.
        (401..=403, _) | (429, Some("insufficient_quota")) => Meaning::Denied,
        (408 | 409 | 425 | 429 | 500 | 502..=504 | 506.., _) => Meaning::Later,
        _ => Meaning::Invalid,
    }
}

impl Failure {
    /// Makes the error of a failure that came with a status of success: its word says what it means.
    ///
    /// It is not tried again by itself: the answer had begun.
    pub(crate) fn inside(&self, provider: &Provider) -> ModelError {
        let message = format!("{}: {}", provider.name, provider.clean(&self.message));
        let word = self.word.as_deref().unwrap_or_default();
        let status = word.parse().unwrap_or(match word {
            "authentication_error"
            | "permission_error"
            | "invalid_api_key"
            | "insufficient_quota"
            | "billing_error" => 401,
            "invalid_request_error"
            | "not_found_error"
            | "request_too_large"
            | "context_length_exceeded"
            | "invalid_prompt" => 400,
            _ => 500,
        });
        match meaning(status, Some(word)) {
            Meaning::Later => ModelError::Unavailable { message, retry_after: None::<Duration> },
            Meaning::Denied => ModelError::Denied(message),
            Meaning::Invalid => ModelError::Invalid(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_found_in_every_shape() {
        let told = |body: &str| read(body.as_bytes()).map(|told| (told.message, told.word));
        let both = |message: &str, word: &str| Some((message.to_owned(), Some(word.to_owned())));
        assert_eq!(told(r#"{"error":{"message":"m","type":"t","code":null}}"#), both("m", "t"));
        assert_eq!(told(r#"{"error":{"message":"m","code":429}}"#), both("m", "429"));
        assert_eq!(
            told(r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#),
            both("m", "overloaded_error")
        );
        assert_eq!(told(r#"{"error":"m"}"#), Some(("m".into(), None)));
        assert_eq!(told(r#"{"object":"error","message":"m"}"#), Some(("m".into(), None)));
        assert_eq!(told(r#"{"detail":"m"}"#), Some(("m".into(), None)));
        assert_eq!(told(r#"{"message":"m","error":null}"#), None);
        assert_eq!(told("<html>"), None);
    }

    #[test]
    fn statuses_mean_what_can_be_done() {
        for (status, word, is) in [
            (400, None, Meaning::Invalid),
            (401, None, Meaning::Denied),
            (402, None, Meaning::Denied),
            (404, None, Meaning::Invalid),
            (429, None, Meaning::Later),
            (429, Some("insufficient_quota"), Meaning::Denied),
            (500, None, Meaning::Later),
            (501, None, Meaning::Invalid),
            (503, None, Meaning::Later),
            (529, None, Meaning::Later),
            (302, None, Meaning::Invalid),
        ] {
            assert_eq!(meaning(status, word), is, "{status}");
        }
    }
}
