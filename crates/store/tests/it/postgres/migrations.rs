//! Opening: many at once, and of another version.

use plimsoll_engine::StoreError;
use plimsoll_store::{PostgresConfig, PostgresStore};

use super::database::Database;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_gateways_start_together() {
    let Some(database) = Database::new().await else { return };
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let config = PostgresConfig { url: database.url(), connections: 1 };
            tokio::spawn(async move { PostgresStore::open(&config).await })
        })
        .collect();
    for task in tasks {
        task.await.expect("the task ends").expect("a store");
    }
    let client = database.client().await;
    let versions = client.query("SELECT version FROM schema_migrations", &[]).await.expect("rows");
    assert_eq!(versions.len(), 6, "each migration ran once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_refused() {
    let Some(database) = Database::new().await else { return };
    drop(database.store().await);
    let client = database.client().await;
    client.batch_execute("INSERT INTO schema_migrations VALUES (999)").await.expect("a version");
    let config = PostgresConfig { url: database.url(), connections: 1 };
    let error = PostgresStore::open(&config).await.expect_err("it is newer");
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error:?}");
    assert!(error.to_string().contains("999"), "{error}");
}
