//! Wishes of users and agents for messages of a session, and the link to the conversation that a client compacted.
//!
//! Both are receipts with a strategy of their own, so that they are kept, listed and forgotten with their session.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::pins::Wish;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::history::{HistoryBatch, HistoryStore, ReceiptRecord, SelectionType};
use crate::id::{SessionId, TenantId};

/// The strategy of receipts that hold a wish.
const WISH: &str = "wish";

/// The strategy of receipts that name a compacted conversation.
const COMPACTION: &str = "compaction";

/// How often a number that another writer took is replaced by the next (chosen: nobody wishes so often at once).
const TRIES: u32 = 64;

#[derive(Debug, Serialize, Deserialize)]
struct WishReceipt {
    wish: Wish,
}

#[derive(Debug, Serialize, Deserialize)]
struct CompactionReceipt {
    compacted: SessionId,
}

/// Returns the wishes for the messages of a conversation, oldest first, each with its number.
pub async fn wishes(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<Wish>, StoreError> {
    let receipts = history.receipts_of(tenant, session, WISH).await?;
    let read = receipts.into_iter().filter_map(|record| {
        let WishReceipt { wish } = serde_json::from_str(&record.receipt).ok()?;
        Some(Wish { number: Some(record.turn), ..wish })
    });
    Ok(read.collect())
}

/// Keeps a wish for a message of a conversation; it counts from the conversation's next request on.
pub async fn wish(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    session: &SessionId,
    wish: Wish,
    now: MillisSinceEpoch,
) -> Result<(), StoreError> {
    append(history, tenant, session, WISH, &WishReceipt { wish }, now).await
}

/// Takes note under `link`, the client's name of a session, that its conversation `compacted` gives way to a summary.
pub async fn note_compaction(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    link: &SessionId,
    compacted: &SessionId,
    now: MillisSinceEpoch,
) -> Result<(), StoreError> {
    let receipt = CompactionReceipt { compacted: compacted.clone() };
    append(history, tenant, link, COMPACTION, &receipt, now).await
}

/// Returns the conversation that gave way to a summary last.
pub async fn last_compacted(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    link: &SessionId,
) -> Result<Option<SessionId>, StoreError> {
    let receipts = history.receipts_of(tenant, link, COMPACTION).await?;
    let last = receipts.last();
    let read = last.and_then(|one| serde_json::from_str::<CompactionReceipt>(&one.receipt).ok());
    Ok(read.map(|receipt| receipt.compacted))
}

/// Appends a receipt under the next number of its strategy; two writers at once take two numbers.
async fn append(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    session: &SessionId,
    strategy: &str,
    receipt: &impl Serialize,
    now: MillisSinceEpoch,
) -> Result<(), StoreError> {
    let earlier = history.receipts_of(tenant, session, strategy).await?;
    let first = earlier.last().map_or(0, |last| last.turn + 1);
    let kind = SelectionType::IntraPhase;
    for number in first..first + TRIES {
        let record = ReceiptRecord::new(session, number, kind, strategy, receipt, now);
        let batch = HistoryBatch { receipts: vec![record], ..HistoryBatch::default() };
        if history.append(tenant, batch).await?.added > 0 {
            return Ok(());
        }
    }
    Err(StoreError::Conflict { what: format!("the receipts `{strategy}` of {session}") })
}
