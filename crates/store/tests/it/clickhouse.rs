//! ClickHouse: run where `PLIMSOLL_TEST_CLICKHOUSE` is the URL of a server (`.ci/clickhouse start` prints one); each test has
//! a database of its own.

use std::mem::discriminant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Gathering, HistoryBatch, HistoryStore, KnowledgeStore, LogQuery, MessageRecord, SearchQuery,
    StoreError,
};
use plimsoll_store::{ClickHouseConfig, ClickHouseStore, SqliteStore};
use plimsoll_testkit::sample::{HOSTILE, card, embedding, message, receipt, session, tenant};
use plimsoll_testkit::{MemoryStore, conformance};
use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

use crate::join::{fill, join};

static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A database that is gone when the test is.
struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Names a database; `None`, and a line that says so, where no server is given.
    fn new() -> Option<Self> {
        #[expect(clippy::disallowed_methods, reason = "a test is told here where its server is")]
        let server = std::env::var("PLIMSOLL_TEST_CLICKHOUSE").ok();
        #[expect(
            clippy::print_stderr,
            reason = "a check that was skipped must not look like one that passed"
        )]
        let Some(server) = server else {
            eprintln!("skipped: PLIMSOLL_TEST_CLICKHOUSE is not set");
            return None;
        };
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll_test_{}_{number}", std::process::id());
        Some(Self { server: server.trim_end_matches('/').to_owned(), name })
    }

    async fn open(&self) -> Result<ClickHouseStore, StoreError> {
        self.open_indexed(None).await
    }

    async fn open_indexed(&self, dimension: Option<u16>) -> Result<ClickHouseStore, StoreError> {
        let url = format!("{}/{}", self.server, self.name);
        ClickHouseStore::open(&ClickHouseConfig { url, index_dimension: dimension }).await
    }

    /// Runs a statement behind the store's back.
    async fn run(&self, statement: impl Into<String>) -> String {
        let url = format!("{}/?database={}", self.server, self.name);
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let answer = client.post(url).body(statement.into()).send().await.expect("an answer");
        let is_success = answer.status().is_success();
        let text = answer.text().await.expect("a text");
        assert!(is_success, "{text}");
        text.trim().to_owned()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let url = format!("{}/?param_name={}", self.server, self.name);
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                let client = reqwest::Client::builder().no_proxy().build().expect("a client");
                let statement = "DROP DATABASE IF EXISTS {name:Identifier}";
                // A test that failed says why itself.
                let _ = client.post(url).body(statement).send().await;
            });
        });
    }
}

/// Without a server the checks run on the store in memory, which leaves them of one form.
async fn history_store() -> (Arc<dyn HistoryStore>, Option<Database>) {
    let Some(database) = Database::new() else { return (Arc::new(MemoryStore::new()), None) };
    let store = database.open().await.expect("a store");
    (Arc::new(store), Some(database))
}

/// The history on ClickHouse, the knowledge in a file.
async fn both() -> ((Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>), (Option<Database>, TempDir)) {
    let folder = tempfile::tempdir().expect("a folder");
    let knowledge = SqliteStore::open(&folder.path().join("store.db")).await.expect("a store");
    let (history, database) = history_store().await;
    ((history, Arc::new(knowledge)), (database, folder))
}

plimsoll_testkit::history_conformance!(super::history_store);
plimsoll_testkit::together_conformance!(super::both);

