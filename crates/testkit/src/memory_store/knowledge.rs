//! Knowledge in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Answer, AnswerQuota, Artefact, ArtefactRef, AskedRef, Embedding, Forgotten, Hit, Job, JobId,
    JobOutcome, JobState, KnowledgeStore, MemoryChanges, MemoryId, MemoryQuery, MemoryRecord,
    MemoryVersion, NewJob, Quota, RefQuery, Scope, StoreError, TenantId, ToolSchema, digest, words,
};

use super::{Memory, MemoryStore, Records, cosine, rank};

fn not_found(what: String) -> StoreError {
    StoreError::NotFound { what }
}

impl Records {
    /// Says why a job is beyond its quota.
    fn beyond(&self, job: &Job, quota: &Quota) -> Option<String> {
        let cost = |counts: &dyn Fn(&Job) -> bool| -> u64 {
            self.jobs.iter().filter(|job| counts(job)).filter_map(|job| job.token_cost).sum()
        };
        let of = &job.job;
        let reached = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
        if of.session.is_some() && reached(quota.session, cost(&|j| j.job.session == of.session)) {
            return Some("the session's quota is used up".to_owned());
        }
        let today = |job: &Job| job.completed_at.is_some_and(|at| at >= quota.day_began);
        if reached(quota.day, cost(&today)) {
            return Some("the day's quota is used up".to_owned());
        }
        if of.ref_id.is_some() && reached(quota.artefact, cost(&|j| j.job.ref_id == of.ref_id)) {
            return Some("the artefact's quota is used up".to_owned());
        }
        None
    }

    fn forget(&mut self, scope: &Scope) -> Forgotten {
        let mut forgotten = Forgotten::default();
        let before = self.memories.len();
        self.memories.retain(|_, memory| !scope.covers(&memory.present.scope));
        forgotten.memories = (before - self.memories.len()) as u64;
        self.memory_version.epoch += i64::from(forgotten.memories > 0);
        let Some(session) = scope.session_alone() else { return forgotten };
        let messages = self.messages.get(session.as_str()).into_iter().flatten();
        let mut refs: HashSet<String> =
            messages.map(|m| plimsoll_core::Ref::message(m.hash).to_string()).collect();
        let history = self.forget_history(session);
        (forgotten.messages, forgotten.cards) = (history.messages, history.cards);
        let before = self.artefacts.len();
        self.artefacts.retain(|_, artefact| {
            let gone = artefact.session.as_ref() == Some(session);
            if gone {
                refs.insert(artefact.reference.print());
            }
            !gone
        });
        forgotten.artefacts = (before - self.artefacts.len()) as u64;
        let before = self.jobs.len();
        self.jobs.retain(|job| job.job.session.as_ref() != Some(session));
        forgotten.jobs = (before - self.jobs.len()) as u64;
        let before = self.answers.len();
        self.answers.retain(|_, answer| !answer.used_refs.iter().any(|used| refs.contains(used)));
        forgotten.answers = (before - self.answers.len()) as u64;
        forgotten
    }
}

#[async_trait]
impl KnowledgeStore for MemoryStore {
    async fn put_artefact(&self, artefact: &Artefact) -> Result<(), StoreError> {
        artefact.check()?;
        self.with(&artefact.tenant, |records| {
            let reference = &artefact.reference;
            let key = (reference.kind.0.clone(), reference.digest.clone(), reference.view.clone());
            match records.artefacts.get_mut(&key) {
                Some(kept) => {
                    kept.summary.clone_from(&artefact.summary);
                    kept.compressed.clone_from(&artefact.compressed);
                    kept.ttl_expires_at = artefact.ttl_expires_at;
                    kept.freshness_score = artefact.freshness_score;
                    kept.source_meta.clone_from(&artefact.source_meta);
                }
                None => {
                    records.artefacts.insert(key, artefact.clone());
                }
            }
            Ok(())
        })
    }

    async fn artefact(
        &self,
        tenant: &TenantId,
        reference: &str,
        now: MillisSinceEpoch,
    ) -> Result<Artefact, StoreError> {
        let asked = AskedRef::parse(reference)?;
        self.with(tenant, |records| {
            let mut found: Vec<&mut Artefact> = records
                .artefacts
                .values_mut()
                .filter(|artefact| asked.matches(&artefact.reference))
                .collect();
            found.sort_by(|a, b| {
                let order = |r: &ArtefactRef| (r.view.is_some(), r.kind.0.clone(), r.view.clone());
                order(&a.reference).cmp(&order(&b.reference))
            });
            let digests: HashSet<&str> =
                found.iter().map(|artefact| artefact.reference.digest.as_str()).collect();
            if digests.len() > 1 {
                let what = format!("several artefacts begin {}", asked.prefix);
                return Err(StoreError::Conflict { what });
            }
            let Some(artefact) = found.into_iter().next() else {
                return Err(not_found(format!("artefact {}", asked.prefix)));
            };
            if digest(&artefact.content) != artefact.reference.digest {
                return Err(StoreError::Corrupt { what: artefact.reference.print() });
            }
            artefact.access_count += 1;
            artefact.last_accessed_at = Some(now);
            Ok(artefact.clone())
        })
    }

