//! Settings of the gateway: `[gateway]` of `plimsoll.toml`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_core::keep_warm::KeepWarm;
use serde::{Deserialize, Serialize};

/// What is done with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Forward untouched, and record what would have been done.
    Observe,
    /// Bound what the model sees.
    #[default]
    On,
    /// Forward untouched and record nothing.
    Off,
}

impl Mode {
    /// Returns the name that settings, headers and metrics use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::On => "on",
            Self::Off => "off",
        }
    }

    /// Reads a name; `None` for anything else.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Observe, Self::On, Self::Off].into_iter().find(|mode| mode.as_str() == name)
    }
}

/// When a model is offered tools of ours; they cost tokens in every request, and break the prefix where they appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnTools {
    /// Where something can be hidden and they are small beside the session's first request, or the first after a pause that
    /// outlived the cache.
    #[default]
    Auto,
    On,
    Off,
}

impl<'de> Deserialize<'de> for OwnTools {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Switch(bool),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Switch(true) => Ok(Self::On),
            Written::Switch(false) => Ok(Self::Off),
            Written::Word(word) if word == "auto" => Ok(Self::Auto),
            Written::Word(word) => Err(serde::de::Error::custom(format!(
                "`tools` is true, false or \"auto\", not \"{word}\""
            ))),
        }
    }
}

/// When a message counts as kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The store has it before the client sees the end of the answer.
    #[default]
    BeforeEnd,
    /// It is written beside the answer: a crash at that moment may lose the last turn.
    Relaxed,
}

/// Which API an upstream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    Anthropic,
    OpenAi,
    Gemini,
}

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// As a client would be given it, with or without the version at its end.
    pub base_url: String,
    /// The API that it speaks; by default that of the provider whose name the upstream has, else `open_ai`.
    pub api: Option<Api>,
    /// The variable that holds the key; without one the client's own goes through.
    pub key_env: Option<String>,
}

impl UpstreamConfig {
    fn at(base_url: &str) -> Self {
        Self { base_url: base_url.to_owned(), api: None, key_env: None }
    }
}

/// A key that clients of the gateway show, known by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// The 64 hex digits of the key's SHA-256.
    pub sha256: String,
    /// Whose data it opens; by default the key's own name.
    pub tenant: Option<String>,
}

/// Limits; every one is reached by somebody's mistake or malice before it is by work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of one request's body, decoded. Anthropic accepts 32 MB, `OpenAI` about as much with images.
    pub body_bytes: usize,
    /// Bytes of all bodies that are being worked on, decoded.
    pub in_flight_bytes: usize,
    /// Requests that wait for a processor of ours; one more is refused before its body is read.
    pub waiting: usize,
    /// Connections at a time.
    pub connections: usize,
    /// Bytes of one request's headers.
    pub header_bytes: usize,
    /// Levels of nesting in a body; `serde_json` reads 127.
    pub depth: usize,
    /// Bytes of an answer that is not streamed; and of a streamed one, what is remembered of it.
    pub answer_bytes: usize,
    /// Bytes of sessions that are kept in memory; older ones are read from the store when they go on.
    pub session_bytes: usize,
    /// Answers to our own tools within one request.
    pub expansions: usize,
}

impl Default for Limits {
    /// Chosen: one body of 32 MiB, eight such at a time, no more waiting than are served within the deadline (about 4 ms each),
    /// twice the streams that a person's machine can have agents.
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            in_flight_bytes: 256 << 20,
            waiting: 64,
            connections: 10_000,
            header_bytes: 64 << 10,
            depth: 128,
            answer_bytes: 64 << 20,
            session_bytes: 256 << 20,
            expansions: 8,
        }
    }
}

