//! The checks that every store passes.

use std::sync::Arc;

use plimsoll_engine::{HistoryStore, KnowledgeStore};
use plimsoll_testkit::MemoryStore;

use super::database::Database;

type Both = (Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>);

/// Without a server the checks run on the store in memory: they say that they were skipped, and pass.
async fn both() -> (Both, Option<Database>) {
    let Some(database) = Database::new().await else {
        let store = Arc::new(MemoryStore::new());
        return ((store.clone(), store), None);
    };
    let store = database.store().await;
    ((store.clone(), store), Some(database))
}

async fn history_store() -> (Arc<dyn HistoryStore>, Option<Database>) {
    let ((history, _), database) = both().await;
    (history, database)
}

async fn knowledge_store() -> (Arc<dyn KnowledgeStore>, Option<Database>) {
    let ((_, knowledge), database) = both().await;
    (knowledge, database)
}

plimsoll_testkit::history_conformance!(super::history_store);
plimsoll_testkit::knowledge_conformance!(super::knowledge_store);
plimsoll_testkit::memory_conformance!(super::knowledge_store);
plimsoll_testkit::together_conformance!(super::both);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spoilt_contents_are_never_returned() {
    let Some(database) = Database::new().await else { return };
    let store = database.store().await;
    let client = database.client().await;
    let spoil = async || {
        client
            .batch_execute(
                "UPDATE unified_logs SET content_json = replace(content_json, 'walrus', 'seal'); \
                 UPDATE cas_contents SET content_zstd = set_byte(content_zstd, 9, 0)",
            )
            .await
            .expect("spoilt");
    };
    let stores = (store.clone() as _, store as _);
    plimsoll_testkit::conformance::together::spoilt_contents_are_never_returned(stores, spoil)
        .await;
}
