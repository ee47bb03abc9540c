//! Erased and forgotten text is in no file of the store, also while another program has the store open.

use std::path::Path;

use plimsoll_engine::{HistoryBatch, HistoryStore as _, KnowledgeStore as _, SearchQuery};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::sample::{memory, message, session, tenant};

const SECRET: &str = "xylophone";

/// Returns the files of the store that hold the word.
fn holding(path: &Path) -> Vec<&'static str> {
    let holds = |end: &&str| {
        let bytes = std::fs::read(format!("{}{end}", path.display())).unwrap_or_default();
        bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
    };
    ["", "-wal"].into_iter().filter(holds).collect()
}

async fn fill(store: &SqliteStore) {
    let messages = vec![message("s", 0, &format!("the {SECRET} is in the hold"))];
    let batch = HistoryBatch { messages, ..HistoryBatch::default() };
    store.append(&tenant("a"), batch).await.expect("appended");
    store.put_memory(&memory("a", "id", &format!("ann plays the {SECRET}"))).await.expect("stored");
    // A search adds the words to the index.
    let query = SearchQuery { text: Some(SECRET.to_owned()), embedding: None, limit: 1 };
    assert_eq!(store.search(&tenant("a"), None, &query).await.expect("hits").len(), 1);
}

#[tokio::test]
async fn an_erased_tenant_is_in_no_file_while_another_has_the_store_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let gateway = SqliteStore::open(&path).await.expect("a store");
    fill(&gateway).await;
    let operator = SqliteStore::open(&path).await.expect("the same store");
    operator.erase_tenant(&tenant("a")).await.expect("erased");
    assert!(operator.purge().await.expect("purged"));
    assert_eq!(holding(&path), Vec::<&str>::new());
    drop(operator);
    fill(&gateway).await;
}

#[tokio::test]
async fn what_was_forgotten_is_in_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    fill(&store).await;
    let scope =
        plimsoll_engine::Scope { session: Some(session("s")), ..plimsoll_engine::Scope::default() };
    store
        .forget_memories(&tenant("a"), &[plimsoll_engine::MemoryId("id".into())])
        .await
        .expect("1");
    store.forget(&tenant("a"), &scope).await.expect("forgotten");
    assert_eq!(holding(&path), Vec::<&str>::new());
}

#[tokio::test]
async fn a_purge_says_that_a_reader_keeps_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    fill(&store).await;
    let reader = rusqlite::Connection::open(&path).expect("a database");
    reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").expect("it reads");
    store.erase_tenant(&tenant("a")).await.expect("erased");
    assert!(!store.purge().await.expect("it could not"));
    assert_eq!(holding(&path), ["-wal"]);
    reader.execute_batch("COMMIT").expect("ended");
    assert!(store.purge().await.expect("purged"));
    assert_eq!(holding(&path), Vec::<&str>::new());
}
