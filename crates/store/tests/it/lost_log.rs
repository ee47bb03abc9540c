//! A store whose file was replaced, or whose log was deleted, while it is open.

use std::path::{Path, PathBuf};

use plimsoll_engine::{HistoryBatch, HistoryStore as _, StoreError};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::sample::{message, session, tenant};

struct Stores {
    folder: tempfile::TempDir,
    path: PathBuf,
    store: SqliteStore,
}

impl Stores {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let store = SqliteStore::open(&path).await.expect("a store");
        Self { folder, path, store }
    }

    fn beside(&self, end: &str) -> PathBuf {
        self.folder.path().join(format!("store.db{end}"))
    }

    /// Makes another store with a message of its own and puts it in the place of this one.
    async fn replace(&self) {
        let other = self.folder.path().join("other.db");
        let store = SqliteStore::open(&other).await.expect("a store");
        append(&store, "other", 0).await.expect("appended");
        drop(store);
        std::fs::rename(other, &self.path).expect("replaced");
    }
}

async fn append(store: &SqliteStore, name: &str, position: u32) -> Result<(), StoreError> {
    let messages = vec![message(name, position, &format!("walrus {position}"))];
    let batch = HistoryBatch { messages, ..HistoryBatch::default() };
    store.append(&tenant("a"), batch).await.map(drop)
}

async fn count(store: &SqliteStore, name: &str) -> usize {
    store.messages(&tenant("a"), &session(name), 0, 999).await.expect("messages").len()
}

/// The other store has its message, nothing of the one that it replaced, and no fault.
async fn check_other(path: &Path) {
    let store = SqliteStore::open(path).await.expect("the other store");
    assert_eq!(store.check().await.expect("checked"), Vec::<String>::new());
    assert_eq!((count(&store, "other").await, count(&store, "s").await), (1, 0));
}

#[tokio::test]
async fn the_log_of_a_replaced_store_is_not_applied_to_the_other() {
    let stores = Stores::new().await;
    append(&stores.store, "s", 0).await.expect("appended");
    let log = std::fs::read(stores.beside("-wal")).expect("a log");
    std::fs::write(stores.beside("-wal.of-another-file"), "of an earlier time").expect("written");
    stores.replace().await;
    let refused = append(&stores.store, "s", 1).await.expect_err("replaced").to_string();
    let aside = stores.beside("-wal.of-another-file-2");
    assert!(refused.contains("another file"), "{refused}");
    assert!(refused.contains(&aside.display().to_string()), "{refused}");
    assert_eq!(std::fs::read(aside).expect("the log is kept"), log);
    let earlier = std::fs::read_to_string(stores.beside("-wal.of-another-file"));
    assert_eq!(earlier.expect("it is kept"), "of an earlier time");
    // Before the gateway ends, and after.
    check_other(&stores.path).await;
    let Stores { folder: _folder, path, store } = stores;
    drop(store);
    check_other(&path).await;
}

#[tokio::test]
async fn a_store_that_closes_beside_another_file_takes_its_log_away() {
    let stores = Stores::new().await;
    append(&stores.store, "s", 0).await.expect("appended");
    stores.replace().await;
    let aside = stores.beside("-wal.of-another-file");
    let Stores { folder: _folder, path, store } = stores;
    drop(store);
    assert!(aside.exists());
    check_other(&path).await;
}

#[tokio::test]
async fn the_log_of_the_other_store_stays() {
    let stores = Stores::new().await;
    append(&stores.store, "s", 0).await.expect("appended");
    let other = Stores::new().await;
    append(&other.store, "other", 0).await.expect("appended");
    for end in ["-wal", "-shm", ""] {
        std::fs::rename(other.beside(end), stores.beside(end)).expect("replaced");
    }
    append(&stores.store, "s", 1).await.expect_err("replaced");
    assert!(!stores.beside("-wal.of-another-file").exists());
    drop(other);
    let Stores { folder: _folder, path, store } = stores;
    drop(store);
    check_other(&path).await;
}

#[tokio::test]
async fn turns_after_the_log_was_deleted_are_kept() {
    let stores = Stores::new().await;
    for position in 0..3 {
        append(&stores.store, "s", position).await.expect("appended");
    }
    assert_eq!(count(&stores.store, "s").await, 3, "a reader is open");
    std::fs::remove_file(stores.beside("-wal")).expect("deleted");
    append(&stores.store, "s", 3).await.expect("appended to a new log");
    assert_eq!(count(&stores.store, "s").await, 4);
    std::fs::remove_file(stores.beside("-wal")).expect("deleted");
    assert_eq!(count(&stores.store, "s").await, 4, "a reader notices it too");
    append(&stores.store, "s", 4).await.expect("appended");
    // As a crash leaves it: what is on the disk now is all that there is.
    let copy = stores.folder.path().join("copy.db");
    for end in ["", "-wal"] {
        let to = stores.folder.path().join(format!("copy.db{end}"));
        std::fs::copy(stores.beside(end), to).expect("copied");
    }
    let copied = SqliteStore::open(&copy).await.expect("a store");
    assert_eq!(count(&copied, "s").await, 5);
    assert_eq!(copied.check().await.expect("checked"), Vec::<String>::new());
}

#[tokio::test]
async fn a_store_that_closes_without_its_log_loses_nothing() {
    let stores = Stores::new().await;
    append(&stores.store, "s", 0).await.expect("appended");
    std::fs::remove_file(stores.beside("-wal")).expect("deleted");
    let Stores { folder: _folder, path, store } = stores;
    drop(store);
    assert_eq!(count(&SqliteStore::open(&path).await.expect("a store"), "s").await, 1);
}

#[tokio::test]
async fn another_log_is_refused_until_the_first_is_back() {
    let stores = Stores::new().await;
    append(&stores.store, "s", 0).await.expect("appended");
    let away = stores.folder.path().join("away");
    std::fs::rename(stores.beside("-wal"), &away).expect("moved");
    std::fs::write(stores.beside("-wal"), "").expect("written");
    for _ in 0..2 {
        let refused = append(&stores.store, "s", 1).await.expect_err("replaced").to_string();
        assert!(refused.contains("in the place of its log"), "{refused}");
    }
    std::fs::rename(&away, stores.beside("-wal")).expect("moved back");
    append(&stores.store, "s", 1).await.expect("appended");
    assert_eq!(count(&stores.store, "s").await, 2);
}
