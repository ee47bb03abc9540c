//! The model pass: jobs that ask a model for the facts of messages.

use plimsoll_core::memory::extract::model_facts::stated;
use plimsoll_core::{MillisSinceEpoch, Ref, Role};
use serde::{Deserialize, Serialize};

use crate::cards::{CardSettings, written};
use crate::error::StoreError;
use crate::history::MessageRecord;
use crate::id::{SessionId, TenantId};
use crate::job::NewJob;
use crate::knowledge::KnowledgeStore;
use crate::memory::Scope;

/// The kind of a job that asks a model for the facts of one message.
pub(crate) const EXTRACT: &str = "extract_facts";
/// Characters of the shortest message that a model is asked about (chosen: a sentence or two state little that no rule finds).
const SHORTEST: usize = 120;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExtractPayload {
    pub(crate) session: SessionId,
    pub(crate) position: u32,
    pub(crate) scope: Scope,
}

/// Queues a job for each message that a model may find facts in; returns how many are new. A message is asked about once.
pub async fn queue_model_pass(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    records: &[MessageRecord],
    scope: &Scope,
    settings: &CardSettings,
    now: MillisSinceEpoch,
) -> Result<u64, StoreError> {
    let mut queued = 0;
    for record in records {
        let own = stated(&record.message);
        if record.message.role == Role::System || own.chars().nth(SHORTEST).is_none() {
            continue;
        }
        let payload = ExtractPayload {
            session: record.session.clone(),
            position: record.position,
            scope: Scope { session: None, ..scope.clone() },
        };
        let hash = record.hash.short();
        let job = NewJob {
            key: format!("{EXTRACT}:{}:{hash}", record.session),
            kind: EXTRACT.to_owned(),
            session: Some(record.session.clone()),
            ref_id: Some(Ref::message(record.hash).to_string()),
            // Behind cards: a message is selected by its card, and found in memory only later.
            priority: 2,
            max_attempts: settings.max_attempts,
            payload: written(&payload)?,
            created_at: now,
            next_attempt_at: now,
        };
        queued += u64::from(knowledge.queue_job(tenant, &job).await?.1);
    }
    Ok(queued)
}
