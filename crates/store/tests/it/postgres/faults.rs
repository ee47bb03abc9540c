//! Faults between a store and its server, and workers that race.

use std::collections::HashSet;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    HistoryBatch, HistoryStore as _, JobOutcome, JobState, KnowledgeStore as _, Quota, StoreError,
};
use plimsoll_store::{PostgresConfig, PostgresStore};
use plimsoll_testkit::sample::{artefact, job, message, session, tenant};

use super::database::{Database, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_replaced() {
    let Some(database) = Database::new().await else { return };
    let store = database.store().await;
    let a = tenant("a");
    let admin = database.client().await;
    let mut kept = 0;
    for round in 0..20 {
        // One that is lost on the way is `Unavailable`, and says that nothing was kept; the next one must do.
        for _ in 0..2 {
            let messages = vec![message("s", kept, &format!("text {kept}"))];
            let batch = HistoryBatch { messages, ..HistoryBatch::default() };
            match store.append(&a, batch).await {
                Ok(appended) => {
                    assert_eq!(appended.added, 1);
                    kept += 1;
                }
                Err(error) => assert!(error.is_temporary(), "{error:?}"),
            }
        }
        assert!(kept > round, "no attempt of round {round} was kept");
        let killed = admin
            .query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
                &[],
            )
            .await
            .expect("terminated");
        assert!(!killed.is_empty(), "there was a connection to lose");
    }
    let messages = loop {
        match store.messages(&a, &session("s"), 0, 1_000).await {
            Ok(messages) => break messages,
            Err(error) => assert!(error.is_temporary(), "{error:?}"),
        }
    };
    assert_eq!(messages.len(), kept as usize);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    // Port 1 is reserved, and nobody listens there.
    let url = "postgres://plimsoll:secret@127.0.0.1:1/postgres".to_owned();
    let config = PostgresConfig { url, connections: 1 };
    assert!(!format!("{config:?}").contains("secret"));
    let error = PostgresStore::open(&config).await.expect_err("nobody listens");
    let StoreError::Unavailable { why, retry_after } = &error else { panic!("{error:?}") };
    assert!(retry_after.is_some());
    assert!(!why.contains("secret"), "{why}");
    let url = "postgres://plimsoll:secret@[".to_owned();
    let error = PostgresStore::open(&PostgresConfig { url, connections: 1 }).await;
    let error = error.expect_err("no URL");
    assert!(matches!(error, StoreError::Invalid { .. }), "{error:?}");
    assert!(!error.to_string().contains("secret"));
}

