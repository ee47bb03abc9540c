//! Messages and receipts: appended in one transaction, hashed again when they are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use deadpool_postgres::{GenericClient, Transaction};
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch};
use plimsoll_engine::{
    Appended, HistoryBatch, MessageRecord, ReceiptRecord, SessionId, StoreError, TenantId,
    hash_prefix,
};
use tokio_postgres::Row;

use super::failure::{of_client, of_commit};
use super::text::{corrupt, count, escape_opt, key, limit, session};
use super::{PostgresStore, branches, cards, change, row, rows, words};

/// The columns that [`read`] reads.
macro_rules! message_columns {
    () => {
        "session_id, number, digest, tokens, turn, recorded_at, content_json"
    };
}
pub(super) use message_columns;

/// Reads a message and hashes it again.
pub(super) fn read(row: &Row) -> Result<MessageRecord, StoreError> {
    let digest: &str = row.get("digest");
    let mismatch = || corrupt(format!("message {digest}"));
    let message: Message = serde_json::from_str(row.get("content_json")).map_err(|_| mismatch())?;
    let hash = ContentHash::from_full(digest).ok_or_else(mismatch)?;
    if ContentHash::of(&message) != hash {
        return Err(mismatch());
    }
    Ok(MessageRecord {
        session: session(row.get("session_id"))?,
        position: count(row.get("number")),
        hash,
        message,
        tokens: count(row.get("tokens")),
        turn: count(row.get("turn")),
        recorded_at: MillisSinceEpoch(row.get("recorded_at")),
    })
}

/// Reads a receipt and hashes it again.
pub(super) fn read_receipt(row: &Row) -> Result<ReceiptRecord, StoreError> {
    let record: ReceiptRecord = serde_json::from_str(row.get("content_json"))
        .map_err(|_| corrupt(format!("a receipt of turn {}", row.get::<_, i64>("number"))))?;
    record.check_digest(row.get("hash"))?;
    Ok(record)
}

fn other(error: serde_json::Error) -> StoreError {
    StoreError::Other(Box::new(error))
}

/// Appends a batch in one transaction that holds the rows of its sessions.
pub(super) async fn append(
    store: &PostgresStore,
    tenant: &TenantId,
    batch: HistoryBatch,
) -> Result<Appended, StoreError> {
    batch.check()?;
    let mut client = store.client().await?;
    let embeddings = batch.cards.iter().filter_map(|card| card.embedding.as_ref());
    cards::open_spaces(&client, tenant, "card", embeddings).await?;
    let transaction = client.transaction().await.map_err(of_client)?;
    if let Some(branch) = &batch.branch {
        branches::begin(&transaction, tenant, branch).await?;
    }
    let lengths = lock(&transaction, tenant, &batch).await?;
    let new = new_messages(&transaction, tenant, &batch.messages, lengths).await?;
    let mut added = new.len();
    insert_messages(&transaction, tenant, &new).await?;
    let mut changes: BTreeMap<&SessionId, Vec<(Option<u32>, i64)>> = BTreeMap::new();
    for record in new {
        let change = (Some(record.tokens), record.recorded_at.0);
        changes.entry(&record.session).or_default().push(change);
    }
    for record in &batch.receipts {
        if insert_receipt(&transaction, tenant, record).await? {
            changes.entry(&record.session).or_default().push((None, record.recorded_at.0));
            added += 1;
        }
    }
    for (session, changes) in changes {
        grow(&transaction, tenant, session, &changes).await?;
    }
    // In the order of their keys, so that two batches never wait for each other; of one key, the order given.
    let mut in_order: Vec<_> = batch.cards.iter().collect();
    in_order.sort_by_key(|card| (&card.session, &card.content_hash));
    for card in in_order {
        added += usize::from(cards::put(&transaction, tenant, card).await?);
    }
    transaction.commit().await.map_err(of_commit)?;
    let all = batch.messages.len() + batch.receipts.len() + batch.cards.len();
    Ok(Appended { added, known: all - added })
}

/// Locks the rows of the batch's sessions, in order, and returns how many messages each has.
async fn lock(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    batch: &HistoryBatch,
) -> Result<HashMap<String, i64>, StoreError> {
    let of_messages = batch.messages.iter().map(|record| record.session.as_str());
    let of_receipts = batch.receipts.iter().map(|record| record.session.as_str());
    let sessions: BTreeSet<&str> = of_messages.chain(of_receipts).collect();
    let mut lengths = HashMap::new();
    for session in sessions {
        // The times of a new session are set when it grows, which it does before anybody sees it.
        let sql = "INSERT INTO sessions VALUES ($1, $2, 0, 0, $3, $4) \
                   ON CONFLICT (tenant, session_id) DO UPDATE SET session_id = excluded.session_id \
                   RETURNING messages";
        let values: super::SqlValues<'_> = &[&tenant.as_str(), &session, &i64::MAX, &i64::MIN];
        for row in rows(transaction, sql, values).await? {
            lengths.insert(session.to_owned(), row.get(0));
        }
    }
    Ok(lengths)
}

