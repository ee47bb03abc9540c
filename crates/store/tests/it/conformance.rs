//! The checks that every store passes.

use std::sync::Arc;

use plimsoll_engine::{HistoryStore, KnowledgeStore};
use plimsoll_store::SqliteStore;
use tempfile::TempDir;

async fn fresh() -> (Arc<SqliteStore>, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("store.db")).await.expect("a store");
    (Arc::new(store), folder)
}

async fn history_store() -> (Arc<dyn HistoryStore>, TempDir) {
    let (store, folder) = fresh().await;
    (store, folder)
}

async fn knowledge_store() -> (Arc<dyn KnowledgeStore>, TempDir) {
    let (store, folder) = fresh().await;
    (store, folder)
}

async fn both() -> ((Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>), TempDir) {
    let (store, folder) = fresh().await;
    ((store.clone(), store), folder)
}

plimsoll_testkit::history_conformance!(super::history_store);
plimsoll_testkit::knowledge_conformance!(super::knowledge_store);
plimsoll_testkit::memory_conformance!(super::knowledge_store);
plimsoll_testkit::together_conformance!(super::both);
