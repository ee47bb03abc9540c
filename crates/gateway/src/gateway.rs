//! The gateway: what all requests share.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use plimsoll_core::Message;
use plimsoll_core::cost::{ModelPrice, Pricing, UnlistedModels};
use plimsoll_core::lazy_tools::LazySettings;
use plimsoll_engine::{Clock, HistoryStore, SessionId, TenantId};
use tokio::sync::watch;

use crate::answer_cache::Answers;
use crate::body::InFlight;
use crate::config::GatewayConfig;
use crate::guard::Guard;
use crate::keys::{KeyError, Keys};
use crate::metrics::Metrics;
use crate::sessions::Sessions;
use crate::traces::Traces;
use crate::turn::Policies;
use crate::upstream::{UpstreamError, Upstreams};
use crate::warm::Pauses;
use crate::work::Work;

/// What the gateway is given beside its settings.
#[derive(Debug)]
pub struct Parts {
    pub history: Arc<dyn HistoryStore>,
    pub clock: Arc<dyn Clock>,
    pub policies: Arc<dyn Policies>,
    pub pricing: Pricing,
    /// What is known beside the conversation, where it is wanted.
    pub memory: Option<Arc<dyn Memory>>,
    /// Answers that were given before, where they are wanted.
    pub answers: Option<Arc<dyn Answers>>,
    /// By which rules tools tell what they take only when they are asked, where that is wanted.
    pub lazy_tools: Option<LazySettings>,
}

/// What is known beside a conversation.
#[async_trait]
pub trait Memory: Send + Sync + std::fmt::Debug {
    /// Returns what the next answer should know, as quoted material of at most `most` tokens; it is put behind what the user
    /// said, and stands there from then on, so that a cached prefix stays. `None` where there is nothing, or the store does not
    /// answer: a request never fails for want of it.
    async fn recalled(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        messages: &[Arc<Message>],
        most: Option<u64>,
    ) -> Option<String>;
}

/// Why there is no gateway with these settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("`{0}` is no policy")]
    Policy(String),
    #[error("`{0}` is no http or https address of a collector")]
    Otlp(String),
    #[error("this build sends no traces: otlp_endpoint needs the feature `otlp`")]
    NoTraces,
}

/// A gateway, ready to serve.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) config: GatewayConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) history: Arc<dyn HistoryStore>,
    pub(crate) policies: Arc<dyn Policies>,
    pub(crate) pricing: Pricing,
    pub(crate) memory: Option<Arc<dyn Memory>>,
    pub(crate) answers: Option<Arc<dyn Answers>>,
    pub(crate) lazy_tools: Option<LazySettings>,
    pub(crate) sessions: Sessions,
    pub(crate) pauses: Pauses,
    pub(crate) upstreams: Upstreams,
    pub(crate) keys: Keys,
    pub(crate) in_flight: InFlight,
    pub(crate) work: Work,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) traces: Traces,
    /// Warnings about models without a price, each given once.
    unlisted: Mutex<(UnlistedModels, Vec<String>)>,
    guard: OnceLock<Guard>,
    /// New requests are no longer wanted.
    stopping: watch::Sender<bool>,
    /// Answers that are still under way are cut.
    ending: watch::Sender<bool>,
}

impl Gateway {
    /// Makes a gateway; nothing is sent and nothing listened to. `environment` gives the keys of upstreams.
    pub fn new(
        config: GatewayConfig,
        parts: Parts,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let Parts { history, clock, policies, pricing, memory, answers, lazy_tools } = parts;
        if policies.policy(&config.policy, None).is_none() {
            return Err(ConfigError::Policy(config.policy));
        }
        Ok(Self {
            upstreams: Upstreams::new(&config, &clock, environment)?,
            keys: Keys::new(&config)?,
            traces: Traces::new(&config, environment)?,
            sessions: Sessions::new(config.limits.session_bytes),
            pauses: Pauses::default(),
            policies,
            pricing,
            memory,
            answers,
            lazy_tools,
            in_flight: InFlight::new(config.limits.in_flight_bytes),
            work: Work::new(config.limits.waiting),
            metrics: Arc::default(),
            unlisted: Mutex::default(),
            guard: OnceLock::new(),
            stopping: watch::Sender::new(false),
            ending: watch::Sender::new(false),
            config,
            clock,
            history,
        })
    }

    /// Tells whether clients must show a key.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns what a model costs now, and warns once of one that the table of prices does not list.
    pub(crate) fn priced(&self, model: Option<&str>) -> ModelPrice<'_> {
        let priced = self.pricing.of(model, Some(self.clock.now()));
        if priced.is_estimate() {
            let mut guard = self.unlisted.lock().unwrap_or_else(PoisonError::into_inner);
            let (unlisted, warnings) = &mut *guard;
            if let Some(warning) = unlisted.met(model, &priced) {
                tracing::warn!("{warning}");
                warnings.push(warning);
            }
        }
        priced
    }

    /// Returns the warnings so far about models that the table of prices does not list.
    pub fn unlisted(&self) -> Vec<String> {
        self.unlisted.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Takes note of the address that it is reached at.
    pub(crate) fn opened(&self, address: SocketAddr) {
        let GatewayConfig { hosts, origins, .. } = &self.config;
        let guard = Guard::new(address, hosts, origins, self.has_keys());
        let _ = self.guard.set(guard);
    }

    pub(crate) fn admits(&self, headers: &http::HeaderMap) -> bool {
        self.guard.get().is_some_and(|guard| guard.admits(headers))
    }

    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(crate) fn end(&self) {
        self.ending.send_replace(true);
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    pub(crate) fn ending(&self) -> watch::Receiver<bool> {
        self.ending.subscribe()
    }
}
