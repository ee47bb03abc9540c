//! The parts that the server asks.

use std::sync::Arc;

use plimsoll_core::safety::Handling;
use plimsoll_engine::assemble::FrameBook;
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{
    Clock, Embedder, HistoryStore, KnowledgeStore, MemoryConfig, Recall, TenantId,
};

/// The parts that the server asks.
#[derive(Debug)]
pub struct ServerParts {
    pub history: Arc<dyn HistoryStore>,
    pub knowledge: Arc<dyn KnowledgeStore>,
    pub tenant: TenantId,
    pub clock: Arc<dyn Clock>,
    pub embedder: Option<Arc<dyn Embedder>>,
    pub recall: Recall,
    pub memories: Memories,
    pub memory: MemoryConfig,
    pub frames: FrameBook,
    /// The treatment of secrets and personal data in what a client wants remembered.
    pub handling: Handling,
}
