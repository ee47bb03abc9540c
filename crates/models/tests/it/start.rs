//! What every test starts with: models of one provider, `up`, that is the upstream.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::cost::Pricing;
use plimsoll_core::{Message, MillisSinceEpoch, Role};
use plimsoll_engine::{ChatEvent, ChatModel, ChatRequest, ChatStream, ModelError};
use plimsoll_models::{Chance, Models, ModelsConfig, Outside};
use plimsoll_testkit::ManualClock;
use plimsoll_testkit::upstream::ScriptedServer;

/// The key of the provider; no test may find it anywhere but in a header.
pub(crate) const KEY: &str = "sk-never-to-be-seen";

/// 2026-01-01T00:00:00Z.
pub(crate) const NOW: MillisSinceEpoch = MillisSinceEpoch(1_767_225_600_000);

/// Always draws the same.
#[derive(Debug)]
struct Fixed(f64);

impl Chance for Fixed {
    fn draw(&self) -> f64 {
        self.0
    }
}

/// Models and the clock that they go by: waits up to a minute pass by themselves.
pub(crate) struct Started {
    pub(crate) models: Models,
    pub(crate) clock: Arc<ManualClock>,
}

/// Starts with a configuration in which `ADDRESS` stands for the upstream's.
pub(crate) fn start(upstream: &ScriptedServer, config: &str) -> Started {
    let config = config.replace("ADDRESS", upstream.address());
    let config: ModelsConfig = toml::from_str(&config).expect("a sound configuration");
    let clock = Arc::new(ManualClock::new(NOW, Duration::from_mins(1)));
    let outside = Outside { clock: clock.clone(), chance: Arc::new(Fixed(0.5)) };
    let lookup = |name: &str| (name == "UP_KEY").then(|| KEY.to_owned());
    let models = Models::new(config, Pricing::shipped(), outside, &lookup).expect("sound");
    Started { models, clock }
}

/// The configuration of `up`, speaking `api`, and further lines of it.
pub(crate) fn up(api: &str, more: &str) -> String {
    format!("[providers.up]\napi = '{api}'\nbase_url = 'ADDRESS/v1'\nkey_env = 'UP_KEY'\n{more}\n")
}

/// Starts with the one provider `up` and returns its model `m`.
pub(crate) fn model(upstream: &ScriptedServer, api: &str) -> (Arc<dyn ChatModel>, Started) {
    let started = start(upstream, &up(api, ""));
    (started.models.chat("up/m").expect("a model"), started)
}

pub(crate) fn ask(text: &str) -> ChatRequest {
    ChatRequest { max_tokens: 100, ..ChatRequest::new(vec![Message::text(Role::User, text)]) }
}

/// Reads a stream to its end.
pub(crate) async fn all(mut stream: Box<dyn ChatStream>) -> Vec<Result<ChatEvent, ModelError>> {
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        pieces.push(piece);
    }
    assert!(stream.next().await.is_none(), "the end is for ever");
    pieces
}

/// Writes server-sent events without names.
pub(crate) fn events(data: &[&str]) -> Vec<String> {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// A whole answer of Chat Completions with this text.
pub(crate) fn said(text: &str) -> String {
    serde_json::json!({
        "model": "m-1", "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100}
    })
    .to_string()
}
