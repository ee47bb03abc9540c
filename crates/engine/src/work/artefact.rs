//! Summaries of artefacts that have none: made behind the request that had to do with an extract.

use plimsoll_core::Role;
use plimsoll_core::card::{accept, truncated};
use plimsoll_core::safety::redact;

use super::make::ask;
use super::{Workers, payload_of};
use crate::cards::SummaryPayload;
use crate::error::StoreError;
use crate::id::TenantId;
use crate::job::Job;
use crate::model_error::ModelError;

impl Workers<'_> {
    /// Gives an artefact a summary: a model's where it is held by the content, else its beginning. Returns a result and what it
    /// cost.
    pub(super) async fn summarise_artefact(
        &self,
        tenant: &TenantId,
        job: &Job,
    ) -> Result<(String, u64), StoreError> {
        let payload: SummaryPayload = payload_of(job)?;
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
