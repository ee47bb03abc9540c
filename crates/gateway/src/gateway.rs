//! The gateway: the state that all requests share.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use plimsoll_core::cost::{ModelPrice, Pricing, UnlistedModels};
use plimsoll_core::lazy_tools::LazySettings;
use plimsoll_core::safety::Handling;
use plimsoll_engine::{Clock, HistoryStore, TenantId};
use tokio::sync::watch;

use crate::backlog::Backlog;
use crate::config::{GatewayConfig, Timeouts};
use crate::guard::Guard;
use crate::in_flight::InFlight;
use crate::keys::{KeyError, Keys};
use crate::metrics::{Counter, Metrics};
use crate::outbound::redacted;
use crate::pauses::Pauses;
use crate::ports::{Answers, Memory, Observation, Pages, Parts, Policies};
use crate::refusal::RequestRefusal;
use crate::relay::Incoming;
use crate::sessions::Sessions;
use crate::setting_fault::SettingFault;
use crate::traces::{CollectorError, Traces};
use crate::upstream::{UpstreamError, UpstreamRequest, Upstreams};
use crate::work::Work;

/// Why a gateway cannot be made with these settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("`{0}` is no policy")]
    Policy(String),
    #[error(transparent)]
    Otlp(#[from] CollectorError),
    #[error(transparent)]
    Setting(#[from] SettingFault),
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
    pub(crate) observation: Option<Observation>,
    pub(crate) ingestion: Handling,
    pub(crate) lazy_tools: Option<LazySettings>,
    pub(crate) pages: Option<Arc<dyn Pages>>,
    pub(crate) sessions: Sessions,
    pub(crate) backlog: Backlog,
    pub(crate) pauses: Pauses,
    pub(crate) upstreams: Upstreams,
    pub(crate) keys: Keys,
    pub(crate) in_flight: InFlight,
    /// The memory that answers take while they come.
    pub(crate) answers_in_flight: InFlight,
    pub(crate) work: Work,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) traces: Traces,
    /// Warnings about models without a price, each given once.
    unlisted: Mutex<(UnlistedModels, Vec<String>)>,
    guard: OnceLock<Guard>,
    /// Held open by each task that works behind answers.
    pub(crate) behind: watch::Sender<()>,
    /// Set when new requests are refused.
    pub(crate) stopping: watch::Sender<bool>,
    /// Set when answers that are still under way are cut.
    pub(crate) ending: watch::Sender<bool>,
}

impl Gateway {
    /// Checks settings as [`Gateway::new`] does, without making one.
    pub fn check(
        config: &GatewayConfig,
        policies: &dyn Policies,
        clock: &Arc<dyn Clock>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), ConfigError> {
        if policies.policy(&config.policy, None).is_none() {
            return Err(ConfigError::Policy(config.policy.clone()));
        }
        if let Some(fault) = config.faults().into_iter().next() {
            return Err(fault.into());
        }
        Upstreams::new(config, clock, environment)?;
        Keys::new(config)?;
        Traces::new(config, environment, clock, &Arc::default())?;
        Ok(())
    }

    /// Makes a gateway; it sends nothing and does not listen yet. `environment` gives the keys of upstreams.
    pub fn new(
        config: GatewayConfig,
        parts: Parts,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let Parts {
            history,
            clock,
            policies,
            pricing,
            memory,
            answers,
            observation,
            ingestion,
            lazy_tools,
            pages,
        } = parts;
        if policies.policy(&config.policy, None).is_none() {
            return Err(ConfigError::Policy(config.policy));
        }
        if let Some(fault) = config.faults().into_iter().next() {
            return Err(fault.into());
        }
        let metrics = Arc::new(Metrics::default());
        Ok(Self {
            upstreams: Upstreams::new(&config, &clock, environment)?,
            keys: Keys::new(&config)?,
            traces: Traces::new(&config, environment, &clock, &metrics)?,
            sessions: Sessions::new(config.limits.session_bytes),
            backlog: Backlog::new(config.limits.backlog_bytes),
            pauses: Pauses::default(),
            policies,
            pricing,
            memory,
            answers,
            observation,
            ingestion,
            lazy_tools,
            pages,
            in_flight: InFlight::new(&config.limits, config.keys.len()),
            answers_in_flight: InFlight::of(config.limits.answers_bytes),
            work: Work::new(config.limits.waiting),
            metrics,
            unlisted: Mutex::default(),
            guard: OnceLock::new(),
            behind: watch::Sender::new(()),
            stopping: watch::Sender::new(false),
            ending: watch::Sender::new(false),
            config,
            clock,
            history,
        })
    }

    /// Returns whether clients must show a key.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns the prices of a model now.
    pub(crate) fn prices_now(&self, model: Option<&str>) -> ModelPrice<'_> {
        self.pricing.of(model, Some(self.clock.now()))
    }

    /// Returns the prices of a model now, and warns once of a model that the table of prices does not list.
    pub(crate) fn priced(&self, model: Option<&str>) -> ModelPrice<'_> {
        let priced = self.prices_now(model);
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

    /// Records the address at which clients reach the gateway.
    pub(crate) fn opened(&self, address: SocketAddr) {
        let GatewayConfig { hosts, origins, .. } = &self.config;
        let guard = Guard::new(address, hosts, origins, self.has_keys());
        let _ = self.guard.set(guard);
    }

    pub(crate) fn admits(&self, method: &http::Method, headers: &http::HeaderMap) -> bool {
        self.guard.get().is_some_and(|guard| guard.admits(method, headers))
    }

    /// Returns whether a request for the store's own pages is admitted: a page of theirs may ask too.
    pub(crate) fn admits_pages(&self, method: &http::Method, headers: &http::HeaderMap) -> bool {
        self.guard.get().is_some_and(|guard| guard.admits_own(method, headers))
    }

    /// Sends a request to its upstream, and returns when the head of the response is there.
    pub(crate) async fn ask(
        &self,
        request: &UpstreamRequest,
    ) -> Result<reqwest::Response, RequestRefusal> {
        let first_byte = Timeouts::of(self.config.timeouts.first_byte);
        let request = if self.config.add.redact {
            Cow::Owned(redacted(request, self.config.limits.depth, &self.work).await?)
        } else {
            Cow::Borrowed(request)
        };
        let response = request.send(first_byte, &*self.clock).await?;
        let status = response.status().as_u16();
        tracing::debug!(upstream = request.upstream.name, status, "answered");
        self.metrics.add(Counter::Answers, status_class(status));
        Ok(response)
    }

    /// Makes the body of a response readable piece by piece.
    pub(crate) fn incoming(&self, response: reqwest::Response) -> Incoming {
        let idle = Timeouts::of(self.config.timeouts.idle);
        let share = self.answers_in_flight.share(&TenantId::default());
        Incoming::new(response, self.clock.clone(), idle, self.ending.subscribe(), share)
    }
}

fn status_class(status: u16) -> &'static str {
    match status {
        ..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    }
}
