//! Schemas of tools.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{TenantId, ToolSchema};
use rusqlite::{Connection, Row, params};

use super::failure::SqliteFailure;
use super::query::{change, rows};
use super::tenants;

/// Stores a schema in the place of the one of its server and name.
pub(super) fn put(connection: &Connection, schema: &ToolSchema) -> Result<(), SqliteFailure> {
    tenants::ensure(connection, &schema.tenant)?;
    change(
        connection,
        "INSERT OR REPLACE INTO tool_schemas (tenant, server_name, tool_name, schema_json,
                 version, schema_hash, token_count, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            schema.tenant.as_str(),
            schema.server_name,
            schema.tool_name,
            schema.schema_json,
            schema.version,
            schema.schema_hash,
            schema.token_count,
            schema.updated_at.0,
        ],
    )?;
    Ok(())
}

/// Columns of a schema as [`read`] expects them.
macro_rules! tool_columns {
    () => {
        "server_name, tool_name, schema_json, version, schema_hash, token_count, updated_at"
    };
}
pub(super) use tool_columns;

/// Returns all schemas in the order of server and name.
pub(super) fn list(
    connection: &Connection,
    tenant: &TenantId,
) -> Result<Vec<ToolSchema>, SqliteFailure> {
    rows(
        connection,
        concat!(
            "SELECT ",
            tool_columns!(),
            " FROM tool_schemas WHERE tenant = ?1 ORDER BY server_name, tool_name"
        ),
        [tenant.as_str()],
        |row| read(tenant, row),
    )
}

/// Reads a schema, which must still have its hash.
pub(super) fn read(tenant: &TenantId, row: &Row<'_>) -> Result<ToolSchema, SqliteFailure> {
    let schema = ToolSchema {
        tenant: tenant.clone(),
        server_name: row.get(0)?,
        tool_name: row.get(1)?,
        schema_json: row.get(2)?,
        version: row.get(3)?,
        schema_hash: row.get(4)?,
        token_count: row.get(5)?,
        updated_at: MillisSinceEpoch(row.get(6)?),
    };
    if schema.has_its_hash() {
        return Ok(schema);
    }
    let ToolSchema { tool_name, server_name, .. } = schema;
    let what =
        format!("the schema of the tool {tool_name} of {server_name} is not as it was stored");
    Err(SqliteFailure::Mismatch(what))
}