/// Checks positions and hashes against what is kept, and returns the messages that are new.
async fn new_messages<'a>(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    records: &'a [MessageRecord],
    mut lengths: HashMap<String, i64>,
) -> Result<Vec<&'a MessageRecord>, StoreError> {
    let mut known: HashMap<(String, i64), String> = HashMap::new();
    for (session, length) in &lengths {
        let positions: Vec<i64> = records
            .iter()
            .filter(|record| record.session.as_str() == session)
            .map(|record| i64::from(record.position))
            .filter(|position| position < length)
            .collect();
        if positions.is_empty() {
            continue;
        }
        let sql = "SELECT l.number, l.digest FROM session_parts($1, $2) AS part \
                   JOIN unified_logs AS l ON l.tenant = $1 AND l.session_id = part.owner \
                       AND l.node_type = 'message' AND l.number < part.messages \
                   WHERE l.number = ANY($3)";
        for row in rows(transaction, sql, &[&tenant.as_str(), session, &positions]).await? {
            known.insert((session.clone(), row.get(0)), row.get(1));
        }
    }
    let mut new = Vec::new();
    for record in records {
        let place = (record.session.as_str().to_owned(), i64::from(record.position));
        let length = lengths.entry(place.0.clone()).or_insert(0);
        match known.get(&place) {
            Some(digest) if *digest == record.hash.full() => {}
            Some(digest) => {
                let what = format!("position {} of {} is {:.16}", place.1, place.0, digest);
                return Err(StoreError::Conflict { what });
            }
            None if place.1 == *length => {
                *length += 1;
                known.insert(place, record.hash.full());
                new.push(record);
            }
            None => {
                let why = format!("{} leaves a gap after {length} messages", place.1);
                return Err(StoreError::Invalid { field: "position", why });
            }
        }
    }
    Ok(new)
}

const INSERT_MESSAGES: &str = "
    INSERT INTO unified_logs (tenant, session_id, node_type, number, recorded_at, content_hash,
        digest, role, tokens, turn, content_json)
    SELECT $1, new.session_id, 'message', new.number, new.recorded_at, left(new.digest, 16),
        new.digest, new.role, new.tokens, new.turn, new.content
    FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::bigint[],
        $8::bigint[], $9::text[])
        WITH ORDINALITY AS new(session_id, number, recorded_at, digest, role, tokens, turn, content,
            place)
    ORDER BY new.place";

const INSERT_WORDS: &str = "
    INSERT INTO log_words (tenant, session_id, content_hash, source, part, words)
    SELECT $1, new.session_id, new.hash, 'message', new.part, new.words::tsvector
    FROM unnest($2::text[], $3::text[], $4::integer[], $5::text[])
        AS new(session_id, hash, part, words)
    ON CONFLICT DO NOTHING";

async fn insert_messages(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    records: &[&MessageRecord],
) -> Result<(), StoreError> {
    if records.is_empty() {
        return Ok(());
    }
    let of = |column: fn(&MessageRecord) -> i64| -> Vec<i64> {
        records.iter().map(|record| column(record)).collect()
    };
    let sessions: Vec<&str> = records.iter().map(|record| record.session.as_str()).collect();
    let digests: Vec<String> = records.iter().map(|record| record.hash.full()).collect();
    let roles: Vec<&str> = records.iter().map(|record| record.message.role.as_str()).collect();
    let contents: Vec<String> = records
        .iter()
        .map(|record| serde_json::to_string(&record.message).map_err(other))
        .collect::<Result<_, _>>()?;
    let values: super::SqlValues<'_> = &[
        &tenant.as_str(),
        &sessions,
        &of(|record| record.position.into()),
        &of(|record| record.recorded_at.0),
        &digests,
        &roles,
        &of(|record| record.tokens.into()),
        &of(|record| record.turn.into()),
        &contents,
    ];
    change(transaction, INSERT_MESSAGES, values).await?;
    let (mut of_session, mut hashes, mut numbers, mut texts) = (vec![], vec![], vec![], vec![]);
    for record in records {
        for (part, number) in
            words::parts(tenant, [record.message.shown().as_str()]).into_iter().zip(0_i32..)
        {
            of_session.push(record.session.as_str());
            hashes.push(record.hash.short());
            numbers.push(number);
            texts.push(part);
        }
    }
    let values: super::SqlValues<'_> = &[&tenant.as_str(), &of_session, &hashes, &numbers, &texts];
    change(transaction, INSERT_WORDS, values).await?;
    Ok(())
}

