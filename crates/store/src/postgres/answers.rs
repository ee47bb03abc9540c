//! Cached answers.

use deadpool_postgres::{GenericClient, Object};
use pgvector::Vector;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{Answer, AnswerQuota, Embedding, Hit, StoreError, TenantId};
use tokio_postgres::Row;

use super::cards::{columns, embedding};
use super::failure::{of_client, of_commit};
use super::text::{count, escape, escape_all, key, limit, time_opt, unescape, unescape_all};
use super::{PostgresStore, change, row, rows};

const PUT: &str = "
    INSERT INTO semantic_cache (tenant, answer_key, cache_key, query_text, query_embedding,
        embedding_model, model_key, answer_text, signature_key, context_signature, used_refs,
        created_at, ttl_expires_at, hit_count, last_hit_at, hash)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
        $16)
    ON CONFLICT (tenant, answer_key) DO UPDATE SET
        query_text = excluded.query_text, query_embedding = excluded.query_embedding,
        embedding_model = excluded.embedding_model, model_key = excluded.model_key,
        answer_text = excluded.answer_text, signature_key = excluded.signature_key,
        context_signature = excluded.context_signature, used_refs = excluded.used_refs,
        created_at = excluded.created_at, ttl_expires_at = excluded.ttl_expires_at,
        hit_count = excluded.hit_count, last_hit_at = excluded.last_hit_at, hash = excluded.hash";

/// Stores an answer in the place of the one with its key.
pub(super) async fn put(client: &mut Object, answer: &Answer) -> Result<(), StoreError> {
    let tenant = answer.tenant.as_str();
    let answer_key = key(&answer.cache_key);
    let (vector, model, model_key) = columns(answer.query_embedding.as_ref());
    let transaction = client.transaction().await.map_err(of_client)?;
    let values: super::SqlValues<'_> = &[
        &tenant,
        &answer_key,
        &escape(&answer.cache_key),
        &escape(&answer.query_text),
        &vector,
        &model,
        &model_key,
        &escape(&answer.answer_text),
        &key(&answer.context_signature),
        &escape(&answer.context_signature),
        &escape_all(&answer.used_refs),
        &answer.created_at.0,
        &answer.ttl_expires_at.map(|end| end.0),
        &i64::from(answer.hit_count),
        &answer.last_hit_at.map(|at| at.0),
        &answer.digest(),
    ];
    change(&transaction, PUT, values).await?;
    let sql = "DELETE FROM semantic_cache_refs WHERE tenant = $1 AND answer_key = $2";
    change(&transaction, sql, &[&tenant, &answer_key]).await?;
    let sql = "INSERT INTO semantic_cache_refs (tenant, ref_key, answer_key) \
               SELECT $1, ref_key, $2 FROM unnest($3::bytea[]) AS used(ref_key) \
               ON CONFLICT DO NOTHING";
    let refs: Vec<Vec<u8>> = answer.used_refs.iter().map(|used| key(used)).collect();
    change(&transaction, sql, &[&tenant, &answer_key, &refs]).await?;
    transaction.commit().await.map_err(of_commit)
}

fn read(tenant: &TenantId, row: &Row) -> Result<Answer, StoreError> {
    let answer = Answer {
        tenant: tenant.clone(),
        cache_key: unescape(row.get("cache_key")),
        query_text: unescape(row.get("query_text")),
        query_embedding: embedding(row, "query_embedding", "embedding_model"),
        answer_text: unescape(row.get("answer_text")),
        context_signature: unescape(row.get("context_signature")),
        used_refs: unescape_all(row.get("used_refs")),
        created_at: MillisSinceEpoch(row.get("created_at")),
        ttl_expires_at: time_opt(row.get("ttl_expires_at")),
        hit_count: count(row.get("hit_count")),
        last_hit_at: time_opt(row.get("last_hit_at")),
    };
    answer.check_digest(row.get("hash"))?;
    Ok(answer)
}

