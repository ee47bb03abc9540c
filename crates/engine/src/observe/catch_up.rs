//! Catching up: cards and jobs for messages that were stored without them.

use std::collections::HashMap;

use plimsoll_core::MillisSinceEpoch;
use serde::Serialize;

use super::MessageObserver;
use crate::cards::{CardSettings, TRUNCATED};
use crate::error::StoreError;
use crate::history::{HistoryBatch, HistoryStore, MessageRecord};
use crate::id::{SessionId, TenantId};
use crate::knowledge::KnowledgeStore;

/// Messages that are read from the store at a time.
const PAGE: usize = 1000;

/// The result of catching up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Observed {
    /// Messages that got a card now.
    pub cards: usize,
    /// Messages that had one, or will never have one.
    pub known: usize,
}

/// Observes the messages of `session`, or of all sessions, that have no card, or one that waits for a model without a job.
pub async fn catch_up(
    history: &dyn HistoryStore,
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    session: Option<&SessionId>,
    settings: &CardSettings,
    now: MillisSinceEpoch,
) -> Result<Observed, StoreError> {
    let observer = MessageObserver { history, knowledge, tenant, settings };
    let sessions = if let Some(session) = session {
        vec![session.clone()]
    } else {
        let all = history.sessions(tenant, usize::MAX >> 1).await?;
        all.into_iter().map(|summary| summary.session).collect()
    };
    let mut observed = Observed::default();
    for session in &sessions {
        let cards = history.cards(tenant, session).await?;
        let mut carded: HashMap<String, bool> = HashMap::new();
        for card in cards {
            carded.insert(card.content_hash, card.generator_model == TRUNCATED);
        }
        let mut from = 0;
        loop {
            let messages = history.messages(tenant, session, from, PAGE).await?;
            let (read, is_last) = (messages.len(), messages.len() < PAGE);
            from = messages.last().map_or(from, |last| last.position + 1);
            let is_known = |record: &MessageRecord| carded.contains_key(&record.hash.short());
            let is_plain = |record: &&MessageRecord| {
                carded.get(&record.hash.short()).is_some_and(|is_plain| *is_plain)
            };
            let mut queued: Vec<MessageRecord> =
                messages.iter().filter(is_plain).cloned().collect();
            let mut batch = HistoryBatch { messages, ..HistoryBatch::default() };
            let new = observer.add_cards(&mut batch, is_known, now).await?;
            observed.cards += new.len();
            observed.known += read - new.len();
            carded.extend(new.iter().map(|record| (record.hash.short(), false)));
            queued.extend(new);
            batch.messages.clear();
            if !batch.cards.is_empty() {
                history.append(tenant, batch).await?;
            }
            observer.queue(&queued, now).await?;
            if is_last {
                break;
            }
        }
    }
    Ok(observed)
}
