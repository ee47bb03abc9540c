//! Tool schemas.

use deadpool_postgres::GenericClient;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{StoreError, TenantId, ToolSchema};

use super::text::{count, escape, key, unescape};
use super::{change, rows};

/// Stores a schema in the place of the one of its server and name.
pub(super) async fn put<C: GenericClient>(
    client: &C,
    schema: &ToolSchema,
) -> Result<(), StoreError> {
    // The length in front keeps one pair of names from running into another.
    let schema_key =
        key(&format!("{}:{}{}", schema.server_name.len(), schema.server_name, schema.tool_name));
    let sql = "INSERT INTO tool_schemas VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
               ON CONFLICT (tenant, schema_key) DO UPDATE SET \
               schema_json = excluded.schema_json, version = excluded.version, \
               schema_hash = excluded.schema_hash, token_count = excluded.token_count, \
               updated_at = excluded.updated_at";
    let values: super::SqlValues<'_> = &[
        &schema.tenant.as_str(),
        &schema_key,
        &escape(&schema.tool_name),
        &escape(&schema.server_name),
        &escape(&schema.schema_json),
        &escape(&schema.version),
        &escape(&schema.schema_hash),
        &i64::from(schema.token_count),
        &schema.updated_at.0,
    ];
    change(client, sql, values).await.map(drop)
}

/// Returns all schemas in the order of server and name.
pub(super) async fn list<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
) -> Result<Vec<ToolSchema>, StoreError> {
    let sql = "SELECT * FROM tool_schemas WHERE tenant = $1";
    let found = rows(client, sql, &[&tenant.as_str()]).await?;
    let mut schemas: Vec<ToolSchema> = found
        .iter()
        .map(|row| ToolSchema {
            tenant: tenant.clone(),
            tool_name: unescape(row.get("tool_name")),
            server_name: unescape(row.get("server_name")),
            schema_json: unescape(row.get("schema_json")),
            version: unescape(row.get("version")),
            schema_hash: unescape(row.get("schema_hash")),
            token_count: count(row.get("token_count")),
            updated_at: MillisSinceEpoch(row.get("updated_at")),
        })
        .collect();
    schemas.sort_by(|a, b| (&a.server_name, &a.tool_name).cmp(&(&b.server_name, &b.tool_name)));
    Ok(schemas)
}
