//! A scripted provider on loopback: it speaks four APIs, whole and streamed, plays a plan of tool turns with whatever tools the
//! client offers, and bills and refuses as the providers do.
//!
//! - **Cache** (`pieces.rs`, `usage.rs`): that of [`plimsoll_core::cost::Cache`], by the shipped prices of the model that the
//!   request names (`tariff.rs`). Anthropic's marks have both lives; five marks, an hour behind five minutes, or a mark on
//!   thinking or an empty text are refused. All entries live until a request says its time ([`TIME`]) or a test sets it.
//! - **Bound thinking** (`binding.rs`): on models that bind it, a thinking block that does not fit refuses the request, or is
//!   dropped where the request asks for that.
//! - **Context editing** (`editing.rs`): what the provider clears is not billed, and is no change to bound thinking.
//! - **Record** (`kept.rs`): each request with its charge, its price in dollars, what was refused, dropped and changed.

mod answer;
mod anthropic;
mod binding;
mod body;
mod chat;
mod editing;
mod endpoint;
mod forward;
mod gemini;
mod offered;
mod pieces;
mod plan;
mod plans;
mod progress;
mod record;
mod responses;
mod serve;
mod sse;
mod tariff;
mod turn;
mod usage;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_wire::{Wire, check};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use binding::{BINDING_BETA, Binding, ThinkingBlocks};
pub use editing::EDITING_BETA;
pub use plan::{PlanAction, ScriptedPlan};
pub use progress::id as call_id;
pub use record::RecordedExchange;
pub use tariff::RequestPrice;
pub use usage::{Continuity, ReportedUsage};

/// When answers say that they were made: the same at every run. Chosen.
const CREATED: u64 = 1_767_225_600;

/// The header by which a load tool names its request in plain answers.
pub const LABEL: &str = "x-load-request";

/// The header by which a request says at which time it is made, in milliseconds since 1970, for the lives of cache entries.
pub const TIME: &str = "x-scripted-time";

/// Says what a provider would refuse in the body of a request, nothing if it is right.
pub type RequestCheck = Arc<dyn Fn(Wire, &[u8]) -> Vec<String> + Send + Sync>;

/// Refuses whatever [`plimsoll_wire::check()`] knows that providers refuse.
pub fn strict() -> RequestCheck {
    Arc::new(|wire, body| check(wire, body).iter().map(ToString::to_string).collect())
}

/// How the events of a stream follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The first by itself, the others together: little work for a load tool.
    Together,
    /// Each by itself, so much time apart.
    Apart(Duration),
}

/// Rules of a planned conversation.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Prices and cache of this model are used for models that the shipped table does not list.
    pub price_as: Option<String>,
    pub binding: Binding,
}

/// How the provider answers.
#[derive(Clone)]
pub enum AnswerMode {
    /// Plays a plan; every request is read, checked and answered with usage.
    Planned { plan: ScriptedPlan, check: Option<RequestCheck>, rules: Rules },
    /// Answers without reading the request, for load: a text of so many words and, with a label ([`LABEL`]), one call.
    Plain { words: usize },
    /// Hands every request on to `http://HOST:PORT` and keeps both sides, byte for byte.
    Forwarded { to: String },
}

impl fmt::Debug for AnswerMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Planned { plan, .. } => formatter.debug_tuple("Planned").field(plan).finish(),
            Self::Plain { words } => formatter.debug_tuple("Plain").field(words).finish(),
            Self::Forwarded { to } => formatter.debug_tuple("Forwarded").field(to).finish(),
        }
    }
}

/// Where requests and answers are kept.
#[derive(Debug, Clone)]
pub enum Keep {
    Nothing,
    /// For [`ScriptedProvider::kept`].
    Memory,
    /// Three files a request: `NUMBER.json` (headers without keys, what was found), `NUMBER.request`, `NUMBER.answer`.
    Folder(PathBuf),
}

/// What a provider is told.
#[derive(Debug, Clone)]
pub struct ScriptedProviderConfig {
    pub answers: AnswerMode,
    pub keep: Keep,
    pub pace: Pace,
}

/// The server; it ends when it is dropped.
#[derive(Debug)]
pub struct ScriptedProvider {
    address: SocketAddr,
    shared: Arc<serve::ProviderState>,
    server: JoinHandle<()>,
}

impl ScriptedProvider {
    /// Starts a server that plays `plan`, checks with `check` and keeps what it was sent.
    pub async fn start(plan: ScriptedPlan, check: Option<RequestCheck>) -> io::Result<Self> {
        let answers = AnswerMode::Planned { plan, check, rules: Rules::default() };
        let config = ScriptedProviderConfig {
            answers,
            keep: Keep::Memory,
            pace: Pace::Apart(Duration::ZERO),
        };
        Self::listen(SocketAddr::from(([127, 0, 0, 1], 0)), config).await
    }

    /// Starts a server at `address`; port 0 takes a free one.
    pub async fn listen(address: SocketAddr, config: ScriptedProviderConfig) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(serve::ProviderState::new(config));
        let server = tokio::spawn(serve::accept(listener, shared.clone()));
        Ok(Self { address, shared, server })
    }

    /// Returns `http://HOST:PORT`.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the time of requests that do not say theirs ([`TIME`]); before it is set, every cache entry lives.
    pub fn set_time(&self, now: MillisSinceEpoch) {
        *self.shared.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Returns what was kept in memory, in the order in which answers ended.
    pub fn kept(&self) -> Vec<RecordedExchange> {
        self.shared.kept()
    }
}

impl ScriptedProvider {
    /// Returns when so many requests were answered and kept in memory.
    pub async fn answered(&self, number: usize) {
        // The sender lives as long as the provider.
        let _ = self.shared.ended.subscribe().wait_for(|ended| *ended >= number).await;
    }
}

impl Drop for ScriptedProvider {
    fn drop(&mut self) {
        self.server.abort();
    }
}
