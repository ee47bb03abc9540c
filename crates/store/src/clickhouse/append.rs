//! Appending: what is there is read, what is new is written, what counts is written last.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::{ContentHash, MillisSinceEpoch};
use plimsoll_engine::{
    Appended, ContextCard, HistoryBatch, MessageRecord, ReceiptRecord, SessionId, StoreError,
    TenantId, digest,
};
use serde::Deserialize;

use super::client::{Client, Parameters};
use super::row::LogInsert;
use super::{cards, messages, receipts};

/// 1900-01-01 and the end of 2299, between which `DateTime64` keeps a time.
const TIMES: std::ops::Range<i64> = -2_208_988_800_000..10_413_792_000_000;

/// Hashes asked for at once: with 19 bytes each they stay below the 128 KiB that the server takes as one parameter.
const HASHES: usize = 5_000;

const KNOWN_MESSAGES: &str = "
SELECT number, content_digest FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND session_id = {session:String} AND node_type = 'message'
    AND number >= {from:UInt32}
ORDER BY number FORMAT JSONEachRow";

const KNOWN_RECEIPTS: &str = "
SELECT DISTINCT number, strategy FROM unified_logs
WHERE tenant = {tenant:String} AND session_id = {session:String}
    AND node_type = 'context_selection' AND number BETWEEN {first:UInt32} AND {last:UInt32}
FORMAT JSONEachRow";

const KNOWN_CARDS: &str = concat!(
    "SELECT content_hash, toUnixTimestamp64Milli(generated_at) AS generated_ms FROM ",
    cards::visible_cards!("*"),
    " WHERE content_hash IN {hashes:Array(String)} FORMAT JSONEachRow"
);

/// Inserts no row: for a batch without records, with which others ask whether the history can be written.
const PROBE: &str = "INSERT INTO unified_logs SELECT * FROM unified_logs WHERE 0";

const INSERT: &str = "INSERT INTO unified_logs FORMAT JSONEachRow";

#[derive(Deserialize)]
struct KnownMessage {
    number: u32,
    content_digest: String,
}

#[derive(Deserialize)]
struct KnownReceipt {
    number: u32,
    strategy: String,
}

#[derive(Deserialize)]
struct KnownCard {
    content_hash: String,
    generated_ms: i64,
}

/// Appends a batch; nobody else may append to its sessions meanwhile.
pub(super) async fn append(
    client: &Client,
    tenant: &TenantId,
    batch: &HistoryBatch,
) -> Result<Appended, StoreError> {
    check_times(batch)?;
    if *batch == HistoryBatch::default() {
        client.execute(PROBE, &Parameters::new()).await?;
    }
    let new_messages = new_messages(client, tenant, &batch.messages).await?;
    let new_receipts = new_receipts(client, tenant, &batch.receipts).await?;
    let new_cards = new_cards(client, tenant, &batch.cards).await?;
    let added = new_messages.len() + new_receipts.len() + new_cards.len();
    let all = batch.messages.len() + batch.receipts.len() + batch.cards.len();

    let name = batch_name(&new_cards)?;
    let mut rows: Vec<LogInsert<'_>> = Vec::with_capacity(added);
    for record in new_messages {
        rows.push(messages::row(tenant, record)?);
    }
    rows.extend(new_receipts.into_iter().map(|record| receipts::row(tenant, record)));
    let sessions: BTreeSet<&SessionId> = new_cards.iter().map(|card| &card.session).collect();
    rows.extend(sessions.into_iter().map(|session| cards::commit(tenant, session, &name)));
    if !new_cards.is_empty() {
        let cards: Vec<_> =
            new_cards.into_iter().map(|card| cards::row(tenant, &name, card)).collect();
        client.insert(cards::INSERT, &cards).await?;
    }
    if !rows.is_empty() {
        client.insert(INSERT, &rows).await?;
    }
    Ok(Appended { added, known: all - added })
}

/// Names a batch by its cards, so that the same cards sent again complete what was begun.
fn batch_name(cards: &[&ContextCard]) -> Result<String, StoreError> {
    let cards = serde_json::to_vec(cards).map_err(|error| StoreError::Other(error.into()))?;
    Ok(digest(&cards))
}

