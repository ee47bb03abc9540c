//! Jobs: work that is done behind a request, at least once, with effect exactly once.

use plimsoll_core::MillisSinceEpoch;
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TenantId};

/// The id of a job, given by the store in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId(pub i64);

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Queued,
    Running,
    Done,
    /// Failed, and due again at `next_attempt_at`.
    Failed,
    /// Failed as often as it may; nothing takes it up again.
    Parked,
    /// Not done because a quota was used up.
    Skipped,
}

/// A job to be queued. `key` makes it one of its kind: a second job with the same key is the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewJob {
    /// The task and its content: kind and hash of the input, so that no work is done twice.
    pub key: String,
    pub kind: String,
    pub session: Option<SessionId>,
    /// The artefact that it works on.
    pub ref_id: Option<String>,
    /// 0 to 9, higher first; 5 unless there is a reason.
    pub priority: u8,
    pub max_attempts: u32,
    pub payload: String,
    pub created_at: MillisSinceEpoch,
    /// Not before this.
    pub next_attempt_at: MillisSinceEpoch,
}

/// A job as it is kept: a row of `summarize_jobs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub tenant: TenantId,
    pub id: JobId,
    pub job: NewJob,
    pub state: JobState,
    pub attempt_count: u32,
    /// The worker that holds it, and the end of its lease.
    pub lease_owner: Option<String>,
    pub lease_until: Option<MillisSinceEpoch>,
    pub error_message: Option<String>,
    pub completed_at: Option<MillisSinceEpoch>,
    pub token_cost: Option<u64>,
    /// The result of the job.
    pub result: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum JobOutcome {
    Done {
        result: String,
        token_cost: u64,
    },
    /// Tried again at `retry_at`, or parked if that was the last attempt.
    Failed {
        error: String,
        retry_at: MillisSinceEpoch,
    },
    Skipped {
        why: String,
    },
}

/// Tokens that jobs may cost; `None` is without limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// Of one session, in all.
    pub session: Option<u64>,
    /// Of one tenant, since `day_began`.
    pub day: Option<u64>,
    pub day_began: MillisSinceEpoch,
    /// Of one artefact, in all.
    pub artefact: Option<u64>,
}
