//! Observing: messages are stored with their cards, and jobs are queued for what needs a model.

mod catch_up;

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use plimsoll_core::card::gets_card;
use plimsoll_core::{MillisSinceEpoch, Role};

use crate::cards::{CardSettings, plain_card, queue_card};
use crate::error::StoreError;
use crate::history::{Appended, HistoryBatch, HistoryStore, MessageRecord};
use crate::id::TenantId;
use crate::knowledge::KnowledgeStore;
use crate::memory::Scope;
use crate::remember::queue_model_pass;

pub use catch_up::{Observed, catch_up};

/// The `node_type` under which messages are logged.
const MESSAGE: &str = "message";
/// Messages among which the first of the user is looked for: system prompts and notes of tools stand before it (chosen).
const INPUT_WITHIN: usize = 8;

/// The stores of a tenant, and how its messages are observed.
#[derive(Debug, Clone, Copy)]
pub struct MessageObserver<'a> {
    pub history: &'a dyn HistoryStore,
    pub knowledge: &'a dyn KnowledgeStore,
    pub tenant: &'a TenantId,
    pub settings: &'a CardSettings,
}

impl MessageObserver<'_> {
    /// Appends a batch with the cards of its messages, then queues their jobs; where `settings.observe` is off, it appends only.
    ///
    /// `is_known` says whether the session of a message holds the same content already: then the card that is there stays. No
    /// model is called. A process that dies between append and jobs leaves plain cards; [`catch_up`] queues their jobs.
    pub async fn observe(
        &self,
        mut batch: HistoryBatch,
        is_known: impl Fn(&MessageRecord) -> bool,
        now: MillisSinceEpoch,
    ) -> Result<Appended, StoreError> {
        if !self.settings.observe {
            return self.history.append(self.tenant, batch).await;
        }
        let new = self.add_cards(&mut batch, is_known, now).await?;
        let appended = self.history.append(self.tenant, batch).await?;
        self.queue(&new, now).await?;
        Ok(appended)
    }

    /// Adds the cards of a batch's messages to it; returns the messages that got one.
    pub async fn add_cards(
        &self,
        batch: &mut HistoryBatch,
        is_known: impl Fn(&MessageRecord) -> bool,
        now: MillisSinceEpoch,
    ) -> Result<Vec<MessageRecord>, StoreError> {
        let mut seen = BTreeSet::new();
        let mut new = Vec::new();
        for record in &batch.messages {
            let is_new = gets_card(record.message.role, MESSAGE)
                && !is_known(record)
                && seen.insert((&record.session, record.hash));
            if is_new {
                let mut card = plain_card(self.tenant, record, now);
                card.is_anchor = self.is_input(record, batch).await?;
                batch.cards.push(card);
                new.push(record.clone());
            }
        }
        Ok(new)
    }

    /// Returns whether a message is the first that the user said in its session: it is what all the rest is about.
    async fn is_input(
        &self,
        record: &MessageRecord,
        batch: &HistoryBatch,
    ) -> Result<bool, StoreError> {
        let position = record.position as usize;
        if record.message.role != Role::User || position >= INPUT_WITHIN {
            return Ok(false);
        }
        let is_user = |earlier: &MessageRecord| earlier.message.role == Role::User;
        let earlier = |other: &&MessageRecord| {
            other.session == record.session && other.position < record.position
        };
        let in_batch: Vec<&MessageRecord> = batch.messages.iter().filter(earlier).collect();
        if in_batch.len() == position || in_batch.iter().any(|earlier| is_user(earlier)) {
            return Ok(!in_batch.iter().any(|earlier| is_user(earlier)));
        }
        // A branch that begins with this batch is not in the store yet.
        let begun = batch.branch.as_ref().filter(|branch| branch.session == record.session);
        let session = begun.map_or(&record.session, |branch| &branch.from);
        let stored = self.history.messages(self.tenant, session, 0, position).await?;
        Ok(!stored.iter().any(is_user))
    }

    /// Queues the jobs of messages; those that are queued already stay as they are.
    pub async fn queue(
        &self,
        records: &[MessageRecord],
        now: MillisSinceEpoch,
    ) -> Result<(), StoreError> {
        let Self { knowledge, tenant, settings, .. } = *self;
        // Together, so that a store can write them in one commit.
        let cards = records.iter().map(|one| queue_card(knowledge, tenant, one, settings, now));
        try_join_all(cards).await?;
        if settings.facts {
            let scope = Scope::default();
            queue_model_pass(knowledge, tenant, records, &scope, settings, now).await?;
        }
        Ok(())
    }
}
