//! The tables, as `auto-context.md` names them, with keys that begin with the tenant.

use plimsoll_engine::StoreError;

use super::client::{Client, Parameters, code};

/// The schema's versions in order, the first being 1. One that was released is never changed.
const MIGRATIONS: &[&[&str]] = &[&[UNIFIED_LOGS, CONTEXT_CARDS], &[BILLS]];

/// The server's errors for a table and a database that are not there.
const MISSING: [Option<u32>; 2] = [Some(60), Some(81)];

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

/// Version 2 adds the input that a provider billed, and its estimate without Plimsoll, in US dollars (NULL where no usage was
/// reported), and whether the model's price is unknown.
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
struct SchemaVersion {
    version: usize,
}

/// Brings the database to this program's version; one that is there already is only read.
///
/// Every statement may run again, and beside another gateway's: ClickHouse has no lock for them.
/// Errors: [`StoreError::Unsupported`] if the tables are of a newer version.
pub(super) async fn prepare(client: &Client, dimension: Option<u16>) -> Result<(), StoreError> {
    let none = Parameters::new;
    let known = MIGRATIONS.len();
    let done = version(client).await?;
    if done > known {
        let what = format!(
            "the tables on ClickHouse have version {done} and this program knows up to {known}; a newer program wrote them"
        );
        return Err(StoreError::Unsupported { what });
    }
    if done == 0 {
        client.create_database().await?;
        client.execute(SCHEMA, &none()).await?;
    }
    for (number, migration) in (1..).zip(MIGRATIONS).skip(done) {
        for statement in *migration {
            client.execute(statement, &none()).await?;
        }
        let parameters = none().number("version", number);
        client.execute("INSERT INTO plimsoll_schema SELECT {version:UInt32}", &parameters).await?;
    }
    if let Some(dimension) = dimension {
        // ClickHouse takes no parameter here; the digits of a number are all that enters the text.
        let digits = dimension.to_string();
        client.execute(&INDEXED.replace("DIMENSION", &digits), &none()).await?;
        client.execute(&INDEX.replace("DIMENSION", &digits), &none()).await?;
    }
    Ok(())
}

/// Returns the version of the tables, 0 where there are none.
async fn version(client: &Client) -> Result<usize, StoreError> {
    let query = "SELECT max(version) AS version FROM plimsoll_schema FORMAT JSONEachRow";
    match client.select::<SchemaVersion>(query, &Parameters::new()).await {
        Ok(found) => Ok(found.first().map_or(0, |newest| newest.version)),
        Err(error) if MISSING.contains(&code(&error)) => Ok(0),
        Err(error) => Err(error),
    }
}
