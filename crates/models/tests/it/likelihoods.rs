//! Likelihoods of given answers, which vLLM tells.

use plimsoll_core::{Message, Role};
use plimsoll_engine::ModelError;
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use serde_json::{Value, json};

use crate::start::{ask, start, up};

fn counted(tokens: u64) -> Scripted {
    let choice = json!({"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": "x"}});
    let usage = json!({"prompt_tokens": tokens, "completion_tokens": 1});
    Scripted::body(
        200,
        json!({"id": "1", "model": "m", "choices": [choice], "usage": usage}).to_string(),
    )
}

fn told(logprobs: &Value) -> Scripted {
    Scripted::body(200, json!({"choices": [], "prompt_logprobs": logprobs}).to_string())
}

fn token(logprob: f64) -> Value {
    json!({"17": {"logprob": logprob, "rank": 1, "decoded_token": "a"}})
}

#[tokio::test]
async fn the_tokens_behind_the_prompt_are_summed() {
    let logprobs = json!([null, token(-9.0), token(-0.5), token(-1.0)]);
    let upstream = ScriptedServer::start([counted(2), told(&logprobs)]).await;
    let config = up("chat", "").replace("providers.up", "providers.vllm");
    let started = start(&upstream, &config);
    let model = started.models.chat("vllm/m").expect("a model");
    let answer = Message::text(Role::Assistant, "a step");
    let found = model.likelihood(&ask("go"), &answer).await.expect("an answer").expect("told");
    assert_eq!((found.log_probability, found.tokens), (-1.5, 2));
    let body: Value = serde_json::from_slice(&upstream.requests()[1].body).expect("JSON");
    assert_eq!(body["prompt_logprobs"], 0);
    assert_eq!(body["continue_final_message"], true);
    assert_eq!(body["add_generation_prompt"], false);
    assert_eq!(body["messages"][1]["content"], "a step");
}

#[tokio::test]
async fn others_are_not_asked_and_a_missing_figure_is_unusable() {
    let answer = Message::text(Role::Assistant, "a step");
    let upstream = ScriptedServer::start([]).await;
    let started = start(&upstream, &up("chat", ""));
    let model = started.models.chat("up/m").expect("a model");
    assert_eq!(model.likelihood(&ask("go"), &answer).await, Ok(None));
    assert!(upstream.requests().is_empty());
    let upstream = ScriptedServer::start([counted(1), told(&json!([null, null]))]).await;
    let config = up("chat", "").replace("providers.up", "providers.vllm");
    let started = start(&upstream, &config);
    let model = started.models.chat("vllm/m").expect("a model");
    let found = model.likelihood(&ask("go"), &answer).await;
    assert!(matches!(found, Err(ModelError::Unusable(_))), "{found:?}");
}
