//! The unified log, row by row.

use plimsoll_engine::{LogQuery, LogRow, SessionId, TenantId};
use rusqlite::Connection;

use super::failure::{SqliteFailure, limit};
use super::query::{row, rows};
use super::{messages, receipts};

/// Returns the newest rows that match, oldest first.
pub(super) fn newest(
    connection: &Connection,
    tenant: &TenantId,
    query: &LogQuery,
) -> Result<Vec<LogRow>, SqliteFailure> {
    let mut found = rows(
        connection,
        "SELECT id, node_type FROM unified_logs
         WHERE tenant = ?1 AND (?2 IS NULL OR session_id = ?2) AND (?3 IS NULL OR node_type = ?3)
             AND recorded_at >= ?4
         ORDER BY recorded_at DESC, id DESC LIMIT ?5",
        (
            tenant.as_str(),
            query.session.as_ref().map(SessionId::as_str),
            &query.node_type,
            query.since.map_or(i64::MIN, |since| since.0),
            limit(query.limit),
        ),
        |row| {
            let (id, node_type): (i64, String) = (row.get(0)?, row.get(1)?);
            if node_type != LogRow::MESSAGE {
                return receipt(connection, tenant, id);
            }
            let record = messages::by_row(connection, tenant, id)?;
            Ok(record.as_ref().map(LogRow::of_message))
        },
    )?;
    found.reverse();
    Ok(found.into_iter().flatten().collect())
}

fn receipt(
    connection: &Connection,
    tenant: &TenantId,
    id: i64,
) -> Result<Option<LogRow>, SqliteFailure> {
    let sql = concat!(
        "SELECT ",
        receipts::receipt_columns!(),
        " FROM unified_logs WHERE tenant = ?1 AND id = ?2"
    );
    row(connection, sql, (tenant.as_str(), id), |row| Ok(LogRow::of_receipt(&receipts::read(row)?)))
}
