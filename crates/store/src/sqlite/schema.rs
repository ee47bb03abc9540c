//! Tables and their migrations.

use rusqlite::{Connection, TransactionBehavior};

use super::failure::SqliteFailure;

/// `Plim` in ASCII, as `migrations/1.sql` writes it.
pub(super) const APPLICATION_ID: i32 = 0x506C_696D;

/// Migrations in order; each sets `user_version` to its number. One that was released is never changed.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
    include_str!("migrations/8.sql"),
    include_str!("migrations/9.sql"),
];

/// Tables with rows of tenants; text indexes and tenants themselves follow from them.
pub(super) const TABLES: &[&str] = &[
    "unified_logs",
    "sessions",
    "context_cards",
    "cas_contents",
    "cas_refs",
    "memory_records",
    "memory_tags",
    "memory_tombstones",
    "summarize_jobs",
    "tool_schemas",
    "semantic_cache",
    "semantic_cache_refs",
];

/// Brings the schema up to date, each migration in a transaction of its own; what was done is not done again.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), SqliteFailure> {
    for (number, migration) in (1..).zip(MIGRATIONS) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Read inside the transaction: another process may be doing the same.
        let version: i32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version < number {
            transaction.execute_batch(migration)?;
        }
        transaction.commit()?;
    }
    Ok(())
}
