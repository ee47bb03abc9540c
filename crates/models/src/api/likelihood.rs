//! vLLM's extension of Chat Completions by which it tells the likelihood of a prompt's tokens.
//!
//! Source: docs.vllm.ai, `vllm.entrypoints.openai.chat_completion.protocol` (0.15): `prompt_logprobs`,
//! `continue_final_message`, `add_generation_prompt`.

use std::collections::BTreeMap;

use plimsoll_core::ab::Likelihood;
use plimsoll_engine::{ChatRequest, ModelError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::ReplyError;
use super::{Delivery, chat, written};
use crate::provider::Provider;

/// Writes a request whose last message is an answer that the model would go on with.
pub(crate) fn likelihood_body(
    request: &ChatRequest,
    provider: &Provider,
    model: &str,
) -> Result<Vec<u8>, ModelError> {
    let body = chat::body(request, provider, model, Delivery::Whole)?;
    let mut body: Value =
        serde_json::from_slice(&body).map_err(|error| ModelError::Invalid(error.to_string()))?;
    // 0 asks for the token that stands there and for no other.
    body["prompt_logprobs"] = json!(0);
    body["add_generation_prompt"] = json!(false);
    body["continue_final_message"] = json!(true);
    written(&body)
}

#[derive(Deserialize)]
struct Told {
    /// By place, the first token has none.
    prompt_logprobs: Vec<Option<BTreeMap<String, TokenLikelihood>>>,
}

#[derive(Deserialize)]
struct TokenLikelihood {
    logprob: f64,
}

/// Reads the likelihood of the tokens behind the first `before`.
pub(crate) fn likelihood(body: &[u8], before: u64) -> Result<Likelihood, ReplyError> {
    let told: Told = serde_json::from_slice(body)
        .map_err(|error| ReplyError::Shape(format!("it tells no likelihood: {error}")))?;
    let tokens = told.prompt_logprobs.iter().skip(usize::try_from(before).unwrap_or(usize::MAX));
    let mut found = Likelihood { log_probability: 0.0, tokens: 0 };
    for token in tokens {
        let Some(token) = token.as_ref().and_then(|token| token.values().next()) else {
            return Err(ReplyError::Shape("a token has no likelihood".to_owned()));
        };
        found.log_probability += token.logprob;
        found.tokens += 1;
    }
    Ok(found)
}
