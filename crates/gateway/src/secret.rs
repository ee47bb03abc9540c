//! Keys of upstreams and of clients, which are never printed.

use std::fmt;

use http::HeaderValue;

/// A key that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret, without the white space around it that files and shells add.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// Returns `prefix` and the secret as a header's value; `None` where it holds what no header may.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("{prefix}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
