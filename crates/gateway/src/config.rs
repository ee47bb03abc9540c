//! Settings of the gateway: `[gateway]` of `plimsoll.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_core::ValueOrWord;
use plimsoll_core::keep_warm::KeepWarm;
use plimsoll_wire::Wire;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The handling of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
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

impl<'de> Deserialize<'de> for Mode {
    /// Written out, since the derived one says "wanted string or table" for anything but a text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ModeName;

        impl Visitor<'_> for ModeName {
            type Value = Mode;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("\"observe\", \"on\" or \"off\"")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Mode, E> {
                Mode::parse(name).ok_or_else(|| E::unknown_variant(name, &["observe", "on", "off"]))
            }
        }

        deserializer.deserialize_str(ModeName)
    }
}

/// The offer of our own tools to a model; they cost tokens in every request, and break the prefix where they appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "ValueOrWord<bool>", into = "ValueOrWord<bool>")]
pub enum OwnTools {
    /// Offered if something can be hidden and they are small beside the session's first request, or the first after a pause that
    /// outlived the cache.
    #[default]
    Auto,
    On,
    Off,
}

impl From<OwnTools> for ValueOrWord<bool> {
    fn from(tools: OwnTools) -> Self {
        match tools {
            OwnTools::Auto => "auto".into(),
            OwnTools::On => Self::Value(true),
            OwnTools::Off => Self::Value(false),
        }
    }
}

impl TryFrom<ValueOrWord<bool>> for OwnTools {
    type Error = String;

    fn try_from(written: ValueOrWord<bool>) -> Result<Self, String> {
        Ok(match written.value_unless("auto", "`tools` is true, false")? {
            Some(true) => Self::On,
            Some(false) => Self::Off,
            None => Self::Auto,
        })
    }
}

/// The moment at which a message counts as kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The store has it before the client sees the end of the answer.
    #[default]
    BeforeEnd,
    /// It is written beside the answer: a crash at that moment may lose the last turn.
    Relaxed,
}

/// The answer that a client gets when the store does not take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreFailure {
    /// The answer, which is paid for. The history follows when the store takes it again, and `/readyz` and a header say that it is behind.
    #[default]
    Deliver,
    /// An error instead of the end of the answer.
    Refuse,
}

/// Which API an upstream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    Anthropic,
    OpenAi,
    Gemini,
}

impl Api {
    /// Returns the wire in whose shape errors are written.
    pub(crate) fn wire(self) -> Wire {
        match self {
            Self::Anthropic => Wire::AnthropicMessages,
            Self::OpenAi => Wire::ChatCompletions,
            Self::Gemini => Wire::Gemini,
        }
    }
}

/// An upstream: an API that requests are forwarded to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// The address of the API, as a client would be given it, with or without the version at its end.
    pub base_url: String,
    /// The API that it speaks; by default that of the provider whose name the upstream has, else `open_ai`.
    pub api: Option<Api>,
    /// The environment variable that holds the key; without one the client's own key goes through.
    pub key_env: Option<String>,
    /// Further paths that the key of `key_env` may be used for, such as `GET /files/*`; `*` stands for one segment, and `**` at the end
    /// for all that follow. Without any it is used for generating, counting, embedding and the list of models.
    #[serde(default)]
    pub paths: Vec<String>,
}

impl UpstreamConfig {
    /// Makes the settings of an address, without a key.
    pub fn at(base_url: &str) -> Self {
        Self { base_url: base_url.to_owned(), api: None, key_env: None, paths: Vec::new() }
    }
}

/// A key that clients of the gateway show, known by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// The 64 hex digits of the key's SHA-256.
    pub sha256: String,
    /// The tenant whose data the key opens; by default the key's own name.
    pub tenant: Option<String>,
    /// Whether the key also opens the metrics, which tell of all tenants.
    #[serde(default)]
    pub operator: bool,
}

/// Limits; every one is reached by somebody's mistake or malice before it is by work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The most bytes of one request's body, decoded. Anthropic accepts 32 MB, `OpenAI` about as much with images.
    pub body_bytes: usize,
    /// The most bytes of all bodies that are being worked on, decoded.
    pub in_flight_bytes: usize,
    /// The most bytes of `in_flight_bytes` that one tenant may take, where there are keys of several.
    pub tenant_bytes: usize,
    /// The fewest bytes a second that a body may come with, counted from its beginning, after the first `timeouts.body` seconds.
    pub body_rate: usize,
    /// The most bytes of turns that wait for a store that does not take them.
    pub backlog_bytes: usize,
    /// The most bytes of one event of a streamed answer.
    pub event_bytes: usize,
    /// The most bytes of answers that are remembered while they come, all together.
    pub answers_bytes: usize,
    /// The most requests that wait for a thread; one more is refused before its body is read.
    pub waiting: usize,
    /// The most connections at a time.
    pub connections: usize,
    /// The most bytes of one request's headers.
    pub header_bytes: usize,
    /// The most levels of nesting in a body; `serde_json` reads 127.
    pub depth: usize,
    /// The most bytes of an answer that is not streamed, and of what is remembered of a streamed one.
    pub answer_bytes: usize,
    /// The most bytes of sessions that are kept in memory; older ones are read from the store when they go on.
    pub session_bytes: usize,
    /// The most answers to the gateway's own tools within one request.
    pub expansions: usize,
}

