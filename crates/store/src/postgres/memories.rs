//! Memory records: the present ones, their earlier states, and searching them.

use deadpool_postgres::{GenericClient, Object, Transaction};
use pgvector::Vector;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Embedding, Hit, MemoryChange, MemoryChanges, MemoryId, MemoryKind, MemoryQuery, MemoryRecord,
    MemoryVersion, SessionId, StoreError, TenantId,
};
use tokio_postgres::Row;

use super::cards::{columns, embedding, open_spaces};
use super::failure::{of_client, of_commit};
use super::search::{depth, merge};
use super::text::{corrupt, escape, escape_all, escape_opt, key, limit};
use super::{change, row, rows, words};

const PUT: &str = "
    INSERT INTO memories (tenant, id_key, id, kind, state, is_current, workspace_id, user_id,
        session_id, agent_id, micro, source_ref, tags, confidence, created_at, updated_at, embedding,
        embedding_model, model_key, record, generation, hash)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
        $21, $22)
    ON CONFLICT (tenant, id_key) DO UPDATE SET
        kind = excluded.kind, state = excluded.state, is_current = excluded.is_current,
        workspace_id = excluded.workspace_id, user_id = excluded.user_id,
        session_id = excluded.session_id, agent_id = excluded.agent_id, micro = excluded.micro,
        source_ref = excluded.source_ref, tags = excluded.tags, confidence = excluded.confidence,
        created_at = excluded.created_at, updated_at = excluded.updated_at,
        embedding = excluded.embedding, embedding_model = excluded.embedding_model,
        model_key = excluded.model_key, record = excluded.record,
        generation = excluded.generation, hash = excluded.hash";

/// Holds the tenant's row until the transaction ends.
const NEXT_GENERATION: &str = "
    INSERT INTO memory_versions (tenant, generation, epoch) VALUES ($1, 1, 0)
    ON CONFLICT (tenant) DO UPDATE SET generation = memory_versions.generation + 1
    RETURNING generation";

const PUT_STATE: &str = "
    INSERT INTO memory_states (tenant, id_key, updated_at, confidence, embedding, embedding_model,
        record, hash)
    SELECT tenant, id_key, updated_at, confidence, embedding, embedding_model, record, hash
    FROM memories WHERE tenant = $1 AND id_key = $2
    ON CONFLICT (tenant, id_key, updated_at) DO UPDATE SET
        confidence = excluded.confidence, embedding = excluded.embedding,
        embedding_model = excluded.embedding_model, record = excluded.record,
        hash = excluded.hash";

const PUT_WORDS: &str = "
    INSERT INTO memory_words (tenant, id_key, part, words)
    SELECT $1, $2, part::integer, words::tsvector
    FROM unnest($3::text[]) WITH ORDINALITY AS new(words, part)";

/// Stores records, their states and their words.
pub(super) async fn put(
    client: &mut Object,
    tenant: &TenantId,
    records: &[MemoryRecord],
) -> Result<(), StoreError> {
    if records.is_empty() {
        return Ok(());
    }
    let embeddings = records.iter().filter_map(|record| record.embedding.as_ref());
    open_spaces(&*client, tenant, "memory", embeddings).await?;
    let transaction = client.transaction().await.map_err(of_client)?;
    let generation = next_generation(&transaction, tenant).await?;
    for record in records {
        put_one(&transaction, record, generation).await?;
    }
    transaction.commit().await.map_err(of_commit)
}

/// Counts a change of a tenant's memory; other transactions that change it wait until this one ends.
pub(super) async fn next_generation(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
) -> Result<i64, StoreError> {
    let counted = row(transaction, NEXT_GENERATION, &[&tenant.as_str()]).await?;
    Ok(counted.ok_or_else(|| corrupt("a tenant's version"))?.get(0))
}

