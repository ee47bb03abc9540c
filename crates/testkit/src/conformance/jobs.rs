//! Checks of jobs in the knowledge port.

use std::collections::HashSet;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{Job, JobId, JobOutcome, JobState, NewJob, Quota};

use super::{NOW, SharedKnowledge};
use crate::sample::{job, session, tenant};

const LEASE: Duration = Duration::from_secs(1);

async fn queue(store: &SharedKnowledge, job: &NewJob) -> (JobId, bool) {
    store.queue_job(&tenant("a"), job).await.expect("queued")
}

async fn finish(
    store: &SharedKnowledge,
    id: i64,
    owner: &str,
    now: MillisSinceEpoch,
    outcome: JobOutcome,
) {
    store.finish_job(&tenant("a"), JobId(id), owner, now, outcome).await.expect("ended");
}

async fn jobs(store: &SharedKnowledge, state: Option<JobState>) -> Vec<Job> {
    store.jobs(&tenant("a"), state, 100).await.expect("jobs")
}

async fn lease(store: &SharedKnowledge, owner: &str, now: i64, quota: &Quota) -> Option<JobId> {
    let leased = store.lease_job(&tenant("a"), owner, MillisSinceEpoch(now), LEASE, quota).await;
    leased.expect("a lease").map(|job| job.id)
}

async fn states(store: &SharedKnowledge) -> Vec<JobState> {
    jobs(store, None).await.into_iter().map(|job| job.state).collect()
}

pub async fn a_job_is_one_by_its_key(store: SharedKnowledge) {
    let a = tenant("a");
    let first = queue(&store, &job("k")).await;
    assert_eq!(first, (JobId(1), true));
    assert_eq!(queue(&store, &job("k")).await, (JobId(1), false));
    assert_eq!(queue(&store, &job("l")).await, (JobId(2), true));
    let kept = store.jobs(&a, Some(JobState::Queued), 1).await.expect("jobs");
    assert_eq!((kept.len(), &kept[0].job), (1, &job("k")));
    assert_eq!(jobs(&store, Some(JobState::Done)).await, []);
    let mut high = job("m");
    high.priority = 10;
    assert_fails!(store.queue_job(&a, &high), Invalid);
}

pub async fn jobs_are_leased_in_order(store: SharedKnowledge) {
    for (key, priority, due) in [("late", 5, 900), ("early", 5, 100), ("high", 9, 950)] {
        let mut new = job(key);
        new.priority = priority;
        new.next_attempt_at = MillisSinceEpoch(due);
        queue(&store, &new).await;
    }
    let quota = Quota::default();
    assert_eq!(lease(&store, "w", 50, &quota).await, None, "none is due");
    assert_eq!(lease(&store, "w", 940, &quota).await, Some(JobId(2)));
    assert_eq!(lease(&store, "w", 960, &quota).await, Some(JobId(3)));
    assert_eq!(lease(&store, "w", 960, &quota).await, Some(JobId(1)));
    assert_eq!(lease(&store, "w", 960, &quota).await, None);
    let running = &jobs(&store, Some(JobState::Running)).await[1];
    assert_eq!(running.lease_owner.as_deref(), Some("w"));
    assert_eq!(running.lease_until, Some(MillisSinceEpoch(1_940)));
    assert_eq!(running.attempt_count, 1);
}

pub async fn a_job_is_tried_again_and_parked(store: SharedKnowledge) {
    let a = tenant("a");
    queue(&store, &job("k")).await;
    let quota = Quota::default();
    for attempt in 1_i64..=3 {
        let now = attempt * 100;
        assert_eq!(lease(&store, "w", now, &quota).await, Some(JobId(1)));
        let retry_at = MillisSinceEpoch(now + 100);
        let failed = JobOutcome::Failed { error: format!("no {attempt}"), retry_at };
        let now = MillisSinceEpoch(now + 1);
        finish(&store, 1, "w", now, failed).await;
        assert_eq!(lease(&store, "w", now.0, &quota).await, None, "not before its time");
    }
    let parked = &jobs(&store, Some(JobState::Parked)).await[0];
    assert_eq!((parked.attempt_count, parked.error_message.as_deref()), (3, Some("no 3")));
    assert_eq!(lease(&store, "w", 99_999, &quota).await, None);
    let done = JobOutcome::Done { result: String::new(), token_cost: 0 };
    assert_fails!(store.finish_job(&a, JobId(1), "w", NOW, done.clone()), Conflict);
    assert_fails!(store.finish_job(&a, JobId(77), "w", NOW, done), NotFound);
}

