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
/// Shape: every other byte stays. A block of thinking that would change is left out, since its signature holds for its words only.
/// Errors: a [`RequestError`] where the body cannot be read, so that nobody can say what it holds.
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
            for (index, element) in value.elements().enumerate() {
                if is_thinking_that_changes(element, handling) {
                    patch.remove(value, index);
                } else {
                    open.push((name.clone(), element));
                }
            }
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

fn is_thinking_that_changes(block: Value<'_>, handling: Handling) -> bool {
    block.is_object()
        && block.has("type", "thinking")
        && block
            .get("thinking")
            .and_then(Value::text)
            .is_some_and(|text| matches!(redact(&text, handling).0, Cow::Owned(_)))
}
