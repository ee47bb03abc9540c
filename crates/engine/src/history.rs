//! The history port: messages, context cards and receipts, which are added and, session by session, forgotten.

mod branch;

use async_trait::async_trait;
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch};
use serde::{Deserialize, Serialize};

use crate::card::ContextCard;
use crate::error::StoreError;
use crate::id::{SessionId, TenantId};
use crate::knowledge::Forgotten;
use crate::search::{Hit, SearchQuery};

pub use branch::Branch;

/// A message as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRecord {
    pub session: SessionId,
    /// The place in the session's transcript, counted from 0.
    pub position: u32,
    pub hash: ContentHash,
    pub message: Message,
    pub tokens: u32,
    pub turn: u32,
    /// When it was recorded; the message's own time may be earlier or unknown.
    pub recorded_at: MillisSinceEpoch,
}

/// Which part of the engine made a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionType {
    IntraPhase,
    InterPhase,
}

/// The input of a request in US dollars: as the provider counted it, and as it would have without us.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    pub billed: f64,
    /// The full history under the same rules, scaled by how far our count was off for what was sent.
    pub without: f64,
    /// Whether the table of prices does not list the model, so that both are estimates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimate: bool,
}

impl Bill {
    /// Makes a bill of three columns; `None` where one has no value.
    pub fn from_columns(
        billed: Option<f64>,
        without: Option<f64>,
        estimate: Option<bool>,
    ) -> Option<Self> {
        Some(Self { billed: billed?, without: without?, estimate: estimate? })
    }
}

/// A context decision: a `context_selection` row of the unified log, with the fields of `auto-context.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiptRecord {
    pub session: SessionId,
    /// Counted from 0 within the session; a policy tried beside another has its own `strategy`.
    pub turn: u32,
    pub trace_id: String,
    pub cascade_id: Option<String>,
    pub selection_type: SelectionType,
    pub strategy: String,
    /// Messages of the full history, and of the context.
    pub full_history_size: u32,
    pub context_size: u32,
    pub masked_count: u32,
    pub anchor_hashes: Vec<String>,
    pub selected_hashes: Vec<String>,
    pub tokens_saved: i64,
    /// Of the request that was decided about, where its provider reported usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Bill>,
    /// The whole receipt as the core made it, as JSON.
    pub receipt: String,
    pub recorded_at: MillisSinceEpoch,
}

/// Records that are appended together: all of them or none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistoryBatch {
    /// The session that begins with it, unless it is there already.
    pub branch: Option<Box<Branch>>,
    pub messages: Vec<MessageRecord>,
    pub receipts: Vec<ReceiptRecord>,
    pub cards: Vec<ContextCard>,
}

/// The result of an append.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Appended {
    /// Records that were new.
    pub added: usize,
    /// Records that were there already, alike.
    pub known: usize,
}

/// A row of the unified log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    pub session: SessionId,
    /// `message` or `context_selection`.
    pub node_type: String,
    pub at: MillisSinceEpoch,
    /// The message's position, or the receipt's turn.
    pub number: u32,
    pub content_hash: Option<String>,
    pub role: Option<String>,
    pub tokens: Option<u32>,
    /// A line to read.
    pub text: String,
    /// For a context selection, its metadata as JSON.
    pub metadata: Option<String>,
}

/// Which rows of the log to return; the newest `limit` of them, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogQuery {
    pub session: Option<SessionId>,
    pub node_type: Option<String>,
    /// At this time or after it.
    pub since: Option<MillisSinceEpoch>,
    pub limit: usize,
}

/// By what context decisions are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathering {
    /// In the order of cascade ids, `None` first.
    Cascade,
    /// In the order of session ids.
    Session,
}

/// Context efficiency of one cascade or session: the query of `auto-context.md`, Metrics, and what providers billed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// `None` gathers what belongs to no cascade; by session, no cascade is named.
    pub cascade_id: Option<String>,
    /// Set where decisions are gathered by session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    pub selections: u64,
    pub avg_full_size: f64,
    pub avg_context_size: f64,
    pub avg_tokens_saved: f64,
    pub tokens_saved: i64,
    #[serde(flatten)]
    pub bills: Bills,
}

/// The bills of several requests together, in US dollars of input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Bills {
    /// Requests whose provider reported usage; only these are in the sums.
    pub requests_billed: u64,
    pub dollars_billed: f64,
    pub dollars_without: f64,
    /// Requests of models whose price is not known.
    pub bills_estimated: u64,
}

impl Bills {
    /// Adds the bill of a request.
    pub fn add(&mut self, bill: &Bill) {
        self.requests_billed += 1;
        self.dollars_billed += bill.billed;
        self.dollars_without += bill.without;
        self.bills_estimated += u64::from(bill.estimate);
    }

    /// Returns what was saved, negative where the requests cost more; `None` where no usage was reported.
    pub fn saved(&self) -> Option<f64> {
        (self.requests_billed > 0).then_some(self.dollars_without - self.dollars_billed)
    }
}

/// A session at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSummary {
    pub session: SessionId,
    pub messages: u32,
    pub tokens: u64,
    pub first_at: MillisSinceEpoch,
    pub last_at: MillisSinceEpoch,
}

/// The result of a check of the whole history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    pub messages: u64,
    /// Messages whose content no longer has the hash under which it was stored.
    pub mismatches: u64,
}

