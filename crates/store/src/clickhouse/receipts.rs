//! Receipts: rows of `unified_logs` whose `node_type` is `context_selection`.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Bill, Bills, Efficiency, Gathering, LogRow, ReceiptRecord, SelectionType, SessionId,
    StoreError, TenantId,
};
use serde::Deserialize;

use super::client::{Client, Parameters};
use super::row::{LogInsert, Time};

const OF_SESSION: &str = "
SELECT session_id, number, trace_id, cascade_id, selection_type, strategy, full_history_size,
    context_size, masked_count, anchor_hashes, selected_hashes, tokens_saved, receipt_json,
    billed, billed_without, billed_estimate, toUnixTimestamp64Milli(at) AS at_ms
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND session_id = {session:String}
    AND node_type = 'context_selection'
ORDER BY number, strategy FORMAT JSONEachRow";

/// The columns of an [`Efficiency`] behind those that it is gathered by.
macro_rules! sums {
    () => {
        "count() AS selections, avg(full_history_size) AS avg_full_size,
    avg(context_size) AS avg_context_size, avg(tokens_saved) AS avg_tokens_saved,
    sum(tokens_saved) AS sum_tokens_saved, count(billed) AS requests_billed,
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
    "SELECT session_id, ",
    sums!(),
    " GROUP BY session_id ORDER BY session_id FORMAT JSONEachRow"
);

#[derive(Deserialize)]
struct ReceiptRow {
    session_id: SessionId,
    number: u32,
    trace_id: String,
    cascade_id: Option<String>,
    selection_type: String,
    strategy: String,
    full_history_size: u32,
    context_size: u32,
    masked_count: u32,
    anchor_hashes: Vec<String>,
    selected_hashes: Vec<String>,
    tokens_saved: i64,
    receipt_json: String,
    billed: Option<f64>,
    billed_without: Option<f64>,
    billed_estimate: bool,
    at_ms: i64,
}

#[derive(Deserialize)]
struct EfficiencyRow {
    #[serde(default)]
    cascade_id: Option<String>,
    #[serde(default)]
    session_id: Option<SessionId>,
    selections: u64,
    avg_full_size: f64,
    avg_context_size: f64,
    avg_tokens_saved: f64,
    sum_tokens_saved: i64,
    #[serde(flatten)]
    bills: Bills,
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

pub(super) async fn of_session(
    client: &Client,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<ReceiptRecord>, StoreError> {
    let parameters =
        Parameters::new().text("tenant", tenant.as_str()).text("session", session.as_str());
    let rows: Vec<ReceiptRow> = client.select(OF_SESSION, &parameters).await?;
    rows.into_iter().map(record).collect()
}

fn record(row: ReceiptRow) -> Result<ReceiptRecord, StoreError> {
    let selection_type = SelectionType::from_name(&row.selection_type).ok_or_else(|| {
        StoreError::Corrupt { what: format!("a receipt of selection type {}", row.selection_type) }
    })?;
    let bill = |(billed, without)| Bill { billed, without, estimate: row.billed_estimate };
    Ok(ReceiptRecord {
        bill: row.billed.zip(row.billed_without).map(bill),
        session: row.session_id,
        turn: row.number,
        trace_id: row.trace_id,
        cascade_id: row.cascade_id,
        selection_type,
        strategy: row.strategy,
        full_history_size: row.full_history_size,
        context_size: row.context_size,
        masked_count: row.masked_count,
        anchor_hashes: row.anchor_hashes,
        selected_hashes: row.selected_hashes,
        tokens_saved: row.tokens_saved,
        receipt: row.receipt_json,
        recorded_at: MillisSinceEpoch(row.at_ms),
    })
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
    let rows: Vec<EfficiencyRow> = client.select(query, &parameters).await?;
    let efficiency = |row: EfficiencyRow| Efficiency {
        cascade_id: row.cascade_id,
        session: row.session_id,
        selections: row.selections,
        avg_full_size: row.avg_full_size,
        avg_context_size: row.avg_context_size,
        avg_tokens_saved: row.avg_tokens_saved,
        tokens_saved: row.sum_tokens_saved,
        bills: row.bills,
    };
    Ok(rows.into_iter().map(efficiency).collect())
}
