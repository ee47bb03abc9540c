//! Searching memory: all kinds at once, by meaning and by words, within what the asker may see.
//!
//! A copy of a tenant's records is kept in memory and brought up to date by what changed since; it can be built again at any
//! time. So a search reads no table, and two gateways on one store find the same.

use std::collections::{BTreeMap, HashMap};

use futures_util::lock::OwnedMutexGuard;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::layers::Layer;
use plimsoll_core::memory::score::{MemoryCandidate, StateFactors};
use plimsoll_core::memory::similar::{LikenessSettings, WordSlots, likeness};
use plimsoll_core::memory::{MemoryKind, MemoryState};
use serde::{Deserialize, Serialize};

use crate::copies::Copies;
use crate::error::StoreError;
use crate::id::TenantId;
use crate::knowledge::KnowledgeStore;
use crate::memory::{MemoryId, MemoryRecord, MemoryVersion, Scope};
use crate::remember::Details;
use crate::search::Embedding;

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

/// Who asks for what.
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

/// What one tenant knows.
#[derive(Debug, Default)]
pub struct TenantMemory {
    version: MemoryVersion,
    records: Vec<Kept>,
    by_id: HashMap<MemoryId, usize>,
    words: WordSlots,
    /// The words of all there is of a record, where there is more than is shown.
    full: WordSlots,
    /// By model: the vectors of its records, one after another.
    vectors: BTreeMap<String, Vectors>,
}

/// A record with what is read of its details at every search.
#[derive(Debug)]
struct Kept {
    record: MemoryRecord,
    expires_at: Option<MillisSinceEpoch>,
}

/// Those fields of [`Details`] that every record is read for: reading all of them takes ten times as long.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Glance {
    name: String,
    expires_at: Option<MillisSinceEpoch>,
}

#[derive(Debug, Default)]
struct Vectors {
    dimension: usize,
    slots: Vec<usize>,
    parts: Vec<f32>,
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
        let changes = knowledge.memory_changes(tenant, known.version).await?;
        if changes.is_whole {
            *known = TenantMemory::default();
        }
        known.version = changes.version;
        known.take(changes.records);
        self.tenants.resize(tenant, known.records.len());
        Ok(known)
    }

    /// Returns the settings that searches go by.
    pub fn settings(&self) -> &MemorySearch {
        &self.settings
    }
}

impl TenantMemory {
    fn take(&mut self, records: Vec<MemoryRecord>) {
        let mut moved = false;
        for record in records {
            let next = self.records.len();
            let slot = *self.by_id.entry(record.id.clone()).or_insert(next);
            let glance: Glance = serde_json::from_str(&record.details).unwrap_or_default();
            let texts = [&*glance.name, &*record.micro].into_iter();
            let texts = texts.chain(record.summary.as_deref());
            self.words.set(slot, texts.chain(record.tags.iter().map(String::as_str)));
            match record.full.as_deref() {
                Some(full) => self.full.set(slot, [full]),
                None => self.full.clear(slot),
            }
            let kept = Kept { record, expires_at: glance.expires_at };
            if let Some(before) = self.records.get_mut(slot) {
                moved |= before.record.embedding != kept.record.embedding;
                *before = kept;
            } else {
                if !moved {
                    self.add_vector(slot, kept.record.embedding.as_ref());
                }
                self.records.push(kept);
            }
        }
        if moved {
            self.vectors.clear();
            for slot in 0..self.records.len() {
                let vector = self.records[slot].record.embedding.clone();
                self.add_vector(slot, vector.as_ref());
            }
        }
    }

    fn add_vector(&mut self, slot: usize, embedding: Option<&Embedding>) {
        let Some(embedding) = embedding else { return };
        let vectors = self.vectors.entry(embedding.model.clone()).or_default();
        if vectors.slots.is_empty() {
            vectors.dimension = embedding.vector.len();
        }
        if vectors.dimension == embedding.vector.len() {
            vectors.slots.push(slot);
            vectors.parts.extend_from_slice(&embedding.vector);
        }
    }

    /// Returns all records, in no order.
    pub fn records(&self) -> impl Iterator<Item = &MemoryRecord> {
        self.records.iter().map(|kept| &kept.record)
    }

    /// Returns the record of an id, whoever may see it.
    pub fn record(&self, id: &MemoryId) -> Option<&MemoryRecord> {
        self.by_id.get(id).map(|slot| &self.records[*slot].record)
    }

    /// Returns the records that the asker may see, in no order; whatever their tags are.
    pub fn visible(
        &self,
        asked: &AskedMemory<'_>,
        settings: &MemorySearch,
    ) -> impl Iterator<Item = &MemoryRecord> {
        let asked = AskedMemory { tags: &[], ..*asked };
        let seen = self.records.iter().filter(move |kept| kept.is_visible(&asked, settings));
        seen.map(|kept| &kept.record)
    }

    /// Tells whether the asker may see the record of an id.
    pub fn is_visible(
        &self,
        id: &MemoryId,
        asked: &AskedMemory<'_>,
        settings: &MemorySearch,
    ) -> bool {
        let asked = AskedMemory { tags: &[], ..*asked };
        self.by_id.get(id).is_some_and(|slot| self.records[*slot].is_visible(&asked, settings))
    }

