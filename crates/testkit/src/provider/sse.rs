//! Server-sent events.

use bytes::Bytes;
use plimsoll_core::text::{Limit, head};
use serde_json::Value;

/// Writes an event that has a name.
pub(crate) fn named(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

/// Writes an event without a name.
pub(crate) fn data(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\n\n"))
}

/// Cuts a text into words, each with the space behind it, as models stream them.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// Cuts a text in two, at a character.
pub(crate) fn halves(text: &str) -> [&str; 2] {
    let first = head(text, Limit::Bytes(text.len() / 2));
    [first, &text[first.len()..]]
}
