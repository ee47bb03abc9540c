//! Content hashes and refs: the identity of a message, and the address of its original.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::message::{Block, Image, Message, Role};

/// The SHA-256 of a message's canonical form; printed as its first 16 hex digits.
///
/// Canonical form: role, then each block as a tag and its fields, every field behind its length in bytes. Time, source
/// and usage are not in it, so the same words at another time are the same content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// Hashes the canonical form of `message`.
    pub fn of(message: &Message) -> Self {
        let mut canonical = Canonical(Sha256::new());
        canonical.tag(match message.role {
            Role::System => 0,
            Role::User => 1,
            Role::Assistant => 2,
            Role::Tool => 3,
        });
        for block in &message.blocks {
            canonical.block(block);
        }
        Self(canonical.0.finalize().into())
    }

    /// Hashes texts, each behind its length, so that "a" "bc" and "ab" "c" differ.
    pub(crate) fn of_texts(texts: &[&str]) -> Self {
        let mut canonical = Canonical(Sha256::new());
        for text in texts {
            canonical.field(text);
        }
        Self(canonical.0.finalize().into())
    }

    /// Returns the first 16 hex digits, the form that is printed and stored as `content_hash`.
    pub fn short(&self) -> String {
        hex(&self.0[..8])
    }

    /// Returns all 64 hex digits.
    pub fn full(&self) -> String {
        hex(&self.0)
    }

    /// Reads all 64 hex digits; `None` for anything else.
    pub fn from_full(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let digit = |byte: u8| (byte as char).to_digit(16).map(|value| value as u8);
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }

    /// Returns the first eight bytes as a number, for tables that need a small key.
    pub fn key(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(bytes)
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl Serialize for ContentHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.full())
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_full(&text)
            .ok_or_else(|| serde::de::Error::custom("a content hash has 64 hex digits"))
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

/// The kind of content that a ref stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefKind {
    /// An original message: the result of a tool, a call with its arguments, a text.
    Message,
}

/// The address of an original, printed as `ref:<kind>:<16 hex>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ref {
    pub kind: RefKind,
    pub hash: ContentHash,
}

/// The fewest hex digits by which a ref may be given (`DESIGN` 4: any unique prefix of at least 8).
const SHORTEST_PREFIX: usize = 8;

impl Ref {
    /// Makes the ref of a message.
    pub fn message(hash: ContentHash) -> Self {
        Self { kind: RefKind::Message, hash }
    }

    /// Reads `ref:<kind>:<hex>`, or the bare hex, and returns the hex prefix to look for.
    ///
    /// Errors: `None` unless there are 8 to 64 hex digits.
    pub fn prefix(text: &str) -> Option<String> {
        let digits = match text.strip_prefix("ref:") {
            Some(rest) => rest.split(':').nth(1)?,
            None => text,
        };
        let fits = (SHORTEST_PREFIX..=64).contains(&digits.len());
        (fits && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then(|| digits.to_ascii_lowercase())
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RefKind::Message = self.kind;
        write!(f, "ref:message:{}", self.hash)
    }
}

impl Serialize for Ref {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

struct Canonical(Sha256);

impl Canonical {
    fn tag(&mut self, tag: u8) {
        self.0.update([tag]);
    }

    fn field(&mut self, field: &str) {
        self.0.update((field.len() as u64).to_le_bytes());
        self.0.update(field.as_bytes());
    }

    fn image(&mut self, image: &Image) {
        self.tag(1);
        self.field(&image.media_type);
        self.field(&image.data);
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text(text) => {
                self.tag(0);
                self.field(text);
            }
            Block::Image(image) => self.image(image),
            Block::ToolCall(call) => {
                self.tag(2);
                self.field(&call.id);
                self.field(&call.name);
                self.field(&call.arguments);
            }
            Block::ToolResult(result) => {
                self.tag(3);
                self.field(&result.call_id);
                self.tag(u8::from(result.is_error));
                self.field(&result.text);
                self.0.update((result.images.len() as u64).to_le_bytes());
                for image in &result.images {
                    self.image(image);
                }
            }
            Block::Thinking(thinking) => {
                self.tag(4);
                self.field(&thinking.text);
                self.field(&thinking.signature);
            }
            Block::Opaque(opaque) => {
                self.tag(5);
                self.field(&opaque.kind);
                self.field(&opaque.raw);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MillisSinceEpoch;

    #[test]
    fn circumstance_is_not_identity() {
        let plain = Message::text(Role::User, "hello");
        let mut later = plain.clone();
        later.time = Some(MillisSinceEpoch(5));
        later.source = Some(3);
        assert_eq!(ContentHash::of(&plain), ContentHash::of(&later));
        assert_ne!(ContentHash::of(&plain), ContentHash::of(&Message::text(Role::System, "hello")));
    }

    #[test]
    fn fields_cannot_run_into_each_other() {
        let parts = |a: &str, b: &str| {
            Message::new(Role::User, vec![Block::Text(a.into()), Block::Text(b.into())])
        };
        assert_ne!(ContentHash::of(&parts("ab", "c")), ContentHash::of(&parts("a", "bc")));
    }

    #[test]
    fn refs_are_read_back_by_prefix() {
        let hash = ContentHash::of(&Message::text(Role::User, "hello"));
        let printed = Ref::message(hash).to_string();
        assert_eq!(Ref::prefix(&printed), Some(hash.short()));
        assert_eq!(Ref::prefix(&hash.short()[..8]), Some(hash.short()[..8].to_owned()));
        assert_eq!(Ref::prefix("ref:message:abc"), None);
        assert_eq!(Ref::prefix("not hexadecimal"), None);
    }
}