fn batch(messages: Vec<MessageRecord>) -> HistoryBatch {
    HistoryBatch { messages, ..HistoryBatch::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn spoilt_contents_are_never_returned() {
    let Some(database) = Database::new() else { return };
    let knowledge = Arc::new(MemoryStore::new());
    let store = Arc::new(database.open().await.expect("a store"));
    conformance::together::spoilt_contents_are_never_returned(
        (store, knowledge.clone()),
        async || {
            knowledge.spoil();
            let spoil = "ALTER TABLE unified_logs UPDATE content_json = '[{\"text\":\"spoilt\"}]'
                WHERE node_type = 'message' SETTINGS mutations_sync = 2";
            database.run(spoil).await;
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_cards_are_joined_by_session_and_hash() {
    let Some(database) = Database::new() else { return };
    let wanted = fill(&database.open().await.expect("a store")).await;
    let rows = database.run(concat!(join!(), " FORMAT TSV")).await;
    assert_eq!(rows, wanted.map(|row| row.join("\t")).join("\n").trim_end());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_one_part() {
    let Some(database) = Database::new() else { return };
    let store = database.open().await.expect("a store");
    let messages = (0..3_000).map(|i| message("s", i, &format!("text {i}"))).collect();
    let receipts = (0..500).map(|turn| receipt("s", turn, "masking")).collect();
    let batch = HistoryBatch { messages, receipts, ..HistoryBatch::default() };
    store.append(&tenant("a"), batch).await.expect("appended");
    let parts = "SELECT count() FROM system.parts
        WHERE database = currentDatabase() AND table = 'unified_logs' FORMAT TSV";
    assert_eq!(database.run(parts).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_of_a_batch_without_its_end_do_not_count() {
    let Some(database) = Database::new() else { return };
    let store = database.open().await.expect("a store");
    let record = message("s", 0, "walrus");
    let about = card("a", &record, "animal");
    let whole = HistoryBatch {
        branch: None,
        messages: vec![record.clone()],
        receipts: vec![],
        cards: vec![about.clone()],
    };
    store.append(&tenant("a"), whole).await.expect("appended");
    let unfinished = "INSERT INTO context_cards
        SELECT * REPLACE ('unfinished' AS batch, 'vegetable' AS summary, ['vegetable'] AS words,
            addDays(generated_at, 1) AS generated_at)
        FROM context_cards";
    database.run(unfinished).await;
    let (a, s) = (tenant("a"), session("s"));
    assert_eq!(store.cards(&a, &s).await.expect("cards"), std::slice::from_ref(&about));
    let query = SearchQuery { text: Some("vegetable".into()), embedding: None, limit: 9 };
    assert_eq!(store.search(&a, None, &query).await.expect("hits"), []);

    // A later one that came to its end replaces it, before and after the parts are merged.
    let mut later = card("a", &record, "mineral");
    later.generated_at = MillisSinceEpoch(about.generated_at.0 + 2 * 86_400_000);
    let cards = HistoryBatch { cards: vec![later.clone()], ..HistoryBatch::default() };
    assert_eq!(store.append(&a, cards.clone()).await.expect("appended").added, 1);
    assert_eq!(store.append(&a, cards).await.expect("appended").known, 1);
    assert_eq!(store.cards(&a, &s).await.expect("cards"), [later.clone()]);
    database.run("OPTIMIZE TABLE context_cards FINAL").await;
    assert_eq!(store.cards(&a, &s).await.expect("cards"), [later]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_words_of_cards_and_models_are_values() {
    let Some(database) = Database::new() else { return };
    let store = database.open().await.expect("a store");
    let mut records = Vec::new();
    let mut cards = Vec::new();
    for (text, i) in HOSTILE.iter().zip(0..) {
        let record = message("s", i, &format!("{i} {text}"));
        let mut about = card("a", &record, text);
        about.keywords = vec![(*text).to_owned()];
        about.callout_name = Some((*text).to_owned());
        about.generator_model = (*text).to_owned();
        about.embedding = Some(embedding(text, 0.0));
        cards.push(about);
        records.push(record);
    }
    let whole =
        HistoryBatch { messages: records.clone(), cards: cards.clone(), ..HistoryBatch::default() };
    store.append(&tenant("a"), whole).await.expect("appended");
    let mut found = store.cards(&tenant("a"), &session("s")).await.expect("cards");
    found.sort_by_key(|card| card.message_timestamp);
    assert_eq!(found, cards);
    for (text, record) in HOSTILE.iter().zip(&records) {
        let embedding = Some(embedding(text, 0.0));
        let query = SearchQuery { text: None, embedding, limit: 9 };
        let hits = store.search(&tenant("a"), None, &query).await.expect("hits");
        let items: Vec<_> = hits.into_iter().map(|hit| hit.item).collect();
        assert_eq!(items, std::slice::from_ref(record), "{text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_any_dimension_pass_the_index() {
    let Some(database) = Database::new() else { return };
    let store = database.open_indexed(Some(4)).await.expect("a store");
    let records: Vec<_> = (0..3).map(|i| message("s", i, &format!("text {i}"))).collect();
    let mut cards: Vec<_> = records.iter().map(|record| card("a", record, "about")).collect();
    cards[1].embedding = Some(embedding("m", 10.0));
    cards[2].embedding = Some(plimsoll_engine::Embedding { model: "m".into(), vector: vec![1.0] });
    let whole = HistoryBatch { messages: records, cards: cards.clone(), ..HistoryBatch::default() };
    store.append(&tenant("a"), whole).await.expect("appended");
    let query = SearchQuery { text: None, embedding: Some(embedding("m", 0.0)), limit: 9 };
    let hits = store.search(&tenant("a"), None, &query).await.expect("hits");
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].item.position, 1);
    let indexes = "SELECT type_full FROM system.data_skipping_indices
        WHERE database = currentDatabase() AND name = 'embedding_idx' FORMAT TSVRaw";
    assert_eq!(database.run(indexes).await, "vector_similarity('hnsw', 'cosineDistance', 4)");
    database.open_indexed(Some(4)).await.expect("the same tables again");
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_tables_are_refused() {
    let Some(database) = Database::new() else { return };
    let store = database.open().await.expect("a store");
    store.append(&tenant("a"), batch(vec![message("s", 0, "kept")])).await.expect("appended");
    let again = database.open().await.expect("the same tables again");
    assert_eq!(again.verify(&tenant("a")).await.expect("verified").messages, 1);
    database.run("INSERT INTO plimsoll_schema SELECT 9").await;
    let error = database.open().await.expect_err("newer tables");
    let StoreError::Unsupported { what } = error else { panic!("{error:?}") };
    assert!(what.contains("version 9 and this program knows up to 2"), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_version_1_are_brought_up_to_date() {
    let Some(database) = Database::new() else { return };
    let store = database.open().await.expect("a store");
    store.append(&tenant("a"), batch(vec![message("s", 0, "kept")])).await.expect("appended");
    for column in ["billed", "billed_without", "billed_estimate"] {
        database.run(["ALTER TABLE unified_logs DROP COLUMN ", column].concat()).await;
    }
    database.run("TRUNCATE TABLE plimsoll_schema").await;
    database.run("INSERT INTO plimsoll_schema SELECT 1").await;
    let store = database.open().await.expect("it is brought up to date");
    let receipts = vec![receipt("s", 0, "masking")];
    let batch = HistoryBatch {
        messages: vec![message("s", 1, "new")],
        receipts,
        ..HistoryBatch::default()
    };
    assert_eq!(store.append(&tenant("a"), batch).await.expect("appended").added, 2);
    assert_eq!(store.verify(&tenant("a")).await.expect("verified").messages, 2);
    assert_eq!(database.run("SELECT max(version) FROM plimsoll_schema FORMAT TSV").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_of_nothing_finds_whether_rows_can_be_written() {
    let Some(database) = Database::new() else { return };
    let store = database.open().await.expect("a store");
    store.append(&tenant("a"), HistoryBatch::default()).await.expect("it can be written");
    database.run("DROP TABLE unified_logs").await;
    store.append(&tenant("a"), HistoryBatch::default()).await.expect_err("no table");
}

#[tokio::test(flavor = "multi_thread")]
async fn times_that_the_columns_cannot_hold_are_refused() {
    let Some(database) = Database::new() else { return };
    let store = database.open().await.expect("a store");
    for (time, fits) in [(0, true), (-1_500, true), (i64::MAX, false), (i64::MIN, false)] {
        let mut record = message(&format!("s{time}"), 0, "text");
        record.recorded_at = MillisSinceEpoch(time);
        let result = store.append(&tenant("a"), batch(vec![record.clone()])).await;
        assert_eq!(result.is_ok(), fits, "{time}: {result:?}");
        let kept = store.messages(&tenant("a"), &record.session, 0, 9).await.expect("read");
        assert_eq!(kept, if fits { vec![record] } else { vec![] });
    }
}

#[tokio::test]
async fn a_server_out_of_reach_is_unavailable() {
    // Nobody listens on the port of discarding.
    let url = "http://127.0.0.1:9/plimsoll".to_owned();
    let error = ClickHouseStore::open(&ClickHouseConfig { url, index_dimension: None })
        .await
        .expect_err("no server");
    assert!(error.is_temporary(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("ClickHouse at 127.0.0.1:9 does not answer: "), "{text}");
}

/// A step that both stores take.
#[derive(Debug, Clone)]
struct Step {
    tenant: usize,
    session: usize,
    first: u32,
    texts: Vec<usize>,
    receipts: Vec<(u32, usize)>,
    cards: Vec<(usize, i64)>,
}

fn step() -> impl Strategy<Value = Step> {
    let some = 0..TEXTS.len();
    (
        0..2_usize,
        0..2_usize,
        0..4_u32,
        vec(some.clone(), 0..4),
        vec((0..3_u32, some.clone()), 0..2),
        vec((some, 0..4_i64), 0..3),
    )
        .prop_map(|(tenant, session, first, texts, receipts, cards)| Step {
            tenant,
            session,
            first,
            texts,
            receipts,
            cards,
        })
}

const TEXTS: &[&str] = &["a walrus", "the walrus and a 'carpenter'", "\0 \\n", "Straße 日本"];

impl Step {
    fn batch(&self, tenant_name: &str) -> HistoryBatch {
        let name = format!("s{}", self.session);
        let of = |position, text: usize| message(&name, position, TEXTS[text]);
        let messages = (self.first..).zip(&self.texts).map(|(at, text)| of(at, *text)).collect();
        let receipts = self
            .receipts
            .iter()
            .map(|(turn, strategy)| receipt(&name, *turn, TEXTS[*strategy]))
            .collect();
        let cards = self
            .cards
            .iter()
            .map(|(text, generated)| {
                let mut about = card(tenant_name, &of(0, *text), &format!("carpenter {generated}"));
                about.generated_at = MillisSinceEpoch(*generated);
                about.embedding = Some(embedding("m", *generated as f32 + 10.0 * *text as f32));
                about
            })
            .collect();
        HistoryBatch { messages, receipts, cards, branch: None }
    }
}

/// Everything that a tenant can read, as text; hits without scores, which stores may reckon differently.
async fn everything(store: &dyn HistoryStore, tenant_name: &str) -> Vec<String> {
    let a = tenant(tenant_name);
    let mut all = Vec::new();
    for name in ["s0", "s1"] {
        let s = session(name);
        all.push(format!("{:?}", store.messages(&a, &s, 0, 99).await.expect("messages")));
        all.push(format!("{:?}", store.receipts(&a, &s).await.expect("receipts")));
        all.push(format!("{:?}", store.cards(&a, &s).await.expect("cards")));
        for (text, angle) in
            [(Some("walrus"), None), (Some("carpenter 3"), None), (None, Some(5.0))]
        {
            let embedding = angle.map(|angle| embedding("m", angle));
            let query = SearchQuery { text: text.map(str::to_owned), embedding, limit: 99 };
            let hits = store.search(&a, Some(&s), &query).await.expect("hits");
            let mut found: Vec<u32> = hits.iter().map(|hit| hit.item.position).collect();
            found.sort_unstable();
            all.push(format!("{query:?} {found:?}"));
        }
    }
    all.push(format!("{:?}", store.sessions(&a, 9).await.expect("sessions")));
    let query = LogQuery { limit: 99, ..LogQuery::default() };
    all.push(format!("{:?}", store.log(&a, &query).await.expect("rows")));
    all.push(format!("{:?}", store.efficiency(&a, Gathering::Session).await.expect("efficiency")));
    all.push(format!("{:?}", store.verify(&a).await.expect("verified")));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_as_the_store_in_memory_does() {
    let Some(database) = Database::new() else { return };
    let store = database.open().await.expect("a store");
    let mut runner = TestRunner::deterministic();
    let mut kept = 0;
    for case in 0..12 {
        let steps = vec(step(), 1..6).new_tree(&mut runner).expect("steps").current();
        let memory = MemoryStore::new();
        let tenants = [format!("a{case}"), format!("b{case}")];
        for step in &steps {
            let name = &tenants[step.tenant];
            let batch = step.batch(name);
            let wanted = memory.append(&tenant(name), batch.clone()).await;
            let done = store.append(&tenant(name), batch).await;
            match (&done, &wanted) {
                (Ok(done), Ok(wanted)) => assert_eq!(done, wanted, "{steps:?}"),
                (Err(done), Err(wanted)) => {
                    assert_eq!(discriminant(done), discriminant(wanted), "{steps:?}");
                }
                _ => panic!("{done:?} instead of {wanted:?} by {steps:?}"),
            }
        }
        for name in &tenants {
            let (found, wanted) = (everything(&store, name).await, everything(&memory, name).await);
            assert_eq!(found, wanted, "{steps:?}");
            kept += store.verify(&tenant(name)).await.expect("verified").messages;
        }
    }
    assert!(kept > 12, "{kept} messages are no test");
}
