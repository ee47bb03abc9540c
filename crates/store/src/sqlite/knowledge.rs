//! The knowledge port.

use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Answer, AnswerQuota, Artefact, ArtefactRef, AskedRef, Embedding, Forgotten, Hit, Job, JobId,
    JobOutcome, JobState, KnowledgeStore, MemoryChange, MemoryChanges, MemoryId, MemoryQuery,
    MemoryRecord, MemoryVersion, NewJob, Quota, RefQuery, Scope, StoreError, TenantId, ToolSchema,
};

use super::{
    SqliteStore, answers, artefacts, forget, jobs, memories, memory_search, tenants, tool_schemas,
};

#[async_trait]
impl KnowledgeStore for SqliteStore {
    async fn put_artefact(&self, artefact: &Artefact) -> Result<(), StoreError> {
        artefact.check()?;
        let artefact = artefact.clone();
        self.write(move |connection| artefacts::put(connection, &artefact)).await
    }

    async fn artefact(
        &self,
        tenant: &TenantId,
        reference: &str,
        now: MillisSinceEpoch,
    ) -> Result<Artefact, StoreError> {
        let (of, asked) = (tenant.clone(), AskedRef::parse(reference)?);
        let mut artefact =
            self.read(move |connection| artefacts::find(connection, &of, &asked)).await?;
        let (of, found) = (tenant.clone(), artefact.reference.clone());
        // A stored artefact can be read where nothing can be written: a full disk must not hide it.
        match self.write(move |connection| artefacts::touch(connection, &of, &found, now)).await {
            Ok(Some(count)) => {
                artefact.access_count = count;
                artefact.last_accessed_at = Some(now);
            }
            Err(error) if !error.is_temporary() => return Err(error),
            Ok(None) | Err(_) => {}
        }
        Ok(artefact)
    }

    async fn artefacts(
        &self,
        tenant: &TenantId,
        query: &RefQuery,
    ) -> Result<Vec<Artefact>, StoreError> {
        let (tenant, query) = (tenant.clone(), query.clone());
        self.read(move |connection| artefacts::list(connection, &tenant, &query)).await
    }

    async fn collect_artefacts(
        &self,
        tenant: &TenantId,
        before: MillisSinceEpoch,
    ) -> Result<Vec<ArtefactRef>, StoreError> {
        let tenant = tenant.clone();
        self.write(move |connection| artefacts::collect(connection, &tenant, before)).await
    }

    async fn put_memories(
        &self,
        tenant: &TenantId,
        records: &[MemoryRecord],
    ) -> Result<(), StoreError> {
        for record in records {
            record.check_of(tenant)?;
        }
        let records = records.to_vec();
        self.write(move |connection| {
            records.iter().try_for_each(|record| memories::put(connection, record))
        })
        .await
    }

    async fn change_memories(
        &self,
        tenant: &TenantId,
        changes: &[MemoryChange],
    ) -> Result<Vec<MemoryId>, StoreError> {
        for change in changes {
            change.record.check_of(tenant)?;
        }
        let (tenant, changes) = (tenant.clone(), changes.to_vec());
        self.write(move |connection| memories::change_all(connection, &tenant, &changes)).await
    }

    async fn forget_memories(
        &self,
        tenant: &TenantId,
        ids: &[MemoryId],
    ) -> Result<Forgotten, StoreError> {
        let (tenant, ids) = (tenant.clone(), ids.to_vec());
        self.forget_with(move |connection| forget::forget_memories(connection, &tenant, &ids)).await
    }