    /// Returns the records of all kinds that the question asks for, and every censor in use; the most similar first, equal ones
    /// by id.
    pub fn search(
        &self,
        asked: &AskedMemory<'_>,
        settings: &MemorySearch,
        states: &StateFactors,
    ) -> Vec<FoundMemory<'_>> {
        let likeness = self.likeness(asked, settings);
        let mut layers: BTreeMap<Layer, Vec<(f64, &Kept, f64)>> = BTreeMap::new();
        for (kept, similarity) in self.records.iter().zip(likeness) {
            if !kept.is_visible(asked, settings) {
                continue;
            }
            // What is superseded or proven stands behind or before its like already here, where only the best are taken.
            let rank = similarity * states.of(kept.record.state);
            layers.entry(Layer::of(kept.record.kind)).or_default().push((rank, kept, similarity));
        }
        let mut found = Vec::new();
        for (layer, mut own) in layers {
            let most = settings.most_of(layer);
            let better = |a: &(f64, &Kept, f64), b: &(f64, &Kept, f64)| {
                b.0.total_cmp(&a.0).then_with(|| a.1.record.id.cmp(&b.1.record.id))
            };
            if own.len() > most && most > 0 {
                own.select_nth_unstable_by(most - 1, better);
            }
            own.truncate(most);
            own.sort_by(better);
            let own = own.into_iter();
            found.extend(
                own.map(|(_, kept, similarity)| FoundMemory { record: &kept.record, similarity }),
            );
        }
        found.sort_by(|a, b| {
            b.similarity.total_cmp(&a.similarity).then_with(|| a.record.id.cmp(&b.record.id))
        });
        found
    }

    /// Returns the facts that a question asks for: by similarity, then by tags in common, then the newest.
    ///
    /// Source: `context-strategy.md` 4.3. Tags rank here and leave nothing out.
    pub fn top_facts(
        &self,
        asked: &AskedMemory<'_>,
        most: usize,
        settings: &MemorySearch,
    ) -> Vec<FoundMemory<'_>> {
        const LEDGER: [MemoryKind; 6] = [
            MemoryKind::Decision,
            MemoryKind::Entity,
            MemoryKind::Task,
            MemoryKind::Metric,
            MemoryKind::Link,
            MemoryKind::Fact,
        ];
        let untagged = AskedMemory { tags: &[], ..*asked };
        let likeness = self.likeness(asked, settings);
        let mut found: Vec<FoundMemory<'_>> = self
            .records
            .iter()
            .zip(likeness)
            .filter(|(kept, similarity)| {
                *similarity > 0.0
                    && LEDGER.contains(&kept.record.kind)
                    && kept.is_visible(&untagged, settings)
            })
            .map(|(kept, similarity)| FoundMemory { record: &kept.record, similarity })
            .collect();
        let common = |record: &MemoryRecord| {
            record.tags.iter().filter(|tag| asked.tags.contains(tag)).count()
        };
        let better = |a: &FoundMemory<'_>, b: &FoundMemory<'_>| {
            // Similarities that differ by less than a hundredth say the same.
            let rounded = |found: &FoundMemory<'_>| (found.similarity * 100.0).round();
            rounded(b)
                .total_cmp(&rounded(a))
                .then_with(|| common(b.record).cmp(&common(a.record)))
                .then_with(|| b.record.updated_at.cmp(&a.record.updated_at))
                .then_with(|| a.record.id.cmp(&b.record.id))
        };
        if found.len() > most && most > 0 {
            found.select_nth_unstable_by(most - 1, better);
        }
        found.truncate(most);
        found.sort_by(better);
        found
    }

    /// Returns how like each record is to the question.
    fn likeness(&self, asked: &AskedMemory<'_>, settings: &MemorySearch) -> Vec<f64> {
        let mut cosines: Vec<Option<f64>> = vec![None; self.records.len()];
        if let Some(asked) = asked.vector
            && let Some(vectors) = self.vectors.get(&asked.model)
            && vectors.dimension == asked.vector.len()
            && vectors.dimension > 0
        {
            let rows = vectors.parts.chunks_exact(vectors.dimension);
            for (slot, row) in vectors.slots.iter().zip(rows) {
                cosines[*slot] = Some(f64::from(dot(&asked.vector, row)));
            }
        }
        let shares = |words: &WordSlots| {
            let mut shares = words.shares(asked.question);
            shares.resize(self.records.len(), 0.0);
            shares
        };
        let all = cosines.into_iter().zip(shares(&self.words)).zip(shares(&self.full));
        all.map(|((cosine, share), full)| likeness(cosine, share, full, &settings.likeness))
            .collect()
    }
}

impl Kept {
    /// Tells whether the asker may see it and it holds now.
    fn is_visible(&self, asked: &AskedMemory<'_>, settings: &MemorySearch) -> bool {
        let record = &self.record;
        let for_asker =
            |own: Option<&String>, asker: Option<&String>| own.is_none() || own == asker;
        let (own, asker) = (&record.scope, asked.scope);
        let session =
            settings.across_sessions || own.session.is_none() || own.session == asker.session;
        let is_tagged = record.kind == MemoryKind::Censor
            || asked.tags.iter().all(|tag| record.tags.contains(tag));
        session
            && is_tagged
            && for_asker(own.workspace.as_ref(), asker.workspace.as_ref())
            && for_asker(own.user.as_ref(), asker.user.as_ref())
            && for_asker(own.agent.as_ref(), asker.agent.as_ref())
            && self.expires_at.is_none_or(|end| asked.now < end)
            && !matches!(record.state, MemoryState::Inactive | MemoryState::Retired)
            && (settings.superseded
                || record.state != MemoryState::Superseded && record.superseded_by.is_none())
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

/// Multiplies in sixteen lanes, which every machine has and the compiler finds.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let (a_rows, b_rows) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f32 = a_rows.remainder().iter().zip(b_rows.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a_rows.zip(b_rows) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + tail
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_add_up_to_the_product() {
        let a: Vec<f32> = (0..37).map(|n| n as f32).collect();
        let plain: f32 = a.iter().map(|n| n * n).sum();
        assert!((dot(&a, &a) - plain).abs() < 0.01);
        assert!(dot(&[], &[]).abs() < f32::EPSILON);
    }
}
