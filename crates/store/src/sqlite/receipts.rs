//! Receipts: context decisions, in the unified log.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Appended, Bill, Bills, Efficiency, Gathering, ReceiptRecord, SelectionType, SessionId,
    StoreError, TenantId,
};
use rusqlite::{Connection, Row, params};

use super::branches::parts_of;
use super::failure::{SqliteFailure, unreadable};
use super::messages::SessionCounts;
use super::query::{change, digest, rows, session};
use crate::part::joined;

/// Columns of a receipt as [`read`] expects them.
macro_rules! receipt_columns {
    () => {
        "session_id, number, strategy, recorded_at, trace_id, cascade_id, selection_type,
         full_history_size, context_size, masked_count, anchor_hashes, selected_hashes,
         tokens_saved, receipt, billed, billed_without, billed_estimate, hash"
    };
}
pub(super) use receipt_columns;

/// Appends receipts; one that is there stays.
pub(super) fn append<'a>(
    connection: &Connection,
    tenant: &TenantId,
    receipts: &'a [ReceiptRecord],
    counts: &mut SessionCounts<'a>,
    appended: &mut Appended,
) -> Result<(), SqliteFailure> {
    for record in receipts {
        let new = change(
            connection,
            "INSERT INTO unified_logs (tenant, session_id, node_type, number, strategy, recorded_at,
                 trace_id, cascade_id, selection_type, full_history_size, context_size,
                 masked_count, anchor_hashes, selected_hashes, tokens_saved, receipt, billed,
                 billed_without, billed_estimate, hash)
             VALUES (?1, ?2, 'context_selection', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
                 ?14, ?15, ?16, ?17, ?18, ?19)
             ON CONFLICT (tenant, session_id, node_type, number, strategy) DO NOTHING",
            params![
            tenant.as_str(),
            record.session.as_str(),
            record.turn,
            record.strategy,
            record.recorded_at.0,
            record.trace_id,
            record.cascade_id,
            record.selection_type.as_str(),
            record.full_history_size,
            record.context_size,
            record.masked_count,
            list(&record.anchor_hashes)?,
            list(&record.selected_hashes)?,
            record.tokens_saved,
            record.receipt,
            record.bill.map(|bill| bill.billed),
            record.bill.map(|bill| bill.without),
            record.bill.map(|bill| bill.estimate),
            record.digest(),
            ],
        )? > 0;
        if new {
            counts.add(&record.session, None, record.recorded_at);
        }
        appended.added += usize::from(new);
        appended.known += usize::from(!new);
    }
    Ok(())
}