#[tokio::test]
async fn a_database_that_is_not_there_says_so() {
    let Some(server) = server() else { return };
    let (before, _) = server.rsplit_once('/').expect("the URL names a database");
    let config = PostgresConfig { url: format!("{before}/no_such_database"), connections: 1 };
    let error = PostgresStore::open(&config).await.expect_err("there is none");
    assert!(matches!(error, StoreError::Other(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_share_jobs_and_each_is_done_once() {
    const JOBS: i64 = 100;
    let Some(database) = Database::new().await else { return };
    let a = tenant("a");
    let stores = [database.store().await, database.store().await];
    for key in 0..JOBS {
        stores[0].queue_job(&a, &job(&key.to_string())).await.expect("queued");
    }
    let workers: Vec<_> = (0..6)
        .map(|worker| {
            let (store, a) = (stores[worker % 2].clone(), a.clone());
            tokio::spawn(async move {
                let owner = format!("worker {worker}");
                let mut done = Vec::new();
                let (now, lease) = (MillisSinceEpoch(0), Duration::from_mins(1));
                while let Some(job) = store
                    .lease_job(&a, &owner, now, lease, &Quota::default())
                    .await
                    .expect("a lease")
                {
                    let outcome = JobOutcome::Done { result: job.job.key.clone(), token_cost: 1 };
                    store.finish_job(&a, job.id, &owner, now, outcome).await.expect("ended");
                    done.push(job.id);
                }
                done
            })
        })
        .collect();
    let mut done = Vec::new();
    for worker in workers {
        done.extend(worker.await.expect("the task ends"));
    }
    assert_eq!(done.len(), JOBS as usize);
    assert_eq!(done.iter().collect::<HashSet<_>>().len(), JOBS as usize);
    let jobs = stores[1].jobs(&a, Some(JobState::Done), 1_000).await.expect("jobs");
    assert_eq!(jobs.len(), JOBS as usize);
    assert!(jobs.iter().all(|job| job.attempt_count == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_queued_by_many_is_one_job() {
    let Some(database) = Database::new().await else { return };
    let store = database.store().await;
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.queue_job(&tenant("a"), &job("k")).await })
        })
        .collect();
    let mut new = 0;
    for task in tasks {
        let (id, is_new) = task.await.expect("the task ends").expect("queued");
        assert_eq!(id.0, 1);
        new += usize::from(is_new);
    }
    assert_eq!(new, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_session_written_by_many_has_each_message_once() {
    let Some(database) = Database::new().await else { return };
    let stores = [database.store().await, database.store().await];
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let store = stores[task % 2].clone();
            tokio::spawn(async move {
                let mut added = 0;
                for end in 1..20_u32 {
                    let messages =
                        (0..end).map(|i| message("s", i, &format!("text {i}"))).collect();
                    let batch = HistoryBatch { messages, ..HistoryBatch::default() };
                    added += store.append(&tenant("a"), batch).await.expect("appended").added;
                }
                added
            })
        })
        .collect();
    let mut added = 0;
    for task in tasks {
        added += task.await.expect("the task ends");
    }
    assert_eq!(added, 19);
    let sessions = stores[0].sessions(&tenant("a"), 9).await.expect("sessions");
    assert_eq!(sessions[0].messages, 19);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_content_never_goes_while_its_ref_comes() {
    let Some(database) = Database::new().await else { return };
    let store = database.store().await;
    let a = tenant("a");
    let mut ended = artefact("a", "page", "shared");
    ended.ttl_expires_at = Some(MillisSinceEpoch(5));
    let kept = artefact("a", "kept", "shared");
    for _ in 0..30 {
        store.put_artefact(&ended).await.expect("stored");
        let (collector, of) = (store.clone(), a.clone());
        let collected =
            tokio::spawn(
                async move { collector.collect_artefacts(&of, MillisSinceEpoch(9)).await },
            );
        store.put_artefact(&kept).await.expect("stored");
        collected.await.expect("the task ends").expect("collected");
        let read = store.artefact(&a, &kept.reference.print(), MillisSinceEpoch(1)).await;
        assert_eq!(read.expect("kept").content, b"shared");
        let client = database.client().await;
        client
            .batch_execute("DELETE FROM cas_refs; DELETE FROM cas_contents")
            .await
            .expect("empty");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_can_be_written_what_is_kept_is_read() {
    let Some(database) = Database::new().await else { return };
    let store = database.store().await;
    let a = tenant("a");
    let page = artefact("a", "page", "text");
    store.put_artefact(&page).await.expect("stored");
    // A server that only reads, as after a failover; new connections only, so the store is opened anew.
    let admin = database.client().await;
    let rows = admin.query_one("SELECT current_database()", &[]).await.expect("a row");
    let name: String = rows.get(0);
    let set = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    admin.batch_execute(&set).await.expect("set");
    admin
        .query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
            &[],
        )
        .await
        .expect("terminated");
    let read = loop {
        match store.artefact(&a, &page.reference.print(), MillisSinceEpoch(7)).await {
            Ok(read) => break read,
            Err(error) => assert!(error.is_temporary(), "{error:?}"),
        }
    };
    assert_eq!(read, page, "returned, and not counted");
    let error = store.put_artefact(&page).await.expect_err("nothing can be written");
    assert!(error.is_temporary(), "{error:?}");
}
