//! The parts that the interface asks.

use std::fmt::Debug;
use std::sync::Arc;

use plimsoll_core::cost::Pricing;
use plimsoll_core::policy::{Policy, RequestSettings};
use plimsoll_core::safety::Handling;
use plimsoll_engine::assemble::FrameBook;
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{Clock, Embedder, HistoryStore, KnowledgeStore, MemoryConfig, Recall};

/// Finds policies by the names that settings use.
pub trait ApiPolicies: Send + Sync + Debug {
    /// Returns the policy of a name, with another budget where one is given; `None` for an unknown name.
    fn policy(&self, name: &str, budget: Option<u64>) -> Option<Policy>;

    /// Returns the prices of requests.
    fn pricing(&self) -> &Pricing;
}

/// The parts of the interface.
#[derive(Debug)]
pub struct ApiParts {
    pub history: Arc<dyn HistoryStore>,
    pub knowledge: Arc<dyn KnowledgeStore>,
    pub clock: Arc<dyn Clock>,
    pub embedder: Option<Arc<dyn Embedder>>,
    pub recall: Recall,
    pub memories: Memories,
    pub memory: MemoryConfig,
    pub request: RequestSettings,
    pub frames: FrameBook,
    pub policies: Arc<dyn ApiPolicies>,
    /// The treatment of secrets and personal data in what a caller wants remembered.
    pub handling: Handling,
}
