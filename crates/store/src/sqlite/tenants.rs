//! Tenants: each has a number, which names its tables for text search, and counters.

use plimsoll_engine::{StoreError, TenantId};
use rusqlite::Connection;

use super::failure::SqliteFailure;
use super::query::{change, row, rows};
use super::word_index;

/// The number of a tenant. It is given by the store, so it may stand in the name of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TenantNumber(pub(super) i64);

/// How far the changes of a tenant's vectors are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) generation: i64,
    pub(super) epoch: i64,
}

const TABLES: &str = include_str!("tenant_tables.sql");

/// Puts a tenant's number in the names of its own tables.
///
/// The one place where SQL is made: `statement` is written in this crate, and a number cannot be anything else.
pub(super) fn of_tenant(statement: &'static str, TenantNumber(number): TenantNumber) -> String {
    statement.replace("{tenant}", &number.to_string())
}

/// Returns the number of a tenant; `None` if it has nothing yet.
pub(super) fn find(
    connection: &Connection,
    tenant: &TenantId,
) -> Result<Option<TenantNumber>, SqliteFailure> {
    let sql = "SELECT number FROM tenants WHERE tenant = ?1";
    row(connection, sql, [tenant.as_str()], |row| Ok(TenantNumber(row.get(0)?)))
}

/// Returns the number of a tenant, and makes its tables when it is new.
pub(super) fn ensure(
    connection: &Connection,
    tenant: &TenantId,
) -> Result<TenantNumber, SqliteFailure> {
    if let Some(number) = find(connection, tenant)? {
        return Ok(number);
    }
    let number = connection.query_row(
        "INSERT INTO tenants (tenant, number)
         SELECT ?1, coalesce(max(number), 0) + 1 FROM tenants RETURNING number",
        [tenant.as_str()],
        |row| row.get(0).map(TenantNumber),
    )?;
    connection.execute_batch(&of_tenant(TABLES, number))?;
    Ok(number)
}

/// Returns the number of a new job.
pub(super) fn next_job(connection: &Connection, tenant: &TenantId) -> Result<i64, SqliteFailure> {
    ensure(connection, tenant)?;
    let mut statement = connection.prepare_cached(
        "UPDATE tenants SET last_job = last_job + 1 WHERE tenant = ?1 RETURNING last_job",
    )?;
    Ok(statement.query_row([tenant.as_str()], |row| row.get(0))?)
}

/// Counts a change of vectors and returns its number.
pub(super) fn next_generation(
    connection: &Connection,
    tenant: &TenantId,
) -> Result<i64, SqliteFailure> {
    let mut statement = connection.prepare_cached(
        "UPDATE tenants SET generation = generation + 1 WHERE tenant = ?1 RETURNING generation",
    )?;
    Ok(statement.query_row([tenant.as_str()], |row| row.get(0))?)
}

/// Counts a deletion of vectors: what was read of them is read anew.
pub(super) fn next_epoch(connection: &Connection, tenant: &TenantId) -> Result<(), SqliteFailure> {
    change(
        connection,
        "UPDATE tenants SET epoch = epoch + 1 WHERE tenant = ?1",
        [tenant.as_str()],
    )?;
    Ok(())
}

/// Returns how far the changes are.
pub(super) fn version(
    connection: &Connection,
    tenant: &TenantId,
) -> Result<Version, SqliteFailure> {
    let sql = "SELECT generation, epoch FROM tenants WHERE tenant = ?1";
    let version = row(connection, sql, [tenant.as_str()], |row| {
        Ok(Version { generation: row.get(0)?, epoch: row.get(1)? })
    });
    Ok(version?.unwrap_or_default())
}

/// Tables with rows of tenants; those that refer to others come first.
const WITH_TENANT: &[(&str, &str, &str)] = &[
    (
        "semantic_cache_refs",
        "DELETE FROM semantic_cache_refs WHERE tenant = ?1",
        "SELECT count(*) FROM semantic_cache_refs WHERE tenant = ?1",
    ),
    (
        "semantic_cache",
        "DELETE FROM semantic_cache WHERE tenant = ?1",
        "SELECT count(*) FROM semantic_cache WHERE tenant = ?1",
    ),
    (
        "tool_schemas",
        "DELETE FROM tool_schemas WHERE tenant = ?1",
        "SELECT count(*) FROM tool_schemas WHERE tenant = ?1",
    ),
    (
        "summarize_jobs",
        "DELETE FROM summarize_jobs WHERE tenant = ?1",
        "SELECT count(*) FROM summarize_jobs WHERE tenant = ?1",
    ),
    (
        "memory_tags",
        "DELETE FROM memory_tags WHERE tenant = ?1",
        "SELECT count(*) FROM memory_tags WHERE tenant = ?1",
    ),
    (
        "memory_records",
        "DELETE FROM memory_records WHERE tenant = ?1",
        "SELECT count(*) FROM memory_records WHERE tenant = ?1",
    ),
    (
        "cas_refs",
        "DELETE FROM cas_refs WHERE tenant = ?1",
        "SELECT count(*) FROM cas_refs WHERE tenant = ?1",
    ),
    (
        "cas_contents",
        "DELETE FROM cas_contents WHERE tenant = ?1",
        "SELECT count(*) FROM cas_contents WHERE tenant = ?1",
    ),
    (
        "context_cards",
        "DELETE FROM context_cards WHERE tenant = ?1",
        "SELECT count(*) FROM context_cards WHERE tenant = ?1",
    ),
    (
        "unified_logs",
        "DELETE FROM unified_logs WHERE tenant = ?1",
        "SELECT count(*) FROM unified_logs WHERE tenant = ?1",
    ),
    (
        "sessions",
        "DELETE FROM sessions WHERE tenant = ?1",
        "SELECT count(*) FROM sessions WHERE tenant = ?1",
    ),
    (
        "tenants",
        "DELETE FROM tenants WHERE tenant = ?1",
        "SELECT count(*) FROM tenants WHERE tenant = ?1",
    ),
];

const DROP: &str = "
    DROP TABLE messages_vocab_{tenant};
    DROP TABLE cards_vocab_{tenant};
    DROP TABLE memories_vocab_{tenant};
    DROP TABLE messages_text_{tenant};
    DROP TABLE cards_text_{tenant};
    DROP TABLE memories_text_{tenant};
";

/// Returns all tenants by name.
pub(super) fn all(connection: &Connection) -> Result<Vec<TenantId>, SqliteFailure> {
    let names: Vec<String> =
        rows(connection, "SELECT tenant FROM tenants ORDER BY tenant", [], |row| Ok(row.get(0)?))?;
    Ok(names.iter().filter_map(|name| TenantId::new(name).ok()).collect())
}

/// Removes all that a tenant has; returns how many rows that were, after looking that none is left.
pub(super) fn erase(connection: &Connection, tenant: &TenantId) -> Result<u64, SqliteFailure> {
    let Some(number) = find(connection, tenant)? else { return Ok(0) };
    let mut erased = 0;
    for (_, delete, _) in WITH_TENANT {
        erased += change(connection, delete, [tenant.as_str()])?;
    }
    connection.execute_batch(&of_tenant(DROP, number))?;
    word_index::after_removal(connection)?;
    for (table, _, count) in WITH_TENANT {
        let rows: i64 = connection.query_row(count, [tenant.as_str()], |row| row.get(0))?;
        if rows > 0 {
            let what = format!("{rows} rows of the tenant {tenant} in {table}");
            return Err(StoreError::Conflict { what }.into());
        }
    }
    Ok(erased)
}
