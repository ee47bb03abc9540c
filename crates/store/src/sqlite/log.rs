//! The unified log, row by row.

use plimsoll_engine::{LogQuery, LogRow, TenantId};
use rusqlite::{Connection, ToSql};

use super::branches::parts_of;
use super::failure::{SqliteFailure, limit};
use super::query::{row, rows};
use super::{messages, receipts};
use crate::part::SharedPart;

const ALL: &str = "SELECT id, node_type, recorded_at FROM unified_logs
     WHERE tenant = ?1 AND (?2 IS NULL OR node_type = ?2) AND recorded_at >= ?3
     ORDER BY recorded_at DESC, id DESC LIMIT ?4";

const OF_OWNER: &str = "SELECT id, node_type, recorded_at FROM unified_logs
     WHERE tenant = ?1 AND (?2 IS NULL OR node_type = ?2) AND recorded_at >= ?3
         AND session_id = ?5 AND (number < ?6 OR node_type <> 'message')
     ORDER BY recorded_at DESC, id DESC LIMIT ?4";

/// Returns the newest rows that match, oldest first.
pub(super) fn newest(
    connection: &Connection,
    tenant: &TenantId,
    query: &LogQuery,
) -> Result<Vec<LogRow>, SqliteFailure> {
    let since = query.since.map_or(i64::MIN, |since| since.0);
    let most = limit(query.limit);
    let tenant_name = tenant.as_str();
    let mut found: Vec<(i64, i64, LogRow)> = Vec::new();
    let mut read = |sql: &str, values: &[&dyn ToSql], of: Option<&SharedPart>| {
        let read = rows(connection, sql, values, |row| {
            let (id, node_type): (i64, String) = (row.get(0)?, row.get(1)?);
            let read = log_row(connection, tenant, id, &node_type, of)?;
            Ok(read.map(|read| (row.get(2), id, read)))
        })?;
        for (at, id, read) in read.into_iter().flatten() {
            found.push((at?, id, read));
        }
        Ok::<_, SqliteFailure>(())
    };
    let own: [&dyn ToSql; 4] = [&tenant_name, &query.node_type, &since, &most];
    match &query.session {
        None => read(ALL, &own, None)?,
        Some(session) => {
            for part in parts_of(connection, tenant, session)? {
                let owner = part.branch.from.as_str();
                let values: [&dyn ToSql; 6] =
                    [own[0], own[1], own[2], own[3], &owner, &part.branch.messages];
                read(OF_OWNER, &values, Some(&part))?;
            }
        }
    }
    found.sort_by_key(|(at, id, _)| (*at, *id));
    found.drain(..found.len().saturating_sub(query.limit));
    Ok(found.into_iter().map(|(.., row)| row).collect())
}

/// Reads a row as a session has it that it belongs to; `None` where it belongs to its owner alone.
fn log_row(
    connection: &Connection,
    tenant: &TenantId,
    id: i64,
    node_type: &str,
    of: Option<&SharedPart>,
) -> Result<Option<LogRow>, SqliteFailure> {
    if node_type == LogRow::MESSAGE {
        let record = messages::by_row(connection, tenant, id)?;
        let record = match of {
            Some(part) => record.map(|record| messages::of(record, &part.branch.session)),
            None => record,
        };
        return Ok(record.as_ref().map(LogRow::of_message));
    }
    let sql = concat!(
        "SELECT ",
        receipts::receipt_columns!(),
        " FROM unified_logs WHERE tenant = ?1 AND id = ?2"
    );
    let receipt = row(connection, sql, (tenant.as_str(), id), receipts::read)?;
    let receipt = match of {
        Some(part) => receipt.and_then(|receipt| part.share(receipt)),
        None => receipt,
    };
    Ok(receipt.as_ref().map(LogRow::of_receipt))
}
