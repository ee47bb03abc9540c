//! Context cards: rows of `context_cards`, of which a commit row in `unified_logs` says that they count.

use plimsoll_engine::{ContextCard, Embedding, SessionId, StoreError, TenantId};
use serde::{Deserialize, Serialize};

use super::client::{Client, Parameters};
use super::row::{LogInsert, Time, WordCounts};

/// The `node_type` of the row that is written last, with the rest of the batch, and makes its cards count.
pub(super) const COMMIT: &str = "cards";

/// The cards that count, each in its latest state, as a subquery; an empty `session` means all of the tenant's.
///
/// In the order of the key, so that nothing is sorted. Not `FINAL`: that would hide a card behind a later one whose batch never came to its end.
macro_rules! visible_cards {
    ($columns:literal) => {
        concat!(
            "(SELECT ",
            $columns,
            " FROM context_cards
    WHERE tenant = {tenant:String}
        AND ({session:String} = '' OR session_id = {session:String})
        AND (session_id, batch) IN (
            SELECT session_id, batch FROM unified_logs
            WHERE tenant = {tenant:String} AND node_type = 'cards'
                AND ({session:String} = '' OR session_id = {session:String}))
    ORDER BY session_id, content_hash, generated_at DESC
    LIMIT 1 BY session_id, content_hash)"
        )
    };
}
pub(super) use visible_cards;

const OF_SESSION: &str = concat!(
    "SELECT tenant, session_id AS session, content_hash, summary, keywords, embedding AS vector,
    embedding_model, estimated_tokens, role, phase_name, turn_number, is_anchor, is_callout,
    callout_name, toUnixTimestamp64Milli(generated_at) AS generated_at, generator_model,
    toUnixTimestamp64Milli(message_timestamp) AS message_timestamp
FROM ",
    visible_cards!("*"),
    " ORDER BY message_timestamp DESC, content_hash FORMAT JSONEachRow"
);

pub(super) const INSERT: &str = "INSERT INTO context_cards FORMAT JSONEachRow";

/// A card as it is inserted.
#[derive(Debug, Serialize)]
pub(super) struct CardInsert<'a> {
    tenant: &'a str,
    session_id: &'a str,
    content_hash: &'a str,
    batch: &'a str,
    summary: &'a str,
    keywords: &'a [String],
    words: Vec<String>,
    word_counts: Vec<u32>,
    embedding: &'a [f32],
    embedding_model: Option<&'a str>,
    estimated_tokens: u32,
    role: &'static str,
    phase_name: Option<&'a str>,
    turn_number: Option<u32>,
    is_anchor: bool,
    is_callout: bool,
    callout_name: Option<&'a str>,
    generated_at: Time,
    generator_model: &'a str,
    message_timestamp: Time,
}

/// A card as it is read: the columns have the names of its fields, but for its embedding.
#[derive(Deserialize)]
struct CardRow {
    #[serde(flatten)]
    card: ContextCard,
    vector: Vec<f32>,
    embedding_model: Option<String>,
}

pub(super) fn row<'a>(
    tenant: &'a TenantId,
    batch: &'a str,
    card: &'a ContextCard,
) -> CardInsert<'a> {
    let keywords = card.keywords.iter().map(String::as_str);
    let terms = WordCounts::of(keywords.chain([card.summary.as_str()]));
    let embedding = card.embedding.as_ref();
    CardInsert {
        tenant: tenant.as_str(),
        session_id: card.session.as_str(),
        content_hash: &card.content_hash,
        batch,
        summary: &card.summary,
        keywords: &card.keywords,
        words: terms.words,
        word_counts: terms.counts,
        embedding: embedding.map_or(&[], |embedding| &embedding.vector),
        embedding_model: embedding.map(|embedding| embedding.model.as_str()),
        estimated_tokens: card.estimated_tokens,
        role: card.role.as_str(),
        phase_name: card.phase_name.as_deref(),
        turn_number: card.turn_number,
        is_anchor: card.is_anchor,
        is_callout: card.is_callout,
        callout_name: card.callout_name.as_deref(),
        generated_at: Time(card.generated_at),
        generator_model: &card.generator_model,
        message_timestamp: Time(card.message_timestamp),
    }
}

/// Makes the row that commits a batch's cards of one session.
pub(super) fn commit<'a>(
    tenant: &'a TenantId,
    session: &'a SessionId,
    batch: &'a str,
) -> LogInsert<'a> {
    LogInsert {
        tenant: tenant.as_str(),
        session_id: session.as_str(),
        node_type: COMMIT,
        batch,
        ..LogInsert::default()
    }
}

pub(super) async fn of_session(
    client: &Client,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<ContextCard>, StoreError> {
    let parameters =
        Parameters::new().text("tenant", tenant.as_str()).text("session", session.as_str());
    let rows: Vec<CardRow> = client.select(OF_SESSION, &parameters).await?;
    let card = |CardRow { card, vector, embedding_model }: CardRow| ContextCard {
        embedding: embedding_model.map(|model| Embedding { model, vector }),
        ..card
    };
    Ok(rows.into_iter().map(card).collect())
}