/// Timeouts in seconds, but where the name says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Until a request's headers are there.
    pub headers: u64,
    /// Between two pieces of a request's body.
    pub body: u64,
    /// Until a connection to the upstream stands.
    pub connect: u64,
    /// Until the upstream answers: a long answer that is not streamed says nothing until it is done.
    pub first_byte: u64,
    /// Between two pieces of an answer.
    pub idle: u64,
    /// Streams that are open when the gateway is told to stop.
    pub drain: u64,
    /// Milliseconds of our own work on a request, after which the original goes out.
    pub deadline_ms: u64,
    /// As `deadline_ms`, for the first request of a session that has to be read from the store.
    pub rebuild_ms: u64,
}

impl Default for Timeouts {
    /// The first ones as `reliability` asks; the others are chosen, with the SDKs' own ten minutes as the longest.
    fn default() -> Self {
        Self {
            headers: 10,
            body: 30,
            connect: 10,
            first_byte: 600,
            idle: 300,
            drain: 30,
            deadline_ms: 250,
            rebuild_ms: 5000,
        }
    }
}

/// What is added to requests; all of it off until asked for, but the tools that give back what was left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an addition that is on or off by itself"
)]
pub struct Additions {
    /// `expand_ref` and `search_context`, for clients that have tools.
    pub tools: OwnTools,
    /// Personal data and secrets are taken out of what the user and the tools say.
    pub redact: bool,
    /// What is known that the user's newest words ask for, behind all that was said.
    pub memory: bool,
    /// Answers that were given to the same question before, as `[answers]` says; where no tools are offered.
    pub answers: bool,
    /// Large tools of the client tell what they take only when they are asked, as `[lazy_tools]` says.
    pub lazy_tools: bool,
}

impl Default for Additions {
    fn default() -> Self {
        Self {
            tools: OwnTools::Auto,
            redact: false,
            memory: false,
            answers: false,
            lazy_tools: false,
        }
    }
}

/// All settings of the gateway.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// Where clients are awaited; anything but loopback needs keys.
    pub listen: SocketAddr,
    pub mode: Mode,
    /// As `--policy` of `replay`.
    pub policy: String,
    pub durability: Durability,
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// By name; without any, whoever reaches the gateway is its one tenant.
    pub keys: BTreeMap<String, KeyConfig>,
    /// Names beside the address itself by which clients may call the gateway, each as `host:port`.
    pub hosts: Vec<String>,
    /// Web pages that may call it, each as `scheme://host:port`.
    pub origins: Vec<String>,
    pub add: Additions,
    /// Whether requests get marks of the provider's cache: those of agents that set none, and one more where a change would
    /// leave the client's behind nothing that the cache holds.
    pub marks: bool,
    /// Whether the provider's cache is kept warm through pauses.
    pub keep_warm: KeepWarm,
    pub limits: Limits,
    pub timeouts: Timeouts,
    /// Whether log lines are JSON.
    pub log_json: bool,
    /// Where a collector takes traces as OTLP over HTTP, without `/v1/traces`; else what `OTEL_EXPORTER_OTLP_ENDPOINT` says.
    pub otlp_endpoint: Option<String>,
}

/// The port where none is given (chosen; no service is registered for it).
pub const PORT: u16 = 7433;

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], PORT)),
            mode: Mode::On,
            policy: "plimsoll".to_owned(),
            durability: Durability::BeforeEnd,
            upstreams: BTreeMap::new(),
            keys: BTreeMap::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            add: Additions::default(),
            marks: true,
            keep_warm: KeepWarm::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            log_json: false,
            otlp_endpoint: None,
        }
    }
}

impl GatewayConfig {
    /// Returns the upstreams with the providers themselves where nothing else is said.
    pub fn all_upstreams(&self) -> BTreeMap<String, UpstreamConfig> {
        let mut all: BTreeMap<String, UpstreamConfig> = [
            ("anthropic", "https://api.anthropic.com"),
            ("openai", "https://api.openai.com/v1"),
            ("gemini", "https://generativelanguage.googleapis.com"),
        ]
        .map(|(name, url)| (name.to_owned(), UpstreamConfig::at(url)))
        .into();
        all.extend(self.upstreams.clone());
        all
    }
}

impl Timeouts {
    pub(crate) fn of(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }
}
