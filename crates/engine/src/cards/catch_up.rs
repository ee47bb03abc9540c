//! Catching up: cards for messages that were stored by somebody who did not observe them.

use std::collections::HashSet;

use plimsoll_core::MillisSinceEpoch;

use super::{CardSettings, Observed, observe};
use crate::error::StoreError;
use crate::history::{HistoryStore, MessageRecord};
use crate::id::{SessionId, TenantId};
use crate::knowledge::KnowledgeStore;

/// Messages that are read from the store at a time.
const PAGE: usize = 1000;

/// Observes the messages of `session`, or of all sessions, that have no card yet.
pub async fn catch_up(
    history: &dyn HistoryStore,
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    session: Option<&SessionId>,
    settings: &CardSettings,
    now: MillisSinceEpoch,
) -> Result<Observed, StoreError> {
    let sessions = if let Some(session) = session {
        vec![session.clone()]
    } else {
        let all = history.sessions(tenant, usize::MAX >> 1).await?;
        all.into_iter().map(|summary| summary.session).collect()
    };
    let mut observed = Observed::default();
    for session in &sessions {
        let cards = history.cards(tenant, session).await?;
        let carded: HashSet<String> = cards.into_iter().map(|card| card.content_hash).collect();
        let mut from = 0;
        loop {
            let page = history.messages(tenant, session, from, PAGE).await?;
            let is_last = page.len() < PAGE;
            from = page.last().map_or(from, |last| last.position + 1);
            let new: Vec<MessageRecord> =
                page.into_iter().filter(|record| !carded.contains(&record.hash.short())).collect();
            let more = observe(history, knowledge, tenant, &new, "message", settings, now).await?;
            observed.cards += more.cards;
            observed.known += more.known;
            if is_last {
                break;
            }
        }
    }
    Ok(observed)
}
