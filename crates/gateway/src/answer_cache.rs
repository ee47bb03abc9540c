//! The answer cache: the gateway asks it before the upstream, and gives it whole answers once they are in the history.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use plimsoll_core::{Message, Role};
use plimsoll_engine::TenantId;
use plimsoll_wire::{
    AnswerUsage, CacheQuestion, ProviderAnswer, ProviderRequest, SyntheticAnswer, Wire,
};

use crate::asked::may_be_stored;
use crate::gateway::Gateway;
use crate::headers;
use crate::metrics::Counter;
use crate::ports::KeptAnswer;
use crate::refusal::RequestRefusal;
use crate::relay::{Body, whole};
use crate::report::Report;
use crate::turn::{SessionTurn, TurnOutcome};

/// A question that awaits its answer.
#[derive(Debug)]
pub(crate) struct Awaited {
    pub(crate) tenant: TenantId,
    pub(crate) question: CacheQuestion,
}

impl Awaited {
    /// Looks for an answer in the cache.
    pub(crate) async fn find(&self, gateway: &Gateway) -> Option<KeptAnswer> {
        let find = gateway.answers.as_ref()?.find(&self.tenant, &self.question);
        let found = in_time(gateway, find).await.flatten();
        let result = match &found {
            Some(answer) if answer.is_exact => "exact",
            Some(_) => "similar",
            None => "miss",
        };
        gateway.metrics.add(Counter::Cached, result);
        found
    }

    /// Keeps an answer.
    pub(crate) async fn keep(self, gateway: &Gateway, wire: Wire, answer: &ProviderAnswer) {
        let Some(answers) = &gateway.answers else { return };
        let (text, facts) = (answer.text(), answer.facts(wire));
        let keep = answers.keep(&self.tenant, &self.question, &text, &facts);
        let is_kept =
            may_be_stored(&text, gateway.ingestion) && in_time(gateway, keep).await == Some(true);
        gateway.metrics.add(Counter::Cached, if is_kept { "kept" } else { "not_kept" });
    }
}

/// Gives the cache half of the time for our own work, since the client waits and other work follows.
async fn in_time<T>(gateway: &Gateway, work: impl Future<Output = T>) -> Option<T> {
    let most = Duration::from_millis(gateway.config.timeouts.deadline_ms / 2);
    tokio::select! {
        biased;
        done = work => Some(done),
        () = gateway.clock.sleep(most) => {
            tracing::warn!("the answer cache takes too long, and has no part in this request");
            None
        }
    }
}

/// Answers a request from the cache; the history has the answer before the client does.
pub(crate) async fn serve(
    gateway: &Gateway,
    found: KeptAnswer,
    request: &ProviderRequest,
    mut turn: SessionTurn,
    report: Report,
) -> Result<Response<Body>, RequestRefusal> {
    let now = gateway.clock.now();
    let outcome = TurnOutcome {
        message: Some(Message::text(Role::Assistant, &*found.text)),
        usage: Some(AnswerUsage::default()),
        cached: Some(Arc::from(&*found.key)),
        ..TurnOutcome::default()
    };
    turn.end(outcome).await.map_err(RequestRefusal::NotKept)?;
    // Each answer has another id: clients take two answers of one id for one.
    let id = format!("{}{:x}", found.key.get(..16).unwrap_or(&found.key), now.0);
    let body = request.answered(&SyntheticAnswer { id: &id, text: &found.text, at: now });
    let mut answer = Response::new(whole(Bytes::from(body)));
    let outcome = "cached";
    gateway.metrics.add(Counter::Outcomes, outcome);
    report.count(&gateway.metrics);
    report.log(outcome);
    let head = answer.headers_mut();
    report.show(head);
    head.insert(headers::OUTCOME, HeaderValue::from_static(outcome));
    if let Ok(key) = HeaderValue::try_from(found.key) {
        head.insert(headers::ANSWER_KEY, key);
    }
    let kind = if request.streams() { "text/event-stream" } else { "application/json" };
    head.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    head.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}