/// Returns the receipts of a session in the order of turns and strategies.
pub(super) fn of_session(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<ReceiptRecord>, SqliteFailure> {
    of_parts(connection, tenant, session, |owner| {
        of_owner(connection, tenant, owner)?.into_iter().collect()
    })
}

/// Returns the receipts that a session owns, in the order of turns and strategies.
pub(super) fn of_owner(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<Result<ReceiptRecord, SqliteFailure>>, SqliteFailure> {
    rows(
        connection,
        concat!(
            "SELECT ",
            receipt_columns!(),
            " FROM unified_logs
             WHERE tenant = ?1 AND session_id = ?2 AND node_type = 'context_selection'
             ORDER BY number, strategy"
        ),
        [tenant.as_str(), session.as_str()],
        |row| Ok(read(row)),
    )
}

/// Returns the receipts of a session that have this strategy, in the order of turns.
pub(super) fn of_strategy(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
    strategy: &str,
) -> Result<Vec<ReceiptRecord>, SqliteFailure> {
    let sql = concat!(
        "SELECT ",
        receipt_columns!(),
        " FROM unified_logs
         WHERE tenant = ?1 AND session_id = ?2 AND node_type = 'context_selection'
             AND strategy = ?3
         ORDER BY number"
    );
    of_parts(connection, tenant, session, |owner| {
        rows(connection, sql, [tenant.as_str(), owner.as_str(), strategy], read)
    })
}

/// Returns the receipts of a session's parts.
fn of_parts(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
    of: impl Fn(&SessionId) -> Result<Vec<ReceiptRecord>, SqliteFailure>,
) -> Result<Vec<ReceiptRecord>, SqliteFailure> {
    let mut found = Vec::new();
    for part in parts_of(connection, tenant, session)? {
        let of_owner = of(&part.branch.from)?.into_iter();
        found.extend(of_owner.filter_map(|receipt| part.share(receipt)));
    }
    Ok(joined(found))
}

/// Reads a receipt and hashes it again.
pub(super) fn read(row: &Row<'_>) -> Result<ReceiptRecord, SqliteFailure> {
    let kind: String = row.get(6)?;
    let record = ReceiptRecord {
        session: session(row, 0)?,
        turn: row.get(1)?,
        strategy: row.get(2)?,
        recorded_at: MillisSinceEpoch(row.get(3)?),
        trace_id: row.get(4)?,
        cascade_id: row.get(5)?,
        selection_type: SelectionType::from_name(&kind)
            .ok_or_else(|| unreadable("selection type"))?,
        full_history_size: row.get(7)?,
        context_size: row.get(8)?,
        masked_count: row.get(9)?,
        anchor_hashes: strings(row, 10)?,
        selected_hashes: strings(row, 11)?,
        tokens_saved: row.get(12)?,
        receipt: row.get(13)?,
        bill: Bill::from_columns(row.get(14)?, row.get(15)?, row.get(16)?),
    };
    record.check_digest(digest(row, 17)?)?;
    Ok(record)
}

/// The columns of an [`Efficiency`] behind those that it is gathered by.
macro_rules! sums {
    () => {
        "count(*), avg(full_history_size), avg(context_size), avg(tokens_saved),
             sum(tokens_saved), count(billed), total(billed), total(billed_without),
             coalesce(sum(billed_estimate), 0)
         FROM unified_logs WHERE tenant = ?1 AND node_type = 'context_selection'"
    };
}

/// The query of `auto-context.md`, Metrics.
const BY_CASCADE: &str =
    concat!("SELECT cascade_id, NULL, ", sums!(), " GROUP BY cascade_id ORDER BY cascade_id");

const BY_SESSION: &str =
    concat!("SELECT NULL, session_id, ", sums!(), " GROUP BY session_id ORDER BY session_id");

pub(super) fn efficiency(
    connection: &Connection,
    tenant: &TenantId,
    by: Gathering,
) -> Result<Vec<Efficiency>, SqliteFailure> {
    rows(
        connection,
        match by {
            Gathering::Cascade => BY_CASCADE,
            Gathering::Session => BY_SESSION,
        },
        [tenant.as_str()],
        |row| {
            Ok(Efficiency {
                cascade_id: row.get(0)?,
                session: match by {
                    Gathering::Cascade => None,
                    Gathering::Session => Some(session(row, 1)?),
                },
                selections: row.get::<_, u32>(2)?.into(),
                avg_full_size: row.get(3)?,
                avg_context_size: row.get(4)?,
                avg_tokens_saved: row.get(5)?,
                tokens_saved: row.get(6)?,
                bills: Bills {
                    requests_billed: row.get::<_, u32>(7)?.into(),
                    dollars_billed: row.get(8)?,
                    dollars_without: row.get(9)?,
                    bills_estimated: row.get::<_, u32>(10)?.into(),
                },
            })
        },
    )
}

/// Writes a list of texts as JSON.
pub(super) fn list(texts: &[String]) -> Result<String, SqliteFailure> {
    serde_json::to_string(texts).map_err(|error| StoreError::Other(Box::new(error)).into())
}

/// Reads a list of texts.
pub(super) fn strings(row: &Row<'_>, column: usize) -> Result<Vec<String>, SqliteFailure> {
    let text = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    serde_json::from_str(text).map_err(|_| unreadable("list"))
}
