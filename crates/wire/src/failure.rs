//! Failures: read from bodies, from streams and from answers with a status of success, and written in the providers' shapes, so that
//! a client handles ours as it handles theirs.

use super::Wire;
use super::document::{Value, quoted, scanned};
use super::events;

/// A failure in a provider's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    /// Its code or type.
    pub word: Option<String>,
}

/// The reaction to a failure that makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// It can try again later.
    Later,
    /// It needs a key, a permission or money.
    Denied,
    /// It must ask for something else.
    Invalid,
}

impl Failure {
    /// Finds the failure in a JSON body.
    ///
    /// Shapes: `{"error": {"message", "type", "code"}}`, `{"error": "…"}`, and where `error` is missing `{"message" | "detail"}`
    /// of `{"object": "error"}` and `{"type": "error"}`, and `{"detail": "…"}`; anything else is none.
    pub fn of_body(body: &[u8]) -> Option<Self> {
        let document = scanned(str::from_utf8(body).ok()?)?;
        Self::of(document.root())
    }

    /// As [`Failure::of_body`], of a value.
    pub(crate) fn of(body: Value<'_>) -> Option<Self> {
        let text =
            |value: Value<'_>, key: &str| value.get(key).and_then(Value::text).map(Into::into);
        let code = |value: Value<'_>| {
            let code = value.get("code").filter(|code| !code.is_null())?;
            code.text().map(Into::into).or_else(|| code.number().map(|code| code.to_string()))
        };
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            if let Some(message) = error.text() {
                return Some(Self { message: message.into(), word: None });
            }
            let message = text(error, "message").unwrap_or_else(|| error.raw().to_owned());
            return Some(Self { message, word: code(error).or_else(|| text(error, "type")) });
        }
        let is_error = body.has("object", "error") || body.has("type", "error");
        let detail: Option<String> = text(body, "detail");
        let message = match (is_error, detail) {
            (true, detail) => {
                text(body, "message").or(detail).unwrap_or_else(|| body.raw().to_owned())
            }
            (false, detail) => text(body, "message").filter(|_| detail.is_some()).or(detail)?,
        };
        Some(Self { message, word: code(body) })
    }

    /// Returns the reaction to a failure of this status; a provider's own word is more precise than some statuses.
    ///
    /// Source: the providers' pages on errors; 529 is Anthropic's "overloaded", 402 OpenRouter's "no credits left".
    pub fn kind(&self, status: u16) -> FailureKind {
        match (status, self.word.as_deref()) {
            // A used-up quota comes back only when somebody pays.
            (401..=403, _) | (429, Some("insufficient_quota")) => FailureKind::Denied,
            (408 | 409 | 425 | 429 | 500 | 502..=504 | 506.., _) => FailureKind::Later,
            _ => FailureKind::Invalid,
        }
    }

    /// Returns the reaction to a failure that came with a status of success, by its word.
    pub fn kind_inside(&self) -> FailureKind {
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
        self.kind(status)
    }
}

/// Returns the body of an error of ours for an HTTP status.
///
/// Source: the error pages of the three providers.
pub fn error_body(wire: Wire, status: u16, message: &str) -> String {
    let text = quoted(message);
    match wire {
        Wire::AnthropicMessages => {
            let kind = anthropic_type(status);
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{text}}}}}"#)
        }
        Wire::ChatCompletions | Wire::Responses => {
            let kind = openai_type(status);
            format!(r#"{{"error":{{"message":{text},"type":"{kind}","param":null,"code":null}}}}"#)
        }
        Wire::Gemini => {
            let word = google_status(status);
            format!(r#"{{"error":{{"code":{status},"message":{text},"status":"{word}"}}}}"#)
        }
    }
}

