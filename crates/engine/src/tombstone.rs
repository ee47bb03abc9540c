//! Tombstones of forgotten records, and the digest by which a store checks a record that it reads.

use plimsoll_core::MillisSinceEpoch;

use crate::error::StoreError;
use crate::memory::{MemoryChange, MemoryRecord};
use crate::remember::content_id;
use crate::valid::digest;

impl MemoryChange {
    /// Returns the keys of the tombstones that forbid it.
    pub fn forbidding(&self) -> Vec<String> {
        let mut keys: Vec<String> =
            self.sources.iter().map(|source| source_tombstone(source)).collect();
        if self.from.is_none() {
            keys.extend(self.record.tombstones());
        }
        keys
    }
}

/// Returns the key of the tombstone of a source.
pub fn source_tombstone(source: &str) -> String {
    format!("source:{source}")
}

impl MemoryRecord {
    /// Returns the keys of the tombstones of a forgotten record: its id, and what it says to whom.
    pub fn tombstones(&self) -> Vec<String> {
        let mut keys = vec![format!("record:{}", self.id.0)];
        let content = format!("record:{}", content_id(self).0);
        if content != keys[0] {
            keys.push(content);
        }
        keys
    }

    /// Returns the digest of all that it says, by which a store checks what it reads; its vector is not part of it.
    pub fn digest(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let time =
            |at: Option<MillisSinceEpoch>| at.map_or_else(String::new, |at| at.0.to_string());
        let scope = &self.scope;
        let parts = [
            self.id.0.clone(),
            self.kind.as_str().to_owned(),
            self.state.as_str().to_owned(),
            text(&scope.workspace),
            text(&scope.user),
            scope.session.as_ref().map_or_else(String::new, |one| one.as_str().to_owned()),
            text(&scope.agent),
            self.micro.clone(),
            text(&self.summary),
            text(&self.full),
            self.origin.clone(),
            self.confidence.to_bits().to_string(),
            text(&self.source_ref),
            self.tags.join("\u{1e}"),
            time(self.event_at),
            self.created_at.0.to_string(),
            self.updated_at.0.to_string(),
            self.superseded_by.as_ref().map_or_else(String::new, |id| id.0.clone()),
            self.details.clone(),
        ];
        digest(parts.join("\u{1f}").as_bytes())
    }

    /// Checks the digest that was stored with it, if one was.
    pub fn check_digest(&self, stored: Option<&str>) -> Result<(), StoreError> {
        if stored.is_none_or(|stored| stored == self.digest()) {
            return Ok(());
        }
        Err(StoreError::Corrupt { what: format!("memory {:?}", self.id.0) })
    }
}