/// Stores changes of records whose versions still hold; returns those that a tombstone forbids.
pub(super) async fn change_all(
    client: &mut Object,
    tenant: &TenantId,
    changes: &[MemoryChange],
) -> Result<Vec<MemoryId>, StoreError> {
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let embeddings = changes.iter().filter_map(|one| one.record.embedding.as_ref());
    open_spaces(&*client, tenant, "memory", embeddings).await?;
    let transaction = client.transaction().await.map_err(of_client)?;
    // First the tenant's row, so that nobody changes a version or forgets in between.
    let generation = next_generation(&transaction, tenant).await?;
    for one in changes {
        let sql = "SELECT updated_at FROM memories WHERE tenant = $1 AND id_key = $2";
        let values: super::SqlValues<'_> = &[&tenant.as_str(), &key(&one.record.id.0)];
        let present: Option<i64> = row(&transaction, sql, values).await?.map(|row| row.get(0));
        if present != one.from.map(|from| from.0) {
            let what = format!("memory {:?} changed", one.record.id.0);
            return Err(StoreError::Conflict { what });
        }
    }
    let mut passed_over = Vec::new();
    for one in changes {
        let keys = escape_all(&one.forbidding());
        let values: super::SqlValues<'_> = &[&tenant.as_str(), &keys];
        if one.revives {
            let sql = "DELETE FROM memory_tombstones WHERE tenant = $1 AND key = ANY($2)";
            change(&transaction, sql, values).await?;
        } else {
            let sql = "SELECT 1 FROM memory_tombstones WHERE tenant = $1 AND key = ANY($2) LIMIT 1";
            if row(&transaction, sql, values).await?.is_some() {
                passed_over.push(one.record.id.clone());
                continue;
            }
        }
        put_one(&transaction, &one.record, generation).await?;
    }
    transaction.commit().await.map_err(of_commit)?;
    Ok(passed_over)
}

async fn put_one(
    transaction: &Transaction<'_>,
    record: &MemoryRecord,
    generation: i64,
) -> Result<(), StoreError> {
    let tenant = record.tenant.as_str();
    let id_key = key(&record.id.0);
    let (vector, model, model_key) = columns(record.embedding.as_ref());
    // The vector and the confidence stand in columns, which keep every bit of a number.
    let whole = MemoryRecord { embedding: None, ..record.clone() };
    let json = serde_json::to_string(&whole).map_err(|error| StoreError::Other(Box::new(error)))?;
    let values: super::SqlValues<'_> = &[
        &tenant,
        &id_key,
        &escape(&record.id.0),
        &record.kind.as_str(),
        &record.state.as_str(),
        &record.state.is_current(),
        &escape_opt(record.scope.workspace.as_ref()),
        &escape_opt(record.scope.user.as_ref()),
        &record.scope.session.as_ref().map(SessionId::as_str),
        &escape_opt(record.scope.agent.as_ref()),
        &escape(&record.micro),
        &escape_opt(record.source_ref.as_ref()),
        &escape_all(&record.tags),
        &record.confidence,
        &record.created_at.0,
        &record.updated_at.0,
        &vector,
        &model,
        &model_key,
        &json,
        &generation,
        &record.digest(),
    ];
    change(transaction, PUT, values).await?;
    change(transaction, PUT_STATE, &[&tenant, &id_key]).await?;
    let sql = "DELETE FROM memory_words WHERE tenant = $1 AND id_key = $2";
    change(transaction, sql, &[&tenant, &id_key]).await?;
    let texts = [Some(&record.micro), record.summary.as_ref(), record.full.as_ref()];
    let texts = texts.into_iter().flatten().chain(&record.tags).map(String::as_str);
    let parts = words::parts(&record.tenant, texts);
    change(transaction, PUT_WORDS, &[&tenant, &id_key, &parts]).await?;
    Ok(())
}

/// Returns what changed after `since`, or everything.
pub(super) async fn changes<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    since: MemoryVersion,
) -> Result<MemoryChanges, StoreError> {
    let sql = "SELECT generation, epoch FROM memory_versions WHERE tenant = $1";
    // Read before the records: one that changes in between is read again the next time.
    let version =
        row(client, sql, &[&tenant.as_str()]).await?.map_or_else(MemoryVersion::default, |found| {
            MemoryVersion { generation: found.get(0), epoch: found.get(1) }
        });
    let is_whole = since.generation == 0 || since.epoch != version.epoch;
    let after = if is_whole { -1 } else { since.generation };
    let sql = "SELECT * FROM memories WHERE tenant = $1 AND generation > $2";
    let found = rows(client, sql, &[&tenant.as_str(), &after]).await?;
    let records = found.iter().map(read).collect::<Result<_, _>>()?;
    Ok(MemoryChanges { version, is_whole, records })
}

