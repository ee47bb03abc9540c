//! The store in memory passes its own checks, and the scripted provider behaves as providers do.

mod binding;
mod caches;
mod provider;
mod talk;

use std::future::{Ready, ready};
use std::sync::Arc;

use plimsoll_engine::{HistoryStore, KnowledgeStore, StoreError};
use plimsoll_testkit::{MemoryStore, sample};

fn history_store() -> Ready<(Arc<dyn HistoryStore>, ())> {
    ready((Arc::new(MemoryStore::new()), ()))
}

fn knowledge_store() -> Ready<(Arc<dyn KnowledgeStore>, ())> {
    ready((Arc::new(MemoryStore::new()), ()))
}

type Stores = (Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>);

fn both() -> Ready<(Stores, ())> {
    let store = Arc::new(MemoryStore::new());
    ready(((store.clone(), store), ()))
}

plimsoll_testkit::history_conformance!(super::history_store);
plimsoll_testkit::knowledge_conformance!(super::knowledge_store);
plimsoll_testkit::memory_conformance!(super::knowledge_store);
plimsoll_testkit::together_conformance!(super::both);

#[tokio::test]
async fn spoilt_contents_are_never_returned() {
    let store = Arc::new(MemoryStore::new());
    let stores: Stores = (store.clone(), store.clone());
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
