//! Keys of upstreams and of clients, which are never printed.

use std::fmt;

use bytes::Bytes;
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

    /// Returns `bytes` with a mark in each place of the secret.
    pub(crate) fn removed_from(&self, bytes: Bytes) -> Bytes {
        let text = String::from_utf8_lossy(&bytes);
        if self.0.is_empty() || !text.contains(&self.0) {
            return bytes;
        }
        Bytes::from(text.replace(&self.0, "[redacted]"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
