//! Search in history: by words of messages and cards, by the cards' vectors, and fused.

use plimsoll_engine::{Hit, MessageRecord, SearchQuery, SessionId, TenantId, fuse};
use rusqlite::{Connection, OptionalExtension as _};

use super::branches::{parts, parts_of};
use super::failure::{SqliteFailure, limit};
use super::query::rows;
use super::tenants::{self, TenantNumber, of_tenant};
use super::vectors::{VectorTable, cosine, vector};
use super::{Caches, messages, text, word_index};
use crate::part::SharedPart;

/// Each search gives this many times the hits asked for, and at least `DEPTH`, before they are fused; chosen.
const DEPTH_PER_HIT: usize = 3;
const DEPTH: usize = 50;

/// Whether the card `c` is of a message of `part`.
macro_rules! part_has_card {
    () => {
        "c.session_id = part.owner AND (part.depth = 0 OR EXISTS (
             SELECT 1 FROM unified_logs AS l
             WHERE l.tenant = c.tenant AND l.digest >= c.content_hash
                 AND l.digest < c.content_hash || 'g' AND l.session_id = part.owner
                 AND l.node_type = 'message' AND l.number < part.messages))"
    };
}

type ScoredRows = Vec<(i64, f64)>;

/// Returns messages that match, best first, and how many were left out because they no longer have their hash.
pub(super) fn search(
    connection: &Connection,
    caches: &Caches,
    tenant: &TenantId,
    session: Option<&SessionId>,
    query: &SearchQuery,
) -> Result<(Vec<Hit<MessageRecord>>, u64), SqliteFailure> {
    let Some(number) = tenants::find(connection, tenant)? else { return Ok((Vec::new(), 0)) };
    let depth = query.limit.saturating_mul(DEPTH_PER_HIT).max(DEPTH);
    let mut lists: Vec<ScoredRows> = Vec::new();
    if let Some(text) = &query.text {
        lists.push(by_words(connection, caches, tenant, number, session, text, depth)?);
        lists.push(by_card_words(connection, caches, tenant, number, session, text, depth)?);
        lists.push(word_index::matches(connection, tenant, text)?);
    }
    if let Some(embedding) = &query.embedding {
        let cards = match session {
            // A session has few cards: they are measured one by one.
            Some(session) => of_session(connection, tenant, session, embedding)?,
            None => {
                caches.vectors.nearest(connection, VectorTable::Cards, tenant, embedding, depth)?
            }
        };
        lists.push(messages_of_cards(connection, tenant, cards, depth)?);
    }
    let parts = match session {
        Some(session) => parts_of(connection, tenant, session)?,
        None => Vec::new(),
    };
    let is_asked = |found: &MessageRecord| {
        let has = |SharedPart { branch, .. }: &SharedPart| {
            found.session == branch.from && found.position < branch.messages
        };
        session.is_none() || parts.iter().any(has)
    };
    let mut hits = Vec::new();
    let mut left_out = 0;
    for Hit { item, score } in merged(lists, usize::MAX) {
        if hits.len() == query.limit {
            break;
        }
        match messages::by_row(connection, tenant, item) {
            Ok(Some(item)) if is_asked(&item) => {
                let item = match session {
                    Some(session) => messages::of(item, session),
                    None => item,
                };
                hits.push(Hit { item, score });
            }
            Ok(_) => {}
            Err(SqliteFailure::Mismatch(_)) => left_out += 1,
            Err(failure) => return Err(failure),
        }
    }
    Ok((hits, left_out))
}

/// Fuses lists by rank; the only one that is not empty keeps its scores.
pub(super) fn merged(mut lists: Vec<ScoredRows>, most: usize) -> Vec<Hit<i64>> {
    lists.retain(|list| !list.is_empty());
    if let [only] = lists.as_slice() {
        return only.iter().take(most).map(|&(item, score)| Hit { item, score }).collect();
    }
    let rows: Vec<Vec<i64>> =
        lists.iter().map(|list| list.iter().map(|(row, _)| *row).collect()).collect();
    fuse(&rows, most)
}

