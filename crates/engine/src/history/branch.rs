//! Branches: sessions that begin with the messages of another, and have them by reference.

use std::collections::BTreeSet;

use super::{HistoryBatch, HistoryStore, MessageRecord, ReceiptRecord};
use crate::card::ContextCard;
use crate::error::StoreError;
use crate::id::{SessionId, TenantId};

/// A session that begins with messages of another, and refers to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    pub session: SessionId,
    /// The session that it left.
    pub from: SessionId,
    /// How many messages both have, from the first on.
    pub messages: u32,
    /// Both have the receipts of turns below this one, under [`Self::strategies`], that are of no more messages.
    pub turns: u32,
    pub strategies: Vec<String>,
}

impl Branch {
    /// Returns whether it shares a receipt of the session that it left.
    pub fn shares(&self, receipt: &ReceiptRecord) -> bool {
        receipt.turn < self.turns
            && receipt.full_history_size <= self.messages
            && self.strategies.contains(&receipt.strategy)
    }

    /// Returns the error for a session that is there and began otherwise.
    pub fn differs(&self) -> StoreError {
        let Self { session, from, messages, .. } = self;
        let what = format!("{session} is there, without the first {messages} messages of {from}");
        StoreError::Conflict { what }
    }

    /// Returns the error for a session that lacks what a branch of it shares.
    pub fn lacks(&self, messages: u32) -> StoreError {
        let Self { session, from, messages: shared, .. } = self;
        let what = format!("{session} shares {shared} messages of {from}, which has {messages}");
        StoreError::Conflict { what }
    }
}

impl HistoryBatch {
    /// Returns it with copies of what its branch shares, for a store that has no references between sessions.
    ///
    /// Errors: those of [`HistoryStore::append`] for the branch.
    pub async fn with_past(
        mut self,
        history: &dyn HistoryStore,
        tenant: &TenantId,
    ) -> Result<Self, StoreError> {
        let Some(branch) = self.branch.take() else { return Ok(self) };
        let Branch { session, from, messages, .. } = &*branch;
        let past = history.messages(tenant, from, 0, *messages as usize).await?;
        if past.len() < *messages as usize {
            return Err(branch.lacks(past.len() as u32));
        }
        if history.session(tenant, session).await?.is_some() {
            let there = history.messages(tenant, session, 0, past.len()).await?;
            let hashes = |records: &[MessageRecord]| -> Vec<_> {
                records.iter().map(|record| record.hash).collect()
            };
            return if hashes(&there) == hashes(&past) { Ok(self) } else { Err(branch.differs()) };
        }
        let hashes: BTreeSet<String> = past.iter().map(|record| record.hash.short()).collect();
        let of_branch = |record| MessageRecord { session: session.clone(), ..record };
        self.messages.splice(..0, past.into_iter().map(of_branch));
        let receipts = history.receipts(tenant, from).await?.into_iter();
        let shared = receipts.filter(|receipt| branch.shares(receipt));
        self.receipts.extend(shared.map(|receipt| receipt.inherited(session)));
        let cards = history.cards(tenant, from).await?.into_iter();
        let shared = cards.filter(|card| hashes.contains(&card.content_hash));
        let of_branch = |card| ContextCard { session: session.clone(), ..card };
        self.cards.splice(..0, shared.map(of_branch));
        Ok(self)
    }
}