    async fn artefacts(
        &self,
        tenant: &TenantId,
        query: &RefQuery,
    ) -> Result<Vec<Artefact>, StoreError> {
        self.with(tenant, |records| {
            let mut found: Vec<Artefact> = records
                .artefacts
                .values()
                .filter(|a| query.kind.as_ref().is_none_or(|kind| a.reference.kind == *kind))
                .filter(|a| query.session.is_none() || a.session == query.session)
                .map(|artefact| Artefact { content: Vec::new(), ..artefact.clone() })
                .collect();
            found.sort_by_key(|a| (std::cmp::Reverse(a.created_at), a.reference.print()));
            found.truncate(query.limit);
            Ok(found)
        })
    }

    async fn collect_artefacts(
        &self,
        tenant: &TenantId,
        before: MillisSinceEpoch,
    ) -> Result<Vec<ArtefactRef>, StoreError> {
        self.with(tenant, |records| {
            let mut gone = Vec::new();
            records.artefacts.retain(|_, artefact| {
                let ended = artefact.ttl_expires_at.is_some_and(|end| end < before);
                if ended {
                    gone.push(artefact.reference.clone());
                }
                !ended
            });
            gone.sort_by_key(ArtefactRef::print);
            Ok(gone)
        })
    }

    async fn put_memories(
        &self,
        tenant: &TenantId,
        new: &[MemoryRecord],
    ) -> Result<(), StoreError> {
        for record in new {
            record.check_of(tenant)?;
        }
        self.with(tenant, |records| {
            for record in new {
                records.memory_version.generation += 1;
                let generation = records.memory_version.generation;
                let memory = records.memories.entry(record.id.0.clone()).or_insert_with(|| {
                    Memory { present: record.clone(), generation, states: BTreeMap::new() }
                });
                memory.present = record.clone();
                memory.generation = generation;
                memory.states.insert(record.updated_at.0, record.clone());
            }
            Ok(())
        })
    }

    async fn memory_changes(
        &self,
        tenant: &TenantId,
        since: MemoryVersion,
    ) -> Result<MemoryChanges, StoreError> {
        self.with(tenant, |records| {
            let version = records.memory_version;
            let is_whole = since.generation == 0 || since.epoch != version.epoch;
            let changed = records
                .memories
                .values()
                .filter(|memory| is_whole || memory.generation > since.generation);
            let records = changed.map(|memory| memory.present.clone()).collect();
            Ok(MemoryChanges { version, is_whole, records })
        })
    }

    async fn forget_source(
        &self,
        tenant: &TenantId,
        source_ref: &str,
    ) -> Result<Forgotten, StoreError> {
        self.with(tenant, |records| {
            let mut forgotten = Forgotten::default();
            let before = records.memories.len();
            records
                .memories
                .retain(|_, memory| memory.present.source_ref.as_deref() != Some(source_ref));
            forgotten.memories = (before - records.memories.len()) as u64;
            records.memory_version.epoch += i64::from(forgotten.memories > 0);
            let before = records.artefacts.len();
            records.artefacts.retain(|_, artefact| {
                let whole = ArtefactRef { view: None, ..artefact.reference.clone() };
                whole.print() != source_ref && artefact.reference.print() != source_ref
            });
            forgotten.artefacts = (before - records.artefacts.len()) as u64;
            let before = records.answers.len();
            records.answers.retain(|_, answer| answer.used_refs.iter().all(|r| r != source_ref));
            forgotten.answers = (before - records.answers.len()) as u64;
            Ok(forgotten)
        })
    }

    async fn memory(
        &self,
        tenant: &TenantId,
        id: &MemoryId,
        as_of: Option<MillisSinceEpoch>,
    ) -> Result<MemoryRecord, StoreError> {
        self.with(tenant, |records| {
            let memory = records.memories.get(&id.0);
            let found = memory.and_then(|memory| match as_of {
                None => Some(&memory.present),
                Some(at) => memory.states.range(..=at.0).next_back().map(|(_, record)| record),
            });
            found.cloned().ok_or_else(|| not_found(format!("memory {:?}", id.0)))
        })
    }

