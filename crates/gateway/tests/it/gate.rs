//! A store that waits at a gate, or refuses.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use plimsoll_engine::{
    Appended, ContextCard, Efficiency, Forgotten, Gathering, HistoryBatch, HistoryStore, Hit,
    LogQuery, LogRow, MessageRecord, Rebuilt, ReceiptRecord, SearchQuery, SessionId,
    SessionSummary, StoreError, TenantId,
};
use plimsoll_testkit::MemoryStore;
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct Gate {
    inner: MemoryStore,
    is_open: watch::Sender<bool>,
    waiting: watch::Sender<bool>,
    refuses: AtomicBool,
    refuses_reading: AtomicBool,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            inner: MemoryStore::default(),
            is_open: watch::Sender::new(true),
            waiting: watch::Sender::new(false),
            refuses: AtomicBool::new(false),
            refuses_reading: AtomicBool::new(false),
        }
    }
}

impl Gate {
    pub(crate) fn close(&self) {
        self.waiting.send_replace(false);
        self.is_open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }

    pub(crate) fn refuse(&self) {
        self.refuses.store(true, Ordering::Relaxed);
    }

    /// Takes again what it refused.
    pub(crate) fn accept(&self) {
        self.refuses.store(false, Ordering::Relaxed);
    }

    /// Refuses to give the messages of a session, or gives them again.
    pub(crate) fn refuse_reading(&self, refuses: bool) {
        self.refuses_reading.store(refuses, Ordering::Relaxed);
    }

    /// Waits until somebody stands before the gate.
    pub(crate) async fn waiting(&self) {
        let _ = self.waiting.subscribe().wait_for(|waiting| *waiting).await;
    }

    async fn pass(&self) {
        self.waiting.send_replace(true);
        let _ = self.is_open.subscribe().wait_for(|open| *open).await;
    }
}

#[async_trait]
impl HistoryStore for Gate {
    async fn append(&self, tenant: &TenantId, batch: HistoryBatch) -> Result<Appended, StoreError> {
        self.pass().await;
        if self.refuses.load(Ordering::Relaxed) {
            let why = "no space left".to_owned();
            return Err(StoreError::Unavailable { why, retry_after: None });
        }
        self.inner.append(tenant, batch).await
    }

    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<MessageRecord>, StoreError> {
        self.pass().await;
        if self.refuses_reading.load(Ordering::Relaxed) {
            let why = "the disk is gone".to_owned();
            return Err(StoreError::Unavailable { why, retry_after: None });
        }
        self.inner.messages(tenant, session, from, limit).await
    }

    async fn message_by_hash(
        &self,
        tenant: &TenantId,
        prefix: &str,
    ) -> Result<MessageRecord, StoreError> {
        self.inner.message_by_hash(tenant, prefix).await
    }

    async fn sessions(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        self.inner.sessions(tenant, limit).await
    }

    async fn receipts(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ReceiptRecord>, StoreError> {
        self.inner.receipts(tenant, session).await
    }

    async fn cards(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ContextCard>, StoreError> {
        self.inner.cards(tenant, session).await
    }

    async fn search(
        &self,
        tenant: &TenantId,
        session: Option<&SessionId>,
        query: &SearchQuery,
    ) -> Result<Vec<Hit<MessageRecord>>, StoreError> {
        self.inner.search(tenant, session, query).await
    }

    async fn forget_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Forgotten, StoreError> {
        self.inner.forget_session(tenant, session).await
    }

    async fn log(&self, tenant: &TenantId, query: &LogQuery) -> Result<Vec<LogRow>, StoreError> {
        self.inner.log(tenant, query).await
    }

    async fn efficiency(
        &self,
        tenant: &TenantId,
        by: Gathering,
    ) -> Result<Vec<Efficiency>, StoreError> {
        self.inner.efficiency(tenant, by).await
    }

    async fn verify(&self, tenant: &TenantId) -> Result<Rebuilt, StoreError> {
        self.inner.verify(tenant).await
    }
}
