//! One request of a planned conversation: check, read, charge, answer.

use std::sync::{Arc, PoisonError};

use hyper::{Response, StatusCode};
use plimsoll_core::cost::{Piece, Prices};
use serde_json::{Value, json};

use super::answer::ScriptedAnswer;
use super::binding::{self, BINDING_BETA, Binding, BindingVerdict};
use super::body::AnswerBody;
use super::editing;
use super::endpoint::{AnswerDelivery, Endpoint};
use super::pieces::{pieces, total};
use super::plan::ScriptedPlan;
use super::serve::{ProviderRequest, ProviderState, beside, error, json_answer, write};
use super::tariff::RequestPrice;
use super::usage::ReportedUsage;
use super::{RecordedExchange, RequestCheck, Rules, Wire, responses};

/// A request as the provider understood it.
struct RequestReading {
    verdict: BindingVerdict,
    edits: Option<Vec<Value>>,
    /// As it was sent.
    sent: Vec<Piece>,
    /// As the model sees it, without what was dropped or cleared.
    seen: Vec<Piece>,
}

/// Answers by the plan.
pub(crate) fn planned(
    shared: &Arc<ProviderState>,
    asked: &ProviderRequest,
    plan: &ScriptedPlan,
    check: Option<&RequestCheck>,
    rules: &Rules,
) -> Response<AnswerBody> {
    let endpoint = asked.endpoint();
    let wire = match endpoint {
        Endpoint::Turn(wire, _) | Endpoint::CountTokens(wire) => wire,
        Endpoint::Compact => Wire::Responses,
        Endpoint::Models | Endpoint::Presence | Endpoint::Unknown => {
            let (status, body) = beside(asked, endpoint);
            return json_answer(status, &body, shared.record(asked.kept(status)));
        }
    };
    let refuse = |message: String, kept: RecordedExchange| {
        let status = StatusCode::BAD_REQUEST;
        let answer = error(wire, status, &message);
        let kept = RecordedExchange { violations: vec![message], status: status.as_u16(), ..kept };
        json_answer(status, &answer, shared.record(kept))
    };
    let mut kept = asked.kept(StatusCode::OK);
    let raw = match asked.decoded() {
        Ok(raw) => raw,
        Err(message) => return refuse(message, kept),
    };
    let body: Value = match serde_json::from_slice(&raw) {
        Ok(body) => body,
        Err(error) => return refuse(format!("the body is not JSON: {error}"), kept),
    };
    if let (Endpoint::Turn(..), Some(check)) = (endpoint, check) {
        let violations = check(wire, &raw);
        if !violations.is_empty() {
            return refuse(violations.join("; "), kept);
        }
    }
    if endpoint == Endpoint::Compact {
        let body = responses::compacted(&body, asked.number);
        return json_answer(StatusCode::OK, &body, shared.record(kept));
    }
    let model = asked.model(&body);
    let (priced_as, prices) = shared.tariff.prices(wire, model);
    let mut read = match read(wire, asked, model, &prices, &body, rules) {
        Ok(read) => read,
        Err(message) => return refuse(message, kept),
    };
    kept.thinking = read.verdict.thinking;
    let mut caches = shared.caches.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(endpoint, Endpoint::Turn(..)) {
        kept.continuity = caches.continuity(wire, &body, &read.sent);
    }
    if let Some(message) = read.verdict.refusal.take() {
        return refuse(message, kept);
    }
    if matches!(endpoint, Endpoint::CountTokens(_)) {
        let name = if wire == Wire::Gemini { "totalTokens" } else { "input_tokens" };
        let mut body = json!({name: total(&read.seen)});
        if read.edits.is_some() {
            body["context_management"] = json!({"original_input_tokens": total(&read.sent)});
        }
        return json_answer(StatusCode::OK, &body, shared.record(kept));
    }
    let is_unanswered = wire == Wire::AnthropicMessages && body["max_tokens"] == 0;
    if let Some(message) = is_unanswered.then(|| unanswerable(&body)).flatten() {
        return refuse(message, kept);
    }
    let text = String::from_utf8_lossy(&raw);
    let mut answer = ScriptedAnswer::to(wire, model, &body, &text, plan, asked.number);
    answer.is_silent = is_unanswered;
    let output = if is_unanswered { 0 } else { answer.tokens() };
    if wire == Wire::AnthropicMessages && rules.binding == Binding::ByModel {
        // Newer models do not show what they think unless they are asked to (Anthropic, extended thinking).
        let is_shown = !prices.bound_thinking || body["thinking"]["display"] == "summarized";
        answer.reasoning = answer.reasoning.map(|text| if is_shown { text } else { String::new() });
        answer.signature = Some(std::mem::take(&mut read.verdict.signature));
        answer.transformations = read.verdict.transformations.take();
    }
    answer.edits = read.edits.map(Value::from);
    let set = *shared.now.lock().unwrap_or_else(PoisonError::into_inner);
    let now = asked.time().or(set);
    caches.remember(wire, &body, &read.sent);
    let charge = caches.charge(&prices, &read.seen, now);
    drop(caches);
    answer.usage = ReportedUsage::of(&charge, prices.cache, output);
    let bill = Some(RequestPrice::of(model, priced_as, &prices, charge, answer.usage));
    let turn = Some((answer.turn, !answer.calls.is_empty()));
    let done = shared.record(RecordedExchange { turn, usage: answer.usage, bill, ..kept });
    let streams = match endpoint {
        Endpoint::Turn(_, Some(delivery)) => delivery == AnswerDelivery::Streamed,
        _ => body["stream"] == true,
    };
    let reports_usage = body["stream_options"]["include_usage"] == true;
    write(shared, wire, &answer, streams, reports_usage, done)
}

/// Returns why a prompt cannot be read without an answer (Anthropic, prompt caching, "Pre-warming the cache").
fn unanswerable(body: &Value) -> Option<String> {
    let forces = matches!(body["tool_choice"]["type"].as_str(), Some("tool" | "any"));
    let is_refused = body["stream"] == true
        || body["thinking"]["type"] == "enabled"
        || !body["output_config"]["format"].is_null()
        || forces;
    is_refused.then(|| "max_tokens: 0 does not go with other parameters of the request".to_owned())
}

/// Reads a request. Errors: what the provider refuses beside thinking that does not fit.
fn read(
    wire: Wire,
    asked: &ProviderRequest,
    model: &str,
    prices: &Prices,
    body: &Value,
    rules: &Rules,
) -> Result<RequestReading, String> {
    let sent = pieces(wire, body, model, prices.cache)?;
    if wire != Wire::AnthropicMessages {
        return Ok(RequestReading {
            verdict: BindingVerdict::default(),
            edits: None,
            seen: sent.clone(),
            sent,
        });
    }
    let betas = asked.betas();
    let verdict = match rules.binding {
        Binding::Never => BindingVerdict::default(),
        Binding::ByModel => {
            let has_beta = betas.contains(&BINDING_BETA);
            binding::check(body, model, prices.bound_thinking, has_beta)
        }
    };
    let mut seen = body.clone();
    binding::without(&mut seen, &verdict.dropped);
    let again = |body: &Value| pieces(wire, body, model, prices.cache);
    let edits =
        editing::edit(&mut seen, &betas, |body| again(body).map_or(0, |pieces| total(&pieces)))?;
    let seen = again(&seen)?;
    Ok(RequestReading { verdict, edits, sent, seen })
}
