//! Brings the schema to this program's version, once, however many gateways start together.

use deadpool_postgres::Object;
use plimsoll_engine::StoreError;

use super::failure::{of_client, of_commit};

/// The schema's versions in order, the first being 1. One that was released is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("begin.sql"),
    include_str!("memory_versions.sql"),
    include_str!("bills.sql"),
    include_str!("memory_tombstones.sql"),
    include_str!("hashes.sql"),
    include_str!("branches.sql"),
];
/// The key of the lock that migrations hold: "Plimsoll" as bytes.
const LOCK: i64 = 0x506c_696d_736f_6c6c;

/// Runs the migrations that are missing, each in a transaction of its own.
///
/// Errors: [`StoreError::Unsupported`] if the schema is newer than this program.
pub(super) async fn run(client: &mut Object) -> Result<(), StoreError> {
    loop {
        let transaction = client.transaction().await.map_err(of_client)?;
        transaction.query("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(of_client)?;
        transaction
            .batch_execute(
                "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY)",
            )
            .await
            .map_err(of_client)?;
        let row = transaction
            .query_one("SELECT coalesce(max(version), 0) FROM schema_migrations", &[])
            .await
            .map_err(of_client)?;
        let version: i32 = row.get(0);
        let done = usize::try_from(version).unwrap_or(0);
        if done > MIGRATIONS.len() {
            return Err(StoreError::Unsupported {
                what: format!(
                    "the database has schema version {version} and this program knows {}: \
                     use a newer plimsoll",
                    MIGRATIONS.len()
                ),
            });
        }
        let Some(migration) = MIGRATIONS.get(done) else {
            return transaction.commit().await.map_err(of_commit);
        };
        transaction.batch_execute(migration).await.map_err(of_client)?;
        transaction
            .execute("INSERT INTO schema_migrations VALUES ($1)", &[&(version + 1)])
            .await
            .map_err(of_client)?;
        transaction.commit().await.map_err(of_commit)?;
    }
}
