//! Redaction of a body: personal data and secrets are replaced in every string, whatever the request is.
//!
//! The messages of a request are not enough: system prompts, schemas of tools, names of users and fields that nobody knows leave
//! too. So the whole document is walked, and only what changes gets other bytes.

use std::borrow::Cow;
use std::sync::Arc;

use plimsoll_core::safety::{Handling, redact, redact_field};

use super::document::{Document, Value, quoted};
use super::patch::Patch;
use super::request::RequestError;

/// Fields whose values are opaque or ids: their names say nothing about a secret, and other names would change what they mean.
const OPAQUE: &[&str] = &[
    "signature",
    "encrypted_content",
    "thoughtSignature",
    "thought_signature",
    "data",
    "prompt_cache_key",
    "safety_identifier",
];

/// The fewest digits of a number that may be personal data; chosen: shorter ones are settings and counts.
const DIGITS: usize = 8;

/// Returns a body without what `handling` redacts; `None` where nothing changes.
///
/// Shape: every other byte stays. A block of thinking that would change is left out with all thinking behind it in its message, since
/// signatures hold for the words and for the thinking before.
/// Errors: a [`RequestError`] where the body cannot be read, so that nobody can say what it holds, and [`RequestError::Thinking`] where
/// the provider would refuse the message without its thinking.
pub fn redact_body(
    body: &[u8],
    depth: usize,
    handling: Handling,
) -> Result<Option<Vec<u8>>, RequestError> {
    let text =
        str::from_utf8(body).map_err(|error| RequestError::NotJson { at: error.valid_up_to() })?;
    let document = Document::scan(Arc::from(text), depth)
        .map_err(|error| RequestError::of_scan(error, depth))?;
    let mut patch = Patch::new(&document);
    // A stack of our own: the depth is a setting, and recursion has the limit of its thread.
    let mut open: Vec<(Cow<'_, str>, Value<'_>)> = vec![(Cow::Borrowed(""), document.root())];
    while let Some((name, value)) = open.pop() {
        if value.is_list() {
            let mut left = Vec::new();
            let mut is_left_out = false;
            for (index, element) in value.elements().enumerate() {
                is_left_out |= is_thinking_that_changes(element, handling);
                if is_left_out && is_thinking(element) {
                    patch.remove(value, index);
                } else {
                    left.push(element);
                }
            }
            if is_left_out && needs_thinking(document.root(), value, &left) {
                return Err(RequestError::Thinking);
            }
            open.extend(left.into_iter().map(|element| (name.clone(), element)));
        } else if value.is_object() {
            for (key, field) in value.fields() {
                let name = key.text().unwrap_or_default();
                if let Cow::Owned(changed) = redact(&name, handling).0 {
                    patch.replace(key, quoted(&changed));
                }
                open.push((name, field));
            }
        } else if let Some(text) = value.text() {
            let name = if OPAQUE.contains(&&*name) { "" } else { &*name };
            if let Some(changed) = redact_field(name, &text, handling) {
                patch.replace(value, quoted(&changed));
            }
        } else if value.raw().len() >= DIGITS
            && let Some(changed) = redact_field("", value.raw(), handling)
        {
            patch.replace(value, quoted(&changed));
        }
    }
    if patch.is_empty() {
        return Ok(None);
    }
    let misfit = RequestError::Shape { what: "it cannot be redacted" };
    patch.apply().map(Some).map_err(|_| misfit)
}

fn is_thinking(block: Value<'_>) -> bool {
    block.is_object() && (block.has("type", "thinking") || block.has("type", "redacted_thinking"))
}

fn is_thinking_that_changes(block: Value<'_>, handling: Handling) -> bool {
    block.is_object()
        && block.has("type", "thinking")
        && block
            .get("thinking")
            .and_then(Value::text)
            .is_some_and(|text| matches!(redact(&text, handling).0, Cow::Owned(_)))
}

/// Returns whether Anthropic refuses a message whose content has only the blocks `left`: an empty one, and with thinking of a set budget
/// the newest of the model, where it calls a tool and does not begin with thinking.
fn needs_thinking(request: Value<'_>, content: Value<'_>, left: &[Value<'_>]) -> bool {
    let Some(first) = left.first() else { return true };
    let is_set = request.object_at("thinking").is_some_and(|set| set.has("type", "enabled"));
    let newest = request.elements_at("messages").filter(|message| message.has("role", "assistant"));
    let newest = newest.last().and_then(|message| message.get("content"));
    let calls = left.iter().any(|block| block.is_object() && block.has("type", "tool_use"));
    let is_newest = newest.is_some_and(|newest| newest.id() == content.id());
    is_set && is_newest && calls && !is_thinking(*first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redacted(body: &serde_json::Value) -> Result<Option<String>, RequestError> {
        let redacted = redact_body(body.to_string().as_bytes(), 64, Handling::REDACT)?;
        Ok(redacted.map(|bytes| String::from_utf8(bytes).expect("UTF-8")))
    }

    fn thinking(text: &str) -> serde_json::Value {
        json!({"type": "thinking", "thinking": text, "signature": "s"})
    }

    const MAIL: &str = "ann@example.com";

    #[test]
    fn numbers_are_redacted_however_they_are_written() {
        for number in [
            "4539148803436467",
            "-4539148803436467",
            "4539148803436467.0",
            "-4539148803436467.0",
            "4.539148803436467e15",
            "4.539148803436467E+15",
            "45391488034364670e-1",
        ] {
            let body = format!("{{\"card\": {number}, \"n\":[1.5e3,4539148803436468.0]}}");
            let redacted = redact_body(body.as_bytes(), 64, Handling::REDACT).expect("JSON");
            let redacted = String::from_utf8(redacted.expect("a card")).expect("UTF-8");
            let sign = if number.starts_with('-') { "-" } else { "" };
            let expected = format!(
                "{{\"card\": \"{sign}[redacted:payment_card]\", \"n\":[1.5e3,4539148803436468.0]}}"
            );
            assert_eq!(redacted, expected, "{number}");
        }
    }

    #[test]
    fn thinking_behind_thinking_that_is_left_out_goes_too() {
        let hidden = json!({"type": "redacted_thinking", "data": "d"});
        let call = json!({"type": "tool_use", "id": "t", "name": "n", "input": {}});
        let content = json!([thinking("a"), thinking(MAIL), thinking("b"), hidden, call]);
        let later = json!([thinking("c"), {"type": "text", "text": "d"}]);
        let body = |content: &serde_json::Value| {
            json!({"messages": [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": content},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "y"}]},
                {"role": "assistant", "content": later},
            ]})
        };
        let expected = body(&json!([thinking("a"), call])).to_string();
        assert_eq!(redacted(&body(&content)), Ok(Some(expected)));
        assert_eq!(redacted(&body(&json!([thinking("a"), call]))), Ok(None));
    }

    #[test]
    fn a_message_that_needs_its_thinking_is_refused() {
        let call = json!({"type": "tool_use", "id": "t", "name": "n", "input": {}});
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "y"}]);
        let body = |kind: &str, content: serde_json::Value| {
            json!({"thinking": {"type": kind}, "messages": [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": content},
                {"role": "user", "content": result},
            ]})
        };
        let refused = Err(RequestError::Thinking);
        assert_eq!(redacted(&body("enabled", json!([thinking(MAIL), call]))), refused);
        assert_eq!(redacted(&body("adaptive", json!([thinking(MAIL)]))), refused);
        assert!(redacted(&body("adaptive", json!([thinking(MAIL), call]))).is_ok());
        assert!(redacted(&body("enabled", json!([thinking("a"), thinking(MAIL), call]))).is_ok());
    }
}
