//! All models by name: `provider/model`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_core::cost::Pricing;
use plimsoll_engine::{ChatModel, Embedder, ModelError};
use serde::Deserialize;

use crate::config::{EmbedderConfig, ModelsConfig};
use crate::http_embedder::HttpEmbedder;
use crate::http_model::HttpModel;
use crate::json_answer::JsonCheckedModel;
use crate::ports::Outside;
use crate::provider::{self, OPENROUTER, Provider};
use crate::recording::{RecordedModel, Recording, ReplayModel};
use crate::scripted::ScriptedModel;
use crate::spending::{CappedModel, Ledger};
use crate::transport::Transport;

/// The models that a configuration and an environment give.
#[derive(Debug)]
pub struct Models {
    config: ModelsConfig,
    providers: BTreeMap<String, Arc<Provider>>,
    transports: Mutex<BTreeMap<String, Transport>>,
    ledger: Arc<Ledger>,
    recording: Option<Arc<Recording>>,
    outside: Outside,
}

impl Models {
    /// Decides on all providers; `lookup` reads a variable of the environment. Nothing is sent.
    ///
    /// Errors: [`ModelError::Invalid`] for a configuration that makes no sense.
    pub fn new(
        config: ModelsConfig,
        pricing: Pricing,
        outside: Outside,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            providers: provider::providers(&config, lookup)?,
            transports: Mutex::default(),
            ledger: Arc::new(Ledger::new(config.spending, pricing)?),
            recording: config.record.as_deref().map(Recording::new).map(Arc::new),
            config,
            outside,
        })
    }

    /// Returns all providers, by name.
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.values().map(|provider| &**provider)
    }

    /// Returns US dollars that the calls of this process cost, open ones at the most that they can.
    ///
    /// Models whose price nobody knows count as nothing.
    pub fn spent_dollars(&self) -> f64 {
        self.ledger.spent()
    }

    /// Returns the most US dollars that requests of so many tokens to the chat model `name` can cost; `None` if nobody knows its
    /// prices.
    ///
    /// A script and a recording cost nothing. Errors: as [`Self::chat`], and [`ModelError::Capped`] where a cap needs a price.
    pub fn most_dollars(
        &self,
        name: &str,
        input: f64,
        output: f64,
    ) -> Result<Option<f64>, ModelError> {
        if is_file(name) {
            return Ok(Some(0.0));
        }
        let (provider, model) = self.provider_of(name)?;
        let rates = self.ledger.rates(provider, model)?;
        Ok(rates.map(|rates| rates.most(input, output)))
    }

    /// Returns the chat model `name`.
    ///
    /// Shapes: `provider/model`; `scripted/FILE` answers from a script and `replay/FILE` from a recording, without a
    /// network. A name whose first part is no provider, or one without its key, goes to OpenRouter whole, if that has its
    /// key. Errors: [`ModelError::Invalid`] for a name that is nobody's, [`ModelError::Denied`] where the key is missing.
    pub fn chat(&self, name: &str) -> Result<Arc<dyn ChatModel>, ModelError> {
        match name.split_once('/') {
            Some(("scripted", file)) => {
                let inner = Arc::new(ScriptedModel::from_file(name, Path::new(file))?);
                return Ok(Arc::new(JsonCheckedModel { inner }));
            }
            Some(("replay", file)) => {
                let inner = Arc::new(ReplayModel::from_file(name, Path::new(file))?);
                return Ok(Arc::new(JsonCheckedModel { inner }));
            }
            _ => {}
        }
        let (provider, model) = self.provider_of(name)?;
        let transport = self.transport(provider)?;
        let mut inner: Arc<dyn ChatModel> =
            Arc::new(HttpModel::new(name.to_owned(), model.to_owned(), transport));
        if let Some(recording) = &self.recording {
            inner = Arc::new(RecordedModel { inner, recording: recording.clone() });
        }
        let (ledger, provider) = (self.ledger.clone(), provider.clone());
        inner = Arc::new(CappedModel { inner, ledger, provider });
        Ok(Arc::new(JsonCheckedModel { inner }))
    }

    /// Returns the embedder that the configuration names; `None` where it names none, and the built-in one is meant.
    ///
    /// Errors: as [`Self::chat`], and [`ModelError::Invalid`] where its dimension is missing.
    pub fn embedder(&self) -> Result<Option<Arc<dyn Embedder>>, ModelError> {
        let config = &self.config.embedder;
        let Some(name) = &config.model else { return Ok(None) };
        if let Some(("onnx", folder)) = name.split_once('/') {
            return onnx(name, Path::new(folder), config).map(Some);
        }
        let dimension = config.dimension.filter(|dimension| *dimension > 0).ok_or_else(|| {
            ModelError::Invalid(format!("the embedder `{name}` is configured without `dimension`"))
        })?;
        let (provider, model) = self.provider_of(name)?;
        let rates = self.ledger.rates(provider, model)?;
        Ok(Some(Arc::new(HttpEmbedder {
            model: name.clone(),
            own_name: model.to_owned(),
            dimension,
            batch: config.batch.max(1),
            transport: self.transport(provider)?,
            ledger: self.ledger.clone(),
            rates,
        })))
    }

    /// Asks a provider which models it has, within `limit`, once.
    ///
    /// Errors: as the call fails; [`ModelError::Invalid`] for a name that is no provider's.
    pub async fn list(&self, provider: &str, limit: Duration) -> Result<Vec<String>, ModelError> {
        let provider = self.providers.get(provider);
        let provider =
            provider.ok_or_else(|| ModelError::Invalid("there is no such provider".into()))?;
        provider.need_key()?;
        let body = self.transport(provider)?.get("/models", limit).await?;
        let list: ModelList = serde_json::from_slice(&body).map_err(|error| {
            ModelError::Unusable(format!("{} sent no list of models: {error}", provider.name))
        })?;
        Ok(list.data.into_iter().flatten().map(|model| model.id).collect())
    }

    fn provider_of<'a>(&self, name: &'a str) -> Result<(&Arc<Provider>, &'a str), ModelError> {
        let unknown = || {
            let known: Vec<&str> = self.providers.keys().map(String::as_str).collect();
            ModelError::Invalid(format!(
                "no provider has the model `{name}`; a name is `provider/model`, and providers are {}",
                known.join(", ")
            ))
        };
        let (prefix, model) = name.split_once('/').ok_or_else(unknown)?;
        if model.is_empty() {
            return Err(unknown());
        }
        let direct = self.providers.get(prefix);
        if let Some(provider) = direct.filter(|provider| provider.has_access()) {
            return Ok((provider, model));
        }
        let router = self.providers.get(OPENROUTER).filter(|router| router.key.is_some());
        match (direct, router) {
            (Some(provider), Some(router)) if !provider.is_configured && prefix != OPENROUTER => {
                Ok((router, name))
            }
            (Some(provider), _) => provider.need_key().map(|()| (provider, model)),
            (None, Some(router)) => Ok((router, name)),
            (None, None) => Err(unknown()),
        }
    }

    fn transport(&self, provider: &Arc<Provider>) -> Result<Transport, ModelError> {
        let mut transports = self.transports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(transport) = transports.get(&provider.name) {
            return Ok(transport.clone());
        }
        let transport =
            Transport::new(provider.clone(), self.config.retries, self.outside.clone())?;
        transports.insert(provider.name.clone(), transport.clone());
        Ok(transport)
    }
}

/// Returns whether a name is that of a script or a recording.
fn is_file(name: &str) -> bool {
    matches!(name.split_once('/'), Some(("scripted" | "replay", _)))
}

#[cfg(feature = "onnx")]
fn onnx(
    name: &str,
    folder: &Path,
    config: &EmbedderConfig,
) -> Result<Arc<dyn Embedder>, ModelError> {
    Ok(Arc::new(crate::onnx::OnnxEmbedder::open(name, folder, config)?))
}

#[cfg(not(feature = "onnx"))]
fn onnx(name: &str, _: &Path, _: &EmbedderConfig) -> Result<Arc<dyn Embedder>, ModelError> {
    Err(ModelError::Invalid(format!("`{name}` needs a binary built with the feature `onnx`")))
}

#[derive(Deserialize)]
struct ModelList {
    /// Ollama has `null` where it has no model.
    #[serde(deserialize_with = "Option::deserialize")]
    data: Option<Vec<ModelEntry>>,
}

#[derive(Deserialize)]
struct ModelEntry {
    id: String,
}
