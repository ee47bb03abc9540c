//! Searching messages: by their words and those of their cards, by the cards' vectors, or both fused.
//!
//! Vectors are compared exactly: a search is always one tenant's, mostly one session's, and an approximate index that knows
//! no tenants would first find everybody's neighbours and then leave most of them out.

use plimsoll_engine::{
    Embedding, Hit, MessageRecord, SearchQuery, SessionId, StoreError, TenantId, fuse,
};
use serde::Deserialize;

use super::cards::visible_cards;
use super::client::{Client, Parameters};
use super::messages::MessageRow;
use super::row::WordCounts;

/// Words of a query that are asked for, the longest first, for they tell most (chosen: with 64 bytes each they stay far
/// below the 128 KiB that the server takes as one parameter).
const WORDS: usize = 256;
/// How far down each list is read before two are fused (chosen: what stands lower adds less than 1/160).
const FUSED: usize = 100;

/// Contents asked for at once: with ids of 128 bytes they stay below the 128 KiB of one parameter.
const CONTENTS: usize = 500;

/// For each content of a session in which a word occurs: how often each of the words does, and how long it is.
macro_rules! found {
    () => {
        concat!(
            "(SELECT session_id, content_hash, sumForEach(each) AS occurrences, sum(length) AS size FROM (
    SELECT session_id, content_hash, length(words) AS length,
        arrayMap(word -> word_counts[indexOf(words, word)], {words:Array(String)}) AS each
    FROM unified_logs
    WHERE tenant = {tenant:String} AND node_type = 'message'
        AND ({session:String} = '' OR session_id = {session:String})
        AND hasAny(words, {words:Array(String)})
    LIMIT 1 BY session_id, content_hash
    UNION ALL
    SELECT session_id, content_hash, length(words) AS length,
        arrayMap(word -> word_counts[indexOf(words, word)], {words:Array(String)}) AS each
    FROM ",
            visible_cards!("*"),
            "
    WHERE hasAny(words, {words:Array(String)}) AND (session_id, content_hash) IN ",
            messages!(),
            ")
GROUP BY session_id, content_hash)"
        )
    };
}

/// The contents that messages have: a card may be there before its message.
macro_rules! messages {
    () => {
        "(SELECT session_id, content_hash FROM unified_logs
        WHERE tenant = {tenant:String} AND node_type = 'message'
            AND ({session:String} = '' OR session_id = {session:String}))"
    };
}

/// A word tells the more the fewer contents hold it, and counts the less the longer the content is.
const BY_WORDS: &str = concat!(
    "SELECT session_id, content_hash, arraySum(
        (count, holders) -> log(1 + messages / (1 + holders)) * count / (count + 0.5 + size / 50),
        occurrences, holders) AS score
