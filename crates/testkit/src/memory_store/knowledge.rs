//! The knowledge port in memory.

use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Answer, AnswerQuota, Artefact, ArtefactRef, AskedRef, Embedding, Forgotten, Hit, Job, JobId,
    JobOutcome, JobState, KnowledgeStore, MemoryChange, MemoryChanges, MemoryId, MemoryQuery,
    MemoryRecord, MemoryVersion, NewJob, Quota, RefQuery, Scope, TenantId, ToolSchema,
};

use super::{MemoryStore, Records, StoreResult, remove};

#[async_trait]
impl KnowledgeStore for MemoryStore {
    async fn put_artefact(&self, artefact: &Artefact) -> StoreResult<()> {
        artefact.check()?;
        self.with(&artefact.tenant, |records| records.put_artefact(artefact));
        Ok(())
    }

    async fn artefact(
        &self,
        tenant: &TenantId,
        reference: &str,
        now: MillisSinceEpoch,
    ) -> StoreResult<Artefact> {
        let asked = AskedRef::parse(reference)?;
        self.with(tenant, |records| records.read_artefact(&asked, now))
    }

    async fn artefacts(&self, tenant: &TenantId, query: &RefQuery) -> StoreResult<Vec<Artefact>> {
        Ok(self.with(tenant, |records| records.list_artefacts(query)))
    }

    async fn collect_artefacts(
        &self,
        tenant: &TenantId,
        before: MillisSinceEpoch,
    ) -> StoreResult<Vec<ArtefactRef>> {
        Ok(self.with(tenant, |records| records.collect_artefacts(before)))
    }

    async fn put_memories(&self, tenant: &TenantId, new: &[MemoryRecord]) -> StoreResult<()> {
        new.iter().try_for_each(|record| record.check_of(tenant))?;
        self.with(tenant, |records| new.iter().for_each(|record| records.put_memory(record)));
        Ok(())
    }

    async fn change_memories(
        &self,
        tenant: &TenantId,
        changes: &[MemoryChange],
    ) -> StoreResult<Vec<MemoryId>> {
        changes.iter().try_for_each(|change| change.record.check_of(tenant))?;
        self.with(tenant, |records| records.change_memories(changes))
    }

    async fn forget_memories(&self, tenant: &TenantId, ids: &[MemoryId]) -> StoreResult<Forgotten> {
        let memories = self.with(tenant, |records| {
            records.forget_memories(|memory| ids.contains(&memory.present.id))
        });
        Ok(Forgotten { memories, ..Forgotten::default() })
    }

    async fn memory_changes(
        &self,
        tenant: &TenantId,
        since: MemoryVersion,
    ) -> StoreResult<MemoryChanges> {
        Ok(self.with(tenant, |records| records.memory_changes(since)))
    }

    async fn forget_source(&self, tenant: &TenantId, source: &str) -> StoreResult<Forgotten> {
        Ok(self.with(tenant, |records| records.forget_source(source)))
    }

    async fn memory(
        &self,
        tenant: &TenantId,
        id: &MemoryId,
        as_of: Option<MillisSinceEpoch>,
    ) -> StoreResult<MemoryRecord> {
        self.with(tenant, |records| records.read_memory(id, as_of))
    }

    async fn memories(
        &self,
        tenant: &TenantId,
        query: &MemoryQuery,
    ) -> StoreResult<Vec<Hit<MemoryRecord>>> {
        query.search.check()?;
        Ok(self.with(tenant, |records| records.search_memories(query)))
    }

    async fn forget(&self, tenant: &TenantId, scope: &Scope) -> StoreResult<Forgotten> {
        scope.check_narrow()?;
        Ok(self.with(tenant, |records| records.forget(scope)))
    }

    async fn queue_job(&self, tenant: &TenantId, job: &NewJob) -> StoreResult<(JobId, bool)> {
        job.check()?;
        Ok(self.with(tenant, |records| records.queue_job(tenant, job)))
    }

    async fn lease_job(
        &self,
        tenant: &TenantId,
        owner: &str,
        now: MillisSinceEpoch,
        lease: Duration,
        quota: &Quota,
    ) -> StoreResult<Option<Job>> {
        Ok(self.with(tenant, |records| records.lease_job(owner, now, lease, quota)))
    }

    async fn finish_job(
        &self,
        tenant: &TenantId,
        id: JobId,
        owner: &str,
        now: MillisSinceEpoch,
        outcome: JobOutcome,
    ) -> StoreResult<()> {
        self.with(tenant, |records| records.finish_job(id, owner, now, outcome))
    }

    async fn jobs(
        &self,
        tenant: &TenantId,
        state: Option<JobState>,
        limit: usize,
    ) -> StoreResult<Vec<Job>> {
        let is_asked = |job: &&Job| state.is_none_or(|state| job.state == state);
        Ok(self.with(tenant, |records| {
            records.jobs.iter().filter(is_asked).take(limit).cloned().collect()
        }))
    }

    async fn put_tool_schema(&self, schema: &ToolSchema) -> StoreResult<()> {
        let key = (schema.server_name.clone(), schema.tool_name.clone());
        self.with(&schema.tenant, |records| records.schemas.insert(key, schema.clone()));
        Ok(())
    }

    async fn tool_schemas(&self, tenant: &TenantId) -> StoreResult<Vec<ToolSchema>> {
        Ok(self.with(tenant, |records| records.schemas.values().cloned().collect()))
    }

    async fn put_answer(&self, answer: &Answer) -> StoreResult<()> {
        answer.check()?;
        let key = answer.cache_key.clone();
        self.with(&answer.tenant, |records| records.answers.insert(key, answer.clone()));
        Ok(())
    }

    async fn answer(
        &self,
        tenant: &TenantId,
        cache_key: &str,
        now: MillisSinceEpoch,
    ) -> StoreResult<Option<Answer>> {
        Ok(self.with(tenant, |records| records.read_answer(cache_key, now)))
    }

    async fn similar_answers(
        &self,
        tenant: &TenantId,
        context_signature: &str,
        embedding: &Embedding,
        now: MillisSinceEpoch,
        limit: usize,
    ) -> StoreResult<Vec<Hit<Answer>>> {
        embedding.check()?;
        let search = |records: &mut Records| {
            records.similar_answers(context_signature, embedding, now, limit)
        };
        Ok(self.with(tenant, search))
    }

    async fn answers(&self, tenant: &TenantId, limit: usize) -> StoreResult<Vec<Answer>> {
        Ok(self.with(tenant, |records| records.list_answers(limit)))
    }

    async fn trim_answers(
        &self,
        tenant: &TenantId,
        now: MillisSinceEpoch,
        most: AnswerQuota,
    ) -> StoreResult<u64> {
        Ok(self.with(tenant, |records| records.trim_answers(now, most)))
    }

    async fn drop_answers(
        &self,
        tenant: &TenantId,
        cache_key: Option<&str>,
        used_ref: Option<&str>,
    ) -> StoreResult<u64> {
        let is_named = |answer: &Answer| cache_key == Some(&*answer.cache_key);
        let rests = |answer: &Answer| {
            used_ref.is_some_and(|used| answer.used_refs.iter().any(|r| r == used))
        };
        let is_gone = |answer: &Answer| is_named(answer) || rests(answer);
        Ok(self.with(tenant, |records| remove(&mut records.answers, is_gone)))
    }
}
