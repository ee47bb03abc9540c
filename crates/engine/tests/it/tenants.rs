//! A tenant whose store call does not return holds up no other tenant.

use std::future::pending;

use async_trait::async_trait;
use plimsoll_core::recall::RecallSettings;
use plimsoll_engine::memories::{Memories, MemorySearch};
use plimsoll_engine::{
    Appended, ContextCard, Efficiency, Forgotten, Gathering, HistoryBatch, HistoryStore, Hit,
    LogQuery, LogRow, MessageRecord, Rebuilt, Recall, ReceiptRecord, SearchQuery, SessionId,
    SessionSummary, StoreError, TenantId,
};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::sample::{message, session, tenant};

/// A store that never answers tenant `a` when it is asked for messages.
#[derive(Debug, Default)]
struct Silent(MemoryStore);

fn unused<T>() -> Result<T, StoreError> {
    Err(StoreError::Unsupported { what: "this".to_owned() })
}

#[async_trait]
impl HistoryStore for Silent {
    async fn append(&self, of: &TenantId, batch: HistoryBatch) -> Result<Appended, StoreError> {
        self.0.append(of, batch).await
    }
    async fn messages(
        &self,
        of: &TenantId,
        session: &SessionId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<MessageRecord>, StoreError> {
        if of.as_str() == "a" {
            pending::<()>().await;
        }
        self.0.messages(of, session, from, limit).await
    }
    async fn message_by_hash(&self, _: &TenantId, _: &str) -> Result<MessageRecord, StoreError> {
        unused()
    }
    async fn sessions(
        &self,
        of: &TenantId,
        most: usize,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        self.0.sessions(of, most).await
    }
    async fn receipts(
        &self,
        _: &TenantId,
        _: &SessionId,
    ) -> Result<Vec<ReceiptRecord>, StoreError> {
        unused()
    }
    async fn cards(&self, _: &TenantId, _: &SessionId) -> Result<Vec<ContextCard>, StoreError> {
        unused()
    }
    async fn search(
        &self,
        _: &TenantId,
        _: Option<&SessionId>,
        _: &SearchQuery,
    ) -> Result<Vec<Hit<MessageRecord>>, StoreError> {
        unused()
    }
    async fn log(&self, _: &TenantId, _: &LogQuery) -> Result<Vec<LogRow>, StoreError> {
        unused()
    }
    async fn efficiency(&self, _: &TenantId, _: Gathering) -> Result<Vec<Efficiency>, StoreError> {
        unused()
    }
    async fn forget_session(&self, _: &TenantId, _: &SessionId) -> Result<Forgotten, StoreError> {
        unused()
    }
    async fn verify(&self, _: &TenantId) -> Result<Rebuilt, StoreError> {
        unused()
    }
}

#[tokio::test]
async fn recall_goes_on_while_another_tenant_waits() {
    let store = Silent::default();
    for owner in ["a", "b"] {
        let messages = vec![message("s", 0, "the harbour")];
        let batch = HistoryBatch { messages, ..HistoryBatch::default() };
        store.append(&tenant(owner), batch).await.expect("appended");
    }
    let recall = Recall::new(RecallSettings::default(), None);
    let (a, b, session) = (tenant("a"), tenant("b"), session("s"));
    tokio::select! {
        biased;
        _ = recall.scope(&store, &a, Some(&session)) => panic!("the store does not answer"),
        scope = recall.scope(&store, &b, Some(&session)) => {
            assert_eq!(scope.expect("messages").messages(), 1);
        }
    }
}

#[tokio::test]
async fn memory_of_one_tenant_is_read_while_that_of_another_is_in_use() {
    let store = MemoryStore::new();
    let memories = Memories::new(MemorySearch::default());
    let (a, b) = (tenant("a"), tenant("b"));
    let in_use = memories.of(&store, &a).await.expect("records");
    tokio::select! {
        biased;
        _ = memories.of(&store, &a) => panic!("another has it"),
        known = memories.of(&store, &b) => assert_eq!(known.expect("records").records().count(), 0),
    }
    drop(in_use);
    assert!(memories.of(&store, &a).await.is_ok());
}
