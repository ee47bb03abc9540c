//! Context cards: what a message is about, in a line or two, to be chosen by.

use plimsoll_core::{MillisSinceEpoch, Role};
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TenantId};
use crate::search::Embedding;

/// A card of `auto-context.md`; known by tenant, session and content hash, a later `generated_at` replaces an earlier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextCard {
    pub tenant: TenantId,
    pub session: SessionId,
    /// First 16 hex digits of the message's content hash.
    pub content_hash: String,
    pub summary: String,
    pub keywords: Vec<String>,
    pub embedding: Option<Embedding>,
    pub estimated_tokens: u32,
    pub role: Role,
    pub phase_name: Option<String>,
    pub turn_number: Option<u32>,
    pub is_anchor: bool,
    pub is_callout: bool,
    pub callout_name: Option<String>,
    pub generated_at: MillisSinceEpoch,
    pub generator_model: String,
    pub message_timestamp: MillisSinceEpoch,
}
