//! Tool arguments: recorded JSON without white space between its tokens and without needless escapes.

use std::sync::Arc;

use plimsoll_core::json_text::compact;
use serde_json::value::RawValue;

/// Returns a recorded argument value as the model's text: a string as it is, anything else as compact JSON.
pub(crate) fn from_raw(raw: Option<&RawValue>) -> Arc<str> {
    let Some(raw) = raw else { return Arc::from("") };
    let raw = raw.get();
    if raw.starts_with('"')
        && let Ok(text) = serde_json::from_str::<String>(raw)
    {
        return Arc::from(text);
    }
    if raw == "null" {
        return Arc::from("");
    }
    compact(raw)
}
