//! Context cards.

use std::collections::BTreeSet;

use plimsoll_core::{MillisSinceEpoch, Role};
use plimsoll_engine::{Appended, Branch, ContextCard, SessionId, TenantId};
use rusqlite::{Connection, Row, params};

use super::branches::parts_of;
use super::failure::{SqliteFailure, unreadable};
use super::query::{digest, row, rows, session};
use super::receipts::{list, strings};
use super::tenants::{TenantNumber, next_generation};
use super::{text, vectors};

/// Columns of a card as [`read`] expects them.
macro_rules! card_columns {
    () => {
        "session_id, content_hash, summary, keywords, embedding_model, embedding,
         estimated_tokens, role, phase_name, turn_number, is_anchor, is_callout, callout_name,
         generated_at, generator_model, message_timestamp, hash"
    };
}
pub(super) use card_columns;

/// Appends cards; a later one replaces an earlier one.
pub(super) fn append(
    connection: &Connection,
    tenant: &TenantId,
    number: TenantNumber,
    cards: &[ContextCard],
    appended: &mut Appended,
) -> Result<(), SqliteFailure> {
    for card in cards {
        let kept: Option<(i64, i64, bool)> = row(
            connection,
            "SELECT id, generated_at, embedding IS NOT NULL FROM context_cards
             WHERE tenant = ?1 AND session_id = ?2 AND content_hash = ?3",
            (tenant.as_str(), card.session.as_str(), &card.content_hash),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        if kept.is_some_and(|(_, generated_at, _)| generated_at >= card.generated_at.0) {
            appended.known += 1;
            continue;
        }
        let had_vector = kept.is_some_and(|(_, _, had_vector)| had_vector);
        if let Some((id, ..)) = kept {
            text::delete(connection, number, &text::CARDS, id)?;
        }
        let generation = if had_vector || card.embedding.is_some() {
            next_generation(connection, tenant)?
        } else {
            0
        };
        let id = insert(connection, tenant, card, generation)?;
        index(connection, number, id, card)?;
        appended.added += 1;
    }
    Ok(())
}

/// Adds the words of a card to the text index.
pub(super) fn index(
    connection: &Connection,
    number: TenantNumber,
    id: i64,
    card: &ContextCard,
) -> Result<(), SqliteFailure> {
    let texts = std::iter::once(&card.summary).chain(&card.keywords);
    text::insert(connection, number, &text::CARDS, id, texts.map(String::as_str))
}

fn insert(
    connection: &Connection,
    tenant: &TenantId,
    card: &ContextCard,
    generation: i64,
) -> Result<i64, SqliteFailure> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO context_cards (tenant, session_id, content_hash, summary, keywords, embedding,
             embedding_model, estimated_tokens, role, phase_name, turn_number, is_anchor,
             is_callout, callout_name, generated_at, generator_model, message_timestamp, generation,
             hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
             ?19)
         ON CONFLICT (tenant, session_id, content_hash) DO UPDATE SET
             summary = excluded.summary, keywords = excluded.keywords,
             embedding = excluded.embedding, embedding_model = excluded.embedding_model,
             estimated_tokens = excluded.estimated_tokens, role = excluded.role,
             phase_name = excluded.phase_name, turn_number = excluded.turn_number,
             is_anchor = excluded.is_anchor, is_callout = excluded.is_callout,
             callout_name = excluded.callout_name, generated_at = excluded.generated_at,
             generator_model = excluded.generator_model,
             message_timestamp = excluded.message_timestamp, generation = excluded.generation,
             hash = excluded.hash
         RETURNING id",
    )?;
    let id = statement.query_row(
        params![
            tenant.as_str(),
            card.session.as_str(),
            card.content_hash,
            card.summary,
            list(&card.keywords)?,
            card.embedding.as_ref().map(vectors::bytes),
            card.embedding.as_ref().map(|embedding| &embedding.model),
            card.estimated_tokens,
            card.role.as_str(),
            card.phase_name,
            card.turn_number,
            card.is_anchor,
            card.is_callout,
            card.callout_name,
            card.generated_at.0,
            card.generator_model,
            card.message_timestamp.0,
            generation,
            card.digest(),
        ],
        |row| row.get(0),
    )?;
    Ok(id)
}