    async fn memories(
        &self,
        tenant: &TenantId,
        query: &MemoryQuery,
    ) -> Result<Vec<Hit<MemoryRecord>>, StoreError> {
        query.search.check()?;
        self.with(tenant, |records| {
            let mut found: Vec<&MemoryRecord> = records
                .memories
                .values()
                .map(|memory| &memory.present)
                .filter(|r| query.kinds.is_empty() || query.kinds.contains(&r.kind))
                .filter(|r| query.scope.covers(&r.scope))
                .filter(|r| query.tags.iter().all(|tag| r.tags.contains(tag)))
                .filter(|r| query.all_states || r.state.is_current())
                .collect();
            if query.search.text.is_none() && query.search.embedding.is_none() {
                found.sort_by_key(|record| std::cmp::Reverse(record.updated_at));
                found.truncate(query.search.limit);
                let hits = found.into_iter();
                return Ok(hits.map(|record| Hit { item: record.clone(), score: 0.0 }).collect());
            }
            let documents: Vec<_> = found
                .iter()
                .map(|record| {
                    let texts =
                        [Some(&record.micro), record.summary.as_ref(), record.full.as_ref()];
                    let texts = texts.into_iter().flatten().chain(&record.tags);
                    let has: Vec<String> = texts.flat_map(|text| words(text)).collect();
                    (has, record.embedding.as_ref())
                })
                .collect();
            let hits = rank(&documents, &query.search).into_iter();
            Ok(hits.map(|hit| Hit { item: found[hit.item].clone(), score: hit.score }).collect())
        })
    }

    async fn forget(&self, tenant: &TenantId, scope: &Scope) -> Result<Forgotten, StoreError> {
        scope.check_narrow()?;
        self.with(tenant, |records| Ok(records.forget(scope)))
    }

    async fn queue_job(
        &self,
        tenant: &TenantId,
        job: &NewJob,
    ) -> Result<(JobId, bool), StoreError> {
        job.check()?;
        self.with(tenant, |records| {
            if let Some(kept) = records.jobs.iter().find(|kept| kept.job.key == job.key) {
                return Ok((kept.id, false));
            }
            records.last_job += 1;
            let id = JobId(records.last_job);
            records.jobs.push(Job {
                tenant: tenant.clone(),
                id,
                job: job.clone(),
                state: JobState::Queued,
                attempt_count: 0,
                lease_owner: None,
                lease_until: None,
                error_message: None,
                completed_at: None,
                token_cost: None,
                result: None,
            });
            Ok((id, true))
        })
    }