    async fn memory(
        &self,
        tenant: &TenantId,
        id: &MemoryId,
        as_of: Option<MillisSinceEpoch>,
    ) -> Result<MemoryRecord, StoreError> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.read(move |connection| memories::find(connection, &tenant, &id, as_of)).await
    }

    async fn memories(
        &self,
        tenant: &TenantId,
        query: &MemoryQuery,
    ) -> Result<Vec<Hit<MemoryRecord>>, StoreError> {
        query.search.check()?;
        let (tenant, query, caches) = (tenant.clone(), query.clone(), self.caches.clone());
        self.read(move |connection| memory_search::search(connection, &caches, &tenant, &query))
            .await
    }

    async fn memory_changes(
        &self,
        tenant: &TenantId,
        since: MemoryVersion,
    ) -> Result<MemoryChanges, StoreError> {
        let tenant = tenant.clone();
        self.read(move |connection| memories::changes(connection, &tenant, since)).await
    }

    async fn erase_tenant(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let tenant = tenant.clone();
        self.write(move |connection| tenants::erase(connection, &tenant)).await
    }

    async fn purge(&self) -> Result<bool, StoreError> {
        self.clear_log().await
    }

    async fn forget_source(
        &self,
        tenant: &TenantId,
        source_ref: &str,
    ) -> Result<Forgotten, StoreError> {
        let (tenant, source) = (tenant.clone(), source_ref.to_owned());
        self.forget_with(move |connection| forget::forget_source(connection, &tenant, &source))
            .await
    }

    async fn forget(&self, tenant: &TenantId, scope: &Scope) -> Result<Forgotten, StoreError> {
        scope.check_narrow()?;
        let (tenant, scope) = (tenant.clone(), scope.clone());
        self.forget_with(move |connection| forget::forget(connection, &tenant, &scope)).await
    }

    async fn queue_job(
        &self,
        tenant: &TenantId,
        job: &NewJob,
    ) -> Result<(JobId, bool), StoreError> {
        job.check()?;
        let (tenant, job) = (tenant.clone(), job.clone());
        self.write(move |connection| jobs::queue(connection, &tenant, &job)).await
    }

    async fn lease_job(
        &self,
        tenant: &TenantId,
        owner: &str,
        now: MillisSinceEpoch,
        lease: Duration,
        quota: &Quota,
    ) -> Result<Option<Job>, StoreError> {
        let (tenant, owner, quota) = (tenant.clone(), owner.to_owned(), *quota);
        self.write(move |connection| jobs::lease(connection, &tenant, &owner, now, lease, &quota))
            .await
    }

    async fn finish_job(
        &self,
        tenant: &TenantId,
        id: JobId,
        owner: &str,
        now: MillisSinceEpoch,
        outcome: JobOutcome,
    ) -> Result<(), StoreError> {
        let (tenant, owner) = (tenant.clone(), owner.to_owned());
        self.write(move |connection| jobs::finish(connection, &tenant, id, &owner, now, &outcome))
            .await
    }

    async fn jobs(
        &self,
        tenant: &TenantId,
        state: Option<JobState>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |connection| jobs::list(connection, &tenant, state, limit)).await
    }

    async fn put_tool_schema(&self, schema: &ToolSchema) -> Result<(), StoreError> {
        let schema = schema.clone();
        self.write(move |connection| tool_schemas::put(connection, &schema)).await
    }

    async fn tool_schemas(&self, tenant: &TenantId) -> Result<Vec<ToolSchema>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |connection| tool_schemas::list(connection, &tenant)).await
    }

    async fn put_answer(&self, answer: &Answer) -> Result<(), StoreError> {
        answer.check()?;
        let answer = answer.clone();
        self.write(move |connection| answers::put(connection, &answer)).await
    }

    async fn answer(
        &self,
        tenant: &TenantId,
        cache_key: &str,
        now: MillisSinceEpoch,
    ) -> Result<Option<Answer>, StoreError> {
        let (of, key) = (tenant.clone(), cache_key.to_owned());
        let found = self.read(move |connection| answers::find(connection, &of, &key, now)).await?;
        let Some(mut answer) = found else { return Ok(None) };
        let (of, key) = (tenant.clone(), cache_key.to_owned());
        match self.write(move |connection| answers::touch(connection, &of, &key, now)).await {
            Ok(Some(count)) => {
                answer.hit_count = count;
                answer.last_hit_at = Some(now);
            }
            Err(error) if !error.is_temporary() => return Err(error),
            Ok(None) | Err(_) => {}
        }
        Ok(Some(answer))
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
        let (tenant, signature) = (tenant.clone(), context_signature.to_owned());
        let asked = embedding.clone();
        self.read(move |connection| {
            answers::similar(connection, &tenant, &signature, &asked, now, limit)
        })
        .await
    }

    async fn answers(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Answer>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |connection| answers::newest(connection, &tenant, limit)).await
    }

    async fn trim_answers(
        &self,
        tenant: &TenantId,
        now: MillisSinceEpoch,
        most: AnswerQuota,
    ) -> Result<u64, StoreError> {
        let tenant = tenant.clone();
        self.write(move |connection| answers::trim(connection, &tenant, now, most)).await
    }

    async fn drop_answers(
        &self,
        tenant: &TenantId,
        cache_key: Option<&str>,
        used_ref: Option<&str>,
    ) -> Result<u64, StoreError> {
        let tenant = tenant.clone();
        let (key, used) = (cache_key.map(str::to_owned), used_ref.map(str::to_owned));
        self.write(move |connection| {
            let mut dropped = 0;
            if let Some(key) = &key {
                dropped += answers::drop_key(connection, &tenant, key)?;
            }
            if let Some(used) = &used {
                dropped += answers::drop_ref(connection, &tenant, used)?;
            }
            Ok(dropped)
        })
        .await
    }
}
