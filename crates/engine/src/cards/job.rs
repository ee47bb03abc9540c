//! Jobs of cards: their kinds, keys and payloads.

use plimsoll_core::MillisSinceEpoch;
use serde::{Deserialize, Serialize};

use super::CardSettings;
use crate::error::StoreError;
use crate::history::MessageRecord;
use crate::id::{SessionId, TenantId};
use crate::job::NewJob;
use crate::knowledge::KnowledgeStore;

/// The kind of a job that makes one card.
pub(crate) const CARD: &str = "context_card";
/// The kind of a job that gives the cards of a session vectors of the present model.
pub(crate) const EMBED: &str = "embed_cards";

/// Which message a card is made of.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CardPayload {
    pub(crate) session: SessionId,
    pub(crate) position: u32,
}

/// Whose cards are embedded.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EmbedPayload {
    pub(crate) session: SessionId,
}

/// Queues the job of a message's card; tells whether it is new.
pub(crate) async fn queue_card(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    record: &MessageRecord,
    settings: &CardSettings,
    now: MillisSinceEpoch,
) -> Result<bool, StoreError> {
    let hash = record.hash.short();
    let payload = CardPayload { session: record.session.clone(), position: record.position };
    let job = NewJob {
        key: format!("{CARD}:{}:{hash}", record.session),
        kind: CARD.to_owned(),
        session: Some(record.session.clone()),
        ref_id: Some(format!("ref:message:{hash}")),
        priority: 5,
        max_attempts: settings.max_attempts,
        payload: written(&payload)?,
        created_at: now,
        next_attempt_at: now,
    };
    Ok(knowledge.queue_job(tenant, &job).await?.1)
}

/// Queues the job that embeds a session's cards anew.
///
/// The day is in the key: a job that a quota held back is tried again on the next. It belongs to no session, since the quota
/// of one is about summaries.
pub(crate) async fn queue_embed(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    session: &SessionId,
    what: &str,
    settings: &CardSettings,
    now: MillisSinceEpoch,
) -> Result<bool, StoreError> {
    let day = settings.quota(now).day_began.0;
    let job = NewJob {
        key: format!("{EMBED}:{session}:{day}:{what}"),
        kind: EMBED.to_owned(),
        session: None,
        ref_id: None,
        // Behind new cards, which bring their vectors along.
        priority: 3,
        max_attempts: settings.max_attempts,
        payload: written(&EmbedPayload { session: session.clone() })?,
        created_at: now,
        next_attempt_at: now,
    };
    Ok(knowledge.queue_job(tenant, &job).await?.1)
}

/// The kind of a job that summarises one artefact.
pub(crate) const SUMMARY: &str = "artefact_summary";

/// Which artefact is summarised.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SummaryPayload {
    pub(crate) reference: String,
}

/// Queues a job for each of `references` that has none yet; returns how many are new.
pub async fn queue_summaries(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    session: Option<&SessionId>,
    references: &[String],
    settings: &CardSettings,
    now: MillisSinceEpoch,
) -> Result<u64, StoreError> {
    let mut queued = 0;
    for reference in references {
        let job = NewJob {
            key: format!("{SUMMARY}:{reference}"),
            kind: SUMMARY.to_owned(),
            session: session.cloned(),
            ref_id: Some(reference.clone()),
            priority: 5,
            max_attempts: settings.max_attempts,
            payload: written(&SummaryPayload { reference: reference.clone() })?,
            created_at: now,
            next_attempt_at: now,
        };
        queued += u64::from(knowledge.queue_job(tenant, &job).await?.1);
    }
    Ok(queued)
}

/// Writes the payload of a job.
pub(crate) fn written(payload: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(payload).map_err(|error| StoreError::Other(Box::new(error)))
}
