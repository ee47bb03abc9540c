//! Remembering: writing what is known, and what happens to it afterwards.
//!
//! Callers write records directly; records from messages are extracted without a model. The rules are core's
//! lifecycles; here they meet the store. A record that is met again is confirmed, not stored twice: its id follows from what it
//! says and whom it is for.

mod confidence;
mod details;
mod edit;
mod extraction;
mod model_pass;
mod new_memory;
mod record;
mod transfer;
mod vectors;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::lifecycle::{
    BrokenChain, Event, Lifecycle, LifecycleSettings, TransitionError, check_supersession,
};
use plimsoll_core::memory::score::OPERATOR;
use plimsoll_core::memory::{MemoryKind, MemoryState, Outcome};
use plimsoll_core::safety::{Handling, redact};
use serde::Serialize;

use crate::embedder::Embedder;
use crate::error::StoreError;
use crate::id::TenantId;
use crate::knowledge::{Forgotten, KnowledgeStore};
use crate::memory::{MemoryChange, MemoryId, MemoryQuery, MemoryRecord, MemoryVersion};
use crate::model_error::ModelError;
use crate::search::SearchQuery;
use new_memory::complete;
use record::later;

pub use confidence::SourceConfidence;
pub use details::Details;
pub use edit::Edit;
pub use extraction::{ExtractedFacts, extract_session};
pub use model_pass::queue_model_pass;
pub(crate) use model_pass::{EXTRACT, ExtractPayload};
pub use new_memory::NewMemory;
pub(crate) use new_memory::content_id;
pub use transfer::{from_line, to_line};

/// The outcome of a request to remember something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Novelty {
    /// It was not known.
    New,
    /// It was known, and is now by one source more.
    Confirmed,
    /// It was known, and nothing changed.
    Known,
    /// It was forgotten, and stays so.
    Forgotten,
}

/// The tag of a record that its user has read and kept.
pub const REVIEWED: &str = "reviewed";

/// Attempts at a change that others keep changing (chosen: each attempt fails only because another change succeeded).
const ATTEMPTS: usize = 10_000;

fn contended() -> MemoryError {
    let why = "others keep changing the same record".to_owned();
    StoreError::Unavailable { why, retry_after: None }.into()
}

