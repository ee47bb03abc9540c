//! Ids: who owns a record, and which session it belongs to.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Characters of the longest id.
const LONGEST: usize = 128;

/// Text that is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an id has 1 to 128 characters of A–Z, a–z, 0–9, `_`, `-`, `.` and `:`, not {length} bytes like `{begins}`"
)]
pub struct InvalidId {
    length: usize,
    begins: String,
}

fn check(text: &str) -> Result<(), InvalidId> {
    let fits = (1..=LONGEST).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte));
    if fits {
        return Ok(());
    }
    let begins = text.chars().filter(|character| !character.is_control()).take(16).collect();
    Err(InvalidId { length: text.len(), begins })
}

macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text`: 1 to 128 characters of A–Z, a–z, 0–9, `_`, `-`, `.` and `:`.
            pub fn new(text: &str) -> Result<Self, InvalidId> {
                check(text)?;
                Ok(Self(text.into()))
            }

            /// Returns the id's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                (*id.0).to_owned()
            }
        }
    };
}

id!(
    /// The owner of a record; two owners never share one.
    TenantId
);
id!(
    /// A session, unique within its tenant.
    SessionId
);

impl Default for TenantId {
    /// The one tenant of a store that serves one person.
    fn default() -> Self {
        Self("local".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_ascii() {
        assert!(SessionId::new("5f0c2a52-3b0e.a:b_c").is_ok());
        for bad in ["", "a b", "a'b", "a%", "a\0b", "ä", &"x".repeat(129)] {
            assert!(SessionId::new(bad).is_err(), "{bad:?}");
        }
        assert!(SessionId::new(&"\0".repeat(1 << 20)).expect_err("long").to_string().len() < 200);
    }
}
