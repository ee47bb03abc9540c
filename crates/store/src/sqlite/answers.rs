//! Cached answers.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{Answer, AnswerQuota, Embedding, Hit, TenantId};
use rusqlite::{Connection, Row, params};

use super::failure::SqliteFailure;
use super::query::{change, digest, row, rows, time_opt};
use super::receipts::{list, strings};
use super::tenants;
use super::vectors::{bytes, cosine, embedding};

/// Columns of an answer as [`read`] expects them.
macro_rules! answer_columns {
    () => {
        "cache_key, query_text, query_embedding_model, query_embedding, answer_text,
         context_signature, used_refs, created_at, ttl_expires_at, hit_count, last_hit_at, hash"
    };
}
pub(super) use answer_columns;

/// Stores an answer in the place of the one with its key.
pub(super) fn put(connection: &Connection, answer: &Answer) -> Result<(), SqliteFailure> {
    let tenant = answer.tenant.as_str();
    tenants::ensure(connection, &answer.tenant)?;
    drop_key(connection, &answer.tenant, &answer.cache_key)?;
    change(
        connection,
        "INSERT INTO semantic_cache (tenant, cache_key, query_text, query_embedding,
                 query_embedding_model, answer_text, context_signature, used_refs, created_at,
                 ttl_expires_at, hit_count, last_hit_at, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            tenant,
            answer.cache_key,
            answer.query_text,
            answer.query_embedding.as_ref().map(bytes),
            answer.query_embedding.as_ref().map(|embedding| &embedding.model),
            answer.answer_text,
            answer.context_signature,
            list(&answer.used_refs)?,
            answer.created_at.0,
            answer.ttl_expires_at.map(|at| at.0),
            answer.hit_count,
            answer.last_hit_at.map(|at| at.0),
            answer.digest(),
        ],
    )?;
    let mut refs = connection.prepare_cached(
        "INSERT OR IGNORE INTO semantic_cache_refs (tenant, used_ref, cache_key)
         VALUES (?1, ?2, ?3)",
    )?;
    for used in &answer.used_refs {
        refs.execute((tenant, used, &answer.cache_key))?;
    }
    Ok(())
}

/// Returns the answer of a key that is not past its time.
pub(super) fn find(
    connection: &Connection,
    tenant: &TenantId,
    key: &str,
    now: MillisSinceEpoch,
) -> Result<Option<Answer>, SqliteFailure> {
    row(
        connection,
        concat!(
            "SELECT ",
            answer_columns!(),
            " FROM semantic_cache WHERE tenant = ?1 AND cache_key = ?2
             AND (ttl_expires_at IS NULL OR ttl_expires_at > ?3)"
        ),
        (tenant.as_str(), key, now.0),
        |row| read(tenant, row),
    )
}

/// Counts a hit and returns the count.
pub(super) fn touch(
    connection: &Connection,
    tenant: &TenantId,
    key: &str,
    now: MillisSinceEpoch,
) -> Result<Option<u32>, SqliteFailure> {
    let sql = "UPDATE semantic_cache SET hit_count = hit_count + 1, last_hit_at = ?3
         WHERE tenant = ?1 AND cache_key = ?2 RETURNING hit_count";
    row(connection, sql, (tenant.as_str(), key, now.0), |row| Ok(row.get(0)?))
}

/// Returns answers of a signature by the similarity of their questions; there are few of one signature.
pub(super) fn similar(
    connection: &Connection,
    tenant: &TenantId,
    signature: &str,
    asked: &Embedding,
    now: MillisSinceEpoch,
    most: usize,
) -> Result<Vec<Hit<Answer>>, SqliteFailure> {
    let sql = concat!(
        "SELECT ",
        answer_columns!(),
        " FROM semantic_cache WHERE tenant = ?1 AND context_signature = ?2
             AND query_embedding_model = ?3 AND (ttl_expires_at IS NULL OR ttl_expires_at > ?4)
         ORDER BY cache_key"
    );
    let values = (tenant.as_str(), signature, &asked.model, now.0);
    let hits = rows(connection, sql, values, |row| {
        let item = read(tenant, row)?;
        let embedding = item.query_embedding.as_ref();
        let score = embedding.and_then(|has| cosine(&asked.vector, &has.vector));
        Ok(score.map(|score| Hit { item, score }))
    })?;
    let mut hits: Vec<Hit<Answer>> = hits.into_iter().flatten().collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits.truncate(most);
    Ok(hits)
}

