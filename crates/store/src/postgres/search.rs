//! Searching messages: by words, by the vectors of their cards, and both fused.

use deadpool_postgres::{GenericClient, Object, Transaction};
use pgvector::Vector;
use plimsoll_engine::{
    Embedding, Hit, MessageRecord, SearchQuery, SessionId, StoreError, TenantId, fuse,
};
use tokio_postgres::Row;

use super::branches::parts_of;
use super::failure::of_client;
use super::messages::{message_columns, read};
use super::text::{key, limit};
use super::{rows, words};
use crate::part::SharedPart;

/// A message's session and position.
type MessageKey = (String, i64);

/// Returns how many hits of each kind are fused: a hit further down in one list could not come far up (chosen).
pub(super) fn depth(most: usize) -> i64 {
    limit(most.saturating_mul(10).max(200))
}

/// Searches in a transaction that only reads: its settings end with it.
pub(super) async fn messages(
    client: &mut Object,
    tenant: &TenantId,
    session: Option<&SessionId>,
    query: &SearchQuery,
) -> Result<Vec<Hit<MessageRecord>>, StoreError> {
    let transaction = client.transaction().await.map_err(of_client)?;
    let depth = depth(query.limit);
    let parts = match session {
        Some(session) => Some(parts_of(&transaction, tenant, session).await?),
        None => None,
    };
    let within = Within::new(parts.as_deref());
    let by_text = match &query.text {
        Some(text) => Some(by_words(&transaction, tenant, &within, text, depth).await?),
        None => None,
    };
    let by_vector = match &query.embedding {
        Some(asked) => Some(by_vector(&transaction, tenant, &within, asked, depth).await?),
        None => None,
    };
    let found = merge(by_text, by_vector, depth);
    let mut hits = Vec::new();
    // A hit that is left out makes room for the next.
    for chunk in found.chunks(query.limit.max(1)) {
        if hits.len() >= query.limit {
            break;
        }
        hits.extend(fetch(&transaction, tenant, chunk).await?);
    }
    hits.truncate(query.limit);
    if let Some(session) = session {
        for hit in &mut hits {
            hit.item.session = session.clone();
        }
    }
    Ok(hits)
}

/// The sessions that a search reads, and how many messages of each; `None` reads all.
struct Within<'a> {
    owners: Option<Vec<&'a str>>,
    messages: Option<Vec<i64>>,
}

impl<'a> Within<'a> {
    fn new(parts: Option<&'a [SharedPart]>) -> Self {
        Self {
            owners: parts.map(|all| all.iter().map(|part| part.branch.from.as_str()).collect()),
            messages: parts.map(|all| all.iter().map(|part| part.branch.messages.into()).collect()),
        }
    }
}

/// Fuses two lists, or returns the one that there is.
pub(super) fn merge<T: Clone + Eq + std::hash::Hash>(
    by_text: Option<Vec<Hit<T>>>,
    by_vector: Option<Vec<Hit<T>>>,
    depth: i64,
) -> Vec<Hit<T>> {
    let order = |hits: Vec<Hit<T>>| hits.into_iter().map(|hit| hit.item).collect();
    match (by_text, by_vector) {
        (Some(text), Some(vector)) => {
            fuse(&[order(text), order(vector)], usize::try_from(depth).unwrap_or(usize::MAX))
        }
        (Some(hits), None) | (None, Some(hits)) => hits,
        (None, None) => Vec::new(),
    }
}

fn place(row: &Row) -> Hit<MessageKey> {
    Hit { item: (row.get(0), row.get(1)), score: row.get(2) }
}

const COUNT: &str = "
    SELECT asked.word, (SELECT count(*) FROM (SELECT 1 FROM log_words
        WHERE tenant = $1 AND words @@ asked.word::tsquery LIMIT $3) AS counted)
    FROM unnest($2::text[]) AS asked(word)";

