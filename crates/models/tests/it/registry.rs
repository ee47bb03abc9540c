//! Names of models, and what providers have.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::cost::Pricing;
use plimsoll_engine::ModelError;
use plimsoll_models::{Chance, Models, ModelsConfig, Outside};
use plimsoll_testkit::ManualClock;
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use serde_json::Value;

use crate::start::{KEY, NOW, ask, said, start, up};

#[derive(Debug)]
struct Never;

impl Chance for Never {
    fn draw(&self) -> f64 {
        0.0
    }
}

fn models(config: &str, keys: &[&str]) -> Models {
    let config: ModelsConfig = toml::from_str(config).expect("sound");
    let clock = Arc::new(ManualClock::new(NOW, Duration::ZERO));
    let outside = Outside { clock, chance: Arc::new(Never) };
    let lookup = |name: &str| keys.contains(&name).then(|| KEY.to_owned());
    Models::new(config, Pricing::shipped(), outside, &lookup).expect("sound")
}

/// Asks `name` where all of OpenRouter is the upstream, and returns the model that was asked for there.
async fn routed(name: &str, keys: &[&str], more: &str) -> Option<String> {
    let upstream = ScriptedServer::start([Scripted::body(200, said("x"))]).await;
    let config =
        format!("[providers.openrouter]\nbase_url = '{}/api/v1'\n{more}", upstream.address());
    let model = models(&config, keys).chat(name).ok()?;
    model.complete(&ask("x")).await.ok()?;
    let requests = upstream.requests();
    let body: Value = serde_json::from_slice(&requests.first()?.body).ok()?;
    assert_eq!(requests[0].path, "/api/v1/chat/completions");
    body["model"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn unknown_providers_go_through_openrouter_by_their_whole_name() {
    let keys = ["OPENROUTER_API_KEY"];
    let name = "google/gemini-2.5-flash-lite";
    assert_eq!(routed(name, &keys, "").await.as_deref(), Some(name));
    assert_eq!(routed(&format!("openrouter/{name}"), &keys, "").await.as_deref(), Some(name));
    assert_eq!(
        routed("anthropic/claude-x", &keys, "").await.as_deref(),
        Some("anthropic/claude-x")
    );
    let own = "[providers.anthropic]\ntimeouts = {}";
    assert_eq!(
        routed("anthropic/claude-x", &keys, own).await,
        None,
        "configured, and without its key"
    );
    assert_eq!(routed(name, &[], "").await, None);
}

#[tokio::test]
async fn a_provider_with_its_key_is_asked_itself() {
    let upstream = ScriptedServer::start([Scripted::body(200, said("x"))]).await;
    let config = format!("[providers.openai]\nbase_url = '{}'", upstream.address());
    let models = models(&config, &["OPENAI_API_KEY", "OPENROUTER_API_KEY"]);
    let model = models.chat("openai/gpt-x").expect("a model");
    assert_eq!(model.model(), "openai/gpt-x");
    model.complete(&ask("x")).await.expect("an answer");
    let body: Value = serde_json::from_slice(&upstream.requests()[0].body).expect("JSON");
    assert_eq!(
        (body["model"].as_str(), body["max_completion_tokens"].as_u64()),
        (Some("gpt-x"), Some(100))
    );
}

#[test]
fn names_that_are_nobodys_say_whose_there_are() {
    let models = models("", &[]);
    for name in ["gpt-5", "nobody/x", "openai/", ""] {
        let Err(ModelError::Invalid(told)) = models.chat(name).map(|_| ()) else {
            panic!("{name}")
        };
        assert!(told.contains("ollama"), "{told}");
    }
    let Err(ModelError::Denied(told)) = models.chat("openai/gpt-5").map(|_| ()) else { panic!() };
    assert!(told.contains("OPENAI_API_KEY"), "{told}");
    assert!(models.chat("ollama/llama3").is_ok(), "needs no key");
}

#[tokio::test]
async fn a_provider_is_asked_which_models_it_has() {
    let list = r#"{"object":"list","data":[{"id":"a"},{"id":"b","object":"model"}]}"#;
    let upstream = ScriptedServer::start([
        Scripted::body(200, list),
        Scripted::body(200, r#"{"data":null}"#),
        Scripted::body(401, "{}"),
        Scripted::body(503, "{}"),
        Scripted::body(200, "{}"),
    ])
    .await;
    let started = start(&upstream, &up("anthropic", ""));
    let ask = || started.models.list("up", Duration::from_secs(90));
    assert_eq!(ask().await, Ok(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(ask().await, Ok(Vec::new()));
    assert!(matches!(ask().await, Err(ModelError::Denied(_))));
    assert!(matches!(ask().await, Err(ModelError::Unavailable { .. })));
    assert!(matches!(ask().await, Err(ModelError::Unusable(_))));
    let requests = upstream.requests();
    assert_eq!((requests.len(), requests[0].method.as_str()), (5, "GET"));
    assert_eq!(
        (requests[0].path.as_str(), requests[0].header("x-api-key")),
        ("/v1/models", Some(KEY))
    );
    assert!(started.models.list("nobody", Duration::ZERO).await.is_err());
}
