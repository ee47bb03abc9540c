//! Memory records in memory: states, changes and search.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Hit, MemoryChange, MemoryChanges, MemoryId, MemoryQuery, MemoryRecord, MemoryVersion,
    StoreError, words,
};

use super::ranking::{SearchDocument, rank};
use super::{MemoryHistory, Records, StoreResult, not_found};

impl Records {
    pub(super) fn put_memory(&mut self, record: &MemoryRecord) {
        self.memory_version.generation += 1;
        let generation = self.memory_version.generation;
        let memory = self.memories.entry(record.id.0.clone()).or_insert_with(|| MemoryHistory {
            present: record.clone(),
            generation,
            states: BTreeMap::new(),
        });
        memory.present = record.clone();
        memory.generation = generation;
        memory.states.insert(record.updated_at.0, record.clone());
    }

    pub(super) fn change_memories(
        &mut self,
        changes: &[MemoryChange],
    ) -> StoreResult<Vec<MemoryId>> {
        for change in changes {
            let id = &change.record.id;
            let present = self.memories.get(&id.0).map(|memory| memory.present.updated_at);
            if present != change.from {
                return Err(StoreError::Conflict { what: format!("memory {:?} changed", id.0) });
            }
        }
        let mut passed_over = Vec::new();
        for change in changes {
            let keys = change.forbidding();
            if change.revives {
                self.tombstones.retain(|key| !keys.contains(key));
            } else if keys.iter().any(|key| self.tombstones.contains(key)) {
                passed_over.push(change.record.id.clone());
                continue;
            }
            self.put_memory(&change.record);
        }
        Ok(passed_over)
    }

    pub(super) fn read_memory(
        &self,
        id: &MemoryId,
        as_of: Option<MillisSinceEpoch>,
    ) -> StoreResult<MemoryRecord> {
        let found = self.memories.get(&id.0).and_then(|memory| match as_of {
            None => Some(&memory.present),
            Some(at) => memory.states.range(..=at.0).next_back().map(|(_, record)| record),
        });
        found.cloned().map_or_else(|| not_found(format!("memory {:?}", id.0)), Ok)
    }

    pub(super) fn memory_changes(&self, since: MemoryVersion) -> MemoryChanges {
        let version = self.memory_version;
        let is_whole = since.generation == 0 || since.epoch != version.epoch;
        let all = self.memories.values();
        let changed = all.filter(|memory| is_whole || memory.generation > since.generation);
        let records = changed.map(|memory| memory.present.clone()).collect();
        MemoryChanges { version, is_whole, records }
    }

    pub(super) fn search_memories(&self, query: &MemoryQuery) -> Vec<Hit<MemoryRecord>> {
        let found = self
            .memories
            .values()
            .map(|memory| &memory.present)
            .filter(|r| query.kinds.is_empty() || query.kinds.contains(&r.kind))
            .filter(|r| query.scope.covers(&r.scope))
            .filter(|r| query.tags.iter().all(|tag| r.tags.contains(tag)))
            .filter(|r| query.all_states || r.state.is_current());
        if query.search.text.is_none() && query.search.embedding.is_none() {
            let mut found: Vec<&MemoryRecord> = found.collect();
            found.sort_by_key(|record| Reverse(record.updated_at));
            let newest = found.into_iter().take(query.search.limit);
            return newest.map(|record| Hit { item: record.clone(), score: 0.0 }).collect();
        }
        let documents: Vec<_> = found
            .map(|record| {
                let texts = [Some(&record.micro), record.summary.as_ref(), record.full.as_ref()];
                let texts = texts.into_iter().flatten().chain(&record.tags);
                let words = texts.flat_map(|text| words(text)).collect();
                SearchDocument { record, words, embedding: record.embedding.as_ref() }
            })
            .collect();
        rank(&documents, &query.search)
    }
}