pub(super) fn read(row: &Row) -> Result<MemoryRecord, StoreError> {
    let mut record: MemoryRecord =
        serde_json::from_str(row.get("record")).map_err(|_| corrupt("a memory record"))?;
    record.confidence = row.get("confidence");
    record.embedding = embedding(row, "embedding", "embedding_model");
    record.check_digest(row.get("hash"))?;
    Ok(record)
}

/// Returns a record as it is, or as it was.
pub(super) async fn get<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    id: &MemoryId,
    as_of: Option<MillisSinceEpoch>,
) -> Result<MemoryRecord, StoreError> {
    let id_key = key(&id.0);
    let found = match as_of {
        None => {
            let sql = "SELECT * FROM memories WHERE tenant = $1 AND id_key = $2";
            row(client, sql, &[&tenant.as_str(), &id_key]).await?
        }
        Some(at) => {
            let sql = "SELECT * FROM memory_states WHERE tenant = $1 AND id_key = $2 \
                       AND updated_at <= $3 ORDER BY updated_at DESC LIMIT 1";
            row(client, sql, &[&tenant.as_str(), &id_key, &at.0]).await?
        }
    };
    read(&found.ok_or_else(|| id.not_found())?)
}

/// The filter of every query of records: parameters 1 to 8.
macro_rules! filter {
    () => {
        "memories.tenant = $1 AND (cardinality($2::text[]) = 0 OR memories.kind = ANY($2)) \
         AND ($3::text IS NULL OR workspace_id = $3) AND ($4::text IS NULL OR user_id = $4) \
         AND ($5::text IS NULL OR session_id = $5) AND ($6::text IS NULL OR agent_id = $6) \
         AND tags @> $7::text[] AND ($8::boolean OR is_current)"
    };
}

const NEWEST: &str = concat!(
    "SELECT id_key, 0::float8 FROM memories WHERE ",
    filter!(),
    " ORDER BY updated_at DESC, id LIMIT $9"
);

const COUNT: &str = "
    SELECT asked.word, (SELECT count(*) FROM (SELECT 1 FROM memory_words
        WHERE tenant = $1 AND words @@ asked.word::tsquery LIMIT $3) AS counted)
    FROM unnest($2::text[]) AS asked(word)";

const BY_WORDS: &str = concat!(
    "SELECT id_key, sum(asked.weight * ts_rank(words, asked.word::tsquery, 1)) AS score \
     FROM unnest($10::text[], $11::float8[]) AS asked(word, weight) \
     JOIN memory_words ON memory_words.tenant = $1 AND words @@ asked.word::tsquery \
     JOIN memories USING (tenant, id_key) WHERE ",
    filter!(),
    " GROUP BY id_key, id ORDER BY score DESC, id LIMIT $9"
);

const NEAREST: &str = concat!(
    "SELECT id_key, 1 - distance AS score FROM nearest($1, 'memory', $10, $11, $9) AS near \
     JOIN memories ON memories.tenant = $1 AND memories.row_id = near.row_id WHERE ",
    filter!(),
    " ORDER BY score DESC, id"
);

const EXACT: &str = concat!(
    "SELECT id_key, 1 - (embedding <=> $11) AS score FROM memories WHERE ",
    filter!(),
    " AND model_key = $10 AND vector_dims(embedding) = $12 ORDER BY score DESC, id LIMIT $9"
);

/// The filter of a query as bound values.
struct Filter<'a> {
    tenant: &'a str,
    kinds: Vec<&'static str>,
    workspace: Option<String>,
    user: Option<String>,
    session: Option<&'a str>,
    agent: Option<String>,
    tags: Vec<String>,
    all_states: bool,
}

