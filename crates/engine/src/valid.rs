//! Checks that every backend makes before it touches anything.

use plimsoll_core::ContentHash;
use sha2::{Digest as _, Sha256};

use crate::artefact::{Artefact, ArtefactRef};
use crate::card::ContextCard;
use crate::error::StoreError;
use crate::history::{HistoryBatch, MessageRecord};
use crate::id::TenantId;
use crate::job::NewJob;
use crate::knowledge::Answer;
use crate::memory::{MemoryRecord, Scope};
use crate::search::{Embedding, SearchQuery};

/// How far a vector's length may be from 1: what rounding to f32 and a provider's own rounding leave, and more.
const LENGTH_TOLERANCE: f32 = 0.01;
/// Characters of the longest summary of an artefact (`context-strategy.md` 3.2, `summary_size`).
pub(crate) const LONGEST_SUMMARY: usize = 500;
/// The fewest and most hex digits by which content may be asked for.
const PREFIX: std::ops::RangeInclusive<usize> = 8..=64;

fn invalid(field: &'static str, why: impl Into<String>) -> StoreError {
    StoreError::Invalid { field, why: why.into() }
}

impl HistoryBatch {
    /// Checks everything in it that can be checked without the store.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.branch.as_ref().is_some_and(|branch| branch.session == branch.from) {
            return Err(invalid("branch", "a session cannot be a branch of itself"));
        }
        self.messages.iter().try_for_each(MessageRecord::check)?;
        self.cards.iter().try_for_each(ContextCard::check)
    }
}

impl MessageRecord {
    /// Checks that the hash is that of the message.
    pub fn check(&self) -> Result<(), StoreError> {
        if ContentHash::of(&self.message) == self.hash {
            return Ok(());
        }
        Err(invalid("hash", format!("{} is not the hash of the message", self.hash)))
    }
}

impl ContextCard {
    /// Checks content hash and embedding.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.content_hash.len() != 16 || !is_lower_hex(&self.content_hash) {
            return Err(invalid("content_hash", "it is 16 hex digits in lower case"));
        }
        self.embedding.as_ref().map_or(Ok(()), Embedding::check)
    }
}

impl Embedding {
    /// Returns the cosine; `None` for vectors of different models or lengths.
    pub fn cosine(&self, other: &Self) -> Option<f64> {
        let comparable = self.model == other.model && self.vector.len() == other.vector.len();
        let products = self.vector.iter().zip(&other.vector).map(|(a, b)| f64::from(a * b));
        comparable.then(|| products.sum())
    }

    /// Checks that the vector is finite and of length 1.
    pub fn check(&self) -> Result<(), StoreError> {
        let length = self.vector.iter().map(|part| part * part).sum::<f32>().sqrt();
        if (length - 1.0).abs() <= LENGTH_TOLERANCE {
            return Ok(());
        }
        Err(invalid("embedding", format!("a vector of length {length} where 1 is asked")))
    }
}

impl SearchQuery {
    /// Checks the embedding, if there is one.
    pub fn check(&self) -> Result<(), StoreError> {
        self.embedding.as_ref().map_or(Ok(()), Embedding::check)
    }
}

impl ArtefactRef {
    /// Checks that the printed form can be read back.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.digest.len() != 64 || !is_lower_hex(&self.digest) {
            return Err(invalid("digest", "it is 64 hex digits in lower case"));
        }
        if !is_name(&self.kind.0) {
            return Err(invalid("kind", "it is 1 to 64 of a–z, 0–9 and `_`"));
        }
        if self.view.as_deref().is_some_and(|view| !is_name(view)) {
            return Err(invalid("view", "it is 1 to 64 of a–z, 0–9 and `_`"));
        }
        Ok(())
    }
}

impl Artefact {
    /// Checks ref, digest, summary and freshness.
    pub fn check(&self) -> Result<(), StoreError> {
        self.reference.check()?;
        if self.reference.digest != digest(&self.content) {
            return Err(invalid("digest", "it is not the SHA-256 of the content"));
        }
        if self.summary.as_ref().is_some_and(|text| text.chars().count() > LONGEST_SUMMARY) {
            return Err(invalid(
                "summary",
                format!("it has more than {LONGEST_SUMMARY} characters"),
            ));
        }
        if !self.freshness_score.is_finite() {
            return Err(invalid("freshness_score", "it is not a number"));
        }
        Ok(())
    }
}

