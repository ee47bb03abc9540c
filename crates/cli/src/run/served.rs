//! Cascades that callers of the interface run, with the models and tools of the settings.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_api::{ApiCascades, CascadeRequest};
use plimsoll_cascade::Cascade;
use plimsoll_cascade::run::{Library, ModelOverrides, RunError, RunSettings, Runner};
use plimsoll_core::cost::Pricing;
use plimsoll_engine::{Embedder, HistoryStore, KnowledgeStore, ToolSource};
use plimsoll_models::Models;

use super::Sources;
use crate::config::Config;
use crate::error::CommandError;
use crate::models;
use crate::pricing::pricing;
use crate::system::outside;

/// The stores, models and tools of runs.
#[derive(Debug)]
pub(crate) struct ServedCascades {
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
    models: Arc<Models>,
    tools: Vec<Arc<dyn ToolSource>>,
    embedder: Option<Arc<dyn Embedder>>,
    pricing: Arc<Pricing>,
    settings: RunSettings,
}

impl ServedCascades {
    pub(crate) fn new(
        config: &Config,
        history: Arc<dyn HistoryStore>,
        knowledge: Arc<dyn KnowledgeStore>,
    ) -> Result<Self, CommandError> {
        let models = Arc::new(models::open(&config.models)?);
        let settings = RunSettings {
            safety: config.safety,
            cards: config.cards.clone(),
            ..config.run.clone()
        };
        Ok(Self {
            history,
            knowledge,
            tools: super::tools(config, &config.tools.starter)?,
            embedder: models::embedder(&models),
            models,
            pricing: Arc::new(pricing(None)?),
            settings,
        })
    }
}

#[async_trait]
impl ApiCascades for ServedCascades {
    async fn run(&self, request: CascadeRequest) -> Result<String, RunError> {
        let usual = self.settings.model.clone();
        let sources = Sources::new(
            self.models.clone(),
            &ModelOverrides::default(),
            usual,
            self.pricing.clone(),
        );
        let sources = sources.map_err(|error| RunError::Missing { what: error.to_string() })?;
        let runner = Runner {
            tenant: request.tenant,
            history: self.history.clone(),
            knowledge: self.knowledge.clone(),
            models: Arc::new(sources),
            tools: self.tools.clone(),
            human: request.human,
            library: Arc::new(NoLibrary),
            embedder: self.embedder.clone(),
            clock: outside().clock,
            pricing: self.pricing.clone(),
            observer: request.observer,
            settings: self.settings.clone(),
        };
        let outcome = runner.run(request.cascade, request.input, &request.session).await?;
        Ok(outcome.output)
    }
}

/// A caller sends one cascade; files of this machine are not read for it.
#[derive(Debug)]
struct NoLibrary;

impl Library for NoLibrary {
    fn cascade(&self, reference: &str) -> Result<Arc<Cascade>, String> {
        Err(format!("`{reference}` is another file, and this run has one"))
    }
}