fn by_words(
    connection: &Connection,
    caches: &Caches,
    tenant: &TenantId,
    number: TenantNumber,
    session: Option<&SessionId>,
    text: &str,
    depth: usize,
) -> Result<ScoredRows, SqliteFailure> {
    let Some(asked) = text::asked(connection, &caches.common, number, &text::MESSAGES, text)?
    else {
        return Ok(Vec::new());
    };
    // The plus keeps the words in front: a session's rows are looked up in what matches, not the other way round.
    let statement = match session {
        None => {
            "SELECT rowid, -rank FROM messages_text_{tenant}
             WHERE messages_text_{tenant} MATCH ?1 AND ?2 IS NOT NULL AND ?3 IS NULL
             ORDER BY rank LIMIT ?4"
        }
        Some(_) => {
            concat!(
                parts!("?2", "?3"),
                "SELECT rowid, -rank FROM messages_text_{tenant}
                 WHERE messages_text_{tenant} MATCH ?1 AND +rowid IN (
                     SELECT l.id FROM part CROSS JOIN unified_logs AS l
                     WHERE l.tenant = ?2 AND l.session_id = part.owner
                         AND l.node_type = 'message' AND l.number < part.messages)
                 ORDER BY rank LIMIT ?4"
            )
        }
    };
    rows(
        connection,
        &of_tenant(statement, number),
        (asked, tenant.as_str(), session.map(SessionId::as_str), limit(depth)),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

fn by_card_words(
    connection: &Connection,
    caches: &Caches,
    tenant: &TenantId,
    number: TenantNumber,
    session: Option<&SessionId>,
    text: &str,
    depth: usize,
) -> Result<ScoredRows, SqliteFailure> {
    let Some(asked) = text::asked(connection, &caches.common, number, &text::CARDS, text)? else {
        return Ok(Vec::new());
    };
    let mut query = connection.prepare_cached(&of_tenant(
        concat!(
            parts!("?2", "?3"),
            "SELECT rowid, -rank FROM cards_text_{tenant}
             WHERE cards_text_{tenant} MATCH ?1 AND (?3 IS NULL OR +rowid IN (
                 SELECT c.id FROM part CROSS JOIN context_cards AS c
                 WHERE c.tenant = ?2 AND ",
            part_has_card!(),
            "))
             ORDER BY rank LIMIT ?4"
        ),
        number,
    ))?;
    let rows = query.query_map(
        (asked, tenant.as_str(), session.map(SessionId::as_str), limit(depth)),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let cards = rows.collect::<Result<_, _>>()?;
    messages_of_cards(connection, tenant, cards, depth)
}

fn of_session(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
    asked: &plimsoll_engine::Embedding,
) -> Result<ScoredRows, SqliteFailure> {
    let mut query = connection.prepare_cached(concat!(
        parts!("?1", "?2"),
        "SELECT c.id, c.embedding FROM part CROSS JOIN context_cards AS c
         WHERE c.tenant = ?1 AND c.embedding_model = ?3 AND c.embedding IS NOT NULL AND ",
        part_has_card!()
    ))?;
    let mut rows = query.query((tenant.as_str(), session.as_str(), &asked.model))?;
    let mut cards = Vec::new();
    while let Some(row) = rows.next()? {
        let stored: Vec<u8> = row.get(1)?;
        if let Some(score) = cosine(&asked.vector, &vector(&stored)?) {
            cards.push((row.get(0)?, score));
        }
    }
    cards.sort_by(|a: &(i64, f64), b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    Ok(cards)
}

/// Returns the first message of each card's content; a card whose message is not there has none.
fn messages_of_cards(
    connection: &Connection,
    tenant: &TenantId,
    cards: ScoredRows,
    depth: usize,
) -> Result<ScoredRows, SqliteFailure> {
    let mut query = connection.prepare_cached(
        "SELECT l.id FROM context_cards AS c JOIN unified_logs AS l
             ON l.tenant = c.tenant AND l.digest >= c.content_hash
             AND l.digest < c.content_hash || 'g' AND l.session_id = c.session_id
         WHERE c.tenant = ?1 AND c.id = ?2 ORDER BY l.number LIMIT 1",
    )?;
    let mut found = Vec::new();
    for (card, score) in cards.into_iter().take(depth) {
        let row = query.query_row((tenant.as_str(), card), |row| row.get(0)).optional()?;
        found.extend(row.map(|row: i64| (row, score)));
    }
    Ok(found)
}
