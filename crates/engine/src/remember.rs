//! Remembering: writing what is known, and what happens to it afterwards.
//!
//! Callers write records directly; records from messages are extracted without a model. The rules are core's
//! lifecycles; here they meet the store. A record that is met again is confirmed, not stored twice: its id follows from what it
//! says and whom it is for.

mod confidence;
mod details;
mod extraction;
mod model_pass;
mod new_memory;
mod record;
mod transfer;
mod vectors;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::lifecycle::{
    BrokenChain, Event, Lifecycle, LifecycleSettings, TransitionError, check_supersession,
};
use plimsoll_core::memory::{MemoryKind, MemoryState, Outcome};
use plimsoll_core::safety::{Handling, redact};
use serde::Serialize;

use crate::embedder::Embedder;
use crate::error::StoreError;
use crate::id::TenantId;
use crate::knowledge::{Forgotten, KnowledgeStore};
use crate::memory::{MemoryId, MemoryQuery, MemoryRecord, MemoryVersion};
use crate::model_error::ModelError;
use crate::search::SearchQuery;
use new_memory::complete;
use record::later;

pub use confidence::SourceConfidence;
pub use details::Details;
pub use extraction::{ExtractedFacts, extract_session};
pub use model_pass::queue_model_pass;
pub(crate) use model_pass::{EXTRACT, ExtractPayload};
pub use new_memory::NewMemory;
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
    /// A record that exists already is confirmed if it comes from a new source. Returned in the order of
    /// `new`.
    pub async fn add_all(
        &self,
        new: Vec<NewMemory>,
        now: MillisSinceEpoch,
    ) -> Result<Vec<(MemoryRecord, Novelty)>, MemoryError> {
        let mut added: Vec<(MemoryRecord, Novelty)> = Vec::with_capacity(new.len());
        let mut places = std::collections::HashMap::new();
        for one in new {
            let one = one.redacted(self.handling);
            complete(&one)?;
            let id = one.id.clone().unwrap_or_else(|| one.own_id());
            // Of two that say the same the second confirms the first.
            let place: Option<usize> = places.get(&id).copied();
            let known = match place {
                Some(at) => Some(added[at].0.clone()),
                None => self.known(&id).await?,
            };
            let met = match known {
                None => (self.record(one, id.clone(), now)?, Novelty::New),
                Some(known) => self.again(known, &one, now)?,
            };
            if let Some(at) = place {
                let was_new = added[at].1 == Novelty::New;
                added[at] = (met.0.clone(), if was_new { Novelty::New } else { met.1 });
            } else {
                places.insert(id, added.len());
            }
            added.push(met);
        }
        let mut changed: Vec<MemoryRecord> = places
            .values()
            .map(|at| &added[*at])
            .filter(|(_, met)| *met != Novelty::Known)
            .map(|(record, _)| record.clone())
            .collect();
        changed.sort_by(|a, b| a.id.cmp(&b.id));
        self.embed(&mut changed).await?;
        self.knowledge.put_memories(self.tenant, &changed).await?;
        for (record, _) in &mut added {
            if let Ok(at) = changed.binary_search_by(|other| other.id.cmp(&record.id)) {
                record.embedding.clone_from(&changed[at].embedding);
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
    ///
    /// A decision that is reviewed before its work was marked as done is marked first: whoever knows what came of it knows that.
    pub async fn change(
        &self,
        id: &MemoryId,
        event: &Event,
        now: MillisSinceEpoch,
    ) -> Result<MemoryRecord, MemoryError> {
        let record = self.knowledge.memory(self.tenant, id, None).await?;
        let changed = self.changed(&record, event, now)?;
        if changed != record {
            self.knowledge.put_memory(&changed).await?;
        }
        Ok(changed)
    }

    /// Records what came of a decision, in a word and, if given, in a sentence.
    pub async fn review(
        &self,
        id: &MemoryId,
        outcome: Outcome,
        result: &str,
        now: MillisSinceEpoch,
    ) -> Result<MemoryRecord, MemoryError> {
        let record = self.knowledge.memory(self.tenant, id, None).await?;
        let mut changed = if record.state == MemoryState::Recorded {
            self.changed(&record, &Event::WorkDone, now)?
        } else {
            record
        };
        let mut details = Details::of(&changed);
        details.result = redact(result, self.handling).0.into_owned();
        details.put_in(&mut changed)?;
        let changed = self.changed(&changed, &Event::Reviewed(outcome), now)?;
        self.knowledge.put_memory(&changed).await?;
        Ok(changed)
    }

    /// Puts `newer` in the place of `older`, both in one transaction.
    pub async fn supersede(
        &self,
        older: &MemoryId,
        newer: NewMemory,
        now: MillisSinceEpoch,
    ) -> Result<(MemoryRecord, MemoryRecord), MemoryError> {
        let record = self.knowledge.memory(self.tenant, older, None).await?;
        let newer = newer.redacted(self.handling);
        complete(&newer)?;
        let id = newer.id.clone().unwrap_or_else(|| newer.own_id());
        let mut next = match self.known(&id).await? {
            Some(known) => known,
            None => self.record(newer, id.clone(), now)?,
        };
        self.check_chain(older, &next).await?;
        let event = Event::SupersededBy(id.0.clone());
        let mut before = self.changed(&record, &event, now)?;
        before.superseded_by = Some(id);
        self.embed(std::slice::from_mut(&mut next)).await?;
        let both = [before, next];
        self.knowledge.put_memories(self.tenant, &both).await?;
        let [before, next] = both;
        Ok((before, next))
    }

    /// Applies the passing of time to every record, in one transaction; returns those that changed.
    ///
    /// An episode's detail is given up when it is put away: its summary stays.
    pub async fn age(&self, now: MillisSinceEpoch) -> Result<Vec<MemoryRecord>, MemoryError> {
        let query = MemoryQuery {
            kinds: vec![MemoryKind::Episode],
            all_states: true,
            search: SearchQuery { limit: usize::MAX >> 1, ..SearchQuery::default() },
            ..MemoryQuery::default()
        };
        let mut changed = Vec::new();
        for hit in self.knowledge.memories(self.tenant, &query).await? {
            let mut after = self.changed(&hit.item, &Event::TimePassed, now)?;
            if after.state == hit.item.state {
                continue;
            }
            if after.state == MemoryState::Archived {
                after.full = None;
            }
            changed.push(after);
        }
        self.knowledge.put_memories(self.tenant, &changed).await?;
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
        let mut changed = Vec::new();
        for mut record in all {
            let mut details = Details::of(&record);
            if !details.sources.iter().any(|other| other == source) {
                continue;
            }
            details.sources.retain(|other| other != source);
            if let Lifecycle::Fact(fact) = Lifecycle::from(&record) {
                let life = Lifecycle::Fact(fact.unconfirmed(self.lifecycles));
                record.state = life.state();
                details.take(&life);
            }
            details.put_in(&mut record)?;
            record.updated_at = later(&record, now);
            changed.push(record);
        }
        self.knowledge.put_memories(self.tenant, &changed).await?;
        Ok(forgotten)
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
