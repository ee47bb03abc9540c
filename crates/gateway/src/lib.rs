//! The gateway: a proxy in front of the OpenAI, Anthropic and Gemini APIs that bounds what a model sees.
//!
//! Bytes that need no change pass unchanged, in both directions. If our own work fails before the first byte, the original request
//! goes out instead.

mod answer;
mod answer_cache;
mod answer_stream;
mod append;
mod asked;
mod authority;
mod backlog;
mod body;
mod catch_up;
mod causes;
mod client_options;
mod config;
mod forward;
mod forward_proxy;
mod framing;
mod gateway;
mod guard;
mod handle;
mod headers;
mod in_flight;
mod keys;
mod lookup;
mod metrics;
mod offer;
mod options;
mod origin;
mod outbound;
mod own_calls;
mod paths;
mod pauses;
mod pins;
mod ports;
mod prepare;
mod refusal;
mod relay;
mod report;
mod routes;
mod schedule;
mod secret;
mod server;
mod sessions;
mod setting_fault;
mod stored_answers;
mod stored_memory;
mod surroundings;
mod timers;
mod traces;
mod turn;
mod upstream;
mod warm;
mod work;

pub use authority::AuthorityError;
pub use config::{
    AdditionsConfig, Api, Durability, GatewayConfig, KeyConfig, Limits, Mode, OwnTools, PORT,
    StoreFailure, Timeouts, UpstreamConfig,
};
pub use forward_proxy::{ForwardError, ForwardProxy};
pub use gateway::{ConfigError, Gateway};
pub use keys::KeyError;
pub use ports::{Answers, KeptAnswer, Memory, Observation, Pages, Parts, Policies, Recalled};
pub use relay::{Body, RelayError};
pub use routes::{GatewayRoute, ROUTES, RouteAccess};
pub use secret::Secret;
pub use server::{ServeError, serve};
pub use setting_fault::SettingFault;
pub use stored_answers::StoredAnswers;
pub use stored_memory::StoredMemory;
pub use traces::CollectorError;
pub use upstream::UpstreamError;