impl<'a> Filter<'a> {
    fn new(tenant: &'a TenantId, query: &'a MemoryQuery) -> Self {
        Self {
            tenant: tenant.as_str(),
            kinds: query.kinds.iter().copied().map(MemoryKind::as_str).collect(),
            workspace: escape_opt(query.scope.workspace.as_ref()),
            user: escape_opt(query.scope.user.as_ref()),
            session: query.scope.session.as_ref().map(SessionId::as_str),
            agent: escape_opt(query.scope.agent.as_ref()),
            tags: escape_all(&query.tags),
            all_states: query.all_states,
        }
    }

    async fn hits(
        &self,
        transaction: &Transaction<'_>,
        sql: &str,
        most: i64,
        more: super::SqlValues<'_>,
    ) -> Result<Vec<Hit<Vec<u8>>>, StoreError> {
        let mut values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![
            &self.tenant,
            &self.kinds,
            &self.workspace,
            &self.user,
            &self.session,
            &self.agent,
            &self.tags,
            &self.all_states,
            &most,
        ];
        values.extend(more);
        let found = rows(transaction, sql, &values).await?;
        Ok(found.iter().map(|row| Hit { item: row.get(0), score: row.get(1) }).collect())
    }

    async fn by_words(
        &self,
        transaction: &Transaction<'_>,
        tenant: &TenantId,
        text: &str,
        most: i64,
    ) -> Result<Vec<Hit<Vec<u8>>>, StoreError> {
        let asked = words::asked(transaction, COUNT, tenant, text).await?;
        self.hits(transaction, BY_WORDS, most, &[&asked.lexemes, &asked.weights]).await
    }

    /// Asks the index, and compares every record where its nearest leave too few after the filter.
    async fn by_vector(
        &self,
        transaction: &Transaction<'_>,
        asked: &Embedding,
        most: i64,
        enough: usize,
    ) -> Result<Vec<Hit<Vec<u8>>>, StoreError> {
        let (model, vector) = (key(&asked.model), Vector::from(asked.vector.clone()));
        let found = self.hits(transaction, NEAREST, most, &[&model, &vector]).await?;
        if found.len() >= enough {
            return Ok(found);
        }
        let dimension = i32::try_from(asked.vector.len()).unwrap_or(i32::MAX);
        self.hits(transaction, EXACT, most, &[&model, &vector, &dimension]).await
    }
}

/// Returns records that match, best first.
pub(super) async fn search(
    client: &mut Object,
    tenant: &TenantId,
    query: &MemoryQuery,
) -> Result<Vec<Hit<MemoryRecord>>, StoreError> {
    let filter = Filter::new(tenant, query);
    let asked = &query.search;
    let transaction = client.transaction().await.map_err(of_client)?;
    let deep = depth(asked.limit);
    let mut hits = if asked.text.is_none() && asked.embedding.is_none() {
        filter.hits(&transaction, NEWEST, limit(asked.limit), &[]).await?
    } else {
        let by_text = match &asked.text {
            Some(text) => Some(filter.by_words(&transaction, tenant, text, deep).await?),
            None => None,
        };
        let by_vector = match &asked.embedding {
            Some(vector) => Some(filter.by_vector(&transaction, vector, deep, asked.limit).await?),
            None => None,
        };
        merge(by_text, by_vector, deep)
    };
    hits.truncate(asked.limit);
    let keys: Vec<&[u8]> = hits.iter().map(|hit| hit.item.as_slice()).collect();
    let sql = "SELECT place, memories.* FROM unnest($2::bytea[]) WITH ORDINALITY AS asked(id_key, place) \
               JOIN memories USING (id_key) WHERE tenant = $1 ORDER BY place";
    let found = rows(&transaction, sql, &[&tenant.as_str(), &keys]).await?;
    let read = found.iter().map(|row| {
        let at = usize::try_from(row.get::<_, i64>("place") - 1).unwrap_or(0);
        Ok(Hit { item: read(row)?, score: hits.get(at).map_or(0.0, |hit| hit.score) })
    });
    read.collect()
}
