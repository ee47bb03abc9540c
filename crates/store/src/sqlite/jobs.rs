//! Jobs: queued, leased, finished.

use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Job, JobId, JobOutcome, JobState, NewJob, Quota, SessionId, StoreError, TenantId,
};
use rusqlite::{Connection, Row, params};

use super::failure::{SqliteFailure, integer, limit, unreadable};
use super::query::{change, row, rows, session_opt, time_opt};
use super::tenants;

/// Columns of a job as [`read`] expects them.
macro_rules! job_columns {
    () => {
        "id, key, kind, session_id, ref_id, priority, state, attempt_count, max_attempts, payload,
         created_at, next_attempt_at, lease_owner, lease_until, error_message, completed_at,
         token_cost, result"
    };
}

/// Queues a job, or finds the one that has its key.
pub(super) fn queue(
    connection: &Connection,
    tenant: &TenantId,
    job: &NewJob,
) -> Result<(JobId, bool), SqliteFailure> {
    let sql = "SELECT id FROM summarize_jobs WHERE tenant = ?1 AND key = ?2";
    let known = row(connection, sql, [tenant.as_str(), &job.key], |row| Ok(row.get(0)?))?;
    if let Some(id) = known {
        return Ok((JobId(id), false));
    }
    let id = tenants::next_job(connection, tenant)?;
    change(
        connection,
        "INSERT INTO summarize_jobs (tenant, id, key, kind, session_id, ref_id, priority, state,
             attempt_count, max_attempts, payload, created_at, next_attempt_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'queued', 0, ?8, ?9, ?10, ?11)",
        params![
            tenant.as_str(),
            id,
            job.key,
            job.kind,
            job.session.as_ref().map(SessionId::as_str),
            job.ref_id,
            job.priority,
            job.max_attempts,
            job.payload,
            job.created_at.0,
            job.next_attempt_at.0,
        ],
    )?;
    Ok((JobId(id), true))
}

/// Leases the next job that is due and within its quota.
pub(super) fn lease(
    connection: &Connection,
    tenant: &TenantId,
    owner: &str,
    now: MillisSinceEpoch,
    lease: Duration,
    quota: &Quota,
) -> Result<Option<Job>, SqliteFailure> {
    let until = now.0.saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
    while let Some(job) = next(connection, tenant, now)? {
        if job.attempt_count >= job.job.max_attempts {
            let why = "the last lease ended without a result";
            end(connection, tenant, job.id, JobState::Parked, why, now)?;
        } else if let Some(why) = beyond(connection, tenant, &job.job, quota)? {
            end(connection, tenant, job.id, JobState::Skipped, why, now)?;
        } else {
            change(
                connection,
                "UPDATE summarize_jobs SET state = 'running', lease_owner = ?3,
                         lease_until = ?4, attempt_count = attempt_count + 1
                     WHERE tenant = ?1 AND id = ?2",
                (tenant.as_str(), job.id.0, owner, until),
            )?;
            return find(connection, tenant, job.id);
        }
    }
    Ok(None)
}

fn next(
    connection: &Connection,
    tenant: &TenantId,
    now: MillisSinceEpoch,
) -> Result<Option<Job>, SqliteFailure> {
    row(
        connection,
        concat!(
            "SELECT ",
            job_columns!(),
            " FROM summarize_jobs
         WHERE tenant = ?1 AND state IN ('queued', 'failed', 'running')
             AND iif(state = 'running', lease_until, next_attempt_at) <= ?2
         ORDER BY priority DESC, next_attempt_at, id LIMIT 1"
        ),
        (tenant.as_str(), now.0),
        |row| read(tenant, row),
    )
}

/// Returns which quota a job is beyond.
fn beyond(
    connection: &Connection,
    tenant: &TenantId,
    job: &NewJob,
    quota: &Quota,
) -> Result<Option<&'static str>, SqliteFailure> {
    let reached = |limit: Option<u64>, used: i64| {
        limit.is_some_and(|limit| u64::try_from(used).unwrap_or(0) >= limit)
    };
    if let Some(session) = &job.session
        && quota.session.is_some()
    {
        let used = connection
            .prepare_cached(
                "SELECT coalesce(sum(token_cost), 0) FROM summarize_jobs
                 WHERE tenant = ?1 AND session_id = ?2",
            )?
            .query_row([tenant.as_str(), session.as_str()], |row| row.get(0))?;
        if reached(quota.session, used) {
            return Ok(Some("the session's quota is used up"));
        }
    }
    if quota.day.is_some() {
        let used = connection
            .prepare_cached(
                "SELECT coalesce(sum(token_cost), 0) FROM summarize_jobs
                 WHERE tenant = ?1 AND completed_at >= ?2",
            )?
            .query_row((tenant.as_str(), quota.day_began.0), |row| row.get(0))?;
        if reached(quota.day, used) {
            return Ok(Some("the day's quota is used up"));
        }
    }
    if let Some(reference) = &job.ref_id
        && quota.artefact.is_some()
    {
        let used = connection
            .prepare_cached(
                "SELECT coalesce(sum(token_cost), 0) FROM summarize_jobs
                 WHERE tenant = ?1 AND ref_id = ?2",
            )?
            .query_row([tenant.as_str(), reference], |row| row.get(0))?;
        if reached(quota.artefact, used) {
            return Ok(Some("the artefact's quota is used up"));
        }
    }
    Ok(None)
}

