//! The unified log, row by row.

use plimsoll_engine::{LogQuery, LogRow, SessionId, TenantId};
use rusqlite::Connection;

use super::failure::{Failure, limit};
use super::{messages, receipts};

/// Returns the newest rows that match, oldest first.
pub(super) fn rows(
    connection: &Connection,
    tenant: &TenantId,
    query: &LogQuery,
) -> Result<Vec<LogRow>, Failure> {
    let mut newest = connection.prepare_cached(
        "SELECT id, node_type FROM unified_logs
         WHERE tenant = ?1 AND (?2 IS NULL OR session_id = ?2) AND (?3 IS NULL OR node_type = ?3)
             AND recorded_at >= ?4
         ORDER BY recorded_at DESC, id DESC LIMIT ?5",
    )?;
    let mut found = newest.query((
        tenant.as_str(),
        query.session.as_ref().map(SessionId::as_str),
        &query.node_type,
        query.since.map_or(i64::MIN, |since| since.0),
        limit(query.limit),
    ))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let (id, node_type): (i64, String) = (row.get(0)?, row.get(1)?);
        rows.push(if node_type == LogRow::MESSAGE {
            let record = messages::by_row(connection, tenant, id)?;
            record.as_ref().map(LogRow::of_message)
        } else {
            receipt(connection, tenant, id)?
        });
    }
    rows.reverse();
    Ok(rows.into_iter().flatten().collect())
}

fn receipt(connection: &Connection, tenant: &TenantId, id: i64) -> Result<Option<LogRow>, Failure> {
    let mut query = connection.prepare_cached(
        "SELECT session_id, number, strategy, recorded_at, trace_id, cascade_id, selection_type,
             full_history_size, context_size, masked_count, anchor_hashes, selected_hashes,
             tokens_saved, receipt, billed, billed_without, billed_estimate
         FROM unified_logs WHERE tenant = ?1 AND id = ?2",
    )?;
    let mut rows = query.query((tenant.as_str(), id))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(LogRow::of_receipt(&receipts::read(row)?)))
}
