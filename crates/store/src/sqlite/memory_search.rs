//! Search in memory: filtered, by words, by vector, and fused.

use std::collections::HashSet;
use std::rc::Rc;

use plimsoll_engine::{Embedding, Hit, MemoryQuery, MemoryRecord, SessionId, TenantId};
use rusqlite::types::Value;
use rusqlite::{Connection, named_params};

use super::failure::{SqliteFailure, limit};
use super::query::rows;
use super::search::merged;
use super::tenants::{self, TenantNumber, of_tenant};
use super::vectors::{VectorTable, cosine, vector};
use super::{Caches, memories, text};

/// Each search gives this many times the hits asked for, and at least `DEPTH`, before they are fused; chosen.
const DEPTH_PER_HIT: usize = 3;
const DEPTH: usize = 50;

/// The filter of a query. Lists are bound as values, so that no text in them can become SQL.
macro_rules! filter {
    () => {
        "m.tenant = :tenant AND m.is_present = 1 AND (:all_states OR m.is_current = 1)
         AND (:any_kind OR m.kind IN rarray(:kinds))
         AND (:workspace IS NULL OR m.workspace_id = :workspace)
         AND (:user IS NULL OR m.user_id = :user)
         AND (:session IS NULL OR m.session_id = :session)
         AND (:agent IS NULL OR m.agent_id = :agent)
         AND NOT EXISTS (SELECT 1 FROM rarray(:tags) AS asked WHERE NOT EXISTS (
             SELECT 1 FROM memory_tags AS t
             WHERE t.tenant = :tenant AND t.tag = asked.value AND t.record = m.id))"
    };
}

/// Binds the parameters of the filter and those given.
macro_rules! bound {
    ($tenant:ident, $query:ident, $($name:literal: $value:expr),*) => {
        named_params! {
            ":tenant": $tenant.as_str(),
            ":all_states": $query.all_states,
            ":any_kind": $query.kinds.is_empty(),
            ":kinds": array($query.kinds.iter().map(|kind| kind.as_str())),
            ":workspace": $query.scope.workspace,
            ":user": $query.scope.user,
            ":session": $query.scope.session.as_ref().map(SessionId::as_str),
            ":agent": $query.scope.agent,
            ":tags": array($query.tags.iter().map(String::as_str)),
            $($name: $value),*
        }
    };
}

fn array<'a>(texts: impl Iterator<Item = &'a str>) -> Rc<Vec<Value>> {
    Rc::new(texts.map(|text| Value::Text(text.to_owned())).collect())
}

/// Returns records that match, best first.
pub(super) fn search(
    connection: &Connection,
    caches: &Caches,
    tenant: &TenantId,
    query: &MemoryQuery,
) -> Result<Vec<Hit<MemoryRecord>>, SqliteFailure> {
    let Some(number) = tenants::find(connection, tenant)? else { return Ok(Vec::new()) };
    let most = query.search.limit;
    let depth = most.saturating_mul(DEPTH_PER_HIT).max(DEPTH);
    let mut lists = Vec::new();
    if let Some(text) = &query.search.text {
        lists.push(by_words(connection, caches, tenant, number, query, text, depth)?);
    }
    if let Some(embedding) = &query.search.embedding {
        lists.push(by_vector(connection, caches, tenant, query, embedding, depth)?);
    }
    if query.search.text.is_none() && query.search.embedding.is_none() {
        lists.push(newest(connection, tenant, query, most)?);
    }
    let mut hits = Vec::new();
    for Hit { item, score } in merged(lists, most) {
        if let Some(item) = memories::by_row(connection, tenant, item)? {
            hits.push(Hit { item, score });
        }
    }
    Ok(hits)
}

fn newest(
    connection: &Connection,
    tenant: &TenantId,
    query: &MemoryQuery,
    most: usize,
) -> Result<Vec<(i64, f64)>, SqliteFailure> {
    rows(
        connection,
        concat!(
            "SELECT m.id FROM memory_records AS m WHERE ",
            filter!(),
            " ORDER BY m.updated_at DESC, m.memory_id LIMIT :limit"
        ),
        bound!(tenant, query, ":limit": limit(most)),
        |row| Ok((row.get(0)?, 0.0)),
    )
}

fn by_words(
    connection: &Connection,
    caches: &Caches,
    tenant: &TenantId,
    number: TenantNumber,
    query: &MemoryQuery,
    text: &str,
    depth: usize,
) -> Result<Vec<(i64, f64)>, SqliteFailure> {
    let Some(asked) = text::asked(connection, &caches.common, number, &text::MEMORIES, text)?
    else {
        return Ok(Vec::new());
    };
    // CROSS JOIN keeps the words in front of the records.
    rows(
        connection,
        &of_tenant(
            concat!(
                "SELECT m.id, -rank FROM memories_text_{tenant}
             CROSS JOIN memory_records AS m ON m.id = memories_text_{tenant}.rowid
             WHERE memories_text_{tenant} MATCH :asked AND ",
                filter!(),
                " ORDER BY rank LIMIT :limit"
            ),
            number,
        ),
        bound!(tenant, query, ":asked": asked, ":limit": limit(depth)),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// The nearest rows are filtered; where too few of them are left, all that pass the filter are measured.
fn by_vector(
    connection: &Connection,
    caches: &Caches,
    tenant: &TenantId,
    query: &MemoryQuery,
    asked: &Embedding,
    depth: usize,
) -> Result<Vec<(i64, f64)>, SqliteFailure> {
    let nearest =
        caches.vectors.nearest(connection, VectorTable::Memories, tenant, asked, depth)?;
    let rows = Rc::new(nearest.iter().map(|(row, _)| Value::Integer(*row)).collect::<Vec<_>>());
    let mut statement = connection.prepare_cached(concat!(
        "SELECT m.id FROM rarray(:rows) AS near
         CROSS JOIN memory_records AS m ON m.id = near.value WHERE ",
        filter!()
    ))?;
    let passed: HashSet<i64> = statement
        .query_map(bound!(tenant, query, ":rows": rows), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    // Fewer than were asked for means that there are no others.
    if passed.len() >= depth || nearest.len() < depth {
        let kept = nearest.into_iter().filter(|(row, _)| passed.contains(row));
        return Ok(kept.take(depth).collect());
    }
    let mut statement = connection.prepare_cached(concat!(
        "SELECT m.id, m.embedding FROM memory_records AS m
         WHERE m.embedding_model = :model AND m.embedding IS NOT NULL AND ",
        filter!()
    ))?;
    let mut rows = statement.query(bound!(tenant, query, ":model": asked.model))?;
    let mut measured = Vec::new();
    while let Some(row) = rows.next()? {
        let stored: Vec<u8> = row.get(1)?;
        if let Some(score) = cosine(&asked.vector, &vector(&stored)?) {
            measured.push((row.get(0)?, score));
        }
    }
    measured.sort_by(|a: &(i64, f64), b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    measured.truncate(depth);
    Ok(measured)
}
