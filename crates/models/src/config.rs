//! The settings of models: section `[models]` of `plimsoll.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::secret::SecretValue;

/// Settings of models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelsConfig {
    /// Providers by name, over the known ones.
    pub providers: BTreeMap<String, ProviderConfig>,
    pub timeouts: CallTimeouts,
    pub retries: Retries,
    pub spending: SpendingConfig,
    pub embedder: EmbedderConfig,
    /// The file that requests and answers are written to, one line each; without it nothing is recorded.
    pub record: Option<PathBuf>,
}

/// A provider: a known one changed, or another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    pub api: Option<ModelApi>,
    /// The address of the provider's API, up to and including the version: `https://api.openai.com/v1`.
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    pub key_env: Option<String>,
    /// The header that carries the key by itself, instead of `Authorization: Bearer` or `x-api-key`.
    pub key_header: Option<String>,
    /// Headers that every request carries; their values are kept secret.
    pub headers: BTreeMap<String, SecretValue>,
    pub json: Option<JsonBy>,
    /// The name of the field that limits the answer, for Chat Completions.
    pub max_tokens_field: Option<String>,
    /// The prices of its models, over `pricing.toml`.
    pub price: Option<Price>,
    /// Timeouts of this provider, instead of the common ones.
    pub timeouts: Option<CallTimeouts>,
}

/// The API that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelApi {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
}

impl ModelApi {
    /// Returns the name that the configuration uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
        }
    }
}

/// The request for an answer in JSON; it is checked in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JsonBy {
    /// The API is given the schema.
    Schema,
    /// The API is told that it is JSON (Chat Completions and Responses); the words hold the schema.
    Object,
    /// The words hold the schema.
    Prompt,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// US dollars for a million tokens of input.
    pub input: f64,
    /// US dollars for a million tokens of output.
    pub output: f64,
}

/// Timeouts of calls to models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallTimeouts {
    /// Seconds until the connection stands.
    pub connect_seconds: u64,
    /// Seconds from the request to the head of the answer; a model that is not streamed sends it when it is done.
    pub first_byte_seconds: u64,
    /// Seconds from the request to the end of the answer.
    pub whole_seconds: u64,
}

/// Chosen: OpenAI's and Anthropic's own clients wait 600 s in all; two minutes of silence are a failure to the waiting.
impl Default for CallTimeouts {
    fn default() -> Self {
        Self { connect_seconds: 10, first_byte_seconds: 120, whole_seconds: 600 }
    }
}

impl CallTimeouts {
    pub(crate) fn connect(self) -> Duration {
        Duration::from_secs(self.connect_seconds)
    }

    pub(crate) fn first_byte(self) -> Duration {
        Duration::from_secs(self.first_byte_seconds)
    }

    pub(crate) fn whole(self) -> Duration {
        Duration::from_secs(self.whole_seconds)
    }
}

/// The repetitions of a failed call, and the pauses between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retries {
    /// The most attempts, the first one included.
    pub attempts: u32,
    /// The longest pause before the second attempt in milliseconds; it doubles with each further one.
    pub base_millis: u64,
    /// The longest pause; where a server asks for a longer one, the call fails.
    pub longest_seconds: u64,
}

/// Chosen: as OpenAI's and Anthropic's own clients, which try three times from half a second on; a minute is what limits by
/// the minute need.
impl Default for Retries {
    fn default() -> Self {
        Self { attempts: 3, base_millis: 500, longest_seconds: 60 }
    }
}

/// The most that may be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpendingConfig {
    /// The most US dollars that the process may spend.
    pub process_dollars: Option<f64>,
    /// The most US dollars that one call may cost.
    pub call_dollars: Option<f64>,
    /// The price of models that no table lists; without it they are refused where a cap is set.
    pub unknown_model: Option<Price>,
}

/// Which embedder makes the vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmbedderConfig {
    /// The embedder, as `provider/model` or `onnx/FOLDER`; the built-in one where none is named.
    pub model: Option<String>,
    /// The length of its vectors; needed for `provider/model`.
    pub dimension: Option<usize>,
    /// The onnxruntime library; needed for `onnx/FOLDER`.
    pub library: Option<PathBuf>,
    /// The most texts in one request.
    pub batch: usize,
}

/// Chosen: every known server takes 64 texts at once (OpenAI 2,048, smaller servers as many as they have room for).
impl Default for EmbedderConfig {
    fn default() -> Self {
        Self { model: None, dimension: None, library: None, batch: 64 }
    }
}
