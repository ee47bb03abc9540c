//! The interface to the store and the dashboard, as the gateway serves them.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use plimsoll_api::{ApiCascades, ApiParts, ApiPolicies, StoreApi};
use plimsoll_core::cost::Pricing;
use plimsoll_core::policy::Policy;
use plimsoll_engine::assemble::FrameBook;
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{HistoryStore, KnowledgeStore, Recall, TenantId};
use plimsoll_gateway::{Pages, RouteAccess};
use plimsoll_models::BuiltInEmbedder;

use crate::config::Config;
use crate::error::CommandError;
use crate::models::{self, embedder};
use crate::pricing::pricing;
use crate::run::ServedCascades;
use crate::system::outside;

/// The interface over a store.
#[derive(Debug)]
struct StorePages(StoreApi);

/// Opens the interface that a gateway serves beside its upstreams.
pub(crate) async fn open(
    config: &Config,
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
) -> Result<Arc<dyn Pages>, CommandError> {
    let is_allowed = config.gateway.cascades;
    Ok(Arc::new(StorePages(api(config, history, knowledge, is_allowed).await?)))
}

pub(crate) async fn api(
    config: &Config,
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
    runs_cascades: bool,
) -> Result<StoreApi, CommandError> {
    let cascades: Option<Arc<dyn ApiCascades>> = if runs_cascades {
        Some(Arc::new(ServedCascades::new(config, history.clone(), knowledge.clone())?))
    } else {
        None
    };
    let embedder = embedder(&models::open(&config.models)?);
    let frames = FrameBook::new(config.frames()?, embedder.as_deref()).await;
    Ok(StoreApi::new(ApiParts {
        history,
        knowledge,
        clock: outside().clock,
        embedder,
        recall: Recall::new(config.recall.clone(), Some(Arc::new(BuiltInEmbedder))),
        memories: Memories::new(config.memory.search.clone()),
        memory: config.memory.clone(),
        request: config.request.clone(),
        frames: frames.map_err(CommandError::failure)?,
        policies: Arc::new(PricedPolicies { config: config.clone(), pricing: pricing(None)? }),
        cascades,
        handling: config.safety.ingestion,
    }))
}

/// The policies of the settings, and the prices in force.
#[derive(Debug)]
struct PricedPolicies {
    config: Config,
    pricing: Pricing,
}

impl ApiPolicies for PricedPolicies {
    fn policy(&self, name: &str, budget: Option<u64>) -> Option<Policy> {
        self.config.policy_within(name, budget)
    }

    fn pricing(&self) -> &Pricing {
        &self.pricing
    }
}

#[async_trait]
impl Pages for StorePages {
    fn access(&self, path: &str) -> Option<RouteAccess> {
        let access = if StoreApi::is_open(path) { RouteAccess::Open } else { RouteAccess::Key };
        StoreApi::takes(path).then_some(access)
    }

    async fn answer(&self, tenant: &TenantId, request: Request<Bytes>) -> Response<Bytes> {
        self.0.answer(tenant, request).await
    }
}

/// The interface alone: no path goes to an upstream.
#[derive(Debug)]
struct OnlyPages(StoreApi);

/// Opens the interface that answers every path.
pub(crate) async fn open_alone(
    config: &Config,
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
) -> Result<Arc<dyn Pages>, CommandError> {
    // It serves the person who started it.
    Ok(Arc::new(OnlyPages(api(config, history, knowledge, true).await?)))
}

#[async_trait]
impl Pages for OnlyPages {
    fn access(&self, path: &str) -> Option<RouteAccess> {
        let access = if StoreApi::is_open(path) { RouteAccess::Open } else { RouteAccess::Key };
        Some(access)
    }

    async fn answer(&self, tenant: &TenantId, request: Request<Bytes>) -> Response<Bytes> {
        self.0.answer(tenant, request).await
    }
}
