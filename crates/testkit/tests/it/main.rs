//! The store in memory passes its own checks.

use std::sync::Arc;

use plimsoll_engine::{HistoryStore, KnowledgeStore, StoreError};
use plimsoll_testkit::{MemoryStore, sample};

async fn history_store() -> (Arc<dyn HistoryStore>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

async fn knowledge_store() -> (Arc<dyn KnowledgeStore>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

async fn both() -> ((Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>), ()) {
    let store = Arc::new(MemoryStore::new());
    ((store.clone(), store), ())
}

plimsoll_testkit::history_conformance!(super::history_store);
plimsoll_testkit::knowledge_conformance!(super::knowledge_store);
plimsoll_testkit::together_conformance!(super::both);

#[tokio::test]
async fn spoilt_contents_are_never_returned() {
    let store = Arc::new(MemoryStore::new());
    let stores = (store.clone() as Arc<dyn HistoryStore>, store.clone() as Arc<dyn KnowledgeStore>);
    plimsoll_testkit::conformance::together::spoilt_contents_are_never_returned(
        stores,
        async || {
            store.spoil();
        },
    )
    .await;
    let missing = store.message_by_hash(&sample::tenant("b"), "00112233").await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
}
