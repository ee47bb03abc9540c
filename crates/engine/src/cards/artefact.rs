//! Summaries of artefacts that have none: made behind the request that had to do with an extract.

use plimsoll_core::card::{accept, truncated};
use plimsoll_core::safety::redact;
use plimsoll_core::{MillisSinceEpoch, Role};
use serde::{Deserialize, Serialize};

use super::CardSettings;
use super::job::written;
use super::make::ask;
use super::work::Workers;
use crate::error::StoreError;
use crate::id::{SessionId, TenantId};
use crate::job::{Job, NewJob};
use crate::knowledge::KnowledgeStore;
use crate::model_error::ModelError;

/// The kind of a job that summarises one artefact.
pub(super) const SUMMARY: &str = "artefact_summary";

/// Which artefact is summarised.
#[derive(Debug, Serialize, Deserialize)]
struct SummaryPayload {
    reference: String,
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

impl Workers<'_> {
    /// Gives an artefact a summary: a model's where it is held by the content, else its beginning. Returns a result and what it
    /// cost.
    pub(super) async fn summarise_artefact(
        &self,
        tenant: &TenantId,
        job: &Job,
    ) -> Result<(String, u64), StoreError> {
        let payload: SummaryPayload = serde_json::from_str(&job.job.payload)
            .map_err(|error| StoreError::Other(Box::new(error)))?;
        let now = self.clock.now();
        let mut artefact = self.knowledge.artefact(tenant, &payload.reference, now).await?;
        if artefact.summary.is_some() {
            return Ok((r#"{"known":true}"#.to_owned(), 0));
        }
        let content = String::from_utf8_lossy(&artefact.content);
        let (safe, _) = redact(&content, self.safety.summariser);
        let (answer, cost) = match self.model {
            Some(model) => ask(self, model, Role::Tool, &safe).await,
            None => (Err(ModelError::Invalid("there is no model".to_owned())), 0),
        };
        if let Err(ModelError::Unavailable { message, retry_after }) = &answer
            && job.attempt_count < job.job.max_attempts
        {
            let (why, retry_after) = (message.clone(), *retry_after);
            return Err(StoreError::Unavailable { why, retry_after });
        }
        let kept = answer.ok().and_then(|summary| accept(&summary, &content).ok());
        let by_model = kept.is_some();
        artefact.summary = Some(kept.unwrap_or_else(|| truncated(&safe)));
        self.knowledge.put_artefact(&artefact).await?;
        Ok((format!("{{\"by_model\":{by_model}}}"), cost))
    }
}
