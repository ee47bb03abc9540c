//! The text of an error with its causes, for logs and for clients.

use std::error::Error;

/// Writes an error with its causes, since the first one rarely says what happened.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text.push_str(": ");
        text.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    text
}
