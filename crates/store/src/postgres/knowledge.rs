//! The knowledge port.

use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Answer, AnswerQuota, Artefact, ArtefactRef, Embedding, Forgotten, Hit, Job, JobId, JobOutcome,
    JobState, KnowledgeStore, MemoryChange, MemoryChanges, MemoryId, MemoryQuery, MemoryRecord,
    MemoryVersion, NewJob, Quota, RefQuery, Scope, StoreError, TenantId, ToolSchema,
};

use super::{PostgresStore, answers, artefacts, forget, jobs, memories, tool_schemas};

#[async_trait]
impl KnowledgeStore for PostgresStore {
    async fn put_artefact(&self, artefact: &Artefact) -> Result<(), StoreError> {
        artefact.check()?;
        artefacts::put(&mut self.client().await?, artefact).await
    }

    async fn artefact(
        &self,
        tenant: &TenantId,
        reference: &str,
        now: MillisSinceEpoch,
    ) -> Result<Artefact, StoreError> {
        artefacts::get(self, tenant, reference, now).await
    }

    async fn artefacts(
        &self,
        tenant: &TenantId,
        query: &RefQuery,
    ) -> Result<Vec<Artefact>, StoreError> {
        artefacts::list(&self.client().await?, tenant, query).await
    }

    async fn collect_artefacts(
        &self,
        tenant: &TenantId,
        before: MillisSinceEpoch,
    ) -> Result<Vec<ArtefactRef>, StoreError> {
        artefacts::collect(&mut self.client().await?, tenant, before).await
    }

    async fn put_memories(
        &self,
        tenant: &TenantId,
        records: &[MemoryRecord],
    ) -> Result<(), StoreError> {
        for record in records {
            record.check_of(tenant)?;
        }
        memories::put(&mut self.client().await?, tenant, records).await
    }

    async fn change_memories(
        &self,
        tenant: &TenantId,
        changes: &[MemoryChange],
    ) -> Result<Vec<MemoryId>, StoreError> {
        for change in changes {
            change.record.check_of(tenant)?;
        }
        memories::change_all(&mut self.client().await?, tenant, changes).await
    }

    async fn forget_memories(
        &self,
        tenant: &TenantId,
        ids: &[MemoryId],
    ) -> Result<Forgotten, StoreError> {
        forget::forget_memories(&mut self.client().await?, tenant, ids).await
    }

    async fn memory_changes(
        &self,
        tenant: &TenantId,
        since: MemoryVersion,
    ) -> Result<MemoryChanges, StoreError> {
        memories::changes(&self.client().await?, tenant, since).await
    }

    async fn forget_source(
        &self,
        tenant: &TenantId,
        source_ref: &str,
    ) -> Result<Forgotten, StoreError> {
        forget::forget_source(&mut self.client().await?, tenant, source_ref).await
    }

    async fn memory(
        &self,
        tenant: &TenantId,
        id: &MemoryId,
        as_of: Option<MillisSinceEpoch>,
    ) -> Result<MemoryRecord, StoreError> {
        memories::get(&self.client().await?, tenant, id, as_of).await
    }

    async fn memories(
        &self,
        tenant: &TenantId,
        query: &MemoryQuery,
    ) -> Result<Vec<Hit<MemoryRecord>>, StoreError> {
        query.search.check()?;
        memories::search(&mut self.client().await?, tenant, query).await
    }

    async fn forget(&self, tenant: &TenantId, scope: &Scope) -> Result<Forgotten, StoreError> {
        scope.check_narrow()?;
        forget::forget(&mut self.client().await?, tenant, scope).await
    }

    async fn queue_job(
        &self,
        tenant: &TenantId,
        job: &NewJob,
    ) -> Result<(JobId, bool), StoreError> {
        job.check()?;
        jobs::queue(&mut self.client().await?, tenant, job).await
    }

    async fn lease_job(
        &self,
        tenant: &TenantId,
        owner: &str,
        now: MillisSinceEpoch,
        lease: Duration,
        quota: &Quota,
    ) -> Result<Option<Job>, StoreError> {
        jobs::lease(&mut self.client().await?, tenant, owner, now, lease, quota).await
    }

    async fn finish_job(
        &self,
        tenant: &TenantId,
        id: JobId,
        owner: &str,
        now: MillisSinceEpoch,
        outcome: JobOutcome,
    ) -> Result<(), StoreError> {
        jobs::finish(&mut self.client().await?, tenant, id, owner, now, outcome).await
    }

    async fn jobs(
        &self,
        tenant: &TenantId,
        state: Option<JobState>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError> {
        jobs::list(&self.client().await?, tenant, state, limit).await
    }

    async fn put_tool_schema(&self, schema: &ToolSchema) -> Result<(), StoreError> {
        tool_schemas::put(&self.client().await?, schema).await
    }

    async fn tool_schemas(&self, tenant: &TenantId) -> Result<Vec<ToolSchema>, StoreError> {
        tool_schemas::list(&self.client().await?, tenant).await
    }

    async fn put_answer(&self, answer: &Answer) -> Result<(), StoreError> {
        answer.check()?;
        answers::put(&mut self.client().await?, answer).await
    }

    async fn answer(
        &self,
        tenant: &TenantId,
        cache_key: &str,
        now: MillisSinceEpoch,
    ) -> Result<Option<Answer>, StoreError> {
        answers::get(self, tenant, cache_key, now).await
    }

    async fn similar_answers(
        &self,
        tenant: &TenantId,
        context_signature: &str,
        embedding: &Embedding,
        now: MillisSinceEpoch,
        limit: usize,
    ) -> Result<Vec<Hit<Answer>>, StoreError> {
        embedding.check()?;
        let client = self.client().await?;
        answers::similar(&client, tenant, context_signature, embedding, now, limit).await
    }

    async fn answers(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Answer>, StoreError> {
        answers::newest(&self.client().await?, tenant, limit).await
    }

    async fn trim_answers(
        &self,
        tenant: &TenantId,
        now: MillisSinceEpoch,
        most: AnswerQuota,
    ) -> Result<u64, StoreError> {
        answers::trim(&self.client().await?, tenant, now, most).await
    }

    async fn drop_answers(
        &self,
        tenant: &TenantId,
        cache_key: Option<&str>,
        used_ref: Option<&str>,
    ) -> Result<u64, StoreError> {
        let keys: Vec<&str> = cache_key.into_iter().collect();
        let refs: Vec<&str> = used_ref.into_iter().collect();
        answers::remove(&self.client().await?, tenant, &keys, &refs).await
    }
}