/// Returns the answer of a key, and counts the hit.
pub(super) async fn get(
    store: &PostgresStore,
    tenant: &TenantId,
    cache_key: &str,
    now: MillisSinceEpoch,
) -> Result<Option<Answer>, StoreError> {
    let client = store.client().await?;
    let values: super::SqlValues<'_> = &[&tenant.as_str(), &key(cache_key), &now.0];
    let sql = "UPDATE semantic_cache SET hit_count = least(hit_count + 1, 4294967295), \
               last_hit_at = $3 WHERE tenant = $1 AND answer_key = $2 \
               AND (ttl_expires_at IS NULL OR ttl_expires_at > $3) RETURNING *";
    let found = match row(&client, sql, values).await {
        // No room to write, or a server that only reads: it is returned uncounted.
        Err(StoreError::Unavailable { .. }) => {
            let sql = "SELECT * FROM semantic_cache WHERE tenant = $1 AND answer_key = $2 \
                       AND (ttl_expires_at IS NULL OR ttl_expires_at > $3)";
            row(&client, sql, values).await?
        }
        found => found?,
    };
    found.map(|row| read(tenant, &row)).transpose()
}

/// Returns answers to similar questions of one signature, each compared: there are few.
pub(super) async fn similar<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    context_signature: &str,
    asked: &Embedding,
    now: MillisSinceEpoch,
    most: usize,
) -> Result<Vec<Hit<Answer>>, StoreError> {
    let sql = "SELECT *, 1 - (query_embedding <=> $4) AS score FROM semantic_cache \
               WHERE tenant = $1 AND signature_key = $2 AND model_key = $3 \
               AND vector_dims(query_embedding) = $5 \
               AND (ttl_expires_at IS NULL OR ttl_expires_at > $6) \
               ORDER BY score DESC, cache_key LIMIT $7";
    let dimension = i32::try_from(asked.vector.len()).unwrap_or(i32::MAX);
    let values: super::SqlValues<'_> = &[
        &tenant.as_str(),
        &key(context_signature),
        &key(&asked.model),
        &Vector::from(asked.vector.clone()),
        &dimension,
        &now.0,
        &limit(most),
    ];
    let found = rows(client, sql, values).await?;
    let hit = |row: &Row| Ok(Hit { item: read(tenant, row)?, score: row.get("score") });
    found.iter().map(hit).collect()
}

/// Returns the newest answers.
pub(super) async fn newest<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    most: usize,
) -> Result<Vec<Answer>, StoreError> {
    let sql = "SELECT * FROM semantic_cache WHERE tenant = $1 \
               ORDER BY created_at DESC, cache_key LIMIT $2";
    let found = rows(client, sql, &[&tenant.as_str(), &limit(most)]).await?;
    found.iter().map(|row| read(tenant, row)).collect()
}

/// Removes what is past its time and the oldest beyond a quota, in one statement: a tenant's rows are seen as they were once.
pub(super) async fn trim<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    now: MillisSinceEpoch,
    most: AnswerQuota,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM semantic_cache WHERE tenant = $1 AND (ttl_expires_at <= $2 \
               OR answer_key IN (SELECT answer_key FROM (SELECT answer_key, \
               row_number() OVER newest AS entries, \
               sum(octet_length(query_text) + octet_length(answer_text)) OVER newest AS bytes \
               FROM semantic_cache WHERE tenant = $1 \
               AND (ttl_expires_at IS NULL OR ttl_expires_at > $2) \
               WINDOW newest AS (ORDER BY created_at DESC, cache_key ROWS UNBOUNDED PRECEDING)\
               ) AS counted WHERE entries > $3 OR bytes > $4))";
    let clamped = |number| i64::try_from(number).unwrap_or(i64::MAX);
    let values: super::SqlValues<'_> =
        &[&tenant.as_str(), &now.0, &clamped(most.entries), &clamped(most.bytes)];
    change(client, sql, values).await
}

/// Removes answers by key and by the refs that they rest on.
pub(super) async fn remove<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    keys: &[&str],
    refs: &[&str],
) -> Result<u64, StoreError> {
    let hashed = |texts: &[&str]| texts.iter().map(|text| key(text)).collect::<Vec<_>>();
    let sql = "DELETE FROM semantic_cache WHERE tenant = $1 AND (answer_key = ANY($2) \
               OR answer_key IN (SELECT answer_key FROM semantic_cache_refs \
               WHERE tenant = $1 AND ref_key = ANY($3)))";
    change(client, sql, &[&tenant.as_str(), &hashed(keys), &hashed(refs)]).await
}
