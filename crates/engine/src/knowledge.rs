//! The knowledge port: artefacts, memory, jobs, tool schemas and cached answers, which change.

use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::lazy_tools::ToolDefinition;
use plimsoll_core::{ContentHash, MillisSinceEpoch};
use serde::{Deserialize, Serialize};

use crate::artefact::{Artefact, ArtefactRef, RefQuery};
use crate::error::StoreError;
use crate::id::TenantId;
use crate::job::{Job, JobId, JobOutcome, JobState, NewJob, Quota};
use crate::memory::{
    MemoryChange, MemoryChanges, MemoryId, MemoryQuery, MemoryRecord, MemoryVersion, Scope,
};
use crate::search::{Embedding, Hit};

/// A tool's schema: a row of `tool_schemas`, known by server and tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSchema {
    pub tenant: TenantId,
    pub tool_name: String,
    pub server_name: String,
    pub schema_json: String,
    pub version: String,
    pub schema_hash: String,
    pub token_count: u32,
    pub updated_at: MillisSinceEpoch,
}

impl ToolSchema {
    /// Returns whether the schema is the one that its hash is of; a row of another program may have a hash of its own.
    pub fn has_its_hash(&self) -> bool {
        match serde_json::from_str::<ToolDefinition>(&self.schema_json) {
            Ok(definition) => {
                definition.name == self.tool_name
                    && definition.hash().is_ok_and(|hash| hash == self.schema_hash)
            }
            Err(_) => ContentHash::from_full(&self.schema_hash).is_none(),
        }
    }
}

/// A cached answer: a row of `semantic_cache`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub tenant: TenantId,
    /// Hash of the question and all that it was asked in.
    pub cache_key: String,
    pub query_text: String,
    pub query_embedding: Option<Embedding>,
    pub answer_text: String,
    /// Hash of user scope, model, system prompt, tools and context: similar questions are compared only within one.
    pub context_signature: String,
    /// Refs that the answer rests on.
    pub used_refs: Vec<String>,
    pub created_at: MillisSinceEpoch,
    pub ttl_expires_at: Option<MillisSinceEpoch>,
    pub hit_count: u32,
    pub last_hit_at: Option<MillisSinceEpoch>,
}

/// The most answers that a tenant may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerQuota {
    pub entries: u64,
    /// Bytes of questions and answers together, in UTF-8.
    pub bytes: u64,
}

/// How many records a deletion removed, by table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    pub messages: u64,
    pub cards: u64,
    pub artefacts: u64,
    pub memories: u64,
    pub answers: u64,
    pub jobs: u64,
}

/// Knowledge: what changes, by tenant.
///
/// Every method sees and touches the records of its tenant alone; what belongs to another tenant is not found. Each
/// method is one transaction, durable when it returns. Texts are stored and returned byte for byte.
#[async_trait]
pub trait KnowledgeStore: Send + Sync + std::fmt::Debug {
    /// Stores an artefact; content that is there already is not stored twice, under whatever refs.
    ///
    /// A ref that is there already keeps its content, session, time of creation and counters and takes over summary,
    /// compressed view, ttl, freshness and source. [`StoreError::Invalid`] if the digest is not that of the content, kind or
    /// view are not 1 to 64 of a–z, 0–9 and `_`, or the summary has more than 500 characters.
    async fn put_artefact(&self, artefact: &Artefact) -> Result<(), StoreError>;

    /// Returns the artefact of a ref, given in full, printed, or as a prefix of at least 8 hex digits of its digest.
    ///
    /// A printed ref without a view means the one without; bare digits mean any, first one without view, then by kind and
    /// view. Counts the access at `now` and returns it counted, or uncounted where there is no room to write. The content is
    /// hashed again: a mismatch is [`StoreError::Corrupt`]. Two artefacts of different content are [`StoreError::Conflict`],
    /// none is [`StoreError::NotFound`], anything but a ref is [`StoreError::Invalid`]. A stale one is returned.
    async fn artefact(
        &self,
        tenant: &TenantId,
        reference: &str,
        now: MillisSinceEpoch,
    ) -> Result<Artefact, StoreError>;