const INSERT_RECEIPT: &str = "
    INSERT INTO unified_logs (tenant, session_id, node_type, number, strategy_key, recorded_at,
        turn, cascade_id, full_history_size, context_size, tokens_saved, content_json,
        billed, billed_without, billed_estimate, hash)
    VALUES ($1, $2, 'context_selection', $3, $4, $5, $3, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    ON CONFLICT DO NOTHING";

pub(super) async fn insert_receipt(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    record: &ReceiptRecord,
) -> Result<bool, StoreError> {
    let values: super::SqlValues<'_> = &[
        &tenant.as_str(),
        &record.session.as_str(),
        &i64::from(record.turn),
        &key(&record.strategy),
        &record.recorded_at.0,
        &escape_opt(record.cascade_id.as_ref()),
        &i64::from(record.full_history_size),
        &i64::from(record.context_size),
        &record.tokens_saved,
        &serde_json::to_string(record).map_err(other)?,
        &record.bill.map(|bill| bill.billed),
        &record.bill.map(|bill| bill.without),
        &record.bill.map(|bill| bill.estimate),
        &record.digest(),
    ];
    Ok(change(transaction, INSERT_RECEIPT, values).await? == 1)
}

async fn grow(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    session: &SessionId,
    changes: &[(Option<u32>, i64)],
) -> Result<(), StoreError> {
    let tokens: i64 = changes.iter().filter_map(|(tokens, _)| tokens.map(i64::from)).sum();
    let messages = changes.iter().filter(|(tokens, _)| tokens.is_some()).count();
    let first = changes.iter().map(|(_, at)| *at).min().unwrap_or(i64::MAX);
    let last = changes.iter().map(|(_, at)| *at).max().unwrap_or(i64::MIN);
    let sql = "UPDATE sessions SET messages = messages + $3, tokens = tokens + $4, \
               first_at = least(first_at, $5), last_at = greatest(last_at, $6) \
               WHERE tenant = $1 AND session_id = $2";
    let values: super::SqlValues<'_> =
        &[&tenant.as_str(), &session.as_str(), &limit(messages), &tokens, &first, &last];
    change(transaction, sql, values).await?;
    Ok(())
}

/// Returns the messages of a session.
pub(super) async fn of_session<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    session: &SessionId,
    from: u32,
    most: usize,
) -> Result<Vec<MessageRecord>, StoreError> {
    let sql = concat!(
        "SELECT ",
        message_columns!(),
        " FROM unified_logs WHERE tenant = $1 AND session_id = $2 AND node_type = 'message' \
          AND number >= $3 AND number < $5 ORDER BY number LIMIT $4"
    );
    let mut found = Vec::new();
    // The oldest part has the first messages.
    for part in branches::parts_of(client, tenant, session).await?.into_iter().rev() {
        let left = limit(most - found.len());
        let values: super::SqlValues<'_> = &[
            &tenant.as_str(),
            &part.branch.from.as_str(),
            &i64::from(from),
            &left,
            &i64::from(part.branch.messages),
        ];
        for row in rows(client, sql, values).await? {
            found.push(of(read(&row)?, session));
        }
        if found.len() == most {
            break;
        }
    }
    Ok(found)
}

/// Returns the hashes of a session's first messages in their order, shared ones included.
pub(super) async fn digests<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    session: &SessionId,
    most: u32,
) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT l.digest FROM session_parts($1, $2) AS part JOIN unified_logs AS l \
                   ON l.tenant = $1 AND l.session_id = part.owner AND l.node_type = 'message' \
                   AND l.number < part.messages AND l.number < $3 ORDER BY l.number";
    let values: super::SqlValues<'_> = &[&tenant.as_str(), &session.as_str(), &i64::from(most)];
    Ok(rows(client, sql, values).await?.iter().map(|row| row.get(0)).collect())
}

/// Returns a message as the session that shares it has it.
pub(super) fn of(record: MessageRecord, session: &SessionId) -> MessageRecord {
    MessageRecord { session: session.clone(), ..record }
}

/// Returns the first message whose hash begins with `prefix`.
pub(super) async fn by_hash<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    prefix: &str,
) -> Result<MessageRecord, StoreError> {
    let prefix = hash_prefix(prefix)?;
    // `g` comes after every hex digit.
    let end = format!("{prefix}g");
    let sql = concat!(
        "SELECT ",
        message_columns!(),
        ", (SELECT count(*) FROM (SELECT DISTINCT digest FROM unified_logs \
            WHERE tenant = $1 AND digest >= $2 AND digest < $3 LIMIT 2) AS two) AS contents \
          FROM unified_logs WHERE tenant = $1 AND digest >= $2 AND digest < $3 \
          ORDER BY recorded_at, session_id, number LIMIT 1"
    );
    let Some(found) = row(client, sql, &[&tenant.as_str(), &prefix, &end]).await? else {
        return Err(StoreError::NotFound { what: format!("message {prefix}") });
    };
    if found.get::<_, i64>("contents") > 1 {
        return Err(StoreError::Conflict { what: format!("several messages begin {prefix}") });
    }
    read(&found)
}