impl Default for Limits {
    /// Chosen: one body of 32 MiB, eight such at a time, no more waiting than are served within the deadline (about 4 ms each),
    /// twice the streams that a person's machine can have agents. A tenant may take half of all bodies; a body comes with at least a
    /// hundredth of what a slow mobile line has; an event may hold an image.
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            in_flight_bytes: 256 << 20,
            tenant_bytes: 128 << 20,
            body_rate: 1 << 10,
            backlog_bytes: 64 << 20,
            event_bytes: 16 << 20,
            answers_bytes: 512 << 20,
            waiting: 64,
            connections: 10_000,
            header_bytes: 64 << 10,
            depth: 128,
            answer_bytes: 64 << 20,
            session_bytes: 128 << 20,
            expansions: 8,
        }
    }
}

/// Timeouts in seconds, except where the name ends in `_ms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Seconds until a request's headers have arrived.
    pub headers: u64,
    /// Seconds between two pieces of a request's body.
    pub body: u64,
    /// Seconds until the whole of a request's body has arrived.
    pub whole_body: u64,
    /// Seconds until a connection to the upstream stands.
    pub connect: u64,
    /// Seconds until the upstream answers; an answer that is not streamed begins only when it is done.
    pub first_byte: u64,
    /// Seconds between two pieces of an answer.
    pub idle: u64,
    /// Seconds that open streams get when the gateway is told to stop.
    pub drain: u64,
    /// Milliseconds of the gateway's own work on a request, after which the original is forwarded.
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
            whole_body: 300,
            connect: 10,
            first_byte: 600,
            idle: 300,
            drain: 30,
            deadline_ms: 250,
            rebuild_ms: 5000,
        }
    }
}

/// Additions to requests; all are off by default but the tools that give back left-out content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an addition that is on or off by itself"
)]
pub struct AdditionsConfig {
    /// Whether clients that have tools also get `expand_ref` and `search_context`.
    pub tools: OwnTools,
    /// Whether clients that get these tools also get `drop_from_context`, with which the model gives up a message.
    pub drop_tool: bool,
    /// Whether personal data and secrets are taken out of everything that leaves; what cannot be read is refused, and no header of a
    /// client switches it off.
    pub redact: bool,
    /// Whether records that fit the user's newest words are added behind the conversation.
    pub memory: bool,
    /// Whether requests without tools are answered from the cache, as `[answers]` says.
    pub answers: bool,
    /// Whether schemas of the client's large tools are sent only when the model asks, as `[lazy_tools]` says.
    pub lazy_tools: bool,
}

impl Default for AdditionsConfig {
    fn default() -> Self {
        Self {
            tools: OwnTools::Auto,
            drop_tool: false,
            redact: false,
            memory: false,
            answers: false,
            lazy_tools: false,
        }
    }
}

/// Settings of the gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// The address that the gateway listens on; anything but loopback needs keys.
    pub listen: SocketAddr,
    pub mode: Mode,
    /// The policy, as for `replay --policy`.
    pub policy: String,
    pub durability: Durability,
    pub on_store_failure: StoreFailure,
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// Keys of clients, by name; without any, whoever reaches the gateway is its one tenant.
    pub keys: BTreeMap<String, KeyConfig>,
    /// Names beside the address itself by which clients may call the gateway, each as `host:port`.
    pub hosts: Vec<String>,
    /// Web pages that may call the gateway, each as `scheme://host:port`.
    pub origins: Vec<String>,
    pub add: AdditionsConfig,
    /// Whether requests get marks of the provider's cache: those of agents that set none, and one more where a change would
    /// leave the client's behind nothing that the cache holds.
    pub marks: bool,
    /// Whether the provider's cache is kept warm through pauses.
    pub keep_warm: KeepWarm,
    pub limits: Limits,
    pub timeouts: Timeouts,
    /// Whether callers of the interface may run cascades, with the models and tools of these settings.
    pub cascades: bool,
    /// Whether log lines are JSON.
    pub log_json: bool,
    /// The address of an OTLP collector of traces over HTTP, without `/v1/traces`; by default that of
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`.
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
            on_store_failure: StoreFailure::Deliver,
            upstreams: BTreeMap::new(),
            keys: BTreeMap::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            add: AdditionsConfig::default(),
            marks: true,
            keep_warm: KeepWarm::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            cascades: false,
            log_json: false,
            otlp_endpoint: None,
        }
    }
}

impl GatewayConfig {
    /// Returns whether clients on other machines would be served without keys.
    pub fn is_open_to_all(&self) -> bool {
        !self.listen.ip().is_loopback() && self.keys.is_empty()
    }

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
