//! Cached answers.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{Answer, AnswerQuota, Embedding, Hit, TenantId};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::failure::Failure;
use super::receipts::{list, strings};
use super::tenants;
use super::vectors::{bytes, cosine, embedding};

/// Columns of an answer as [`read`] expects them.
macro_rules! answer_columns {
    () => {
        "cache_key, query_text, query_embedding_model, query_embedding, answer_text,
         context_signature, used_refs, created_at, ttl_expires_at, hit_count, last_hit_at"
    };
}

/// Stores an answer in the place of the one with its key.
pub(super) fn put(connection: &Connection, answer: &Answer) -> Result<(), Failure> {
    let tenant = answer.tenant.as_str();
    tenants::ensure(connection, &answer.tenant)?;
    drop_key(connection, &answer.tenant, &answer.cache_key)?;
    connection
        .prepare_cached(
            "INSERT INTO semantic_cache (tenant, cache_key, query_text, query_embedding,
                 query_embedding_model, answer_text, context_signature, used_refs, created_at,
                 ttl_expires_at, hit_count, last_hit_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
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
        ])?;
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
) -> Result<Option<Answer>, Failure> {
    let mut query = connection.prepare_cached(concat!(
        "SELECT ",
        answer_columns!(),
        " FROM semantic_cache WHERE tenant = ?1 AND cache_key = ?2
             AND (ttl_expires_at IS NULL OR ttl_expires_at > ?3)"
    ))?;
    let mut rows = query.query((tenant.as_str(), key, now.0))?;
    rows.next()?.map(|row| read(tenant, row)).transpose()
}

/// Counts a hit and returns the count.
pub(super) fn touch(
    connection: &Connection,
    tenant: &TenantId,
    key: &str,
    now: MillisSinceEpoch,
) -> Result<Option<u32>, Failure> {
    let mut statement = connection.prepare_cached(
        "UPDATE semantic_cache SET hit_count = hit_count + 1, last_hit_at = ?3
         WHERE tenant = ?1 AND cache_key = ?2 RETURNING hit_count",
    )?;
    Ok(statement.query_row((tenant.as_str(), key, now.0), |row| row.get(0)).optional()?)
}

/// Returns answers of a signature by the similarity of their questions; there are few of one signature.
pub(super) fn similar(
    connection: &Connection,
    tenant: &TenantId,
    signature: &str,
    asked: &Embedding,
    now: MillisSinceEpoch,
    most: usize,
) -> Result<Vec<Hit<Answer>>, Failure> {
    let mut query = connection.prepare_cached(concat!(
        "SELECT ",
        answer_columns!(),
        " FROM semantic_cache WHERE tenant = ?1 AND context_signature = ?2
             AND query_embedding_model = ?3 AND (ttl_expires_at IS NULL OR ttl_expires_at > ?4)
         ORDER BY cache_key"
    ))?;
    let mut rows = query.query((tenant.as_str(), signature, &asked.model, now.0))?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        let item = read(tenant, row)?;
        let score =
            item.query_embedding.as_ref().and_then(|has| cosine(&asked.vector, &has.vector));
        hits.extend(score.map(|score| Hit { item, score }));
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits.truncate(most);
    Ok(hits)
}

/// Returns the newest answers.
pub(super) fn newest(
    connection: &Connection,
    tenant: &TenantId,
    most: usize,
) -> Result<Vec<Answer>, Failure> {
    let mut query = connection.prepare_cached(concat!(
        "SELECT ",
        answer_columns!(),
        " FROM semantic_cache WHERE tenant = ?1 ORDER BY created_at DESC, cache_key LIMIT ?2"
    ))?;
    let mut rows = query.query((tenant.as_str(), i64::try_from(most).unwrap_or(i64::MAX)))?;
    let mut answers = Vec::new();
    while let Some(row) = rows.next()? {
        answers.push(read(tenant, row)?);
    }
    Ok(answers)
}

/// Removes what is past its time, then the oldest beyond a quota.
pub(super) fn trim(
    connection: &Connection,
    tenant: &TenantId,
    now: MillisSinceEpoch,
    most: AnswerQuota,
) -> Result<u64, Failure> {
    let past = connection
        .prepare_cached("DELETE FROM semantic_cache WHERE tenant = ?1 AND ttl_expires_at <= ?2")?
        .execute((tenant.as_str(), now.0))?;
    let beyond = connection
        .prepare_cached(
            "DELETE FROM semantic_cache WHERE tenant = ?1 AND cache_key IN (
                 SELECT cache_key FROM (
                     SELECT cache_key, row_number() OVER newest AS entries,
                         sum(length(CAST(query_text AS BLOB)) + length(CAST(answer_text AS BLOB)))
                             OVER newest AS bytes
                     FROM semantic_cache WHERE tenant = ?1
                     WINDOW newest AS (ORDER BY created_at DESC, cache_key
                         ROWS UNBOUNDED PRECEDING))
                 WHERE entries > ?2 OR bytes > ?3)",
        )?
        .execute((tenant.as_str(), clamped(most.entries), clamped(most.bytes)))?;
    Ok((past + beyond) as u64)
}

fn clamped(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Removes the answer of a key.
pub(super) fn drop_key(
    connection: &Connection,
    tenant: &TenantId,
    key: &str,
) -> Result<u64, Failure> {
    let mut statement = connection
        .prepare_cached("DELETE FROM semantic_cache WHERE tenant = ?1 AND cache_key = ?2")?;
    Ok(statement.execute([tenant.as_str(), key])? as u64)
}

/// Removes the answers that rest on a ref.
pub(super) fn drop_ref(
    connection: &Connection,
    tenant: &TenantId,
    used: &str,
) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached(
        "DELETE FROM semantic_cache WHERE tenant = ?1 AND cache_key IN (
             SELECT cache_key FROM semantic_cache_refs WHERE tenant = ?1 AND used_ref = ?2)",
    )?;
    Ok(statement.execute([tenant.as_str(), used])? as u64)
}

fn read(tenant: &TenantId, row: &Row<'_>) -> Result<Answer, Failure> {
    Ok(Answer {
        tenant: tenant.clone(),
        cache_key: row.get(0)?,
        query_text: row.get(1)?,
        query_embedding: embedding(row.get(2)?, row.get(3)?)?,
        answer_text: row.get(4)?,
        context_signature: row.get(5)?,
        used_refs: strings(row, 6)?,
        created_at: MillisSinceEpoch(row.get(7)?),
        ttl_expires_at: row.get::<_, Option<i64>>(8)?.map(MillisSinceEpoch),
        hit_count: row.get(9)?,
        last_hit_at: row.get::<_, Option<i64>>(10)?.map(MillisSinceEpoch),
    })
}
