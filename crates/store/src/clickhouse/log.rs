//! The unified log as rows to read, and sessions at a glance.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{LogQuery, LogRow, SessionId, SessionSummary, StoreError, TenantId};
use serde::Deserialize;

use super::client::{Client, Parameters};

const LOG: &str = "
SELECT session_id, node_type, toUnixTimestamp64Milli(at) AS at_ms, number, content_hash, role,
    tokens, text, metadata
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND node_type IN {node_types:Array(String)}
    AND ({session:String} = '' OR session_id = {session:String})
    AND toUnixTimestamp64Milli(at) >= {since:Int64}
ORDER BY at_ms DESC, arrival DESC LIMIT {limit:UInt64} FORMAT JSONEachRow";

/// Sessions; an empty `session` means all of the tenant's.
const SESSIONS: &str = "
SELECT session_id, countIf(node_type = 'message') AS messages,
    sumIf(tokens, node_type = 'message') AS sum_tokens,
    toUnixTimestamp64Milli(min(at)) AS first_ms, toUnixTimestamp64Milli(max(at)) AS last_ms
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND node_type IN ('message', 'context_selection')
    AND ({session:String} = '' OR session_id = {session:String})
GROUP BY session_id
ORDER BY last_ms DESC, session_id LIMIT {limit:UInt64} FORMAT JSONEachRow";

#[derive(Deserialize)]
struct Row {
    session_id: SessionId,
    node_type: String,
    at_ms: i64,
    number: u32,
    content_hash: String,
    role: String,
    tokens: u32,
    text: String,
    metadata: String,
}

#[derive(Deserialize)]
struct SessionRow {
    session_id: SessionId,
    messages: u32,
    sum_tokens: u64,
    first_ms: i64,
    last_ms: i64,
}

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
    let mut rows: Vec<Row> = client.select(LOG, &parameters).await?;
    rows.reverse();
    Ok(rows.into_iter().map(shown).collect())
}

fn shown(row: Row) -> LogRow {
    let is_message = row.node_type == LogRow::MESSAGE;
    LogRow {
        session: row.session_id,
        at: MillisSinceEpoch(row.at_ms),
        number: row.number,
        content_hash: is_message.then_some(row.content_hash),
        role: is_message.then_some(row.role),
        tokens: is_message.then_some(row.tokens),
        text: row.text,
        metadata: (!is_message).then_some(row.metadata),
        node_type: row.node_type,
    }
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
    let rows: Vec<SessionRow> = client.select(SESSIONS, &parameters).await?;
    let summary = |row: SessionRow| SessionSummary {
        session: row.session_id,
        messages: row.messages,
        tokens: row.sum_tokens,
        first_at: MillisSinceEpoch(row.first_ms),
        last_at: MillisSinceEpoch(row.last_ms),
    };
    Ok(rows.into_iter().map(summary).collect())
}
