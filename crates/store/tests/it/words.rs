//! The words of messages come into the index behind their rows, and whoever searches finds all of them.

use std::future::Future as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Waker};

use plimsoll_engine::{HistoryBatch, HistoryStore as _, SearchQuery};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::sample::{message, session, tenant};
use tempfile::TempDir;

async fn opened() -> (TempDir, PathBuf, SqliteStore) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    (folder, path, store)
}

async fn append(store: &SqliteStore, name: &str, position: u32, text: &str) {
    let messages = vec![message(name, position, text)];
    let batch = HistoryBatch { messages, ..HistoryBatch::default() };
    store.append(&tenant("a"), batch).await.expect("appended");
}

async fn found(store: &SqliteStore, text: &str) -> Vec<String> {
    let query = SearchQuery { text: Some(text.into()), embedding: None, limit: 9 };
    let hits = store.search(&tenant("a"), None, &query).await.expect("hits");
    let mut found: Vec<String> =
        hits.iter().map(|hit| format!("{} {}", hit.item.session, hit.item.position)).collect();
    found.sort();
    found
}

/// Returns how many messages have their words in the index, and how many rows there are.
fn counts(path: &Path) -> (i64, i64) {
    let database = rusqlite::Connection::open(path).expect("a database");
    let count = |sql| database.query_row(sql, [], |row| row.get(0)).expect("a number");
    (
        count("SELECT count(*) FROM messages_text_1_docsize"),
        count("SELECT count(*) FROM unified_logs"),
    )
}

/// Copies a store as a kill would leave it.
fn killed(path: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join("killed.db");
    for end in ["", "-wal"] {
        let from = format!("{}{end}", path.display());
        std::fs::copy(from, format!("{}{end}", copy.display())).expect("copied");
    }
    copy
}

#[tokio::test]
async fn a_commit_writes_no_words_and_a_group_of_them_writes_all() {
    let (_folder, path, store) = opened().await;
    for position in 0..31 {
        append(&store, "s", position, "penguin").await;
    }
    assert_eq!(counts(&path), (0, 31));
    append(&store, "s", 31, "penguin").await;
    // This append is answered after the writer has added the words of the others.
    append(&store, "s", 32, "penguin").await;
    assert_eq!(counts(&path), (32, 33));
    drop(store);
    assert_eq!(counts(&path), (33, 33), "a store that is closed lacks none");
}

#[tokio::test]
async fn a_search_finds_what_has_no_words_yet() {
    let (_folder, path, store) = opened().await;
    append(&store, "s", 0, "a penguin").await;
    append(&store, "s", 1, "a walrus").await;
    assert_eq!(found(&store, "penguin").await, ["s 0"]);
    assert_eq!(counts(&path), (2, 2));
    append(&store, "s", 2, "another penguin").await;
    assert_eq!(found(&store, "penguin").await, ["s 0", "s 2"]);
}

#[tokio::test]
async fn a_killed_process_leaves_nothing_that_cannot_be_found() {
    let (folder, path, store) = opened().await;
    append(&store, "s", 0, "a penguin").await;
    assert_eq!(found(&store, "penguin").await, ["s 0"]);
    append(&store, "s", 1, "a penguin and a walrus").await;
    append(&store, "s", 2, "a walrus").await;
    let copy = killed(&path, folder.path());
    let reader = SqliteStore::open_to_read(&copy).await.expect("a store");
    assert_eq!(found(&reader, "penguin walrus").await, ["s 0", "s 1", "s 2"]);
    assert_eq!(found(&reader, "walrus").await, ["s 1", "s 2"]);
    drop(reader);
    assert_eq!(counts(&copy), (1, 3), "reading changes nothing");
    let writer = SqliteStore::open(&copy).await.expect("a store");
    assert_eq!(found(&writer, "penguin").await, ["s 0", "s 1"]);
    assert_eq!(counts(&copy), (3, 3));
}

#[tokio::test]
async fn rows_that_take_the_place_of_forgotten_ones_get_their_words() {
    let (_folder, path, store) = opened().await;
    append(&store, "kept", 0, "a penguin").await;
    append(&store, "gone", 0, "a walrus").await;
    store.forget_session(&tenant("a"), &session("gone")).await.expect("forgotten");
    append(&store, "new", 0, "a heron").await;
    assert_eq!(found(&store, "walrus").await, [""; 0]);
    assert_eq!(found(&store, "heron penguin").await, ["kept 0", "new 0"]);
    drop(store);
    assert_eq!(counts(&path), (2, 2));
}

#[tokio::test]
async fn a_lookup_waits_for_no_other_thread() {
    let (_folder, _, store) = opened().await;
    append(&store, "s", 0, "a penguin").await;
    // The first reader opens a connection.
    store.messages(&tenant("a"), &session("s"), 0, 9).await.expect("read");
    let (tenant, session) = (tenant("a"), session("s"));
    let mut lookup = pin!(store.session(&tenant, &session));
    let mut context = Context::from_waker(Waker::noop());
    assert!(lookup.as_mut().poll(&mut context).is_ready());
}