/// Returns the newest answers.
pub(super) fn newest(
    connection: &Connection,
    tenant: &TenantId,
    most: usize,
) -> Result<Vec<Answer>, SqliteFailure> {
    rows(
        connection,
        concat!(
            "SELECT ",
            answer_columns!(),
            " FROM semantic_cache WHERE tenant = ?1 ORDER BY created_at DESC, cache_key LIMIT ?2"
        ),
        (tenant.as_str(), i64::try_from(most).unwrap_or(i64::MAX)),
        |row| read(tenant, row),
    )
}

/// Removes what is past its time, then the oldest beyond a quota.
pub(super) fn trim(
    connection: &Connection,
    tenant: &TenantId,
    now: MillisSinceEpoch,
    most: AnswerQuota,
) -> Result<u64, SqliteFailure> {
    let past = change(
        connection,
        "DELETE FROM semantic_cache WHERE tenant = ?1 AND ttl_expires_at <= ?2",
        (tenant.as_str(), now.0),
    )?;
    let beyond = change(
        connection,
        "DELETE FROM semantic_cache WHERE tenant = ?1 AND cache_key IN (
                 SELECT cache_key FROM (
                     SELECT cache_key, row_number() OVER newest AS entries,
                         sum(length(CAST(query_text AS BLOB)) + length(CAST(answer_text AS BLOB)))
                             OVER newest AS bytes
                     FROM semantic_cache WHERE tenant = ?1
                     WINDOW newest AS (ORDER BY created_at DESC, cache_key
                         ROWS UNBOUNDED PRECEDING))
                 WHERE entries > ?2 OR bytes > ?3)",
        (tenant.as_str(), clamped(most.entries), clamped(most.bytes)),
    )?;
    Ok(past + beyond)
}

fn clamped(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Removes the answer of a key.
pub(super) fn drop_key(
    connection: &Connection,
    tenant: &TenantId,
    key: &str,
) -> Result<u64, SqliteFailure> {
    change(
        connection,
        "DELETE FROM semantic_cache WHERE tenant = ?1 AND cache_key = ?2",
        [tenant.as_str(), key],
    )
}

/// Removes the answers that rest on a ref.
pub(super) fn drop_ref(
    connection: &Connection,
    tenant: &TenantId,
    used: &str,
) -> Result<u64, SqliteFailure> {
    change(
        connection,
        "DELETE FROM semantic_cache WHERE tenant = ?1 AND cache_key IN (
             SELECT cache_key FROM semantic_cache_refs WHERE tenant = ?1 AND used_ref = ?2)",
        [tenant.as_str(), used],
    )
}

/// Reads an answer and hashes it again.
pub(super) fn read(tenant: &TenantId, row: &Row<'_>) -> Result<Answer, SqliteFailure> {
    let answer = Answer {
        tenant: tenant.clone(),
        cache_key: row.get(0)?,
        query_text: row.get(1)?,
        query_embedding: embedding(row.get(2)?, row.get(3)?)?,
        answer_text: row.get(4)?,
        context_signature: row.get(5)?,
        used_refs: strings(row, 6)?,
        created_at: MillisSinceEpoch(row.get(7)?),
        ttl_expires_at: time_opt(row, 8)?,
        hit_count: row.get(9)?,
        last_hit_at: time_opt(row, 10)?,
    };
    answer.check_digest(digest(row, 11)?)?;
    Ok(answer)
}
