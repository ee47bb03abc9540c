//! Tombstones of forgotten records.

use crate::memory::{MemoryChange, MemoryRecord};
use crate::remember::content_id;

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
}
