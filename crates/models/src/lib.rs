//! Chat models and embedders: clients over HTTP, the built-in embedder, scripted models.

mod api;
mod built_in;
mod config;
mod failure;
mod http_embedder;
mod http_model;
mod json_answer;
mod models;
#[cfg(feature = "onnx")]
mod onnx;
mod playback;
mod ports;
mod provider;
mod recording;
mod retry;
mod scripted;
mod secret;
mod spending;
mod transport;
mod vector;

pub use built_in::BuiltInEmbedder;
pub use config::{
    CallTimeouts, EmbedderConfig, JsonBy, ModelApi, ModelsConfig, Price, ProviderConfig, Retries,
    SpendingConfig,
};
pub use models::Models;
pub use ports::{Chance, Outside};
pub use provider::Provider;
pub use recording::ReplayModel;
pub use scripted::ScriptedModel;
pub use secret::SecretValue;