fn check_times(batch: &HistoryBatch) -> Result<(), StoreError> {
    let check = |field: &'static str, time: MillisSinceEpoch| {
        if TIMES.contains(&time.0) {
            return Ok(());
        }
        Err(StoreError::Invalid { field, why: format!("{} is not within 1900 to 2299", time.0) })
    };
    batch.messages.iter().try_for_each(|record| check("recorded_at", record.recorded_at))?;
    batch.receipts.iter().try_for_each(|record| check("recorded_at", record.recorded_at))?;
    batch.cards.iter().try_for_each(|card| {
        check("generated_at", card.generated_at)?;
        check("message_timestamp", card.message_timestamp)
    })
}

fn by_session<T>(
    records: &[T],
    session: impl Fn(&T) -> &SessionId,
) -> BTreeMap<SessionId, Vec<&T>> {
    let mut sessions: BTreeMap<SessionId, Vec<&T>> = BTreeMap::new();
    for record in records {
        sessions.entry(session(record).clone()).or_default().push(record);
    }
    sessions
}

fn of(tenant: &TenantId, session: &SessionId) -> Parameters {
    Parameters::new().text("tenant", tenant.as_str()).text("session", session.as_str())
}

async fn new_messages<'a>(
    client: &Client,
    tenant: &TenantId,
    records: &'a [MessageRecord],
) -> Result<Vec<&'a MessageRecord>, StoreError> {
    let mut new = Vec::new();
    for (session, records) in by_session(records, |record| &record.session) {
        let first = records.iter().map(|record| record.position).min().unwrap_or(0);
        // With the one before the first, for that there is one.
        let from = first.saturating_sub(1);
        let parameters = of(tenant, &session).number("from", from);
        let rows: Vec<KnownMessage> = client.select(KNOWN_MESSAGES, &parameters).await?;
        let mut next =
            rows.last().map_or(u64::from(first > 0) * u64::MAX, |last| u64::from(last.number) + 1);
        let mut kept: BTreeMap<u32, String> =
            rows.into_iter().map(|row| (row.number, row.content_digest)).collect();
        for record in records {
            let (position, hash) = (record.position, record.hash);
            match kept.get(&position) {
                Some(digest) if *digest == hash.full() => {}
                Some(digest) => {
                    let there = ContentHash::from_full(digest)
                        .map_or_else(|| digest.clone(), |hash| hash.short());
                    let what = format!("position {position} of {session} is {there}, not {hash}");
                    return Err(StoreError::Conflict { what });
                }
                None if u64::from(position) == next => {
                    kept.insert(position, hash.full());
                    next += 1;
                    new.push(record);
                }
                None => {
                    let why = format!("{position} of {session} leaves a gap before it");
                    return Err(StoreError::Invalid { field: "position", why });
                }
            }
        }
    }
    Ok(new)
}

async fn new_receipts<'a>(
    client: &Client,
    tenant: &TenantId,
    records: &'a [ReceiptRecord],
) -> Result<Vec<&'a ReceiptRecord>, StoreError> {
    let mut new = Vec::new();
    for (session, records) in by_session(records, |record| &record.session) {
        let turns = || records.iter().map(|record| record.turn);
        let (first, last) = (turns().min().unwrap_or(0), turns().max().unwrap_or(0));
        let parameters = of(tenant, &session).number("first", first).number("last", last);
        let rows: Vec<KnownReceipt> = client.select(KNOWN_RECEIPTS, &parameters).await?;
        let mut known: BTreeSet<(u32, String)> =
            rows.into_iter().map(|row| (row.number, row.strategy)).collect();
        new.extend(
            records
                .into_iter()
                .filter(|record| known.insert((record.turn, record.strategy.clone()))),
        );
    }
    Ok(new)
}

async fn new_cards<'a>(
    client: &Client,
    tenant: &TenantId,
    cards: &'a [ContextCard],
) -> Result<Vec<&'a ContextCard>, StoreError> {
    let mut new = Vec::new();
    for (session, cards) in by_session(cards, |card| &card.session) {
        let mut latest: BTreeMap<String, i64> = BTreeMap::new();
        for cards in cards.chunks(HASHES) {
            let hashes = cards.iter().map(|card| card.content_hash.as_str());
            let parameters = of(tenant, &session).texts("hashes", hashes);
            let rows: Vec<KnownCard> = client.select(KNOWN_CARDS, &parameters).await?;
            latest.extend(rows.into_iter().map(|row| (row.content_hash, row.generated_ms)));
        }
        for card in cards {
            let generated = card.generated_at.0;
            if latest.get(&card.content_hash).is_none_or(|kept| *kept < generated) {
                latest.insert(card.content_hash.clone(), generated);
                new.push(card);
            }
        }
    }
    Ok(new)
}
