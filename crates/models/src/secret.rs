//! Keys: known to the header that carries them, and shown to nobody.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is never shown: `Debug`, `Display` and `Serialize` write `[redacted]`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Arc<str>);

impl SecretValue {
    /// Takes a secret, without the white space around it that files and shells add.
    pub fn new(text: &str) -> Self {
        Self(text.trim().into())
    }

    /// Returns the secret itself, for the header that carries it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Returns `text` with the secret blotted out, for texts that a server wrote: some repeat what they were sent.
    pub(crate) fn blot(&self, text: &str) -> String {
        // So short a text would blot out ordinary words, and is no key of any provider.
        if self.0.len() < 4 {
            return text.to_owned();
        }
        text.replace(&*self.0, REDACTED)
    }
}

const REDACTED: &str = "[redacted]";

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for SecretValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for SecretValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::new(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = SecretValue::new(" sk-1234\n");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)).matches("1234").count(), 0);
        assert_eq!(serde_json::to_string(&secret).expect("a text"), "\"[redacted]\"");
        assert_eq!(secret.expose(), "sk-1234");
        assert_eq!(secret.blot("wrong key sk-1234, sorry"), "wrong key [redacted], sorry");
    }
}