/// Returns the cards of a session, the newest message first.
pub(super) fn of_session(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<ContextCard>, SqliteFailure> {
    let parts = parts_of(connection, tenant, session)?;
    let mut cards = rows(
        connection,
        concat!(
            "SELECT ",
            card_columns!(),
            " FROM context_cards WHERE tenant = ?1 AND session_id = ?2"
        ),
        [tenant.as_str(), session.as_str()],
        |row| read(tenant, row),
    )?;
    let mut known: BTreeSet<String> = cards.iter().map(|card| card.content_hash.clone()).collect();
    for part in parts.iter().skip(1) {
        for card in of_messages(connection, tenant, &part.branch.from, part.branch.messages)? {
            let card = card?;
            if known.insert(card.content_hash.clone()) {
                cards.push(ContextCard { session: session.clone(), ..card });
            }
        }
    }
    cards.sort_by(|a, b| {
        (b.message_timestamp, &a.content_hash).cmp(&(a.message_timestamp, &b.content_hash))
    });
    Ok(cards)
}

/// Returns a session's own cards of its first messages.
fn of_messages(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
    messages: u32,
) -> Result<Vec<Result<ContextCard, SqliteFailure>>, SqliteFailure> {
    rows(
        connection,
        concat!(
            "SELECT ",
            card_columns!(),
            " FROM context_cards AS c WHERE tenant = ?1 AND session_id = ?2 AND EXISTS (
                 SELECT 1 FROM unified_logs AS l
                 WHERE l.tenant = ?1 AND l.digest >= c.content_hash
                     AND l.digest < c.content_hash || 'g' AND l.session_id = ?2
                     AND l.node_type = 'message' AND l.number < ?3)"
        ),
        (tenant.as_str(), session.as_str(), messages),
        |row| Ok(read(tenant, row)),
    )
}

/// Gives copies of the cards that a branch shares to it; those of its own stay, and those that cannot be read are left.
pub(super) fn hand_over(
    connection: &Connection,
    tenant: &TenantId,
    number: TenantNumber,
    branch: &Branch,
) -> Result<(), SqliteFailure> {
    let shared = of_messages(connection, tenant, &branch.from, branch.messages)?;
    let sql = "SELECT 1 FROM context_cards
               WHERE tenant = ?1 AND session_id = ?2 AND content_hash = ?3";
    let mut missing = Vec::new();
    for card in shared.into_iter().flatten() {
        let keys = [tenant.as_str(), branch.session.as_str(), &card.content_hash];
        if row(connection, sql, keys, |_| Ok(()))?.is_none() {
            missing.push(ContextCard { session: branch.session.clone(), ..card });
        }
    }
    append(connection, tenant, number, &missing, &mut Appended::default())
}

/// Returns the card of a row; `None` if the row is gone.
pub(super) fn by_row(
    connection: &Connection,
    tenant: &TenantId,
    id: i64,
) -> Result<Option<ContextCard>, SqliteFailure> {
    row(
        connection,
        concat!("SELECT ", card_columns!(), " FROM context_cards WHERE tenant = ?1 AND id = ?2"),
        (tenant.as_str(), id),
        |row| read(tenant, row),
    )
}

/// Reads a card and hashes it again.
pub(super) fn read(tenant: &TenantId, row: &Row<'_>) -> Result<ContextCard, SqliteFailure> {
    let card = ContextCard {
        tenant: tenant.clone(),
        session: session(row, 0)?,
        content_hash: row.get(1)?,
        summary: row.get(2)?,
        keywords: strings(row, 3)?,
        embedding: vectors::embedding(row.get(4)?, row.get(5)?)?,
        estimated_tokens: row.get(6)?,
        role: role(row.get_ref(7)?.as_str().map_err(rusqlite::Error::from)?)?,
        phase_name: row.get(8)?,
        turn_number: row.get(9)?,
        is_anchor: row.get(10)?,
        is_callout: row.get(11)?,
        callout_name: row.get(12)?,
        generated_at: MillisSinceEpoch(row.get(13)?),
        generator_model: row.get(14)?,
        message_timestamp: MillisSinceEpoch(row.get(15)?),
    };
    card.check_digest(digest(row, 16)?)?;
    Ok(card)
}

fn role(name: &str) -> Result<Role, SqliteFailure> {
    [Role::System, Role::User, Role::Assistant, Role::Tool]
        .into_iter()
        .find(|role| role.as_str() == name)
        .ok_or_else(|| unreadable("role"))
}
