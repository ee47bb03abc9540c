//! Context cards.

use std::collections::BTreeSet;

use deadpool_postgres::GenericClient;
use pgvector::Vector;
use plimsoll_core::{MillisSinceEpoch, Role};
use plimsoll_engine::{Branch, ContextCard, Embedding, SessionId, StoreError, TenantId};
use tokio_postgres::Row;

use super::branches::parts_of;
use super::text::{
    corrupt, count, escape, escape_all, escape_opt, key, session, unescape, unescape_all,
    unescape_opt,
};
use super::{change, row, rows, words};

/// Makes the tables that vectors will be searched in, each in a transaction of its own, so that it waits only for another
/// transaction that makes the same table.
pub(super) async fn open_spaces<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    owner: &str,
    embeddings: impl Iterator<Item = &Embedding>,
) -> Result<(), StoreError> {
    let mut opened: Vec<(&str, usize)> = Vec::new();
    for embedding in embeddings {
        let space = (embedding.model.as_str(), embedding.vector.len());
        if opened.contains(&space) {
            continue;
        }
        let dimension = i32::try_from(space.1).unwrap_or(i32::MAX);
        let sql = "SELECT open_space($1, $2, $3, $4)";
        rows(client, sql, &[&tenant.as_str(), &owner, &key(space.0), &dimension]).await?;
        opened.push(space);
    }
    Ok(())
}

/// Returns an embedding in the three columns that hold it: vector, model, and the model's key.
pub(super) fn columns(
    embedding: Option<&Embedding>,
) -> (Option<Vector>, Option<String>, Option<Vec<u8>>) {
    let vector = embedding.map(|embedding| Vector::from(embedding.vector.clone()));
    let model = embedding.map(|embedding| escape(&embedding.model));
    (vector, model, embedding.map(|embedding| key(&embedding.model)))
}

/// Reads an embedding from its columns.
pub(super) fn embedding(row: &Row, vector: &str, model: &str) -> Option<Embedding> {
    let vector: Option<Vector> = row.get(vector);
    let model: Option<String> = row.get(model);
    vector
        .zip(model)
        .map(|(vector, model)| Embedding { model: unescape(model), vector: vector.into() })
}

const PUT: &str = "
    INSERT INTO context_cards AS kept (
        tenant, session_id, content_hash, summary, keywords, embedding, embedding_model, model_key,
        estimated_tokens, role, phase_name, turn_number, is_anchor, is_callout, callout_name,
        generated_at, generator_model, message_timestamp, hash)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
    ON CONFLICT (tenant, session_id, content_hash) DO UPDATE SET
        summary = excluded.summary, keywords = excluded.keywords, embedding = excluded.embedding,
        embedding_model = excluded.embedding_model, model_key = excluded.model_key,
        estimated_tokens = excluded.estimated_tokens, role = excluded.role,
        phase_name = excluded.phase_name, turn_number = excluded.turn_number,
        is_anchor = excluded.is_anchor, is_callout = excluded.is_callout,
        callout_name = excluded.callout_name, generated_at = excluded.generated_at,
        generator_model = excluded.generator_model,
        message_timestamp = excluded.message_timestamp, hash = excluded.hash
    WHERE kept.generated_at < excluded.generated_at";

const PUT_WORDS: &str = "
    INSERT INTO log_words (tenant, session_id, content_hash, source, part, words)
    SELECT $1, $2, $3, 'card', part::integer, words::tsvector
    FROM unnest($4::text[]) WITH ORDINALITY AS new(words, part)";

