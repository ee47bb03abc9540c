//! Extracting: what the messages of a session say, without a model.

use plimsoll_core::memory::extract::{Extraction, extract};
use plimsoll_core::{MillisSinceEpoch, Ref, Role};
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
}

impl ExtractedFacts {
    /// Adds another account.
    pub fn add(&mut self, more: Self) {
        self.messages += more.messages;
        self.new += more.new;
        self.confirmed += more.confirmed;
        self.known += more.known;
    }
}

impl Remember<'_> {
    /// Remembers what messages say, each page of them in one transaction.
    ///
    /// A fact belongs to the session that first said it, and to whom `scope` names beside. Reading a message again changes nothing.
    pub async fn extract(
        &self,
        records: &[MessageRecord],
        scope: &Scope,
        settings: &Extraction,
        now: MillisSinceEpoch,
    ) -> Result<ExtractedFacts, MemoryError> {
        let mut new = Vec::new();
        for record in records {
            let origin = match record.message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::Tool => "tool",
                Role::System => continue,
            };
            for fact in extract(&record.message, settings) {
                new.push(NewMemory {
                    scope: Scope { session: Some(record.session.clone()), ..scope.clone() },
                    origin: origin.to_owned(),
                    source_ref: Some(Ref::message(record.hash).to_string()),
                    tags: fact.tags,
                    event_at: record.message.time,
                    ..NewMemory::new(fact.kind, fact.text)
                });
            }
        }
        let mut found =
            ExtractedFacts { messages: records.len() as u64, ..ExtractedFacts::default() };
        for (_, met) in self.add_all(new, now).await? {
            *match met {
                Novelty::New => &mut found.new,
                Novelty::Confirmed => &mut found.confirmed,
                Novelty::Known => &mut found.known,
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
    let mut found = ExtractedFacts::default();
    let mut from = 0;
    loop {
        let page = history.messages(remember.tenant, session, from, PAGE).await?;
        let more = remember.extract(&page, scope, settings, now).await?;
        found.add(more);
        if page.len() < PAGE {
            return Ok(found);
        }
        from = page.last().map_or(from, |last| last.position + 1);
    }
}