pub async fn a_lease_that_ended_is_taken_over(store: SharedKnowledge) {
    let a = tenant("a");
    let mut new = job("k");
    new.max_attempts = 2;
    queue(&store, &new).await;
    let quota = Quota::default();
    let done = || JobOutcome::Done { result: "it".into(), token_cost: 9 };
    assert_eq!(lease(&store, "one", 0, &quota).await, Some(JobId(1)));
    assert_eq!(lease(&store, "two", 999, &quota).await, None);
    assert_eq!(lease(&store, "two", 1_000, &quota).await, Some(JobId(1)));
    assert_fails!(store.finish_job(&a, JobId(1), "one", MillisSinceEpoch(1_001), done()), Conflict);
    assert_eq!(states(&store).await, [JobState::Running]);
    let late = MillisSinceEpoch(5_000);
    finish(&store, 1, "two", late, done()).await;
    let ended = &jobs(&store, None).await[0];
    assert_eq!((ended.state, ended.attempt_count), (JobState::Done, 2));
    assert_eq!((ended.result.as_deref(), ended.token_cost), (Some("it"), Some(9)));
    assert_eq!((ended.completed_at, ended.lease_owner.as_deref()), (Some(late), None));
    assert_fails!(store.finish_job(&a, JobId(1), "two", late, done()), Conflict);
    new.key = "l".into();
    queue(&store, &new).await;
    assert_eq!(lease(&store, "one", 0, &quota).await, Some(JobId(2)));
    assert_eq!(lease(&store, "one", 2_000, &quota).await, Some(JobId(2)));
    assert_eq!(lease(&store, "one", 4_000, &quota).await, None, "no third attempt");
    assert_eq!(states(&store).await, [JobState::Done, JobState::Parked]);
}

pub async fn quotas_hold(store: SharedKnowledge) {
    for (key, of_session, reference) in
        [("1", "s", "r"), ("2", "s", "q"), ("3", "t", "r"), ("4", "t", "q")]
    {
        let mut new = job(key);
        new.session = Some(session(of_session));
        new.ref_id = Some(reference.into());
        queue(&store, &new).await;
    }
    let none = Quota::default();
    assert_eq!(lease(&store, "w", 0, &none).await, Some(JobId(1)));
    let done = JobOutcome::Done { result: String::new(), token_cost: 100 };
    finish(&store, 1, "w", MillisSinceEpoch(10), done).await;
    let narrow = Quota { session: Some(100), artefact: Some(100), ..none };
    let wide = Quota { session: Some(101), artefact: Some(101), day: Some(101), ..none };
    assert_eq!(lease(&store, "w", 20, &narrow).await, Some(JobId(4)), "2 and 3 are beyond it");
    let (done, skipped) = (JobState::Done, JobState::Skipped);
    assert_eq!(states(&store).await, [done, skipped, skipped, JobState::Running]);
    queue(&store, &job("5")).await;
    queue(&store, &job("6")).await;
    assert_eq!(lease(&store, "w", 20, &wide).await, Some(JobId(5)));
    let tomorrow = Quota { day: Some(100), day_began: MillisSinceEpoch(11), ..none };
    assert_eq!(lease(&store, "w", 20, &tomorrow).await, Some(JobId(6)), "spent the day before");
    queue(&store, &job("7")).await;
    let today = Quota { day: Some(100), day_began: MillisSinceEpoch(10), ..none };
    assert_eq!(lease(&store, "w", 20, &today).await, None);
    assert_eq!(states(&store).await[6], skipped);
}

pub async fn no_two_callers_get_the_same_job(store: SharedKnowledge) {
    for key in 0..60 {
        queue(&store, &job(&key.to_string())).await;
    }
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut had = Vec::new();
                let owner = format!("w{worker}");
                while let Some(id) = lease(&store, &owner, 0, &Quota::default()).await {
                    had.push(id);
                }
                had
            })
        })
        .collect();
    let mut had = Vec::new();
    for worker in workers {
        had.extend(worker.await.expect("the task ends"));
    }
    assert_eq!(had.len(), 60);
    assert_eq!(had.into_iter().collect::<HashSet<_>>().len(), 60);
}
