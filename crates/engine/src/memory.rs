//! Memory records: decisions, facts, procedures, episodes and censors.

use plimsoll_core::MillisSinceEpoch;
pub use plimsoll_core::memory::{MemoryKind, MemoryState};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::id::{SessionId, TenantId};
use crate::search::{Embedding, SearchQuery};

/// The id of a memory record, given by the caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemoryId(pub String);

impl MemoryId {
    /// Returns the error of a record that is not there.
    pub fn not_found(&self) -> StoreError {
        let shown = plimsoll_core::text::shortened(&self.0, 64);
        StoreError::NotFound { what: format!("memory {shown:?}") }
    }
}

/// The audience of a record, beside its tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scope {
    pub workspace: Option<String>,
    pub user: Option<String>,
    pub session: Option<SessionId>,
    pub agent: Option<String>,
}

impl Scope {
    /// Returns whether a record of this scope is for the asker's workspace, user and agent; each part that is not set is for all.
    pub fn is_open_to(&self, asker: &Self) -> bool {
        let part = |own: Option<&String>, asker: Option<&String>| own.is_none() || own == asker;
        part(self.workspace.as_ref(), asker.workspace.as_ref())
            && part(self.user.as_ref(), asker.user.as_ref())
            && part(self.agent.as_ref(), asker.agent.as_ref())
    }
}

/// A record with its three levels of detail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryRecord {
    pub tenant: TenantId,
    pub id: MemoryId,
    pub kind: MemoryKind,
    pub state: MemoryState,
    pub scope: Scope,
    /// One line of about 20 tokens, 50–100 tokens, and all there is.
    pub micro: String,
    pub summary: Option<String>,
    pub full: Option<String>,
    /// Its author: `operator`, `user`, `assistant`, `tool` and the like; only records of the operator may act as instructions.
    pub origin: String,
    pub confidence: f32,
    /// The ref of the text that it was taken from.
    pub source_ref: Option<String>,
    pub tags: Vec<String>,
    /// When it happened, apart from when it was recorded.
    pub event_at: Option<MillisSinceEpoch>,
    pub created_at: MillisSinceEpoch,
    pub updated_at: MillisSinceEpoch,
    pub superseded_by: Option<MemoryId>,
    pub embedding: Option<Embedding>,
    /// Fields of its kind, as JSON: confirmations, steps, severity and so on.
    pub details: String,
}

/// Which records to return.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryQuery {
    /// Empty means all kinds.
    pub kinds: Vec<MemoryKind>,
    /// Each part that is given must be equal.
    pub scope: Scope,
    /// Each must be among the record's tags.
    pub tags: Vec<String>,
    /// Also superseded, inactive and archived ones.
    pub all_states: bool,
    /// Words and vector to rank by; without both, the newest first.
    pub search: SearchQuery,
}

/// How far a copy of a tenant's memory is; the default is that of an empty copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryVersion {
    /// Counts changes.
    pub generation: i64,
    /// Counts removals: after one, a copy is made anew.
    pub epoch: i64,
}

/// The changes that bring a copy of a tenant's memory up to date.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryChanges {
    pub version: MemoryVersion,
    /// Whether `records` are all there are: what is not among them is gone.
    pub is_whole: bool,
    /// Present records in all states, each once, in no order.
    pub records: Vec<MemoryRecord>,
}

/// A change of a record, made from a version that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryChange {
    pub record: MemoryRecord,
    /// `updated_at` of the version that it was made from; `None` for a record that is new.
    pub from: Option<MillisSinceEpoch>,
    /// Refs of the sources that say it anew.
    pub sources: Vec<String>,
    /// Whether it is stored although it was forgotten: only what the operator says again.
    pub revives: bool,
}

impl MemoryChange {
    /// Makes the change that adds a record.
    pub fn added(record: MemoryRecord) -> Self {
        Self { record, from: None, sources: Vec::new(), revives: false }
    }

    /// Makes the change of a record that exists.
    pub fn of(before: &MemoryRecord, record: MemoryRecord) -> Self {
        Self { record, from: Some(before.updated_at), sources: Vec::new(), revives: false }
    }
}