FROM (
    SELECT *, assumeNotNull((SELECT count() FROM ",
    messages!(),
    ")) AS messages,
        sumForEach(arrayMap(count -> toUInt64(count > 0), occurrences)) OVER () AS holders
    FROM ",
    found!(),
    ")
ORDER BY score DESC, session_id, content_hash LIMIT {limit:UInt64} FORMAT JSONEachRow"
);

/// The vector is cut or filled to the length asked for, for else one of another length would be an error.
const BY_VECTOR: &str = concat!(
    "SELECT session_id, content_hash, 1 - distance AS score FROM ",
    visible_cards!(
        "session_id, content_hash, embedding_model, length(embedding) AS dimension,
        cosineDistance(arrayResize(embedding, length({vector:Array(Float32)})),
            {vector:Array(Float32)}) AS distance"
    ),
    " WHERE embedding_model = {model:String} AND dimension = length({vector:Array(Float32)})
    AND (session_id, content_hash) IN ",
    messages!(),
    " ORDER BY score DESC, session_id, content_hash LIMIT {limit:UInt64} FORMAT JSONEachRow"
);

const HITS: &str = "
SELECT session_id, number, content_digest, content_json, circumstance_json, tokens, turn_number,
    toUnixTimestamp64Milli(at) AS at_ms
FROM unified_logs FINAL
WHERE tenant = {tenant:String} AND node_type = 'message'
    AND (session_id, content_hash) IN {contents:Array(Tuple(String, String))}
ORDER BY session_id, number FORMAT JSONEachRow";

/// A content of a session.
type ContentKey = (String, String);

#[derive(Deserialize)]
struct ScoredContent {
    session_id: String,
    content_hash: String,
    score: f64,
}

pub(super) async fn search(
    client: &Client,
    tenant: &TenantId,
    session: Option<&SessionId>,
    query: &SearchQuery,
) -> Result<Vec<Hit<MessageRecord>>, StoreError> {
    query.check()?;
    let scope = || {
        Parameters::new()
            .text("tenant", tenant.as_str())
            .text("session", session.map_or("", SessionId::as_str))
    };
    let hits = match (&query.text, &query.embedding) {
        (Some(text), Some(embedding)) => {
            let depth = query.limit.max(FUSED);
            let by_words = by_words(client, scope(), text, depth).await?;
            let by_vector = by_vector(client, scope(), embedding, depth).await?;
            let order = |hits: Vec<Hit<ContentKey>>| hits.into_iter().map(|hit| hit.item).collect();
            fuse(&[order(by_words), order(by_vector)], query.limit)
        }
        (Some(text), None) => by_words(client, scope(), text, query.limit).await?,
        (None, Some(embedding)) => by_vector(client, scope(), embedding, query.limit).await?,
        (None, None) => Vec::new(),
    };
    let mut found = fetch(client, tenant, &hits).await?;
    found.truncate(query.limit);
    Ok(found)
}

async fn by_words(
    client: &Client,
    scope: Parameters,
    text: &str,
    limit: usize,
) -> Result<Vec<Hit<ContentKey>>, StoreError> {
    let mut words = WordCounts::of([text]).words;
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.truncate(WORDS);
    if words.is_empty() {
        return Ok(Vec::new());
    }
    scored(client, BY_WORDS, &scope.texts("words", &words).limit(limit)).await
}

async fn by_vector(
    client: &Client,
    scope: Parameters,
    embedding: &Embedding,
    limit: usize,
) -> Result<Vec<Hit<ContentKey>>, StoreError> {
    let parameters =
        scope.text("model", &embedding.model).numbers("vector", &embedding.vector).limit(limit);
    scored(client, BY_VECTOR, &parameters).await
}

async fn scored(
    client: &Client,
    query: &str,
    parameters: &Parameters,
) -> Result<Vec<Hit<ContentKey>>, StoreError> {
    let rows: Vec<ScoredContent> = client.select(query, parameters).await?;
    let hit =
        |row: ScoredContent| Hit { item: (row.session_id, row.content_hash), score: row.score };
    Ok(rows.into_iter().map(hit).collect())
}

/// Reads the messages that have the contents; one that no longer has its hash is left out.
async fn fetch(
    client: &Client,
    tenant: &TenantId,
    hits: &[Hit<ContentKey>],
) -> Result<Vec<Hit<MessageRecord>>, StoreError> {
    let mut rows: Vec<MessageRow> = Vec::new();
    for hits in hits.chunks(CONTENTS) {
        let contents = hits.iter().map(|hit| (hit.item.0.as_str(), hit.item.1.as_str()));
        let parameters =
            Parameters::new().text("tenant", tenant.as_str()).pairs("contents", contents);
        rows.extend(client.select::<MessageRow>(HITS, &parameters).await?);
    }
    let mut found: Vec<(usize, MessageRecord)> = Vec::with_capacity(rows.len());
    for record in rows.into_iter().filter_map(|row| row.checked().ok()) {
        let content = (record.session.as_str(), record.hash.short());
        let place = hits.iter().position(|hit| hit.item.0 == content.0 && hit.item.1 == content.1);
        found.extend(place.map(|place| (place, record)));
    }
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(place, item)| Hit { item, score: hits[place].score }).collect())
}