/// Returns an error as an event, for a stream that has begun; `sequence` is the number that Responses gives its events.
pub fn error_event(wire: Wire, status: u16, message: &str, sequence: u64) -> Vec<u8> {
    match wire {
        Wire::AnthropicMessages => events::written("error", &error_body(wire, status, message)),
        Wire::Responses => {
            let (kind, text) = (openai_type(status), quoted(message));
            let data = format!(
                r#"{{"type":"error","sequence_number":{sequence},"code":"{kind}","message":{text},"param":null}}"#
            );
            events::written("error", &data)
        }
        Wire::ChatCompletions | Wire::Gemini => {
            events::written("", &error_body(wire, status, message))
        }
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

fn openai_type(status: u16) -> &'static str {
    match status {
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ending, Events, Moment, ProviderAnswer, Watch};

    #[test]
    fn failures_are_found_in_every_shape() {
        let told =
            |body: &str| Failure::of_body(body.as_bytes()).map(|told| (told.message, told.word));
        let both = |message: &str, word: &str| Some((message.to_owned(), Some(word.to_owned())));
        assert_eq!(told(r#"{"error":{"message":"m","type":"t","code":null}}"#), both("m", "t"));
        assert_eq!(told(r#"{"error":{"message":"m","code":429}}"#), both("m", "429"));
        assert_eq!(
            told(r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#),
            both("m", "overloaded_error")
        );
        assert_eq!(told(r#"{"type":"error","code":"c","message":"m"}"#), both("m", "c"));
        assert_eq!(told(r#"{"error":"m"}"#), Some(("m".into(), None)));
        assert_eq!(told(r#"{"object":"error","message":"m"}"#), Some(("m".into(), None)));
        assert_eq!(told(r#"{"detail":"m"}"#), Some(("m".into(), None)));
        assert_eq!(told(r#"{"message":"m","error":null}"#), None);
        assert_eq!(told("<html>"), None);
    }

    #[test]
    fn statuses_mean_what_can_be_done() {
        for (status, word, is) in [
            (400, None, FailureKind::Invalid),
            (401, None, FailureKind::Denied),
            (402, None, FailureKind::Denied),
            (404, None, FailureKind::Invalid),
            (429, None, FailureKind::Later),
            (429, Some("insufficient_quota"), FailureKind::Denied),
            (500, None, FailureKind::Later),
            (501, None, FailureKind::Invalid),
            (503, None, FailureKind::Later),
            (529, None, FailureKind::Later),
            (302, None, FailureKind::Invalid),
        ] {
            let failure = Failure { message: String::new(), word: word.map(str::to_owned) };
            assert_eq!(failure.kind(status), is, "{status}");
        }
    }

    #[test]
    fn inside_of_a_success_the_word_says_what_can_be_done() {
        for (word, is) in [
            (Some("502"), FailureKind::Later),
            (Some("401"), FailureKind::Denied),
            (Some("insufficient_quota"), FailureKind::Denied),
            (Some("invalid_request_error"), FailureKind::Invalid),
            (Some("a_new_word"), FailureKind::Later),
            (None, FailureKind::Later),
        ] {
            let failure = Failure { message: String::new(), word: word.map(str::to_owned) };
            assert_eq!(failure.kind_inside(), is, "{word:?}");
        }
    }

    #[test]
    fn what_we_write_is_read_as_a_failure() {
        let message = "upstream \"x\" is\naway";
        for wire in Wire::ALL {
            for status in [400, 401, 403, 404, 413, 429, 500, 502, 503, 504, 529] {
                let body = error_body(wire, status, message);
                let answer = ProviderAnswer::of_body(wire, body.as_bytes());
                let told = |ending: &Ending| match ending {
                    Ending::Failed(failure) => failure.message.clone(),
                    other => format!("{other:?}"),
                };
                assert_eq!(told(&answer.ending), message, "{body}");
                let mut events = Events::default();
                events.push(&error_event(wire, status, message, 7));
                let mut watch = Watch::new(wire);
                let event = events.next_event().expect("an event");
                assert_eq!(watch.see(&event), Moment::Failure);
                assert_eq!(told(&watch.answer().ending), message);
            }
        }
    }
}
