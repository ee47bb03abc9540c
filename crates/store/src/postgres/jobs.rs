//! Jobs: a queue that many workers take from.

use std::time::Duration;

use deadpool_postgres::{GenericClient, Object, Transaction};
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Job, JobId, JobOutcome, JobState, NewJob, Quota, SessionId, StoreError, TenantId,
};
use tokio_postgres::Row;

use super::failure::{of_client, of_commit};
use super::text::{
    corrupt, count, escape, escape_opt, key, limit, session_opt, time_opt, unescape, unescape_opt,
};
use super::{change, row, rows};

const INSERT: &str = "
    INSERT INTO summarize_jobs (tenant, id, job_key, key, kind, session_id, ref_id, priority,
        max_attempts, payload, created_at, next_attempt_at, state, attempt_count)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'queued', 0)";

/// Queues a job unless its key is there; the tenant's counter is held meanwhile, so ids have no gap.
pub(super) async fn queue(
    client: &mut Object,
    tenant: &TenantId,
    job: &NewJob,
) -> Result<(JobId, bool), StoreError> {
    let tenant = tenant.as_str();
    let job_key = key(&job.key);
    let known = "SELECT id FROM summarize_jobs WHERE tenant = $1 AND job_key = $2";
    if let Some(found) = row(&*client, known, &[&tenant, &job_key]).await? {
        return Ok((JobId(found.get(0)), false));
    }
    let transaction = client.transaction().await.map_err(of_client)?;
    let sql = "INSERT INTO job_counters AS counter VALUES ($1, 0) \
               ON CONFLICT (tenant) DO UPDATE SET last_id = counter.last_id RETURNING last_id";
    let last = rows(&transaction, sql, &[&tenant]).await?;
    let id = last.first().map_or(0, |row| row.get::<_, i64>(0)) + 1;
    if let Some(found) = row(&transaction, known, &[&tenant, &job_key]).await? {
        return Ok((JobId(found.get(0)), false));
    }
    let values: super::SqlValues<'_> = &[
        &tenant,
        &id,
        &job_key,
        &escape(&job.key),
        &escape(&job.kind),
        &job.session.as_ref().map(SessionId::as_str),
        &escape_opt(job.ref_id.as_ref()),
        &i16::from(job.priority),
        &i64::from(job.max_attempts),
        &escape(&job.payload),
        &job.created_at.0,
        &job.next_attempt_at.0,
    ];
    change(&transaction, INSERT, values).await?;
    let sql = "UPDATE job_counters SET last_id = $2 WHERE tenant = $1";
    change(&transaction, sql, &[&tenant, &id]).await?;
    transaction.commit().await.map_err(of_commit)?;
    Ok((JobId(id), true))
}

fn read(tenant: &TenantId, row: &Row) -> Result<Job, StoreError> {
    let id: i64 = row.get("id");
    let state = JobState::from_name(row.get("state"))
        .ok_or_else(|| corrupt(format!("the state of job {id}")))?;
    Ok(Job {
        tenant: tenant.clone(),
        id: JobId(id),
        job: NewJob {
            key: unescape(row.get("key")),
            kind: unescape(row.get("kind")),
            session: session_opt(row.get("session_id"))?,
            ref_id: unescape_opt(row.get("ref_id")),
            priority: u8::try_from(row.get::<_, i16>("priority")).unwrap_or(u8::MAX),
            max_attempts: count(row.get("max_attempts")),
            payload: unescape(row.get("payload")),
            created_at: MillisSinceEpoch(row.get("created_at")),
            next_attempt_at: MillisSinceEpoch(row.get("next_attempt_at")),
        },
        state,
        attempt_count: count(row.get("attempt_count")),
        lease_owner: unescape_opt(row.get("lease_owner")),
        lease_until: time_opt(row.get("lease_until")),
        error_message: unescape_opt(row.get("error_message")),
        completed_at: time_opt(row.get("completed_at")),
        token_cost: row.get::<_, Option<i64>>("token_cost").map(i64::unsigned_abs),
        result: unescape_opt(row.get("result")),
    })
}

const DUE: &str = "
    SELECT * FROM summarize_jobs
    WHERE tenant = $1 AND state IN ('queued', 'failed', 'running')
        AND ((state <> 'running' AND next_attempt_at <= $2)
            OR (state = 'running' AND lease_until <= $2))
    ORDER BY priority DESC, next_attempt_at, id LIMIT 1 FOR UPDATE SKIP LOCKED";

const LEASE: &str = "
    UPDATE summarize_jobs SET state = 'running', attempt_count = attempt_count + 1,
        lease_owner = $3, lease_until = $4
    WHERE tenant = $1 AND id = $2 RETURNING *";

/// Leases the next job that is due; jobs that another worker is just leasing are passed over.
pub(super) async fn lease(
    client: &mut Object,
    tenant: &TenantId,
    owner: &str,
    now: MillisSinceEpoch,
    lease: Duration,
    quota: &Quota,
) -> Result<Option<Job>, StoreError> {
    let until = now.0.saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
    let transaction = client.transaction().await.map_err(of_client)?;
    let leased = loop {
        let Some(due) = row(&transaction, DUE, &[&tenant.as_str(), &now.0]).await? else {
            break None;
        };
        let job = read(tenant, &due)?;
        if job.attempt_count >= job.job.max_attempts {
            let why = "the last lease ended without a result";
            end(&transaction, tenant, job.id, JobState::Parked, why, now).await?;
        } else if let Some(why) = beyond(&transaction, tenant, &job, quota).await? {
            end(&transaction, tenant, job.id, JobState::Skipped, why, now).await?;
        } else {
            let values: super::SqlValues<'_> =
                &[&tenant.as_str(), &job.id.0, &escape(owner), &until];
            let leased = row(&transaction, LEASE, values).await?;
            break leased.map(|row| read(tenant, &row)).transpose()?;
        }
    };
    transaction.commit().await.map_err(of_commit)?;
    Ok(leased)
}

