//! Values are values: no id, text or query changes what a statement does.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    HistoryBatch, HistoryStore as _, KnowledgeStore as _, LogQuery, MemoryId, MemoryQuery, Scope,
    SearchQuery,
};
use plimsoll_testkit::sample::{
    HOSTILE, answer, embedding, job, memory, message, tenant, tool_schema,
};

use super::database::Database;

/// The schema: names of tables, columns and indexes, and the row counts of another tenant's tables.
async fn schema(database: &Database) -> Vec<String> {
    let client = database.client().await;
    let rows = client
        .query(
            "SELECT table_name || '.' || column_name FROM information_schema.columns \
             WHERE table_schema = 'public' AND table_name NOT LIKE 'vectors\\_%' \
             UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' \
             AND tablename NOT LIKE 'vectors\\_%' \
             UNION ALL SELECT 'records ' || count(*) FROM memories WHERE tenant = 'other' ORDER BY 1",
            &[],
        )
        .await
        .expect("the schema");
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_values_change_nothing_else() {
    let Some(database) = Database::new().await else { return };
    let store = database.store().await;
    store.put_memory(&memory("other", "kept", "kept")).await.expect("stored");
    let before = schema(&database).await;
    assert!(before.len() > 100, "the schema is there");
    let a = tenant("a");
    let megabyte = "'; DROP TABLE memories; -- \0 % _ \\".repeat((1 << 20) / 34);
    let now = MillisSinceEpoch(1);
    for text in HOSTILE.iter().copied().chain([megabyte.as_str()]) {
        let mut record = memory("a", text, text);
        record.embedding =
            Some(plimsoll_engine::Embedding { model: text.into(), ..embedding("", 0.0) });
        store.put_memory(&record).await.expect("stored");
        let search =
            SearchQuery { text: Some(text.into()), embedding: record.embedding.clone(), limit: 3 };
        let scope = Scope { user: Some(text.into()), ..Scope::default() };
        let query = MemoryQuery { search: search.clone(), ..MemoryQuery::default() };
        let hits = store.memories(&a, &query).await.expect("hits");
        assert!(hits.iter().any(|hit| hit.item == record), "found by its own model");
        let of_user = MemoryQuery { scope: scope.clone(), ..query };
        assert_eq!(store.memories(&a, &of_user).await.expect("hits"), []);
        assert_eq!(store.forget(&a, &scope).await.expect("none").memories, 0);
        store.search(&a, None, &search).await.expect("hits");
        let log = LogQuery { node_type: Some(text.into()), limit: 5, ..LogQuery::default() };
        assert_eq!(store.log(&a, &log).await.expect("rows"), []);
        store.message_by_hash(&a, text).await.expect_err("no prefix");
        store.artefact(&a, text, now).await.expect_err("no ref");
        let missing = format!("{text}!");
        store.memory(&a, &MemoryId(missing.clone()), None).await.expect_err("unknown");
        assert_eq!(store.answer(&a, &missing, now).await.expect("read"), None);
        store.put_answer(&answer("a", text)).await.expect("stored");
        assert_eq!(store.drop_answers(&a, Some(&missing), Some(&missing)).await.expect("none"), 0);
        store.put_tool_schema(&tool_schema("a", text, text)).await.expect("stored");
        store.queue_job(&a, &job(text)).await.expect("queued");
        let leased = store
            .lease_job(
                &a,
                text,
                now,
                std::time::Duration::from_secs(1),
                &plimsoll_engine::Quota::default(),
            )
            .await;
        assert_eq!(leased.expect("a lease").expect("a job").lease_owner.as_deref(), Some(text));
    }
    assert_eq!(schema(&database).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_begins_with_the_tenant() {
    let Some(database) = Database::new().await else { return };
    database.store().await;
    let client = database.client().await;
    // The words' lexemes begin with the tenant's digest, and a table of vectors has one tenant.
    let rows = client
        .query(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' \
             AND tablename <> 'schema_migrations' AND indexdef NOT LIKE '%(tenant%' \
             AND indexdef NOT LIKE '%USING gin (words)%'",
            &[],
        )
        .await
        .expect("indexes");
    let others: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(others, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_of_very_many_words_is_found_by_each() {
    let Some(database) = Database::new().await else { return };
    let store = database.store().await;
    let a = tenant("a");
    // More than the megabyte of words that one `tsvector` holds.
    let text = (0..150_000).map(|i| format!("word{i}")).collect::<Vec<_>>().join(" ");
    let messages = vec![message("s", 0, &text)];
    store.append(&a, HistoryBatch { messages, ..HistoryBatch::default() }).await.expect("appended");
    for word in ["word0", "word77777", "WORD149999"] {
        let query = SearchQuery { text: Some(word.into()), embedding: None, limit: 2 };
        assert_eq!(store.search(&a, None, &query).await.expect("hits").len(), 1, "{word}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_finds_the_nearest_of_one_tenant() {
    const RECORDS: u16 = 600;
    let Some(database) = Database::new().await else { return };
    let store = database.store().await;
    for i in 0..RECORDS {
        for name in ["a", "b"] {
            let mut record = memory(name, &format!("{i}"), "text");
            let angle = if name == "a" { f32::from(i) * 0.1 } else { 20.0 };
            record.embedding = Some(embedding("m", angle));
            store.put_memory(&record).await.expect("stored");
        }
    }
    let client = database.client().await;
    let spaces = client
        .query(
            "SELECT indexdef FROM pg_indexes WHERE tablename LIKE 'vectors\\_%' \
             AND indexdef LIKE '%USING hnsw%'",
            &[],
        )
        .await
        .expect("indexes");
    assert_eq!(spaces.len(), 2, "one for each tenant");
    let search = SearchQuery { text: None, embedding: Some(embedding("m", 20.0)), limit: 5 };
    let query = MemoryQuery { search, ..MemoryQuery::default() };
    let hits = store.memories(&tenant("a"), &query).await.expect("hits");
    let ids: Vec<&str> = hits.iter().map(|hit| hit.item.id.0.as_str()).collect();
    assert_eq!(ids[0], "200");
    assert_eq!(ids.len(), 5);
}
