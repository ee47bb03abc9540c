//! Failures in the provider's own shape, so that a client treats ours as it treats theirs.

use super::Wire;
use super::document::quoted;
use super::events;

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
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
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
    use crate::{Answer, Ending, Events, Moment, Watch};

    #[test]
    fn what_we_write_is_read_as_a_failure() {
        let message = "upstream \"x\" is\naway";
        for wire in Wire::ALL {
            for status in [400, 401, 403, 404, 413, 429, 500, 502, 503, 504, 529] {
                let body = error_body(wire, status, message);
                let answer = Answer::of_body(wire, body.as_bytes());
                assert_eq!(answer.ending, Ending::Failed(message.to_owned()), "{body}");
                let mut events = Events::default();
                events.push(&error_event(wire, status, message, 7));
                let mut watch = Watch::new(wire);
                let event = events.next_event().expect("an event");
                assert_eq!(watch.see(&event), Moment::Failure);
                assert_eq!(watch.answer().ending, Ending::Failed(message.to_owned()));
            }
        }
    }
}
