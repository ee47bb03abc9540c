//! Extracting: what the messages of a session say, without a model.

use plimsoll_core::memory::extract::{Extraction, extract};
use plimsoll_core::{Message, MillisSinceEpoch, Ref};
use serde::Serialize;

use super::{MemoryError, NewMemory, Novelty, Remember};
use crate::history::{HistoryStore, MessageRecord};
use crate::id::SessionId;
use crate::memory::Scope;

/// Messages that are read from the store at a time.
const PAGE: usize = 1000;

/// The findings of an extraction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ExtractedFacts {
    pub messages: u64,
    pub new: u64,
    pub confirmed: u64,
    pub known: u64,
    /// Facts that were forgotten, or whose source was.
    pub forgotten: u64,
}

impl ExtractedFacts {
    /// Adds another account.
    pub fn add(&mut self, more: Self) {
        self.messages += more.messages;
        self.new += more.new;
        self.confirmed += more.confirmed;
        self.known += more.known;
        self.forgotten += more.forgotten;
    }
}

impl Remember<'_> {
    /// Remembers what the messages of one session say and show, in one transaction.
    ///
    /// A record belongs to the session that first said it, and to whom `scope` names beside. Reading a session again changes
    /// nothing.
    pub async fn extract(
        &self,
        records: &[MessageRecord],
        scope: &Scope,
        settings: &Extraction,
        now: MillisSinceEpoch,
    ) -> Result<ExtractedFacts, MemoryError> {
        let messages: Vec<&Message> = records.iter().map(|record| &record.message).collect();
        let new = extract(&messages, settings).into_iter().filter_map(|found| {
            let record = records.get(found.message)?;
            Some(NewMemory {
                scope: Scope { session: Some(record.session.clone()), ..scope.clone() },
                origin: found.origin,
                source_ref: Some(Ref::message(record.hash).to_string()),
                tags: found.tags,
                name: found.name,
                points: found.points,
                summary: found.summary,
                event_at: record.message.time,
                ..NewMemory::new(found.kind, found.text)
            })
        });
        let new: Vec<NewMemory> = new.collect();
        let mut found =
            ExtractedFacts { messages: records.len() as u64, ..ExtractedFacts::default() };
        for (_, met) in self.add_all(new, now).await? {
            *match met {
                Novelty::New => &mut found.new,
                Novelty::Confirmed => &mut found.confirmed,
                Novelty::Known => &mut found.known,
                Novelty::Forgotten => &mut found.forgotten,
            } += 1;
        }
        Ok(found)
    }
}

/// Remembers what the messages of a session say.
pub async fn extract_session(
    remember: &Remember<'_>,
    history: &dyn HistoryStore,
    session: &SessionId,
    scope: &Scope,
    settings: &Extraction,
    now: MillisSinceEpoch,
) -> Result<ExtractedFacts, MemoryError> {
    // The whole session at once: what fixed what, and what came of it, only shows over all of it.
    let mut records = Vec::new();
    loop {
        let from = records.last().map_or(0, |last: &MessageRecord| last.position + 1);
        let page = history.messages(remember.tenant, session, from, PAGE).await?;
        let is_last = page.len() < PAGE;
        records.extend(page);
        if is_last {
            return remember.extract(&records, scope, settings, now).await;
        }
    }
}