const BY_WORDS: &str = "
    WITH scored AS (
        SELECT log_words.session_id, log_words.content_hash,
            sum(asked.weight * ts_rank(words, asked.word::tsquery, 1)) AS score
        FROM unnest($3::text[], $4::float8[]) AS asked(word, weight)
        JOIN log_words ON tenant = $1 AND words @@ asked.word::tsquery
        WHERE $2::text[] IS NULL OR log_words.session_id = ANY($2)
        GROUP BY log_words.session_id, log_words.content_hash)
    SELECT session_id, number, score
    FROM scored JOIN unified_logs USING (session_id, content_hash)
    WHERE tenant = $1 AND node_type = 'message' AND ($2 IS NULL OR EXISTS (
        SELECT 1 FROM unnest($2, $6::bigint[]) AS part(owner, messages)
        WHERE owner = session_id AND number < messages))
    ORDER BY score DESC, session_id, number LIMIT $5";

async fn by_words<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    within: &Within<'_>,
    text: &str,
    depth: i64,
) -> Result<Vec<Hit<MessageKey>>, StoreError> {
    let asked = words::asked(client, COUNT, tenant, text).await?;
    let Within { owners, messages } = within;
    let values: super::SqlValues<'_> =
        &[&tenant.as_str(), owners, &asked.lexemes, &asked.weights, &depth, messages];
    Ok(rows(client, BY_WORDS, values).await?.iter().map(place).collect())
}

const NEAREST: &str = "
    SELECT unified_logs.session_id, number, 1 - distance
    FROM nearest($1, 'card', $2, $3, $4) AS near
    JOIN context_cards ON context_cards.tenant = $1 AND context_cards.row_id = near.row_id
    JOIN unified_logs ON unified_logs.tenant = $1
        AND unified_logs.session_id = context_cards.session_id
        AND unified_logs.content_hash = context_cards.content_hash AND node_type = 'message'
    ORDER BY distance, unified_logs.session_id, number LIMIT $4";

const EXACT: &str = "
    SELECT unified_logs.session_id, number, 1 - (embedding <=> $3) AS score
    FROM context_cards
    JOIN unified_logs USING (tenant, session_id, content_hash)
    WHERE context_cards.tenant = $1 AND model_key = $2 AND vector_dims(embedding) = $6
        AND node_type = 'message' AND ($5::text[] IS NULL OR session_id = ANY($5) AND EXISTS (
            SELECT 1 FROM unnest($5, $7::bigint[]) AS part(owner, messages)
            WHERE owner = session_id AND number < messages))
    ORDER BY score DESC, session_id, number LIMIT $4";

async fn by_vector(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    within: &Within<'_>,
    asked: &Embedding,
    depth: i64,
) -> Result<Vec<Hit<MessageKey>>, StoreError> {
    let (model, vector) = (key(&asked.model), Vector::from(asked.vector.clone()));
    // A session is small and its cards stand together: each is compared. So they are where the index leaves room: there are
    // few, or many of them have no message.
    let Within { owners, messages } = within;
    if owners.is_none() {
        let values: super::SqlValues<'_> = &[&tenant.as_str(), &model, &vector, &depth];
        let found = rows(transaction, NEAREST, values).await?;
        if limit(found.len()) == depth {
            return Ok(found.iter().map(place).collect());
        }
    }
    let dimension = i32::try_from(asked.vector.len()).unwrap_or(i32::MAX);
    let values: super::SqlValues<'_> =
        &[&tenant.as_str(), &model, &vector, &depth, owners, &dimension, messages];
    Ok(rows(transaction, EXACT, values).await?.iter().map(place).collect())
}

async fn fetch(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    hits: &[Hit<MessageKey>],
) -> Result<Vec<Hit<MessageRecord>>, StoreError> {
    let sql = concat!(
        "SELECT place, ",
        message_columns!(),
        " FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS asked(session_id, number, place) \
          JOIN unified_logs USING (session_id, number) \
          WHERE tenant = $1 AND node_type = 'message' ORDER BY place"
    );
    let sessions: Vec<&str> = hits.iter().map(|hit| hit.item.0.as_str()).collect();
    let numbers: Vec<i64> = hits.iter().map(|hit| hit.item.1).collect();
    let found = rows(transaction, sql, &[&tenant.as_str(), &sessions, &numbers]).await?;
    let read = found.iter().filter_map(|row| {
        let at = usize::try_from(row.get::<_, i64>("place") - 1).ok()?;
        Some(Hit { item: read(row).ok()?, score: hits.get(at)?.score })
    });
    Ok(read.collect())
}
