//! Ports: the parts of a gateway that its caller provides.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use plimsoll_core::Message;
use plimsoll_core::answer::AnswerFacts;
use plimsoll_core::cost::Pricing;
use plimsoll_core::lazy_tools::LazySettings;
use plimsoll_core::policy::Policy;
use plimsoll_core::safety::Handling;
use plimsoll_engine::assemble::AssemblyReceipt;
use plimsoll_engine::cards::CardSettings;
use plimsoll_engine::live::AddedMemory;
use plimsoll_engine::{Clock, HistoryStore, KnowledgeStore, SessionId, TenantId};
use plimsoll_wire::CacheQuestion;

use crate::routes::RouteAccess;

/// The parts of a gateway beside its settings.
#[derive(Debug)]
pub struct Parts {
    pub history: Arc<dyn HistoryStore>,
    pub clock: Arc<dyn Clock>,
    pub policies: Arc<dyn Policies>,
    pub pricing: Pricing,
    /// Memory that is added to requests, if any.
    pub memory: Option<Arc<dyn Memory>>,
    /// The cache of answers, if any.
    pub answers: Option<Arc<dyn Answers>>,
    /// The store of jobs and the settings of cards, where messages get both as they are stored.
    pub observation: Option<Observation>,
    /// The handling of personal data and secrets in messages that are stored.
    pub ingestion: Handling,
    /// The rules by which schemas of tools are sent only on demand, if they are.
    pub lazy_tools: Option<LazySettings>,
    /// The interface to the store and the dashboard, if they are served.
    pub pages: Option<Arc<dyn Pages>>,
}

/// Answers requests about the store, beside those that go to a provider.
#[async_trait]
pub trait Pages: Send + Sync + Debug {
    /// Returns whether a path is one of these, and who may ask for it.
    fn access(&self, path: &str) -> Option<RouteAccess>;

    /// Answers a request of a tenant whose key was checked.
    async fn answer(&self, tenant: &TenantId, request: Request<Bytes>) -> Response<Bytes>;
}

/// The store of jobs, and the settings of cards.
#[derive(Debug, Clone)]
pub struct Observation {
    pub knowledge: Arc<dyn KnowledgeStore>,
    pub cards: CardSettings,
}

/// Finds policies by the names that settings and headers use.
pub trait Policies: Send + Sync + Debug {
    /// Returns the policy of a name, with another budget where one is given; `None` for an unknown name.
    fn policy(&self, name: &str, budget: Option<u64>) -> Option<Policy>;
}

/// The material that memory adds to a request.
#[derive(Debug, Clone)]
pub struct Recalled {
    pub added: AddedMemory,
    /// The assembly that it comes from, for [`Memory::note`].
    pub assembly: Option<AssemblyReceipt>,
}

/// Knowledge beside a conversation.
#[async_trait]
pub trait Memory: Send + Sync + Debug {
    /// Returns quoted material of at most `most` tokens for the next answer, without the records that are `shown` already.
    ///
    /// It is put behind the user's message and stays there from then on, so that a cached prefix is not broken. The result is
    /// `None` where there is nothing to add or the store does not answer; the request never fails for that.
    async fn recalled(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        messages: &[Arc<Message>],
        shown: &BTreeSet<Arc<str>>,
        most: Option<u64>,
    ) -> Option<Recalled>;

    /// Records an assembly for the metrics of memory, once its turn is kept; a failure is logged.
    async fn note(&self, _tenant: &TenantId, _session: &SessionId, _assembly: &AssemblyReceipt) {}
}

/// A cache of answers.
///
/// Errors are logged and treated as a miss; they never fail the request.
#[async_trait]
pub trait Answers: Send + Sync + Debug {
    /// Returns whether the cache may answer a question at all; the same holds for keeping its answer.
    fn takes(&self, question: &CacheQuestion) -> bool;

    /// Returns the answer to a question, of this tenant and in equal surroundings only.
    async fn find(&self, tenant: &TenantId, question: &CacheQuestion) -> Option<KeptAnswer>;

    /// Keeps an answer if that is allowed, and returns whether it did.
    async fn keep(
        &self,
        tenant: &TenantId,
        question: &CacheQuestion,
        answer: &str,
        facts: &AnswerFacts,
    ) -> bool;
}

/// An answer from the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The key by which it is shown and evicted.
    pub key: String,
    pub text: String,
    /// Whether the question had the very same words.
    pub is_exact: bool,
}
