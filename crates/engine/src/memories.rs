//! Searching memory: all kinds at once, by meaning and by words, within what the asker may see.
//!
//! A copy of a tenant's records is kept in memory and brought up to date by what changed since; it can be built again at any
//! time. So a search reads no table, and two gateways on one store find the same.

mod tenant;

use futures_util::lock::OwnedMutexGuard;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::layers::Layer;
use plimsoll_core::memory::score::MemoryCandidate;
use plimsoll_core::memory::similar::LikenessSettings;
use plimsoll_core::memory::{MemoryKind, MemoryState};
use serde::{Deserialize, Serialize};

use crate::copies::Copies;
use crate::error::StoreError;
use crate::id::TenantId;
use crate::knowledge::KnowledgeStore;
use crate::memory::{MemoryRecord, Scope};
use crate::remember::Details;
use crate::search::Embedding;

pub use tenant::TenantMemory;

/// Settings of the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySearch {
    /// The most decisions that are scored.
    ///
    /// Source of these four: `memory-context.md`, step 3.
    pub decisions: usize,
    /// The most facts that are scored.
    pub facts: usize,
    /// The most procedures that are scored.
    pub procedures: usize,
    /// The most episodes that are scored.
    pub episodes: usize,
    /// Whether what one session said is shown in the others of the same workspace, user and agent.
    pub across_sessions: bool,
    /// Whether records that newer ones supersede are found, with a lower rank.
    pub superseded: bool,
    pub likeness: LikenessSettings,
    /// Records that are kept in memory over all tenants; the tenant that was asked longest ago is dropped first.
    ///
    /// Chosen: about half a gigabyte, at 1.5 KB a record of 128 dimensions.
    pub most_records: usize,
}

impl Default for MemorySearch {
    fn default() -> Self {
        Self {
            decisions: 20,
            facts: 30,
            procedures: 10,
            episodes: 10,
            across_sessions: true,
            superseded: true,
            likeness: LikenessSettings::default(),
            most_records: 300_000,
        }
    }
}

/// The asker and the question.
#[derive(Debug, Clone, Copy)]
pub struct AskedMemory<'a> {
    pub question: &'a str,
    pub vector: Option<&'a Embedding>,
    pub scope: &'a Scope,
    /// Each must be among a record's tags; censors are asked for none.
    pub tags: &'a [String],
    pub now: MillisSinceEpoch,
}

/// A record that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundMemory<'a> {
    pub record: &'a MemoryRecord,
    /// 0 to 1.
    pub similarity: f64,
}

/// Copies of what tenants know, each behind a lock of its own.
#[derive(Debug)]
pub struct Memories {
    settings: MemorySearch,
    tenants: Copies<TenantId, TenantMemory>,
}

impl Memories {
    /// Makes copies of nothing yet.
    pub fn new(settings: MemorySearch) -> Self {
        let tenants = Copies::new(settings.most_records);
        Self { settings, tenants }
    }

    /// Returns what a tenant knows now; only what changed since the last time is read.
    ///
    /// Others who ask for the same tenant wait until the guard is dropped.
    pub async fn of(
        &self,
        knowledge: &dyn KnowledgeStore,
        tenant: &TenantId,
    ) -> Result<OwnedMutexGuard<TenantMemory>, StoreError> {
        let mut known = self.tenants.get(tenant, TenantMemory::default).lock_owned().await;
        let changes = knowledge.memory_changes(tenant, known.version()).await?;
        known.take(changes);
        self.tenants.resize(tenant, known.len());
        Ok(known)
    }

    /// Returns the settings that searches go by.
    pub fn settings(&self) -> &MemorySearch {
        &self.settings
    }
}

impl MemorySearch {
    fn most_of(&self, layer: Layer) -> usize {
        match layer {
            Layer::Decisions => self.decisions,
            Layer::Facts => self.facts,
            Layer::Procedures => self.procedures,
            Layer::Episodes => self.episodes,
            _ => usize::MAX,
        }
    }
}

/// Returns a record as scoring sees it.
pub fn candidate(found: &FoundMemory<'_>) -> MemoryCandidate {
    let record = found.record;
    let details = Details::of(record);
    let superseded = record.superseded_by.is_some() || details.superseded_by.is_some();
    MemoryCandidate {
        id: record.id.0.clone(),
        kind: record.kind,
        // A superseded decision keeps its own state, and ranks as what it is.
        state: if superseded && record.state.is_current() {
            MemoryState::Superseded
        } else {
            record.state
        },
        name: details.name,
        micro: record.micro.clone(),
        summary: record.summary.clone(),
        origin: record.origin.clone(),
        similarity: found.similarity,
        at: record.event_at.unwrap_or(record.created_at),
        outcome: details.outcome.or_else(|| {
            (record.kind == MemoryKind::Decision).then_some(plimsoll_core::memory::Outcome::Pending)
        }),
        activations: details.activations,
        confidence: f64::from(record.confidence),
        severity: details.severity.unwrap_or_default(),
    }
}
