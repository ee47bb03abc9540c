//! Ports and use cases: what Plimsoll keeps, and how it is asked for.
//!
//! Two ports by kind of data: [`HistoryStore`] only grows, [`KnowledgeStore`] changes. A backend inserts what it is given
//! and invents no id and no time.

pub mod ab;
pub mod answer;
mod artefact;
pub mod assemble;
mod card;
pub mod cards;
mod chat;
mod clock;
mod copies;
mod digest;
mod embedder;
mod error;
pub mod expand;
mod forget;
mod history;
mod id;
mod import;
mod job;
mod knowledge;
pub mod live;
mod log_row;
pub mod memories;
mod memory;
mod memory_config;
pub mod memory_stats;
mod model_error;
mod name;
pub mod observe;
pub mod page;
mod recall;
mod record;
pub mod remember;
mod search;
pub mod selection;
pub mod session_summary;
mod tombstone;
pub mod tool_registry;
mod tools;
mod valid;
pub mod wishes;
pub mod work;

pub use artefact::{Artefact, ArtefactKind, ArtefactRef, RefQuery};
pub use card::ContextCard;
pub use chat::{
    Caching, ChatEvent, ChatModel, ChatReply, ChatRequest, ChatStream, ChatUsage, Deferral,
    Response, StopReason, Tool, ToolUse, UnfitJson,
};
pub use clock::Clock;
pub use copies::{Copies, SharedCopy};
pub use embedder::Embedder;
pub use error::StoreError;
pub use forget::forget;
pub use futures_util::lock::OwnedMutexGuard;
pub use history::{
    Appended, Bill, Bills, Branch, Efficiency, Gathering, HistoryBatch, HistoryStore, LogQuery,
    LogRow, MessageRecord, Rebuilt, ReceiptRecord, SelectionType, SessionSummary,
};
pub use id::{InvalidId, SessionId, TenantId};
pub use import::{Imported, import};
pub use job::{Job, JobId, JobOutcome, JobState, NewJob, Quota};
pub use knowledge::{Answer, AnswerQuota, Forgotten, KnowledgeStore, ToolSchema};
pub use memory::{
    MemoryChange, MemoryChanges, MemoryId, MemoryKind, MemoryQuery, MemoryRecord, MemoryState,
    MemoryVersion, Scope,
};
pub use memory_config::MemoryConfig;
pub use model_error::ModelError;
pub use plimsoll_core::words;
pub use recall::{Recall, RecallHit, RecallScope, Recollection};
pub use record::message_records;
pub use search::{Embedding, Hit, SearchQuery, fuse};
pub use tombstone::source_tombstone;
pub use tools::{ToolAnswer, ToolError, ToolSource};
pub use valid::{AskedRef, digest, hash_prefix};