    async fn lease_job(
        &self,
        tenant: &TenantId,
        owner: &str,
        now: MillisSinceEpoch,
        lease: Duration,
        quota: &Quota,
    ) -> Result<Option<Job>, StoreError> {
        self.with(tenant, |records| {
            loop {
                let due = |job: &&Job| match job.state {
                    JobState::Queued | JobState::Failed => job.job.next_attempt_at <= now,
                    JobState::Running => job.lease_until.is_some_and(|until| until <= now),
                    JobState::Done | JobState::Parked | JobState::Skipped => false,
                };
                let Some(next) = records.jobs.iter().filter(due).min_by_key(|job| {
                    (std::cmp::Reverse(job.job.priority), job.job.next_attempt_at, job.id)
                }) else {
                    return Ok(None);
                };
                let id = next.id;
                let beyond = records.beyond(next, quota);
                let Some(job) = records.jobs.iter_mut().find(|job| job.id == id) else {
                    return Ok(None);
                };
                if job.attempt_count >= job.job.max_attempts {
                    end(job, JobState::Parked, "the last lease ended without a result", now);
                } else if let Some(why) = beyond {
                    end(job, JobState::Skipped, &why, now);
                } else {
                    job.state = JobState::Running;
                    job.attempt_count += 1;
                    job.lease_owner = Some(owner.to_owned());
                    job.lease_until = Some(MillisSinceEpoch(
                        now.0.saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX)),
                    ));
                    return Ok(Some(job.clone()));
                }
            }
        })
    }

    async fn finish_job(
        &self,
        tenant: &TenantId,
        id: JobId,
        owner: &str,
        now: MillisSinceEpoch,
        outcome: JobOutcome,
    ) -> Result<(), StoreError> {
        self.with(tenant, |records| {
            let Some(job) = records.jobs.iter_mut().find(|job| job.id == id) else {
                return Err(not_found(format!("job {}", id.0)));
            };
            if job.state != JobState::Running || job.lease_owner.as_deref() != Some(owner) {
                return Err(StoreError::Conflict { what: format!("job {} is not leased", id.0) });
            }
            match outcome {
                JobOutcome::Done { result, token_cost } => {
                    job.state = JobState::Done;
                    job.result = Some(result);
                    job.token_cost = Some(token_cost);
                    job.error_message = None;
                    job.completed_at = Some(now);
                    (job.lease_owner, job.lease_until) = (None, None);
                }
                JobOutcome::Failed { error, .. } if job.attempt_count >= job.job.max_attempts => {
                    end(job, JobState::Parked, &error, now);
                }
                JobOutcome::Failed { error, retry_at } => {
                    job.state = JobState::Failed;
                    job.error_message = Some(error);
                    job.job.next_attempt_at = retry_at;
                    (job.lease_owner, job.lease_until) = (None, None);
                }
                JobOutcome::Skipped { why } => end(job, JobState::Skipped, &why, now),
            }
            Ok(())
        })
    }

    async fn jobs(
        &self,
        tenant: &TenantId,
        state: Option<JobState>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError> {
        self.with(tenant, |records| {
            let of_state =
                records.jobs.iter().filter(|job| state.is_none_or(|state| job.state == state));
            Ok(of_state.take(limit).cloned().collect())
        })
    }

    async fn put_tool_schema(&self, schema: &ToolSchema) -> Result<(), StoreError> {
        self.with(&schema.tenant, |records| {
            let key = (schema.server_name.clone(), schema.tool_name.clone());
            records.schemas.insert(key, schema.clone());
            Ok(())
        })
    }

    async fn tool_schemas(&self, tenant: &TenantId) -> Result<Vec<ToolSchema>, StoreError> {
        self.with(tenant, |records| Ok(records.schemas.values().cloned().collect()))
    }

    async fn put_answer(&self, answer: &Answer) -> Result<(), StoreError> {
        answer.check()?;
        self.with(&answer.tenant, |records| {
            records.answers.insert(answer.cache_key.clone(), answer.clone());
            Ok(())
        })
    }

    async fn answer(
        &self,
        tenant: &TenantId,
        cache_key: &str,
        now: MillisSinceEpoch,
    ) -> Result<Option<Answer>, StoreError> {
        self.with(tenant, |records| {
            let found = records.answers.get_mut(cache_key).filter(|answer| is_alive(answer, now));
            Ok(found.map(|answer| {
                answer.hit_count += 1;
                answer.last_hit_at = Some(now);
                answer.clone()
            }))
        })
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
        self.with(tenant, |records| {
            let mut hits: Vec<Hit<Answer>> = records
                .answers
                .values()
                .filter(|answer| answer.context_signature == context_signature)
                .filter(|answer| is_alive(answer, now))
                .filter_map(|answer| {
                    let score = cosine(embedding, answer.query_embedding.as_ref()?)?;
                    Some(Hit { item: answer.clone(), score })
                })
                .collect();
            hits.sort_by(|a, b| b.score.total_cmp(&a.score));
            hits.truncate(limit);
            Ok(hits)
        })
    }

    async fn answers(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Answer>, StoreError> {
        self.with(tenant, |records| {
            let mut answers: Vec<Answer> = records.answers.values().cloned().collect();
            answers.sort_by_key(|answer| Reverse(answer.created_at));
            answers.truncate(limit);
            Ok(answers)
        })
    }

    async fn trim_answers(
        &self,
        tenant: &TenantId,
        now: MillisSinceEpoch,
        most: AnswerQuota,
    ) -> Result<u64, StoreError> {
        self.with(tenant, |records| {
            let before = records.answers.len();
            records.answers.retain(|_, answer| is_alive(answer, now));
            let mut answers: Vec<&Answer> = records.answers.values().collect();
            answers.sort_by_key(|answer| Reverse(answer.created_at));
            let (mut entries, mut bytes) = (0, 0);
            let within = answers.into_iter().take_while(|answer| {
                entries += 1;
                bytes += (answer.query_text.len() + answer.answer_text.len()) as u64;
                entries <= most.entries && bytes <= most.bytes
            });
            let kept: HashSet<String> = within.map(|answer| answer.cache_key.clone()).collect();
            records.answers.retain(|key, _| kept.contains(key));
            Ok((before - records.answers.len()) as u64)
        })
    }

    async fn drop_answers(
        &self,
        tenant: &TenantId,
        cache_key: Option<&str>,
        used_ref: Option<&str>,
    ) -> Result<u64, StoreError> {
        self.with(tenant, |records| {
            let before = records.answers.len();
            records.answers.retain(|key, answer| {
                let named = cache_key == Some(key.as_str());
                let rests = used_ref.is_some_and(|used| answer.used_refs.iter().any(|r| r == used));
                !named && !rests
            });
            Ok((before - records.answers.len()) as u64)
        })
    }
}

fn is_alive(answer: &Answer, now: MillisSinceEpoch) -> bool {
    answer.ttl_expires_at.is_none_or(|end| end > now)
}

fn end(job: &mut Job, state: JobState, why: &str, now: MillisSinceEpoch) {
    job.state = state;
    job.error_message = Some(why.to_owned());
    job.completed_at = Some(now);
    (job.lease_owner, job.lease_until) = (None, None);
}