    /// Returns refs with all but their content, newest first, then by printed ref.
    async fn artefacts(
        &self,
        tenant: &TenantId,
        query: &RefQuery,
    ) -> Result<Vec<Artefact>, StoreError>;

    /// Removes refs whose time to live ended before `before`, and contents that no ref has any more; returns the
    /// refs in the order of their printed form.
    async fn collect_artefacts(
        &self,
        tenant: &TenantId,
        before: MillisSinceEpoch,
    ) -> Result<Vec<ArtefactRef>, StoreError>;

    /// Stores records, each in the place of the one with its id, whose earlier states stay to be asked for by time.
    ///
    /// All or none are stored; all must be of `tenant`, else [`StoreError::Invalid`]. Of two with one id the later stays.
    async fn put_memories(
        &self,
        tenant: &TenantId,
        records: &[MemoryRecord],
    ) -> Result<(), StoreError>;

    /// Stores one record as [`Self::put_memories`] does.
    async fn put_memory(&self, record: &MemoryRecord) -> Result<(), StoreError> {
        self.put_memories(&record.tenant, std::slice::from_ref(record)).await
    }

    /// Stores changes of records, all or none, each only if its record is still in the version that the change was made from.
    ///
    /// A change is passed over that takes something from a forgotten source, or that makes a record anew which was forgotten;
    /// one that revives removes these tombstones instead. Returns the ids of those that were passed over. Two callers never
    /// change one version both. [`StoreError::Conflict`] if a record has another version, is gone, or is there already:
    /// then nothing is stored, and the caller reads again. All must be of `tenant`, else [`StoreError::Invalid`].
    async fn change_memories(
        &self,
        tenant: &TenantId,
        changes: &[MemoryChange],
    ) -> Result<Vec<MemoryId>, StoreError>;

    /// Returns a record as it is, or as it was at `as_of`: the state of the latest `updated_at` that is not after it.
    ///
    /// [`StoreError::NotFound`] for an unknown id and for a time before the first state. The record is hashed again:
    /// a mismatch is [`StoreError::Corrupt`].
    async fn memory(
        &self,
        tenant: &TenantId,
        id: &MemoryId,
        as_of: Option<MillisSinceEpoch>,
    ) -> Result<MemoryRecord, StoreError>;

    /// Returns records that match, best first; see [`MemoryQuery`].
    ///
    /// Without words and vector the newest come first by `updated_at`, then by id, with score 0. A record is found by the
    /// words of micro, summary, full and tags.
    async fn memories(
        &self,
        tenant: &TenantId,
        query: &MemoryQuery,
    ) -> Result<Vec<Hit<MemoryRecord>>, StoreError>;

    /// Returns the present records that changed after `since`, or all of them where something was removed since.
    ///
    /// A record that changes while this is read may be in this answer or in the next, and is in one of them.
    async fn memory_changes(
        &self,
        tenant: &TenantId,
        since: MemoryVersion,
    ) -> Result<MemoryChanges, StoreError>;

    /// Removes all that belongs to a scope, from every table and index, in one transaction.
    ///
    /// A record goes if each part given is equal. Messages, receipts, cards, artefacts and jobs belong to a session and to
    /// nothing else: they go when the session is the only part given, with their refs, and with the answers that rest on one
    /// of those refs. Earlier states of a removed record go too, and a tombstone of it stays. [`StoreError::Invalid`] for a
    /// scope without any part.
    async fn forget(&self, tenant: &TenantId, scope: &Scope) -> Result<Forgotten, StoreError>;

    /// Removes records with their earlier states; a tombstone of each stays. Unknown ids are passed over.
    async fn forget_memories(
        &self,
        tenant: &TenantId,
        ids: &[MemoryId],
    ) -> Result<Forgotten, StoreError>;

    /// Removes all that a tenant has, history included where the store keeps it, from every table and index, in one transaction.
    ///
    /// Returns how many rows that were; afterwards the store has looked for others and found none.
    /// [`StoreError::Unsupported`] from a backend that cannot.
    async fn erase_tenant(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let what = format!("erasing the tenant {tenant} whole, on this store");
        Err(StoreError::Unsupported { what })
    }

