//! The history port.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use plimsoll_engine::{
    Appended, ContextCard, Efficiency, Forgotten, Gathering, HistoryBatch, HistoryStore, Hit,
    LogQuery, LogRow, MessageRecord, Rebuilt, ReceiptRecord, SearchQuery, SessionId,
    SessionSummary, StoreError, TenantId, hash_prefix,
};
use rusqlite::Connection;

use super::messages::SessionCounts;
use super::{
    SqliteStore, branches, cards, forget, log, messages, receipts, search, tenants, word_index,
};

#[async_trait]
impl HistoryStore for SqliteStore {
    async fn append(&self, tenant: &TenantId, batch: HistoryBatch) -> Result<Appended, StoreError> {
        batch.check()?;
        let tenant = tenant.clone();
        self.write(move |connection| {
            let number = tenants::ensure(connection, &tenant)?;
            let mut appended = Appended::default();
            let mut counts = SessionCounts::default();
            if let Some(branch) = &batch.branch {
                branches::begin(connection, &tenant, branch)?;
            }
            messages::append(connection, &tenant, &batch.messages, &mut counts, &mut appended)?;
            receipts::append(connection, &tenant, &batch.receipts, &mut counts, &mut appended)?;
            counts.write(connection, &tenant)?;
            cards::append(connection, &tenant, number, &batch.cards, &mut appended)?;
            Ok(appended)
        })
        .await
    }

    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<MessageRecord>, StoreError> {
        let (tenant, session) = (tenant.clone(), session.clone());
        let read = move |connection: &Connection| {
            messages::of_session(connection, &tenant, &session, from, limit)
        };
        if limit == 1 { self.look_up(read).await } else { self.read(read).await }
    }

    async fn message_by_hash(
        &self,
        tenant: &TenantId,
        prefix: &str,
    ) -> Result<MessageRecord, StoreError> {
        let (tenant, prefix) = (tenant.clone(), hash_prefix(prefix)?);
        self.read(move |connection| messages::by_hash(connection, &tenant, &prefix)).await
    }

    async fn session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<SessionSummary>, StoreError> {
        let (tenant, session) = (tenant.clone(), session.clone());
        self.look_up(move |connection| messages::session_summary(connection, &tenant, &session))
            .await
    }

    async fn sessions(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |connection| messages::sessions(connection, &tenant, limit)).await
    }

    async fn receipts(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ReceiptRecord>, StoreError> {
        let (tenant, session) = (tenant.clone(), session.clone());
        self.read(move |connection| receipts::of_session(connection, &tenant, &session)).await
    }

    async fn receipts_of(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        strategy: &str,
    ) -> Result<Vec<ReceiptRecord>, StoreError> {
        let (tenant, session, strategy) = (tenant.clone(), session.clone(), strategy.to_owned());
        let read = move |connection: &Connection| {
            receipts::of_strategy(connection, &tenant, &session, &strategy)
        };
        self.look_up(read).await
    }

    async fn cards(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ContextCard>, StoreError> {
        let (tenant, session) = (tenant.clone(), session.clone());
        self.read(move |connection| cards::of_session(connection, &tenant, &session)).await
    }

    async fn search(
        &self,
        tenant: &TenantId,
        session: Option<&SessionId>,
        query: &SearchQuery,
    ) -> Result<Vec<Hit<MessageRecord>>, StoreError> {
        query.check()?;
        if self.writer.is_some() && self.look_up(word_index::is_behind).await? {
            // A store that takes nothing now is searched all the same.
            let _missing = self.write(word_index::add_all).await;
        }
        let (tenant, session, query) = (tenant.clone(), session.cloned(), query.clone());
        let caches = self.caches.clone();
        let (hits, left_out) = self
            .read(move |connection| {
                search::search(connection, &caches, &tenant, session.as_ref(), &query)
            })
            .await?;
        self.mismatches.fetch_add(left_out, Ordering::Relaxed);
        Ok(hits)
    }

    async fn log(&self, tenant: &TenantId, query: &LogQuery) -> Result<Vec<LogRow>, StoreError> {
        let (tenant, query) = (tenant.clone(), query.clone());
        self.read(move |connection| log::newest(connection, &tenant, &query)).await
    }

    async fn efficiency(
        &self,
        tenant: &TenantId,
        by: Gathering,
    ) -> Result<Vec<Efficiency>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |connection| receipts::efficiency(connection, &tenant, by)).await
    }

    async fn forget_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Forgotten, StoreError> {
        let (tenant, session) = (tenant.clone(), session.clone());
        self.forget_with(move |connection| forget::forget_session(connection, &tenant, &session))
            .await
    }

    async fn tenants(&self) -> Result<Vec<TenantId>, StoreError> {
        self.read(tenants::all).await
    }

    fn mismatches(&self) -> u64 {
        Self::mismatches(self)
    }

    async fn verify(&self, tenant: &TenantId) -> Result<Rebuilt, StoreError> {
        let tenant = tenant.clone();
        let rebuilt = self.read(move |connection| messages::verify(connection, &tenant)).await?;
        self.mismatches.fetch_add(rebuilt.mismatches, Ordering::Relaxed);
        Ok(rebuilt)
    }
}
