//! The unified log as rows to read, and sessions at a glance.

use plimsoll_engine::{LogQuery, LogRow, SessionId, SessionSummary, StoreError, TenantId};

use super::client::{Client, Parameters};

const LOG: &str = "
SELECT session_id AS session, node_type, toUnixTimestamp64Milli(at) AS at, number,
    node_type = 'message' AS is_message, if(is_message, content_hash, NULL) AS content_hash,
    if(is_message, role, NULL) AS role, if(is_message, tokens, NULL) AS tokens, text,
    if(is_message, NULL, metadata) AS metadata
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND node_type IN {node_types:Array(String)}
    AND ({session:String} = '' OR session_id = {session:String})
    AND toUnixTimestamp64Milli(at) >= {since:Int64}
ORDER BY at DESC, arrival DESC LIMIT {limit:UInt64} FORMAT JSONEachRow";

/// Sessions; an empty `session` means all of the tenant's.
const SESSIONS: &str = "
SELECT session_id AS session, countIf(node_type = 'message') AS messages,
    sumIf(tokens, node_type = 'message') AS tokens,
    toUnixTimestamp64Milli(min(at)) AS first_at, toUnixTimestamp64Milli(max(at)) AS last_at
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND node_type IN ('message', 'context_selection')
    AND ({session:String} = '' OR session_id = {session:String})
GROUP BY session_id
ORDER BY last_at DESC, session_id LIMIT {limit:UInt64} FORMAT JSONEachRow";

pub(super) async fn log(
    client: &Client,
    tenant: &TenantId,
    query: &LogQuery,
) -> Result<Vec<LogRow>, StoreError> {
    let asked = |name: &&str| query.node_type.as_deref().is_none_or(|wanted| wanted == *name);
    let node_types = [LogRow::MESSAGE, LogRow::SELECTION].into_iter().filter(asked);
    let parameters = Parameters::new()
        .text("tenant", tenant.as_str())
        .text("session", query.session.as_ref().map_or("", SessionId::as_str))
        .texts("node_types", node_types)
        .number("since", query.since.map_or(i64::MIN, |since| since.0))
        .limit(query.limit);
    let mut rows: Vec<LogRow> = client.select(LOG, &parameters).await?;
    rows.reverse();
    Ok(rows)
}

pub(super) async fn sessions(
    client: &Client,
    tenant: &TenantId,
    session: Option<&SessionId>,
    limit: usize,
) -> Result<Vec<SessionSummary>, StoreError> {
    let parameters = Parameters::new()
        .text("tenant", tenant.as_str())
        .text("session", session.map_or("", SessionId::as_str))
        .limit(limit);
    client.select(SESSIONS, &parameters).await
}