    /// Removes the last copies of what was erased or forgotten from the store's own files; returns whether none is left in them.
    ///
    /// A copy may stay while others use the store, such as in a log that is still read; it goes when the store is next tidied.
    async fn purge(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// Removes what was taken from a source, from every table and index, in one transaction; its tombstone stays.
    ///
    /// Records whose `source_ref` is `source_ref` go with their earlier states, the artefacts of that printed ref in all their
    /// views, and the answers that rest on it.
    async fn forget_source(
        &self,
        tenant: &TenantId,
        source_ref: &str,
    ) -> Result<Forgotten, StoreError>;

    /// Queues a job; returns the one that has its key, and whether it is new. Ids count up from 1 within the tenant.
    ///
    /// [`StoreError::Invalid`] for a priority above 9.
    async fn queue_job(&self, tenant: &TenantId, job: &NewJob)
    -> Result<(JobId, bool), StoreError>;

    /// Leases the next job that is due at `now`: the highest priority, then the earliest due, then the oldest.
    ///
    /// Each lease counts as an attempt. A job whose lease ended is due again; one that has had `max_attempts` is parked
    /// instead. A job is beyond its quota when the costs recorded so far reach it: it is marked [`JobState::Skipped`] and
    /// passed over. No two callers get the same job.
    async fn lease_job(
        &self,
        tenant: &TenantId,
        owner: &str,
        now: MillisSinceEpoch,
        lease: Duration,
        quota: &Quota,
    ) -> Result<Option<Job>, StoreError>;

    /// Ends an attempt. [`StoreError::Conflict`] if `owner` no longer has the lease: then nothing changes.
    ///
    /// A lease that ended holds until somebody takes the job over: its result is as good. [`StoreError::NotFound`] for an
    /// unknown id.
    async fn finish_job(
        &self,
        tenant: &TenantId,
        id: JobId,
        owner: &str,
        now: MillisSinceEpoch,
        outcome: JobOutcome,
    ) -> Result<(), StoreError>;

    /// Returns jobs in the order of their ids, of one state or of all.
    async fn jobs(
        &self,
        tenant: &TenantId,
        state: Option<JobState>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError>;

    /// Stores a tool's schema, in the place of the one of its server and name.
    async fn put_tool_schema(&self, schema: &ToolSchema) -> Result<(), StoreError>;

    /// Returns all schemas in the order of server and name.
    async fn tool_schemas(&self, tenant: &TenantId) -> Result<Vec<ToolSchema>, StoreError>;

    /// Stores an answer, in the place of the one with its key.
    async fn put_answer(&self, answer: &Answer) -> Result<(), StoreError>;

    /// Returns the answer of a key that is not past its time to live, and counts the hit as [`Self::artefact`] does.
    async fn answer(
        &self,
        tenant: &TenantId,
        cache_key: &str,
        now: MillisSinceEpoch,
    ) -> Result<Option<Answer>, StoreError>;

    /// Returns answers of the same context signature by similarity of the question, best first, without counting a hit.
    ///
    /// Those past their time to live and those of another embedding model are left out. The score is the cosine.
    async fn similar_answers(
        &self,
        tenant: &TenantId,
        context_signature: &str,
        embedding: &Embedding,
        now: MillisSinceEpoch,
        limit: usize,
    ) -> Result<Vec<Hit<Answer>>, StoreError>;

    /// Returns answers, newest first by `created_at`, then by key, those past their time to live too, without counting a hit.
    async fn answers(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Answer>, StoreError>;

    /// Removes answers that are past their time to live at `now`, then the last of [`Self::answers`] until what is left is
    /// within `most`; returns how many.
    async fn trim_answers(
        &self,
        tenant: &TenantId,
        now: MillisSinceEpoch,
        most: AnswerQuota,
    ) -> Result<u64, StoreError>;

    /// Removes the answer of a key and all that rest on a ref, whichever are given; returns how many.
    async fn drop_answers(
        &self,
        tenant: &TenantId,
        cache_key: Option<&str>,
        used_ref: Option<&str>,
    ) -> Result<u64, StoreError>;
}