async fn end(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    id: JobId,
    state: JobState,
    why: &str,
    now: MillisSinceEpoch,
) -> Result<(), StoreError> {
    let sql = "UPDATE summarize_jobs SET state = $3, error_message = $4, completed_at = $5, \
               lease_owner = NULL, lease_until = NULL WHERE tenant = $1 AND id = $2";
    let values: super::SqlValues<'_> =
        &[&tenant.as_str(), &id.0, &state.as_str(), &escape(why), &now.0];
    change(transaction, sql, values).await.map(drop)
}

/// Returns which quota a job is beyond, by the costs recorded so far.
async fn beyond(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    job: &Job,
    quota: &Quota,
) -> Result<Option<&'static str>, StoreError> {
    let limit_of = |limit: Option<u64>| limit.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
    let of = &job.job;
    if let (Some(most), Some(session)) = (limit_of(quota.session), &of.session) {
        let sql = "SELECT coalesce(sum(token_cost), 0) >= $2::bigint FROM summarize_jobs \
                   WHERE tenant = $1 AND session_id = $3";
        if reached(transaction, sql, &[&tenant.as_str(), &most, &session.as_str()]).await? {
            return Ok(Some("the session's quota is used up"));
        }
    }
    if let Some(most) = limit_of(quota.day) {
        let sql = "SELECT coalesce(sum(token_cost), 0) >= $2::bigint FROM summarize_jobs \
                   WHERE tenant = $1 AND token_cost IS NOT NULL AND completed_at >= $3";
        if reached(transaction, sql, &[&tenant.as_str(), &most, &quota.day_began.0]).await? {
            return Ok(Some("the day's quota is used up"));
        }
    }
    if let (Some(most), Some(ref_id)) = (limit_of(quota.artefact), &of.ref_id) {
        let sql = "SELECT coalesce(sum(token_cost), 0) >= $2::bigint FROM summarize_jobs \
                   WHERE tenant = $1 AND token_cost IS NOT NULL AND ref_id = $3";
        if reached(transaction, sql, &[&tenant.as_str(), &most, &escape(ref_id)]).await? {
            return Ok(Some("the artefact's quota is used up"));
        }
    }
    Ok(None)
}

async fn reached(
    transaction: &Transaction<'_>,
    sql: &str,
    values: super::SqlValues<'_>,
) -> Result<bool, StoreError> {
    Ok(row(transaction, sql, values).await?.is_some_and(|row| row.get(0)))
}

/// Ends an attempt of the worker that has the lease.
pub(super) async fn finish(
    client: &mut Object,
    tenant: &TenantId,
    id: JobId,
    owner: &str,
    now: MillisSinceEpoch,
    outcome: JobOutcome,
) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(of_client)?;
    let sql = "SELECT * FROM summarize_jobs WHERE tenant = $1 AND id = $2 FOR UPDATE";
    let Some(found) = row(&transaction, sql, &[&tenant.as_str(), &id.0]).await? else {
        return Err(StoreError::NotFound { what: format!("job {}", id.0) });
    };
    let job = read(tenant, &found)?;
    if job.state != JobState::Running || job.lease_owner.as_deref() != Some(owner) {
        return Err(StoreError::Conflict { what: format!("job {} is not leased", id.0) });
    }
    match outcome {
        JobOutcome::Done { result, token_cost } => {
            let token_cost = i64::try_from(token_cost).map_err(|_| StoreError::Invalid {
                field: "token_cost",
                why: format!("{token_cost} is too large"),
            })?;
            let sql = "UPDATE summarize_jobs SET state = 'done', result = $3, token_cost = $4, \
                       error_message = NULL, completed_at = $5, lease_owner = NULL, \
                       lease_until = NULL WHERE tenant = $1 AND id = $2";
            let values: super::SqlValues<'_> =
                &[&tenant.as_str(), &id.0, &escape(&result), &token_cost, &now.0];
            change(&transaction, sql, values).await?;
        }
        JobOutcome::Failed { error, .. } if job.attempt_count >= job.job.max_attempts => {
            end(&transaction, tenant, id, JobState::Parked, &error, now).await?;
        }
        JobOutcome::Failed { error, retry_at } => {
            let sql = "UPDATE summarize_jobs SET state = 'failed', error_message = $3, \
                       next_attempt_at = $4, lease_owner = NULL, lease_until = NULL \
                       WHERE tenant = $1 AND id = $2";
            let values: super::SqlValues<'_> =
                &[&tenant.as_str(), &id.0, &escape(&error), &retry_at.0];
            change(&transaction, sql, values).await?;
        }
        JobOutcome::Skipped { why } => {
            end(&transaction, tenant, id, JobState::Skipped, &why, now).await?;
        }
    }
    transaction.commit().await.map_err(of_commit)
}

/// Returns jobs in the order of their ids.
pub(super) async fn list<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    state: Option<JobState>,
    most: usize,
) -> Result<Vec<Job>, StoreError> {
    let sql = "SELECT * FROM summarize_jobs WHERE tenant = $1 AND ($2::text IS NULL OR state = $2) \
               ORDER BY id LIMIT $3";
    let values: super::SqlValues<'_> =
        &[&tenant.as_str(), &state.map(JobState::as_str), &limit(most)];
    rows(client, sql, values).await?.iter().map(|row| read(tenant, row)).collect()
}