/// Stores a card unless there is one as late; returns whether it was stored.
pub(super) async fn put<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    card: &ContextCard,
) -> Result<bool, StoreError> {
    let (vector, model, model_key) = columns(card.embedding.as_ref());
    let values: super::SqlValues<'_> = &[
        &tenant.as_str(),
        &card.session.as_str(),
        &card.content_hash,
        &escape(&card.summary),
        &escape_all(&card.keywords),
        &vector,
        &model,
        &model_key,
        &i64::from(card.estimated_tokens),
        &card.role.as_str(),
        &escape_opt(card.phase_name.as_ref()),
        &card.turn_number.map(i64::from),
        &card.is_anchor,
        &card.is_callout,
        &escape_opt(card.callout_name.as_ref()),
        &card.generated_at.0,
        &escape(&card.generator_model),
        &card.message_timestamp.0,
        &card.digest(),
    ];
    if change(client, PUT, values).await? == 0 {
        return Ok(false);
    }
    let (session, hash) = (card.session.as_str(), &card.content_hash);
    let sql = "DELETE FROM log_words WHERE tenant = $1 AND session_id = $2 AND content_hash = $3 \
               AND source = 'card'";
    change(client, sql, &[&tenant.as_str(), &session, hash]).await?;
    let texts = std::iter::once(&card.summary).chain(&card.keywords).map(String::as_str);
    let parts = words::parts(tenant, texts);
    change(client, PUT_WORDS, &[&tenant.as_str(), &session, hash, &parts]).await?;
    Ok(true)
}

/// Returns the cards of a session.
pub(super) async fn of_session<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<ContextCard>, StoreError> {
    let parts = parts_of(client, tenant, session).await?;
    let sql = "SELECT * FROM context_cards WHERE tenant = $1 AND session_id = $2";
    let found = rows(client, sql, &[&tenant.as_str(), &session.as_str()]).await?;
    let mut cards: Vec<ContextCard> =
        found.iter().map(|row| read(tenant, row)).collect::<Result<_, _>>()?;
    let mut known: BTreeSet<String> = cards.iter().map(|card| card.content_hash.clone()).collect();
    for part in parts.iter().skip(1) {
        for row in of_messages(client, tenant, &part.branch.from, part.branch.messages).await? {
            let card = read(tenant, &row)?;
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
async fn of_messages<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    session: &SessionId,
    messages: u32,
) -> Result<Vec<Row>, StoreError> {
    let sql = "SELECT * FROM context_cards AS c WHERE tenant = $1 AND session_id = $2 AND EXISTS ( \
                   SELECT 1 FROM unified_logs AS l WHERE l.tenant = $1 AND l.session_id = $2 \
                       AND l.content_hash = c.content_hash AND l.node_type = 'message' \
                       AND l.number < $3)";
    rows(client, sql, &[&tenant.as_str(), &session.as_str(), &i64::from(messages)]).await
}

/// Gives copies of the cards that a branch shares to it; those of its own stay, and those that cannot be read are left.
pub(super) async fn hand_over<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    branch: &Branch,
) -> Result<(), StoreError> {
    let shared = of_messages(client, tenant, &branch.from, branch.messages).await?;
    let sql = "SELECT 1 FROM context_cards \
               WHERE tenant = $1 AND session_id = $2 AND content_hash = $3";
    for card in shared.iter().flat_map(|row| read(tenant, row)) {
        let keys: super::SqlValues<'_> =
            &[&tenant.as_str(), &branch.session.as_str(), &card.content_hash];
        if row(client, sql, keys).await?.is_none() {
            let own = ContextCard { session: branch.session.clone(), ..card };
            put(client, tenant, &own).await?;
        }
    }
    Ok(())
}

fn read(tenant: &TenantId, row: &Row) -> Result<ContextCard, StoreError> {
    let content_hash: String = row.get("content_hash");
    let role: &str = row.get("role");
    let role = [Role::System, Role::User, Role::Assistant, Role::Tool]
        .into_iter()
        .find(|known| known.as_str() == role)
        .ok_or_else(|| corrupt(format!("the role of card {content_hash}")))?;
    let card = ContextCard {
        tenant: tenant.clone(),
        session: session(row.get("session_id"))?,
        content_hash,
        summary: unescape(row.get("summary")),
        keywords: unescape_all(row.get("keywords")),
        embedding: embedding(row, "embedding", "embedding_model"),
        estimated_tokens: count(row.get("estimated_tokens")),
        role,
        phase_name: unescape_opt(row.get("phase_name")),
        turn_number: row.get::<_, Option<i64>>("turn_number").map(count),
        is_anchor: row.get("is_anchor"),
        is_callout: row.get("is_callout"),
        callout_name: unescape_opt(row.get("callout_name")),
        generated_at: MillisSinceEpoch(row.get("generated_at")),
        generator_model: unescape(row.get("generator_model")),
        message_timestamp: MillisSinceEpoch(row.get("message_timestamp")),
    };
    card.check_digest(row.get("hash"))?;
    Ok(card)
}