/// Ends an attempt of the worker that has the lease.
pub(super) fn finish(
    connection: &Connection,
    tenant: &TenantId,
    id: JobId,
    owner: &str,
    now: MillisSinceEpoch,
    outcome: &JobOutcome,
) -> Result<(), SqliteFailure> {
    let Some(job) = find(connection, tenant, id)? else {
        return Err(StoreError::NotFound { what: format!("job {}", id.0) }.into());
    };
    if job.state != JobState::Running || job.lease_owner.as_deref() != Some(owner) {
        let what = format!("job {} is not leased by who ends it", id.0);
        return Err(StoreError::Conflict { what }.into());
    }
    match outcome {
        JobOutcome::Done { result, token_cost } => {
            change(
                connection,
                "UPDATE summarize_jobs SET state = 'done', result = ?3, token_cost = ?4,
                         completed_at = ?5, error_message = NULL, lease_owner = NULL,
                         lease_until = NULL
                     WHERE tenant = ?1 AND id = ?2",
                (tenant.as_str(), id.0, result, integer("token_cost", *token_cost)?, now.0),
            )?;
            Ok(())
        }
        JobOutcome::Failed { error, .. } if job.attempt_count >= job.job.max_attempts => {
            end(connection, tenant, id, JobState::Parked, error, now)
        }
        JobOutcome::Failed { error, retry_at } => {
            change(
                connection,
                "UPDATE summarize_jobs SET state = 'failed', error_message = ?3,
                         next_attempt_at = ?4, lease_owner = NULL, lease_until = NULL
                     WHERE tenant = ?1 AND id = ?2",
                (tenant.as_str(), id.0, error, retry_at.0),
            )?;
            Ok(())
        }
        JobOutcome::Skipped { why } => end(connection, tenant, id, JobState::Skipped, why, now),
    }
}

fn end(
    connection: &Connection,
    tenant: &TenantId,
    id: JobId,
    state: JobState,
    why: &str,
    now: MillisSinceEpoch,
) -> Result<(), SqliteFailure> {
    change(
        connection,
        "UPDATE summarize_jobs SET state = ?3, error_message = ?4, completed_at = ?5,
                 lease_owner = NULL, lease_until = NULL
             WHERE tenant = ?1 AND id = ?2",
        (tenant.as_str(), id.0, state.as_str(), why, now.0),
    )?;
    Ok(())
}

fn find(
    connection: &Connection,
    tenant: &TenantId,
    id: JobId,
) -> Result<Option<Job>, SqliteFailure> {
    row(
        connection,
        concat!("SELECT ", job_columns!(), " FROM summarize_jobs WHERE tenant = ?1 AND id = ?2"),
        (tenant.as_str(), id.0),
        |row| read(tenant, row),
    )
}

/// Returns jobs in the order of their ids.
pub(super) fn list(
    connection: &Connection,
    tenant: &TenantId,
    state: Option<JobState>,
    most: usize,
) -> Result<Vec<Job>, SqliteFailure> {
    rows(
        connection,
        concat!(
            "SELECT ",
            job_columns!(),
            " FROM summarize_jobs WHERE tenant = ?1 AND (?2 IS NULL OR state = ?2)
         ORDER BY id LIMIT ?3"
        ),
        (tenant.as_str(), state.map(JobState::as_str), limit(most)),
        |row| read(tenant, row),
    )
}

fn read(tenant: &TenantId, row: &Row<'_>) -> Result<Job, SqliteFailure> {
    let state: String = row.get(6)?;
    Ok(Job {
        tenant: tenant.clone(),
        id: JobId(row.get(0)?),
        job: NewJob {
            key: row.get(1)?,
            kind: row.get(2)?,
            session: session_opt(row, 3)?,
            ref_id: row.get(4)?,
            priority: row.get(5)?,
            max_attempts: row.get(8)?,
            payload: row.get(9)?,
            created_at: MillisSinceEpoch(row.get(10)?),
            next_attempt_at: MillisSinceEpoch(row.get(11)?),
        },
        state: JobState::from_name(&state).ok_or_else(|| unreadable("state"))?,
        attempt_count: row.get(7)?,
        lease_owner: row.get(12)?,
        lease_until: time_opt(row, 13)?,
        error_message: row.get(14)?,
        completed_at: time_opt(row, 15)?,
        token_cost: row
            .get::<_, Option<i64>>(16)?
            .map(|cost| u64::try_from(cost).map_err(|_| unreadable("token cost")))
            .transpose()?,
        result: row.get(17)?,
    })
}
