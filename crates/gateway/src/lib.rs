//! The gateway: a proxy in front of the OpenAI, Anthropic and Gemini APIs that bounds what a model sees.
//!
//! What needs no change goes through byte for byte, in both directions; whatever fails of our own before the first byte,
//! the original goes out instead.

mod answer;
mod answer_cache;
mod answer_stream;
mod body;
mod config;
mod gateway;
mod guard;
mod handle;
mod headers;
mod keys;
mod lookup;
mod metrics;
mod offer;
mod options;
mod own_calls;
mod prepare;
mod refusal;
mod relay;
mod report;
mod routes;
mod secret;
mod server;
mod sessions;
mod stored_answers;
mod stored_memory;
mod surroundings;
mod timers;
#[cfg_attr(not(feature = "otlp"), path = "traces_absent.rs")]
mod traces;
mod turn;
mod upstream;
mod warm;
mod work;

pub use answer_cache::{Answers, KeptAnswer};
pub use config::{
    Additions, Api, Durability, GatewayConfig, KeyConfig, Limits, Mode, OwnTools, PORT, Timeouts,
    UpstreamConfig,
};
pub use gateway::{ConfigError, Gateway, Memory, Parts};
pub use keys::KeyError;
pub use relay::{Body, Cut};
pub use routes::{Access, ROUTES, Route};
pub use secret::Secret;
pub use server::{ServeError, serve};
pub use stored_answers::StoredAnswers;
pub use stored_memory::StoredMemory;
pub use turn::Policies;
pub use upstream::UpstreamError;