impl MemoryRecord {
    /// Checks that it is of `tenant`, and what [`Self::check`] does.
    pub fn check_of(&self, tenant: &TenantId) -> Result<(), StoreError> {
        if self.tenant != *tenant {
            return Err(invalid("tenant", "a record is of another tenant"));
        }
        self.check()
    }

    /// Checks confidence and embedding.
    pub fn check(&self) -> Result<(), StoreError> {
        if !self.confidence.is_finite() {
            return Err(invalid("confidence", "it is not a number"));
        }
        self.embedding.as_ref().map_or(Ok(()), Embedding::check)
    }
}

impl Scope {
    /// Checks that it has a part: without one it would mean everything.
    pub fn check_narrow(&self) -> Result<(), StoreError> {
        if *self == Self::default() {
            return Err(invalid("scope", "it names no workspace, user, session or agent"));
        }
        Ok(())
    }

    /// Returns whether every part that is given here is equal in `other`.
    pub fn covers(&self, other: &Self) -> bool {
        fn equal<T: PartialEq>(asked: Option<&T>, found: Option<&T>) -> bool {
            asked.is_none() || asked == found
        }
        equal(self.workspace.as_ref(), other.workspace.as_ref())
            && equal(self.user.as_ref(), other.user.as_ref())
            && equal(self.session.as_ref(), other.session.as_ref())
            && equal(self.agent.as_ref(), other.agent.as_ref())
    }

    /// Returns the session if that is the only part given: what has no other part belongs to it alone.
    pub fn session_alone(&self) -> Option<&crate::id::SessionId> {
        let alone = self.workspace.is_none() && self.user.is_none() && self.agent.is_none();
        self.session.as_ref().filter(|_| alone)
    }
}

impl NewJob {
    /// Checks the priority.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.priority > 9 {
            return Err(invalid("priority", format!("{} is not within 0 to 9", self.priority)));
        }
        Ok(())
    }
}

impl Answer {
    /// Checks the embedding.
    pub fn check(&self) -> Result<(), StoreError> {
        self.query_embedding.as_ref().map_or(Ok(()), Embedding::check)
    }
}

/// Returns the 64 hex digits of the content's SHA-256.
pub fn digest(content: &[u8]) -> String {
    ContentHash(Sha256::digest(content).into()).full()
}

/// Reads a prefix of a hash: 8 to 64 hex digits, returned in lower case.
pub fn hash_prefix(text: &str) -> Result<String, StoreError> {
    if PREFIX.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(invalid("hash", "it is asked for by 8 to 64 hex digits"))
}

/// The key by which an artefact is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedRef {
    /// Hex digits in lower case that the digest begins with.
    pub prefix: String,
    /// `None` for bare digits: any kind and any view.
    pub named: Option<(String, Option<String>)>,
}

impl AskedRef {
    /// Reads `ref:<kind>:<hex>[:view]`, or the bare hex.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let Some(rest) = text.strip_prefix("ref:") else {
            return Ok(Self { prefix: hash_prefix(text)?, named: None });
        };
        let mut parts = rest.splitn(3, ':');
        let (kind, digits) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let view = parts.next();
        if !is_name(kind) || view.is_some_and(|view| !is_name(view)) {
            return Err(invalid("ref", "it has the form ref:<kind>:<hex>[:view]"));
        }
        let named = Some((kind.to_owned(), view.map(str::to_owned)));
        Ok(Self { prefix: hash_prefix(digits)?, named })
    }

    /// Returns whether `reference` is meant.
    pub fn matches(&self, reference: &ArtefactRef) -> bool {
        reference.digest.starts_with(&self.prefix)
            && self
                .named
                .as_ref()
                .is_none_or(|(kind, view)| *kind == reference.kind.0 && *view == reference.view)
    }
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_are_read_in_every_printed_form() {
        let asked = AskedRef::parse("ref:notion_page:0123456789abcdef:outline").expect("a ref");
        assert_eq!(asked.named, Some(("notion_page".into(), Some("outline".into()))));
        assert_eq!(AskedRef::parse("0123ABCD").expect("digits").prefix, "0123abcd");
        for bad in ["", "0123", "ref:", "ref:a", "ref:A:01234567", "ref:a:01234567:b:c", "%1234567"]
        {
            assert!(AskedRef::parse(bad).is_err(), "{bad}");
        }
    }
}