/// Why something can't be remembered or changed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the record has no vector: {0}")]
    Model(#[from] ModelError),
    /// Its lifecycle has no such event now.
    #[error(transparent)]
    Refused(#[from] TransitionError),
    #[error(transparent)]
    Circle(#[from] BrokenChain),
    #[error("a {kind} needs {what}", kind = kind.as_str())]
    Incomplete { kind: MemoryKind, what: &'static str },
    /// Another record has its id.
    #[error("`{}` says something else already; supersede it or give another id", id.0)]
    Taken { id: MemoryId },
}

/// The means of remembering. Without an embedder records have no vectors and are found by their words.
#[derive(Debug, Clone, Copy)]
pub struct Remember<'a> {
    pub knowledge: &'a dyn KnowledgeStore,
    pub embedder: Option<&'a dyn Embedder>,
    pub tenant: &'a TenantId,
    pub lifecycles: &'a LifecycleSettings,
    pub confidence: &'a SourceConfidence,
    /// The treatment of secrets and personal data before anything is stored.
    pub handling: Handling,
}

impl Remember<'_> {
    /// Remembers one thing; see [`Self::add_all`].
    pub async fn add(
        &self,
        new: NewMemory,
        now: MillisSinceEpoch,
    ) -> Result<(MemoryRecord, Novelty), MemoryError> {
        let mut added = self.add_all(vec![new], now).await?;
        added.pop().ok_or_else(|| StoreError::NotFound { what: "the new record".into() }.into())
    }

    /// Remembers all of `new` in one transaction, or nothing.
    ///
    /// A record that exists already is confirmed if it comes from a new source. What was forgotten is not remembered again,
    /// unless the operator says it. Returned in the order of `new`.
    pub async fn add_all(
        &self,
        new: Vec<NewMemory>,
        now: MillisSinceEpoch,
    ) -> Result<Vec<(MemoryRecord, Novelty)>, MemoryError> {
        let mut redacted = Vec::with_capacity(new.len());
        for one in new {
            let one = one.redacted(self.handling);
            complete(&one)?;
            redacted.push(one);
        }
        let mut met = BTreeSet::new();
        for _ in 0..ATTEMPTS {
            match self.try_add(&redacted, &mut met, now).await {
                Err(MemoryError::Store(StoreError::Conflict { .. })) => {}
                result => return result,
            }
        }
        Err(contended())
    }

    /// Tries once to remember all of `new`; `met` are the records that an attempt found, which may be forgotten since.
    async fn try_add(
        &self,
        new: &[NewMemory],
        met: &mut BTreeSet<MemoryId>,
        now: MillisSinceEpoch,
    ) -> Result<Vec<(MemoryRecord, Novelty)>, MemoryError> {
        let mut added: Vec<(MemoryRecord, Novelty)> = Vec::with_capacity(new.len());
        let mut changes: BTreeMap<MemoryId, MemoryChange> = BTreeMap::new();
        for one in new {
            let id = one.id.clone().unwrap_or_else(|| one.own_id());
            // Of two that say the same the second confirms the first.
            let pending = changes.get(&id);
            let stored = match pending {
                Some(_) => None,
                None => self.known(&id).await?,
            };
            let from = match pending {
                Some(change) => change.from,
                None => stored.as_ref().map(|record| record.updated_at),
            };
            let is_operator = one.origin == OPERATOR;
            let known = pending.map(|change| change.record.clone()).or(stored);
            let (record, novelty) = match known {
                None if met.contains(&id) => {
                    (self.record(one.clone(), id.clone(), now)?, Novelty::Forgotten)
                }
                None => (self.record(one.clone(), id.clone(), now)?, Novelty::New),
                Some(known) => {
                    met.insert(id.clone());
                    self.again(known, one, now)?
                }
            };
            if matches!(novelty, Novelty::New | Novelty::Confirmed) {
                let sources = one.source_ref.iter().cloned();
                let change = changes.entry(id).or_insert_with(|| MemoryChange {
                    record: record.clone(),
                    from,
                    sources: Vec::new(),
                    revives: false,
                });
                change.record = record.clone();
                change.sources.extend(sources);
                change.revives |= is_operator;
            }
            added.push((record, novelty));
        }
        let mut changes: Vec<MemoryChange> = changes.into_values().collect();
        let mut records: Vec<MemoryRecord> =
            changes.iter().map(|change| change.record.clone()).collect();
        self.embed(&mut records).await?;
        for (change, record) in changes.iter_mut().zip(records) {
            change.record = record;
        }
        let forgotten = self.knowledge.change_memories(self.tenant, &changes).await?;
        for (record, novelty) in &mut added {
            if forgotten.contains(&record.id) {
                *novelty = Novelty::Forgotten;
            }
            if let Ok(at) = changes.binary_search_by(|other| other.record.id.cmp(&record.id)) {
                record.embedding.clone_from(&changes[at].record.embedding);
            }
        }
        Ok(added)
    }

    /// Stores records as they are, with vectors of the present model; returns how many.
    pub async fn put_back(&self, mut records: Vec<MemoryRecord>) -> Result<u64, MemoryError> {
        self.embed(&mut records).await?;
        self.knowledge.put_memories(self.tenant, &records).await?;
        Ok(records.len() as u64)
    }

    /// Lets something happen to a record.
    pub async fn change(
        &self,
        id: &MemoryId,
        event: &Event,
        now: MillisSinceEpoch,
    ) -> Result<MemoryRecord, MemoryError> {
        self.rewrite(id, |record| self.changed(&record, event, now)).await
    }

    /// Records what came of a decision, in a word and, if given, in a sentence.
    ///
    /// A decision that is reviewed before its work was marked as done is marked first: whoever knows what came of it knows that.
    pub async fn review(
        &self,
        id: &MemoryId,
        outcome: Outcome,
        result: &str,
        now: MillisSinceEpoch,
    ) -> Result<MemoryRecord, MemoryError> {
        let result = redact(result, self.handling).0.into_owned();
        self.rewrite(id, |record| {
            let mut changed = if record.state == MemoryState::Recorded {
                self.changed(&record, &Event::WorkDone, now)?
            } else {
                record
            };
            let mut details = Details::of(&changed);
            details.result.clone_from(&result);
            details.put_in(&mut changed)?;
            self.changed(&changed, &Event::Reviewed(outcome), now)
        })
        .await
    }

    /// Corrects what a record says; from then on it is the operator's, and its earlier states stay to be asked for by time.
    pub async fn edit(
        &self,
        id: &MemoryId,
        edit: &Edit,
        now: MillisSinceEpoch,
    ) -> Result<MemoryRecord, MemoryError> {
        let edit = edit.clone().redacted(self.handling);
        self.rewrite(id, |record| self.edited(record, &edit, now)).await
    }

    /// Marks a record as one that its user has read and kept; it stays its author's.
    pub async fn keep(
        &self,
        id: &MemoryId,
        now: MillisSinceEpoch,
    ) -> Result<MemoryRecord, MemoryError> {
        self.rewrite(id, |mut record| {
            if !record.tags.iter().any(|tag| tag == REVIEWED) {
                record.tags.push(REVIEWED.to_owned());
                record.tags.sort();
                record.updated_at = later(&record, now);
            }
            Ok(record)
        })
        .await
    }

    /// Removes records for good; they do not come back by extraction.
    pub async fn forget(&self, ids: &[MemoryId]) -> Result<Forgotten, MemoryError> {
        Ok(self.knowledge.forget_memories(self.tenant, ids).await?)
    }

    /// Puts `newer` in the place of `older`, both in one transaction.
    pub async fn supersede(
        &self,
        older: &MemoryId,
        newer: NewMemory,
        now: MillisSinceEpoch,
    ) -> Result<(MemoryRecord, MemoryRecord), MemoryError> {
        let newer = newer.redacted(self.handling);
        complete(&newer)?;
        let id = newer.id.clone().unwrap_or_else(|| newer.own_id());
        for _ in 0..ATTEMPTS {
            let record = self.knowledge.memory(self.tenant, older, None).await?;
            let known = self.known(&id).await?;
            let from = known.as_ref().map(|known| known.updated_at);
            let mut next = match known {
                Some(known) => known,
                None => self.record(newer.clone(), id.clone(), now)?,
            };
            self.check_chain(older, &next).await?;
            let event = Event::SupersededBy(id.0.clone());
            let mut before = self.changed(&record, &event, now)?;
            before.superseded_by = Some(id.clone());
            self.embed(std::slice::from_mut(&mut next)).await?;
            let changes = [
                MemoryChange::of(&record, before.clone()),
                MemoryChange { record: next.clone(), from, sources: Vec::new(), revives: true },
            ];
            match self.knowledge.change_memories(self.tenant, &changes).await {
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok((before, next)),
            }
        }
        Err(contended())
    }

    /// Applies the passing of time to every episode; returns those that changed.
    ///
    /// An episode's detail is given up when it is put away: its summary stays.
    pub async fn age(&self, now: MillisSinceEpoch) -> Result<Vec<MemoryRecord>, MemoryError> {
        let query = MemoryQuery {
            kinds: vec![MemoryKind::Episode],
            all_states: true,
            search: SearchQuery { limit: usize::MAX >> 1, ..SearchQuery::default() },
            ..MemoryQuery::default()
        };
        let aged = |record: MemoryRecord| {
            let mut after = self.changed(&record, &Event::TimePassed, now)?;
            if after.state == record.state {
                return Ok(record);
            }
            if after.state == MemoryState::Archived {
                after.full = None;
            }
            Ok(after)
        };
        let mut changed = Vec::new();
        for hit in self.knowledge.memories(self.tenant, &query).await? {
            if aged(hit.item.clone())?.state == hit.item.state {
                continue;
            }
            match self.rewrite(&hit.item.id, aged).await {
                // It was forgotten meanwhile.
                Err(MemoryError::Store(StoreError::NotFound { .. })) => {}
                record => changed.push(record?),
            }
        }
        Ok(changed)
    }

    /// Removes a source and all that came from it.
    ///
    /// A record that first came from elsewhere stays, without the confirmation of this source.
    pub async fn forget_source(
        &self,
        source: &str,
        now: MillisSinceEpoch,
    ) -> Result<Forgotten, MemoryError> {
        let forgotten = self.knowledge.forget_source(self.tenant, source).await?;
        let since = MemoryVersion::default();
        let all = self.knowledge.memory_changes(self.tenant, since).await?.records;
        let named =
            |record: &MemoryRecord| Details::of(record).sources.iter().any(|other| other == source);
        for record in all.iter().filter(|record| named(record)) {
            let without = self.rewrite(&record.id, |mut record| {
                let mut details = Details::of(&record);
                if !named(&record) {
                    return Ok(record);
                }
                details.sources.retain(|other| other != source);
                if let Lifecycle::Fact(fact) = Lifecycle::from(&record) {
                    let life = Lifecycle::Fact(fact.unconfirmed(self.lifecycles));
                    record.state = life.state();
                    details.take(&life);
                }
                details.put_in(&mut record)?;
                record.updated_at = later(&record, now);
                Ok(record)
            });
            match without.await {
                Ok(_) | Err(MemoryError::Store(StoreError::NotFound { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(forgotten)
    }

    /// Changes a record, from the version that is read until nobody else changed it meanwhile.
    ///
    /// A record that was forgotten meanwhile stays forgotten: [`StoreError::NotFound`].
    async fn rewrite(
        &self,
        id: &MemoryId,
        change: impl Fn(MemoryRecord) -> Result<MemoryRecord, MemoryError>,
    ) -> Result<MemoryRecord, MemoryError> {
        for _ in 0..ATTEMPTS {
            let record = self.knowledge.memory(self.tenant, id, None).await?;
            let mut changed = change(record.clone())?;
            if changed == record {
                return Ok(changed);
            }
            self.embed(std::slice::from_mut(&mut changed)).await?;
            let changes = [MemoryChange::of(&record, changed.clone())];
            match self.knowledge.change_memories(self.tenant, &changes).await {
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(changed),
            }
        }
        Err(contended())
    }

    async fn known(&self, id: &MemoryId) -> Result<Option<MemoryRecord>, StoreError> {
        match self.knowledge.memory(self.tenant, id, None).await {
            Ok(record) => Ok(Some(record)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn check_chain(&self, older: &MemoryId, next: &MemoryRecord) -> Result<(), MemoryError> {
        let mut known = std::collections::HashMap::new();
        let mut at = Some(next.clone());
        while let Some(record) = at {
            let by = record.superseded_by.clone();
            at = match &by {
                Some(by) if !known.contains_key(&by.0) => self.known(by).await?,
                _ => None,
            };
            known.insert(record.id.0, by.map(|by| by.0));
        }
        check_supersession(&older.0, &next.id.0, |id| known.get(id).cloned().flatten())?;
        Ok(())
    }
}
