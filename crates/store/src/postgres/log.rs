//! The unified log, row by row.

use deadpool_postgres::GenericClient;
use plimsoll_engine::{LogQuery, LogRow, StoreError, TenantId};
use tokio_postgres::Row;

use super::branches::parts_of;
use super::messages::{message_columns, of, read, read_receipt};
use super::rows;
use super::text::{escape, limit};
use crate::part::SharedPart;

/// Returns the newest rows that match, oldest first.
pub(super) async fn newest<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    query: &LogQuery,
) -> Result<Vec<LogRow>, StoreError> {
    let sql = concat!(
        "SELECT node_type, hash, arrival, ",
        message_columns!(),
        " FROM unified_logs WHERE tenant = $1 AND ($2::text IS NULL OR session_id = $2) \
          AND ($3::text IS NULL OR node_type = $3) AND ($4::bigint IS NULL OR recorded_at >= $4) \
          AND (number < $6 OR node_type <> 'message') \
          ORDER BY recorded_at DESC, arrival DESC LIMIT $5"
    );
    let parts = match &query.session {
        Some(session) => parts_of(client, tenant, session).await?.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut found: Vec<((i64, i64), LogRow)> = Vec::new();
    for part in &parts {
        let values: super::SqlValues<'_> = &[
            &tenant.as_str(),
            &part.as_ref().map(|part| part.branch.from.as_str()),
            &query.node_type.as_ref().map(|wanted| escape(wanted)),
            &query.since.map(|since| since.0),
            &limit(query.limit),
            &part.as_ref().map_or(i64::MAX, |part| part.branch.messages.into()),
        ];
        for row in rows(client, sql, values).await? {
            let order = (row.get("recorded_at"), row.get("arrival"));
            let read = log_row(&row, part.as_ref())?;
            found.extend(read.map(|read| (order, read)));
        }
    }
    found.sort_by_key(|(order, _)| *order);
    found.drain(..found.len().saturating_sub(query.limit));
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

/// Reads a row as a session has it that it belongs to; `None` where it belongs to its owner alone.
fn log_row(row: &Row, part: Option<&SharedPart>) -> Result<Option<LogRow>, StoreError> {
    if row.get::<_, &str>("node_type") == LogRow::MESSAGE {
        let record = read(row)?;
        let record = match part {
            Some(part) => of(record, &part.branch.session),
            None => record,
        };
        return Ok(Some(LogRow::of_message(&record)));
    }
    let receipt = read_receipt(row)?;
    let receipt = match part {
        Some(part) => part.share(receipt),
        None => Some(receipt),
    };
    Ok(receipt.as_ref().map(LogRow::of_receipt))
}
