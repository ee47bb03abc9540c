//! History on ClickHouse, over its HTTP interface.

mod append;
mod cards;
mod client;
mod forget;
mod log;
mod messages;
mod receipts;
mod row;
mod schema;
mod search;

use async_trait::async_trait;
use plimsoll_engine::{
    Appended, ContextCard, Efficiency, Forgotten, Gathering, HistoryBatch, HistoryStore, Hit,
    LogQuery, LogRow, MessageRecord, Rebuilt, ReceiptRecord, SearchQuery, SessionId,
    SessionSummary, StoreError, TenantId,
};
use tokio::sync::Mutex;

use client::Client;

/// Appends that one process may have under way at once, of as many tenants (chosen: merges of small parts are what limits
/// a server, and they begin to hurt at hundreds of inserts a second).
const STRIPES: usize = 32;

/// Where the history is.
#[derive(Debug, Clone)]
pub struct ClickHouseConfig {
    /// `clickhouse://[user[:password]@]host[:port][/database]`, or the same with `http` or `https`; the port is 8123 for
    /// `clickhouse`, the database `default`. A database that is missing is made.
    pub url: String,
    /// The dimension of the vectors that also enter an approximate index, for queries by hand over all sessions.
    ///
    /// The index needs a server of 25.8 or later, all else 24.6.
    pub index_dimension: Option<u16>,
}

/// The history in a ClickHouse database.
///
/// ClickHouse has no transactions; three rules stand in for them.
/// A batch's messages and receipts are one insert of one block into one table without partitions, so they are one part,
/// which readers see whole or not at all; it is on the disk before the answer comes (`fsync_after_insert`).
/// Cards stand in a second table, and are written first: they count only once the block of the log holds their commit row.
/// If a batch ends between the two, readers see nothing of it, and appending it again completes it. A merge in between may
/// drop the earlier state of a card that the batch was to replace; making the card again restores it.
/// Appends of one tenant follow each other within a process. Between processes that is the caller's duty, a session at a
/// time: two that append to one session in the same moment can both be told that they did, and readers then see, position
/// by position, the one that arrived first.
///
/// An error that is not [`StoreError::Unavailable`] may come after an insert whose answer was lost; appending the same batch
/// again is safe and returns which records were stored. Times outside of 1900 to 2299 are [`StoreError::Invalid`].
#[derive(Debug)]
pub struct ClickHouseStore {
    client: Client,
    appending: Vec<Mutex<()>>,
}

impl ClickHouseStore {
    /// Connects, and brings the tables to this program's version.
    ///
    /// Errors: [`StoreError::Invalid`] for a malformed URL, [`StoreError::Unsupported`] if the tables are of a newer version.
    pub async fn open(config: &ClickHouseConfig) -> Result<Self, StoreError> {
        let client = Client::new(&config.url)?;
        schema::prepare(&client, config.index_dimension).await?;
        let appending = std::iter::repeat_with(Mutex::default).take(STRIPES).collect();
        Ok(Self { client, appending })
    }

    fn stripe(&self, tenant: &TenantId) -> &Mutex<()> {
        let sum = tenant
            .as_str()
            .bytes()
            .fold(0, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        &self.appending[sum % STRIPES]
    }
}

#[async_trait]
impl HistoryStore for ClickHouseStore {
    async fn append(&self, tenant: &TenantId, batch: HistoryBatch) -> Result<Appended, StoreError> {
        let _alone = self.stripe(tenant).lock().await;
        batch.check()?;
        let batch = batch.with_past(self, tenant).await?;
        append::append(&self.client, tenant, &batch).await
    }

    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<MessageRecord>, StoreError> {
        messages::of_session(&self.client, tenant, session, from, limit).await
    }

    async fn message_by_hash(
        &self,
        tenant: &TenantId,
        prefix: &str,
    ) -> Result<MessageRecord, StoreError> {
        messages::by_hash(&self.client, tenant, prefix).await
    }

    async fn sessions(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        log::sessions(&self.client, tenant, None, limit).await
    }

    async fn session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<SessionSummary>, StoreError> {
        Ok(log::sessions(&self.client, tenant, Some(session), 1).await?.pop())
    }

    async fn receipts(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ReceiptRecord>, StoreError> {
        receipts::of_session(&self.client, tenant, session, None).await
    }

    async fn receipts_of(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        strategy: &str,
    ) -> Result<Vec<ReceiptRecord>, StoreError> {
        receipts::of_session(&self.client, tenant, session, Some(strategy)).await
    }

    async fn cards(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ContextCard>, StoreError> {
        cards::of_session(&self.client, tenant, session).await
    }

    async fn search(
        &self,
        tenant: &TenantId,
        session: Option<&SessionId>,
        query: &SearchQuery,
    ) -> Result<Vec<Hit<MessageRecord>>, StoreError> {
        search::search(&self.client, tenant, session, query).await
    }

    async fn log(&self, tenant: &TenantId, query: &LogQuery) -> Result<Vec<LogRow>, StoreError> {
        log::log(&self.client, tenant, query).await
    }

    async fn efficiency(
        &self,
        tenant: &TenantId,
        by: Gathering,
    ) -> Result<Vec<Efficiency>, StoreError> {
        receipts::efficiency(&self.client, tenant, by).await
    }

    async fn forget_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Forgotten, StoreError> {
        let _alone = self.stripe(tenant).lock().await;
        forget::forget_session(&self.client, tenant, session).await
    }

    async fn verify(&self, tenant: &TenantId) -> Result<Rebuilt, StoreError> {
        messages::verify(&self.client, tenant).await
    }
}
