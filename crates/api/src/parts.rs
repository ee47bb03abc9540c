//! The parts that the interface asks.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_cascade::Cascade;
use plimsoll_cascade::run::{Human, Observer, RunError};
use plimsoll_core::cost::Pricing;
use plimsoll_core::policy::{Policy, RequestSettings};
use plimsoll_core::safety::Handling;
use plimsoll_engine::assemble::FrameBook;
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{
    Clock, Embedder, HistoryStore, KnowledgeStore, MemoryConfig, Recall, SessionId, TenantId,
};
use serde_json::{Map, Value};

/// Finds policies by the names that settings use.
pub trait ApiPolicies: Send + Sync + Debug {
    /// Returns the policy of a name, with another budget where one is given; `None` for an unknown name.
    fn policy(&self, name: &str, budget: Option<u64>) -> Option<Policy>;

    /// Returns the prices of requests.
    fn pricing(&self) -> &Pricing;
}

/// A cascade that a caller wants to run.
#[derive(Debug)]
pub struct CascadeRequest {
    pub tenant: TenantId,
    pub cascade: Arc<Cascade>,
    pub input: Map<String, Value>,
    /// A session with a record goes on where the record ends.
    pub session: SessionId,
    pub human: Arc<dyn Human>,
    pub observer: Arc<dyn Observer>,
}

/// Runs cascades with the models and tools of the settings.
#[async_trait]
pub trait ApiCascades: Send + Sync + Debug {
    /// Runs a cascade to its end and returns its output.
    ///
    /// Errors: [`RunError::Waiting`] where a person must answer first.
    async fn run(&self, request: CascadeRequest) -> Result<String, RunError>;
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
    /// Runs cascades; `None` where the settings do not allow it.
    pub cascades: Option<Arc<dyn ApiCascades>>,
    /// The treatment of secrets and personal data in what a caller wants remembered.
    pub handling: Handling,
}
