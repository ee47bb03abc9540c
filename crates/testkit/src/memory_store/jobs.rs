//! Jobs in memory: leases, attempts and quotas.

use std::cmp::Reverse;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{Job, JobId, JobOutcome, JobState, NewJob, Quota, StoreError, TenantId};

use super::{Records, StoreResult, not_found};

impl Records {
    /// Queues a job; one with the same key is not queued again.
    pub(super) fn queue_job(&mut self, tenant: &TenantId, job: &NewJob) -> (JobId, bool) {
        if let Some(queued) = self.jobs.iter().find(|queued| queued.job.key == job.key) {
            return (queued.id, false);
        }
        self.last_job += 1;
        let id = JobId(self.last_job);
        self.jobs.push(Job {
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
        (id, true)
    }

    /// Leases the next job that is due, and ends those before it that must not run.
    pub(super) fn lease_job(
        &mut self,
        owner: &str,
        now: MillisSinceEpoch,
        lease: Duration,
        quota: &Quota,
    ) -> Option<Job> {
        let is_due = |job: &Job| match job.state {
            JobState::Queued | JobState::Failed => job.job.next_attempt_at <= now,
            JobState::Running => job.lease_until.is_some_and(|until| until <= now),
            JobState::Done | JobState::Parked | JobState::Skipped => false,
        };
        loop {
            let due = self.jobs.iter().enumerate().filter(|(_, job)| is_due(job));
            let (at, next) = due.min_by_key(|(_, job)| {
                (Reverse(job.job.priority), job.job.next_attempt_at, job.id)
            })?;
            let used_up = self.used_up(next, quota);
            let job = &mut self.jobs[at];
            if job.attempt_count >= job.job.max_attempts {
                let error = "the last lease ended without a result".to_owned();
                end(job, JobState::Parked, Some(error), now);
            } else if let Some(used_up) = used_up {
                let error = format!("the {used_up}'s quota is used up");
                end(job, JobState::Skipped, Some(error), now);
            } else {
                let lease = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
                job.state = JobState::Running;
                job.attempt_count += 1;
                job.lease_owner = Some(owner.to_owned());
                job.lease_until = Some(MillisSinceEpoch(now.0.saturating_add(lease)));
                return Some(job.clone());
            }
        }
    }

    /// Returns the owner of a quota that a job would pass.
    fn used_up(&self, job: &Job, quota: &Quota) -> Option<&'static str> {
        let reached = |limit: Option<u64>, counts: &dyn Fn(&Job) -> bool| {
            let used = self.jobs.iter().filter(|job| counts(job)).filter_map(|job| job.token_cost);
            limit.is_some_and(|limit| used.sum::<u64>() >= limit)
        };
        let NewJob { session, ref_id, .. } = &job.job;
        if session.is_some() && reached(quota.session, &|other| other.job.session == *session) {
            Some("session")
        } else if reached(quota.day, &|it| it.completed_at.is_some_and(|at| at >= quota.day_began))
        {
            Some("day")
        } else if ref_id.is_some() && reached(quota.artefact, &|it| it.job.ref_id == *ref_id) {
            Some("artefact")
        } else {
            None
        }
    }

    pub(super) fn finish_job(
        &mut self,
        id: JobId,
        owner: &str,
        now: MillisSinceEpoch,
        outcome: JobOutcome,
    ) -> StoreResult<()> {
        let Some(job) = self.jobs.iter_mut().find(|job| job.id == id) else {
            return not_found(format!("job {}", id.0));
        };
        if job.state != JobState::Running || job.lease_owner.as_deref() != Some(owner) {
            return Err(StoreError::Conflict { what: format!("job {} is not leased", id.0) });
        }
        match outcome {
            JobOutcome::Done { result, token_cost } => {
                end(job, JobState::Done, None, now);
                job.result = Some(result);
                job.token_cost = Some(token_cost);
            }
            JobOutcome::Failed { error, .. } if job.attempt_count >= job.job.max_attempts => {
                end(job, JobState::Parked, Some(error), now);
            }
            JobOutcome::Failed { error, retry_at } => {
                end(job, JobState::Failed, Some(error), now);
                job.completed_at = None;
                job.job.next_attempt_at = retry_at;
            }
            JobOutcome::Skipped { why } => end(job, JobState::Skipped, Some(why), now),
        }
        Ok(())
    }
}

/// Ends an attempt, and with it its lease.
fn end(job: &mut Job, state: JobState, error: Option<String>, now: MillisSinceEpoch) {
    job.state = state;
    job.error_message = error;
    job.completed_at = Some(now);
    (job.lease_owner, job.lease_until) = (None, None);
}
