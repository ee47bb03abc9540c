//! The note that a receipt holds of its request; with it the session can be rebuilt.

use std::sync::Arc;

use plimsoll_core::context::Receipt;
use plimsoll_core::pins::{PinnedText, Wish};
use plimsoll_core::policy::Policy;
use plimsoll_core::terms::Surroundings;
use plimsoll_core::{ContentHash, Message, Position, Role, Transcript, Usage};
use serde::{Deserialize, Serialize};

use crate::history::{Bill, ReceiptRecord, SelectionType};
use crate::id::SessionId;

/// Why the provider's cache cannot have had a request's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// It is the first request of its session.
    First,
    /// The pause since the last one outlived the cache.
    Pause,
    Model,
    Tools,
    System,
    /// A message was changed, by the plan or by the client.
    Content,
    /// A lookup that the provider was sent has no place in what the client sends.
    Expansion,
}

impl Miss {
    /// Returns the cause's name as every interface prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Pause => "pause",
            Self::Model => "model",
            Self::Tools => "tools",
            Self::System => "system",
            Self::Content => "content",
            Self::Expansion => "expansion",
        }
    }
}

/// The part of a receipt beside the core's decisions; with it the session can be rebuilt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Counted from 0 within the session, requests that were not answered included.
    pub number: u32,
    pub model: Option<Arc<str>>,
    /// The policy, where it is another than at the request before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Digests of what stands before the messages in a prefix.
    pub tools: u64,
    pub system: u64,
    /// The surroundings of the request's messages, if they changed since the request before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Surroundings>,
    /// Whether the request went out as it came.
    pub observed: bool,
    /// Whether it went out as it came since it was not bounded in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    pub misses: Vec<Miss>,
    /// The cost of the full history, in plain input tokens, as `cost` counts.
    pub full_cost: f64,
    /// The provider's own figures, where it gave any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The bill of the request, and the bill without Plimsoll, if the provider reported usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Bill>,
    /// Blocks of thinking that the provider dropped since what stood before them had changed.
    #[serde(default)]
    pub dropped_thinking: u64,
    /// Tool uses whose results the provider itself left out of what the model saw.
    #[serde(default)]
    pub cleared_tool_uses: u64,
    /// Other data that the session needs to go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<Arc<str>>,
    /// The key of the kept answer that was given, where no model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Arc<str>>,
    /// A text from memory that stands behind the last message from this request on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<Arc<str>>,
    /// The ids of the records that the text from memory shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<Arc<str>>,
    /// Wishes of the user or the agent that count from this request on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wishes: Vec<Wish>,
    /// Pinned texts that a compaction took away, and that stand behind a message of the user from this request on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<PinnedText>,
    /// The carried lookups without a place in the request, by their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unplaced: Vec<usize>,
}

/// A receipt as it is kept.
#[derive(Debug, Serialize)]
pub(super) struct RequestReceipt<'a> {
    #[serde(flatten)]
    pub(super) receipt: &'a Receipt,
    pub(super) request: &'a Note,
}

/// A request that was bounded.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    pub(super) position: Position,
    pub(super) policy: Policy,
    pub(super) around: Surroundings,
    pub(super) strategy: String,
    pub(super) note: Note,
    /// Whether the store has its receipt.
    pub(super) is_kept: bool,
}

/// A receipt of a request that was made before a branch began.
#[derive(Debug, Serialize)]
struct InheritedReceipt<'a> {
    position: Position,
    request: &'a Note,
}

impl Mark {
    /// Makes a receipt with which a branch can be rebuilt, of a request that was made before it began.
    pub(super) fn receipt(&self, id: &SessionId, transcript: &Transcript) -> ReceiptRecord {
        let inherited = InheritedReceipt { position: self.position, request: &self.note };
        let at = transcript.time_before(self.position).unwrap_or_default();
        let (number, kind) = (self.note.number, SelectionType::IntraPhase);
        // Its bill stands with the session that the branch began from.
        let mut record = ReceiptRecord::new(id, number, kind, &self.strategy, &inherited, at);
        record.full_history_size = self.position as u32;
        record
    }
}

/// Digests the leading system messages.
pub(super) fn system(messages: &[Arc<Message>]) -> u64 {
    let leading = messages.iter().take_while(|message| message.role == Role::System);
    leading.fold(0, |sum: u64, message| sum.rotate_left(1) ^ ContentHash::of(message).key())
}

/// Returns why the provider's cache cannot have had the prefix of a request, after the one before it.
pub(super) fn misses(before: Option<&Note>, note: &Note, receipt: &Receipt) -> Vec<Miss> {
    let Some(before) = before else { return vec![Miss::First] };
    [
        (receipt.charge.cold, Miss::Pause),
        (before.model != note.model, Miss::Model),
        (before.tools != note.tools, Miss::Tools),
        (before.system != note.system, Miss::System),
        (receipt.charge.broken, Miss::Content),
    ]
    .into_iter()
    .filter_map(|(is, miss)| is.then_some(miss))
    .collect()
}