/// History by tenant: append-only, except that a session can be forgotten.
///
/// Every method sees and touches the records of its tenant alone. Texts are stored and returned byte for byte, any
/// Unicode and NUL included. What a method returned is durable: it survives the death of the process, and, where the
/// backend says so, the loss of power.
#[async_trait]
pub trait HistoryStore: Send + Sync + std::fmt::Debug {
    /// Appends a batch, all of it or nothing, and returns when it is durable.
    ///
    /// A message is known by session and position. One that is there with the same hash is counted as known; with another
    /// hash the whole batch is refused with [`StoreError::Conflict`]. A position may not leave a gap, and a hash must be that
    /// of its message: else [`StoreError::Invalid`]. A receipt is known by session, turn and strategy: the first one stays,
    /// so work that is done again after a crash changes nothing. A card is known by session and content hash; one of a later
    /// `generated_at` replaces it and counts as added. [`StoreError::Unavailable`] says that nothing was kept.
    ///
    /// A session that [`Branch`] begins has from then on what it shares as if that had been appended to it, with the times and
    /// cards of the session that it left. Its receipts are [`ReceiptRecord::inherited`]. It keeps all of it when the other is
    /// forgotten. [`StoreError::Conflict`] if the other has fewer messages, or a session of that name began otherwise. A store
    /// that copies what is shared counts it among the selections of the branch too.
    async fn append(&self, tenant: &TenantId, batch: HistoryBatch) -> Result<Appended, StoreError>;

    /// Returns the messages of a session from `from` on, in order, at most `limit`; an unknown session has none.
    ///
    /// Each content is hashed again; a mismatch is [`StoreError::Corrupt`] and is never returned.
    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<MessageRecord>, StoreError>;

    /// Returns a message by a prefix of at least 8 hex digits of its hash, hashed again.
    ///
    /// Of several with the same content it is the one recorded first, then by session and position.
    ///
    /// Errors: [`StoreError::NotFound`] if none begins so, [`StoreError::Conflict`] if messages of different content do,
    /// [`StoreError::Invalid`] for a shorter prefix or other characters.
    async fn message_by_hash(
        &self,
        tenant: &TenantId,
        prefix: &str,
    ) -> Result<MessageRecord, StoreError>;

    /// Returns sessions that have a message or a receipt, the one with the newest record first, then by id.
    async fn sessions(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<Vec<SessionSummary>, StoreError>;

    /// Returns one session; `None` if it has neither a message nor a receipt.
    async fn session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<SessionSummary>, StoreError> {
        let all = self.sessions(tenant, usize::MAX >> 1).await?;
        Ok(all.into_iter().find(|found| found.session == *session))
    }

    /// Returns the receipts of a session in the order of their turns, then of their strategies.
    async fn receipts(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ReceiptRecord>, StoreError>;

    /// Returns the receipts of a session that have this strategy, in the order of their turns.
    async fn receipts_of(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        strategy: &str,
    ) -> Result<Vec<ReceiptRecord>, StoreError> {
        let all = self.receipts(tenant, session).await?;
        Ok(all.into_iter().filter(|one| one.strategy == strategy).collect())
    }

    /// Returns the cards of a session, the newest message first, then by content hash.
    async fn cards(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ContextCard>, StoreError>;

    /// Returns messages that match a query, best first: by words, by the cards' vectors, or both fused.
    ///
    /// A message is found by its own words ([`crate::words`]) and by those of its card. `session` narrows to one. A message
    /// without words in common is no text hit; cards of another embedding model are no vector hits. Very common words may
    /// be passed over where rarer ones are asked for too. A message that no longer has its hash is left out. With only a
    /// vector the score is the cosine.
    async fn search(
        &self,
        tenant: &TenantId,
        session: Option<&SessionId>,
        query: &SearchQuery,
    ) -> Result<Vec<Hit<MessageRecord>>, StoreError>;

    /// Returns rows of the unified log in the order of their time, then of their arrival.
    async fn log(&self, tenant: &TenantId, query: &LogQuery) -> Result<Vec<LogRow>, StoreError>;

    /// Returns the efficiency of context decisions by cascade or by session, in the order that [`Gathering`] says.
    ///
    /// Bills are summed over the receipts that have one; the others count among the selections only.
    async fn efficiency(
        &self,
        tenant: &TenantId,
        by: Gathering,
    ) -> Result<Vec<Efficiency>, StoreError>;

    /// Removes the messages, receipts and cards of a session, from every table and index, and returns how many messages and
    /// cards they were. The session may begin again.
    ///
    /// [`forget`](crate::forget) calls it beside [`KnowledgeStore::forget`](crate::KnowledgeStore::forget), which removes what
    /// else belongs to the session.
    async fn forget_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Forgotten, StoreError>;

    /// Returns the tenants that have anything in the store, in the order of their names.
    ///
    /// [`StoreError::Unsupported`] from a backend that does not list them.
    async fn tenants(&self) -> Result<Vec<TenantId>, StoreError> {
        Err(StoreError::Unsupported { what: "the list of tenants, on this store".to_owned() })
    }

    /// Returns how many contents were read since the store was opened that were no longer as stored; a search leaves them out.
    fn mismatches(&self) -> u64 {
        0
    }

    /// Hashes every message again and counts the mismatches.
    async fn verify(&self, tenant: &TenantId) -> Result<Rebuilt, StoreError>;
}
