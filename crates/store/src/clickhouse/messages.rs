//! Messages: rows of `unified_logs` whose `node_type` is `message`.

use plimsoll_core::{ContentHash, Message, MillisSinceEpoch};
use plimsoll_engine::{
    LogRow, MessageRecord, Rebuilt, SessionId, StoreError, TenantId, hash_prefix,
};
use serde::Deserialize;

use super::client::{Client, Parameters};
use super::row::{LogInsert, Time, WordCounts};

/// Messages read at once by a check of them all (chosen: with 1 MB each it still fits in memory).
const PAGE: usize = 256;

const OF_SESSION: &str = "
SELECT session_id, number, content_digest, content_json, circumstance_json, tokens, turn_number,
    toUnixTimestamp64Milli(at) AS at_ms
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND session_id = {session:String} AND node_type = 'message'
    AND number >= {from:UInt32}
ORDER BY number LIMIT {limit:UInt64} FORMAT JSONEachRow";

const BY_HASH: &str = "
SELECT session_id, number, content_digest, content_json, circumstance_json, tokens, turn_number,
    toUnixTimestamp64Milli(at) AS at_ms
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND node_type = 'message'
    AND substring(content_digest, 1, 8) = substring({prefix:String}, 1, 8)
    AND startsWith(content_digest, {prefix:String})
ORDER BY at_ms, session_id, number
LIMIT 1 BY content_digest LIMIT 2 FORMAT JSONEachRow";

const AFTER: &str = "
SELECT session_id, number, content_digest, content_json, circumstance_json, tokens, turn_number,
    toUnixTimestamp64Milli(at) AS at_ms
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND node_type = 'message'
    AND (session_id, number) > ({session:String}, {number:Int64})
ORDER BY session_id, number LIMIT {limit:UInt64} FORMAT JSONEachRow";

/// A message as it is read.
#[derive(Deserialize)]
pub(super) struct MessageRow {
    session_id: SessionId,
    number: u32,
    content_digest: String,
    content_json: String,
    circumstance_json: String,
    tokens: u32,
    turn_number: u32,
    at_ms: i64,
}

impl MessageRow {
    /// Makes the record, and hashes the content again.
    pub(super) fn checked(self) -> Result<MessageRecord, StoreError> {
        let corrupt = |digest: &str| StoreError::Corrupt { what: format!("message {digest:.16}") };
        let hash = ContentHash::from_full(&self.content_digest)
            .ok_or_else(|| corrupt(&self.content_digest))?;
        let mut message: Message = serde_json::from_str(&self.circumstance_json)
            .map_err(|_| corrupt(&self.content_digest))?;
        message.blocks =
            serde_json::from_str(&self.content_json).map_err(|_| corrupt(&self.content_digest))?;
        if ContentHash::of(&message) != hash {
            return Err(corrupt(&self.content_digest));
        }
        Ok(MessageRecord {
            session: self.session_id,
            position: self.number,
            hash,
            message,
            tokens: self.tokens,
            turn: self.turn_number,
            recorded_at: MillisSinceEpoch(self.at_ms),
        })
    }
}

/// Makes the row of a message: what identifies it in `content_json`, when and where it was said beside that.
pub(super) fn row<'a>(
    tenant: &'a TenantId,
    record: &'a MessageRecord,
) -> Result<LogInsert<'a>, StoreError> {
    let other = |error: serde_json::Error| StoreError::Other(error.into());
    let shown = LogRow::of_message(record);
    let terms = WordCounts::of([record.message.shown().as_str()]);
    let mut circumstance = record.message.clone();
    circumstance.blocks = Vec::new();
    Ok(LogInsert {
        tenant: tenant.as_str(),
        session_id: record.session.as_str(),
        node_type: LogRow::MESSAGE,
        number: record.position,
        at: Time(record.recorded_at),
        text: shown.text,
        content_hash: record.hash.short(),
        content_digest: record.hash.full(),
        role: record.message.role.as_str(),
        phase_name: record.message.phase.as_deref(),
        tokens: record.tokens,
        turn_number: record.turn,
        content_json: serde_json::to_string(&record.message.blocks).map_err(other)?,
        circumstance_json: serde_json::to_string(&circumstance).map_err(other)?,
        words: terms.words,
        word_counts: terms.counts,
        ..LogInsert::default()
    })
}

pub(super) async fn of_session(
    client: &Client,
    tenant: &TenantId,
    session: &SessionId,
    from: u32,
    limit: usize,
) -> Result<Vec<MessageRecord>, StoreError> {
    let parameters = Parameters::new()
        .text("tenant", tenant.as_str())
        .text("session", session.as_str())
        .number("from", from)
        .limit(limit);
    let rows: Vec<MessageRow> = client.select(OF_SESSION, &parameters).await?;
    rows.into_iter().map(MessageRow::checked).collect()
}

pub(super) async fn by_hash(
    client: &Client,
    tenant: &TenantId,
    prefix: &str,
) -> Result<MessageRecord, StoreError> {
    let prefix = hash_prefix(prefix)?;
    let parameters = Parameters::new().text("tenant", tenant.as_str()).text("prefix", &prefix);
    let mut rows: Vec<MessageRow> = client.select(BY_HASH, &parameters).await?;
    if rows.len() > 1 {
        return Err(StoreError::Conflict { what: format!("several messages begin {prefix}") });
    }
    let row =
        rows.pop().ok_or_else(|| StoreError::NotFound { what: format!("message {prefix}") })?;
    row.checked()
}

pub(super) async fn verify(client: &Client, tenant: &TenantId) -> Result<Rebuilt, StoreError> {
    let mut rebuilt = Rebuilt::default();
    let (mut session, mut number) = (String::new(), -1);
    loop {
        let parameters = Parameters::new()
            .text("tenant", tenant.as_str())
            .text("session", &session)
            .number("number", number)
            .limit(PAGE);
        let rows: Vec<MessageRow> = client.select(AFTER, &parameters).await?;
        let Some(last) = rows.last() else { return Ok(rebuilt) };
        last.session_id.as_str().clone_into(&mut session);
        number = i64::from(last.number);
        for row in rows {
            rebuilt.messages += 1;
            rebuilt.mismatches += u64::from(row.checked().is_err());
        }
    }
}
