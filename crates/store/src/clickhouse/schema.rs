//! The tables, as `auto-context.md` names them, with keys that begin with the tenant.

use plimsoll_engine::StoreError;

use super::client::{Client, Parameters};

/// The newest schema that this program writes and reads.
const VERSION: u32 = 2;

/// One table for messages, context decisions and the commit rows of cards.
///
/// It has no partitions: an insert is atomic only within one. `arrival` counts up within a server; of two rows with one key
/// the first to arrive stays, which is what the port says of receipts.
const UNIFIED_LOGS: &str = "
CREATE TABLE IF NOT EXISTS unified_logs (
    tenant String,
    session_id String,
    node_type LowCardinality(String),
    number UInt32,
    strategy String,
    batch String,
    at DateTime64(3, 'UTC'),
    text String,
    metadata String,
    content_hash String,
    content_digest String,
    role LowCardinality(String),
    phase_name Nullable(String),
    tokens UInt32,
    turn_number UInt32,
    content_json String,
    circumstance_json String,
    tool_calls_json String ALIAS concat('[', arrayStringConcat(arrayFilter(
        block -> startsWith(block, '{\"tool_call\":'), JSONExtractArrayRaw(content_json)), ','), ']'),
    words Array(String),
    word_counts Array(UInt32),
    cascade_id Nullable(String),
    trace_id String,
    selection_type LowCardinality(String),
    full_history_size UInt32,
    context_size UInt32,
    masked_count UInt32,
    anchor_hashes Array(String),
    selected_hashes Array(String),
    tokens_saved Int64,
    receipt_json String,
    arrival UInt64 DEFAULT generateSnowflakeID(),
    precedence UInt64 MATERIALIZED bitNot(arrival),
    INDEX hash_idx substring(content_digest, 1, 8) TYPE bloom_filter GRANULARITY 1,
    INDEX words_idx words TYPE bloom_filter GRANULARITY 1
) ENGINE = ReplacingMergeTree(precedence)
ORDER BY (tenant, session_id, node_type, number, strategy, batch)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1";

/// What version 2 added: the input that a provider billed and what it would have been without Plimsoll, in US dollars, NULL where
/// no usage was reported, and whether the model's price is not known.
const BILLS: &str = "
ALTER TABLE unified_logs
    ADD COLUMN IF NOT EXISTS billed Nullable(Float64),
    ADD COLUMN IF NOT EXISTS billed_without Nullable(Float64),
    ADD COLUMN IF NOT EXISTS billed_estimate Bool";

/// `batch` names the insert that the card came with; it is read only if `unified_logs` has the batch's commit row.
const CONTEXT_CARDS: &str = "
CREATE TABLE IF NOT EXISTS context_cards (
    tenant String,
    session_id String,
    content_hash String,
    batch String,
    summary String,
    keywords Array(String),
    words Array(String),
    word_counts Array(UInt32),
    embedding Array(Float32),
    embedding_model Nullable(String),
    estimated_tokens UInt32,
    role LowCardinality(String),
    phase_name Nullable(String),
    turn_number Nullable(UInt32),
    is_anchor Bool DEFAULT false,
    is_callout Bool DEFAULT false,
    callout_name Nullable(String),
    generated_at DateTime64(3, 'UTC') DEFAULT now64(3),
    generator_model String,
    message_timestamp DateTime64(3, 'UTC'),
    INDEX keywords_idx keywords TYPE bloom_filter GRANULARITY 1,
    INDEX words_idx words TYPE bloom_filter GRANULARITY 1
) ENGINE = ReplacingMergeTree(generated_at)
PARTITION BY toYYYYMM(message_timestamp)
ORDER BY (tenant, session_id, content_hash)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1";

/// Vectors of the one dimension that the index takes; others stand as a constant, and are searched in `embedding`.
const INDEXED: &str = "
ALTER TABLE context_cards ADD COLUMN IF NOT EXISTS embedding_indexed Array(Float32)
MATERIALIZED if(length(embedding) = DIMENSION, embedding, arrayResize([toFloat32(1)], DIMENSION))";

const INDEX: &str = "
ALTER TABLE context_cards ADD INDEX IF NOT EXISTS embedding_idx embedding_indexed
TYPE vector_similarity('hnsw', 'cosineDistance', DIMENSION)";

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS plimsoll_schema (version UInt32) ENGINE = ReplacingMergeTree ORDER BY version";

#[derive(serde::Deserialize)]
struct Newest {
    version: u32,
}

/// Makes what is missing; an existing table stays.
///
/// Errors: [`StoreError::Unsupported`] if the tables are of a newer version.
pub(super) async fn prepare(client: &Client, dimension: Option<u16>) -> Result<(), StoreError> {
    let none = Parameters::new;
    client.create_database().await?;
    client.execute(SCHEMA, &none()).await?;
    let found: Vec<Newest> = client
        .select("SELECT max(version) AS version FROM plimsoll_schema FORMAT JSONEachRow", &none())
        .await?;
    let version = found.first().map_or(0, |newest| newest.version);
    if version > VERSION {
        let what = format!("the ClickHouse tables are of version {version}, newer than {VERSION}");
        return Err(StoreError::Unsupported { what });
    }
    client.execute(UNIFIED_LOGS, &none()).await?;
    client.execute(BILLS, &none()).await?;
    client.execute(CONTEXT_CARDS, &none()).await?;
    if let Some(dimension) = dimension {
        // ClickHouse takes no parameter here; the digits of a number are all that enters the text.
        let digits = dimension.to_string();
        client.execute(&INDEXED.replace("DIMENSION", &digits), &none()).await?;
        client.execute(&INDEX.replace("DIMENSION", &digits), &none()).await?;
    }
    if version < VERSION {
        let parameters = none().number("version", VERSION);
        client.execute("INSERT INTO plimsoll_schema SELECT {version:UInt32}", &parameters).await?;
    }
    Ok(())
}
