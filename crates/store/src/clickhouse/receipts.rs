//! Receipts: rows of `unified_logs` whose `node_type` is `context_selection`.

use plimsoll_engine::{
    Bill, Efficiency, Gathering, LogRow, ReceiptRecord, SessionId, StoreError, TenantId,
};
use serde::Deserialize;

use super::client::{Client, Parameters};
use super::row::{LogInsert, Time};

const OF_SESSION: &str = "
SELECT session_id AS session, number AS turn, trace_id, cascade_id, selection_type, strategy,
    full_history_size, context_size, masked_count, anchor_hashes, selected_hashes, tokens_saved,
    receipt_json AS receipt, billed, billed_without, billed_estimate,
    toUnixTimestamp64Milli(at) AS recorded_at
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND session_id = {session:String}
    AND node_type = 'context_selection'
    AND (strategy = {strategy:String} OR {strategy:String} = '')
ORDER BY number, strategy FORMAT JSONEachRow";

/// The columns of an [`Efficiency`] behind those that it is gathered by.
macro_rules! sums {
    () => {
        "count() AS selections, avg(full_history_size) AS avg_full_size,
    avg(context_size) AS avg_context_size, avg(tokens_saved) AS avg_tokens_saved,
    sum(tokens_saved) AS tokens_saved, count(billed) AS requests_billed,
    ifNull(sum(billed), 0) AS dollars_billed, ifNull(sum(billed_without), 0) AS dollars_without,
    countIf(billed_estimate) AS bills_estimated
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND node_type = 'context_selection'"
    };
}

/// The query of `auto-context.md`, Metrics.
const BY_CASCADE: &str = concat!(
    "SELECT cascade_id, ",
    sums!(),
    " GROUP BY cascade_id ORDER BY cascade_id NULLS FIRST FORMAT JSONEachRow"
);

const BY_SESSION: &str = concat!(
    "SELECT session_id AS session, NULL AS cascade_id, ",
    sums!(),
    " GROUP BY session_id ORDER BY session_id FORMAT JSONEachRow"
);

/// A receipt as it is read: the columns have the names of its fields, but for its bill.
#[derive(Deserialize)]
struct ReceiptRow {
    #[serde(flatten)]
    record: ReceiptRecord,
    billed: Option<f64>,
    billed_without: Option<f64>,
    billed_estimate: bool,
}

pub(super) fn row<'a>(tenant: &'a TenantId, record: &'a ReceiptRecord) -> LogInsert<'a> {
    let shown = LogRow::of_receipt(record);
    LogInsert {
        tenant: tenant.as_str(),
        session_id: record.session.as_str(),
        node_type: LogRow::SELECTION,
        number: record.turn,
        strategy: &record.strategy,
        at: Time(record.recorded_at),
        text: shown.text,
        metadata: shown.metadata.unwrap_or_default(),
        turn_number: record.turn,
        cascade_id: record.cascade_id.as_deref(),
        trace_id: &record.trace_id,
        selection_type: record.selection_type.as_str(),
        full_history_size: record.full_history_size,
        context_size: record.context_size,
        masked_count: record.masked_count,
        anchor_hashes: &record.anchor_hashes,
        selected_hashes: &record.selected_hashes,
        tokens_saved: record.tokens_saved,
        receipt_json: &record.receipt,
        billed: record.bill.map(|bill| bill.billed),
        billed_without: record.bill.map(|bill| bill.without),
        billed_estimate: record.bill.is_some_and(|bill| bill.estimate),
        ..LogInsert::default()
    }
}

/// Returns the receipts of a session, with a `strategy` only those that have it.
pub(super) async fn of_session(
    client: &Client,
    tenant: &TenantId,
    session: &SessionId,
    strategy: Option<&str>,
) -> Result<Vec<ReceiptRecord>, StoreError> {
    let parameters =
        Parameters::new().text("tenant", tenant.as_str()).text("session", session.as_str());
    let parameters = parameters.text("strategy", strategy.unwrap_or_default());
    let rows: Vec<ReceiptRow> = client.select(OF_SESSION, &parameters).await?;
    let record = |mut row: ReceiptRow| {
        let estimate = Some(row.billed_estimate);
        row.record.bill = Bill::from_columns(row.billed, row.billed_without, estimate);
        row.record
    };
    Ok(rows.into_iter().map(record).collect())
}

pub(super) async fn efficiency(
    client: &Client,
    tenant: &TenantId,
    by: Gathering,
) -> Result<Vec<Efficiency>, StoreError> {
    let parameters = Parameters::new().text("tenant", tenant.as_str());
    let query = match by {
        Gathering::Cascade => BY_CASCADE,
        Gathering::Session => BY_SESSION,
    };
    client.select(query, &parameters).await
}
