//! The receipt of an assembly: what stood in a context, why, and what it was of what could have been.

use plimsoll_core::choose::Level;
use plimsoll_core::{MillisSinceEpoch, Role};
use serde::{Deserialize, Serialize};

use super::{AssembledContext, AssembledMemory, Refreshed};
use crate::error::StoreError;
use crate::history::{HistoryStore, ReceiptRecord, SelectionType};
use crate::id::{SessionId, TenantId};

/// The strategy under which assemblies stand in the unified log.
pub const ASSEMBLE: &str = "assemble";

/// A record that stood in a context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShownRecord {
    pub id: String,
    pub level: Level,
    pub tokens: u64,
    pub score: f64,
    pub text: String,
}

/// The record of one assembly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssemblyReceipt {
    /// How many messages the session had.
    pub position: u32,
    pub frame: String,
    pub refreshed: Refreshed,
    pub relevance: f64,
    /// Tokens of the memory, and its ceiling.
    pub used: u64,
    pub limit: u64,
    pub items: Vec<ShownRecord>,
    /// Tokens of the request, its ceiling, and tokens of all messages of the session; 0 where no request was made.
    pub request_used: u64,
    pub request_limit: u64,
    pub full_tokens: u64,
    /// Milliseconds that it took, the reading of the store included.
    pub took: f64,
}

impl AssemblyReceipt {
    /// Makes the receipt of what is known alone.
    pub fn of_memory(memory: &AssembledMemory, position: u32, took: f64) -> Self {
        let items = memory.context.items().filter(|item| !item.id.is_empty());
        Self {
            position,
            frame: memory.context.frame.clone(),
            refreshed: memory.refreshed,
            relevance: memory.relevance,
            used: memory.context.used,
            limit: memory.context.limit,
            items: items
                .map(|item| ShownRecord {
                    id: item.id.clone(),
                    level: item.level,
                    tokens: item.tokens,
                    score: item.score,
                    text: item.text.clone(),
                })
                .collect(),
            request_used: 0,
            request_limit: 0,
            full_tokens: 0,
            took,
        }
    }

    /// Makes the receipt of a request.
    pub fn of_request(assembled: &AssembledContext, position: u32, took: f64) -> Self {
        let budget = &assembled.request.budget;
        Self {
            request_used: budget.used,
            request_limit: budget.limit,
            full_tokens: assembled.full_tokens,
            ..Self::of_memory(&assembled.memory, position, took)
        }
    }
}

/// Appends the receipt of an assembly to its session's log; a session is numbered by its assemblies.
pub async fn record_assembly(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    session: &SessionId,
    receipt: &AssemblyReceipt,
    now: MillisSinceEpoch,
) -> Result<(), StoreError> {
    let kind = SelectionType::InterPhase;
    let mut record = ReceiptRecord::new(session, 0, kind, ASSEMBLE, receipt, now);
    record.full_history_size = receipt.position;
    record.context_size = receipt.items.len() as u32;
    record.tokens_saved = receipt.full_tokens.cast_signed() - receipt.request_used.cast_signed();
    record.append_next(history, tenant).await
}

/// Returns the answer that followed an assembly: the first of the model's behind its position.
pub(crate) async fn answer_behind(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    session: &SessionId,
    position: u32,
) -> Result<Option<String>, StoreError> {
    // The user's turn stands between, and seldom more than a tool's note beside it.
    const LOOKED_AT: usize = 8;
    let found = history.messages(tenant, session, position, LOOKED_AT).await?;
    let answer = found.into_iter().find(|record| record.message.role == Role::Assistant);
    Ok(answer.map(|record| record.message.shown()))
}
