//! A copy of one tenant's records in memory, and the search in it.

use std::collections::{BTreeMap, HashMap};

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::layers::Layer;
use plimsoll_core::memory::score::StateFactors;
use plimsoll_core::memory::similar::{WordSlots, likeness};
use plimsoll_core::memory::{MemoryKind, MemoryState};
use serde::Deserialize;

use super::{AskedMemory, FoundMemory, MemorySearch};
use crate::memory::{MemoryChanges, MemoryId, MemoryRecord, MemoryVersion, Scope};
use crate::search::Embedding;

/// The records of one tenant.
#[derive(Debug, Default)]
pub struct TenantMemory {
    version: MemoryVersion,
    records: Vec<MemoryEntry>,
    /// By record.
    features: Vec<Features>,
    by_id: HashMap<MemoryId, usize>,
    words: WordSlots,
    /// The words of all there is of a record, where there is more than is shown.
    full: WordSlots,
    /// By model: the vectors of its records, one after another.
    vectors: BTreeMap<String, Vectors>,
}

/// A record with what is read of its details at every search.
#[derive(Debug)]
struct MemoryEntry {
    record: MemoryRecord,
    expires_at: Option<MillisSinceEpoch>,
}

/// The features of a record that every search reads, next to those of other records: the records themselves lie far apart.
#[derive(Debug, Clone, Copy)]
struct Features {
    layer: Layer,
    state: MemoryState,
    /// Whether everybody of the session sees it, whatever the settings are; else the record decides.
    is_open: bool,
    is_of_session: bool,
}

/// Those fields of [`Details`] that every record is read for: reading all of them takes ten times as long.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RecordTerms {
    name: String,
    expires_at: Option<MillisSinceEpoch>,
}

#[derive(Debug, Default)]
struct Vectors {
    dimension: usize,
    slots: Vec<usize>,
    parts: Vec<f32>,
}

impl TenantMemory {
    /// Returns the version of the store that it is a copy of.
    pub(super) fn version(&self) -> MemoryVersion {
        self.version
    }

    /// Returns the number of its records.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Takes over what changed in the store.
    pub(super) fn take(&mut self, changes: MemoryChanges) {
        if changes.is_whole {
            *self = Self::default();
        }
        self.version = changes.version;
        let mut moved = false;
        for record in changes.records {
            let next = self.records.len();
            let slot = *self.by_id.entry(record.id.clone()).or_insert(next);
            let details: RecordTerms = serde_json::from_str(&record.details).unwrap_or_default();
            let texts = [&*details.name, &*record.micro].into_iter();
            let texts = texts.chain(record.summary.as_deref());
            self.words.set(slot, texts.chain(record.tags.iter().map(String::as_str)));
            match record.full.as_deref() {
                Some(full) => self.full.set(slot, [full]),
                None => self.full.clear(slot),
            }
            let kept = MemoryEntry { record, expires_at: details.expires_at };
            let features = Features::of(&kept);
            if let Some(before) = self.records.get_mut(slot) {
                moved |= before.record.embedding != kept.record.embedding;
                *before = kept;
                self.features[slot] = features;
            } else {
                if !moved {
                    self.add_vector(slot, kept.record.embedding.as_ref());
                }
                self.records.push(kept);
                self.features.push(features);
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

    /// Returns whether the asker may see the record of an id.
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
        let mut layers: BTreeMap<Layer, Vec<(f64, usize)>> = BTreeMap::new();
        for (slot, (features, similarity)) in self.features.iter().zip(&likeness).enumerate() {
            let is_open = features.is_open && (settings.across_sessions || !features.is_of_session);
            if !(is_open && asked.tags.is_empty() || self.records[slot].is_visible(asked, settings))
            {
                continue;
            }
            // What is superseded or proven stands behind or before its like already here, where only the best are taken.
            let rank = similarity * states.of(features.state);
            layers.entry(features.layer).or_default().push((rank, slot));
        }
        let mut found = Vec::new();
        for (layer, mut own) in layers {
            let most = settings.most_of(layer);
            let id = |slot: usize| &self.records[slot].record.id;
            let better = |a: &(f64, usize), b: &(f64, usize)| {
                b.0.total_cmp(&a.0).then_with(|| id(a.1).cmp(id(b.1)))
            };
            if own.len() > most && most > 0 {
                own.select_nth_unstable_by(most - 1, better);
            }
            own.truncate(most);
            own.sort_by(better);
            found.extend(own.into_iter().map(|(_, slot)| FoundMemory {
                record: &self.records[slot].record,
                similarity: likeness[slot],
            }));
        }
        found.sort_by(|a, b| {
            b.similarity.total_cmp(&a.similarity).then_with(|| a.record.id.cmp(&b.record.id))
        });
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

impl MemoryRecord {
    /// Returns whether its detail is for the asker: the record is in use at `now`, and its scope, but for the session, is theirs.
    pub fn is_shown_to(&self, asker: &Scope, now: MillisSinceEpoch) -> bool {
        let details: RecordTerms = serde_json::from_str(&self.details).unwrap_or_default();
        self.scope.is_open_to(asker)
            && details.expires_at.is_none_or(|end| now < end)
            && !matches!(self.state, MemoryState::Inactive | MemoryState::Retired)
    }
}

impl Features {
    fn of(kept: &MemoryEntry) -> Self {
        let MemoryEntry { record, expires_at } = kept;
        let Scope { workspace, user, session, agent } = &record.scope;
        let is_everybodys = workspace.is_none() && user.is_none() && agent.is_none();
        let is_in_use = !matches!(
            record.state,
            MemoryState::Inactive | MemoryState::Retired | MemoryState::Superseded
        ) && record.superseded_by.is_none();
        Self {
            layer: Layer::of(record.kind),
            state: record.state,
            is_open: is_everybodys && expires_at.is_none() && is_in_use,
            is_of_session: session.is_some(),
        }
    }
}

impl MemoryEntry {
    /// Returns whether the asker may see it and it holds now.
    fn is_visible(&self, asked: &AskedMemory<'_>, settings: &MemorySearch) -> bool {
        let record = &self.record;
        let (own, asker) = (&record.scope, asked.scope);
        let session =
            settings.across_sessions || own.session.is_none() || own.session == asker.session;
        let is_tagged = record.kind == MemoryKind::Censor
            || asked.tags.iter().all(|tag| record.tags.contains(tag));
        session
            && is_tagged
            && own.is_open_to(asker)
            && self.expires_at.is_none_or(|end| asked.now < end)
            && !matches!(record.state, MemoryState::Inactive | MemoryState::Retired)
            && (settings.superseded
                || record.state != MemoryState::Superseded && record.superseded_by.is_none())
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
