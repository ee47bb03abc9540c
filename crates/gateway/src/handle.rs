//! One request: who asks, what for, where it goes, what comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming as RequestBody;
use plimsoll_engine::TenantId;
use plimsoll_wire::{self as wire, BETA_THINKING, Wire};
use tokio::time::Instant;

use crate::answer::{FollowUp, PendingTurn, RelayedAnswer};
use crate::answer_cache;
use crate::answer_stream::AnswerStream;
use crate::body::{Received, Share, receive};
use crate::config::{Api, Mode, Timeouts};
use crate::gateway::Gateway;
use crate::headers;
use crate::metrics::Counted;
use crate::prepare::{Job, Open, Original, Prepared, RequestOptions};
use crate::refusal::Refusal;
use crate::relay::{Body, Incoming, body as body_of, whole};
use crate::routes::{Access, Route};
use crate::traces::Traces;
use crate::turn::causes;
use crate::upstream::Upstream;
use crate::warm::Sent;
use crate::work::BrokeOff;

/// Answers a request; whatever goes wrong becomes an answer too.
pub(crate) async fn handle(gateway: Arc<Gateway>, request: Request<RequestBody>) -> Response<Body> {
    let (route, access) = Route::of(request.method(), request.uri().path());
    // Known before anything can be refused, so that each is refused in its own words.
    let path = request.uri().path_and_query().map_or("", |path| path.as_str()).to_owned();
    let found = gateway.upstreams.find(&path, request.headers());
    let api = found.as_ref().map_or(Api::OpenAi, |(upstream, _)| upstream.api);
    // In a box that goes when the head of the answer is there: hyper keeps the place of this future as long as the connection.
    let answered = Box::pin(answer(&gateway, request, route, access, found)).await;
    answered.unwrap_or_else(|refusal| {
        gateway.metrics.refusal(refusal.word());
        tracing::info!(why = refusal.word(), status = refusal.status().as_u16(), "refused");
        refusal.response(api)
    })
}

async fn answer(
    gateway: &Arc<Gateway>,
    request: Request<RequestBody>,
    route: Route,
    access: Access,
    found: Result<(Arc<Upstream>, &str), Refusal>,
) -> Result<Response<Body>, Refusal> {
    if route == Route::Health {
        return Ok(text("alive\n"));
    }
    if !gateway.admits(request.headers()) {
        return Err(Refusal::Foreign);
    }
    let own_places = found.as_ref().is_ok_and(|(upstream, _)| upstream.has_key());
    let tenant = gateway.keys.tenant(request.headers(), own_places);
    if access == Access::Key && tenant.is_none() {
        return Err(Refusal::NoKey);
    }
    match route {
        Route::Health => Ok(text("alive\n")),
        Route::Ready if *gateway.stopping().borrow() => Err(Refusal::Stopping),
        Route::Ready => Ok(text("ready\n")),
        Route::Metrics => Ok(text(&{
            let (sessions, bytes) = gateway.sessions.size();
            gateway.metrics.write(gateway.in_flight.used(), sessions, bytes)
        })),
        Route::Hello => Ok(text("plimsoll\n")),
        Route::WebSocket => Err(Refusal::Upgrade),
        Route::Upstream => {
            let (upstream, path) = found?;
            let tenant = tenant.ok_or(Refusal::NoKey)?;
            forward(gateway, request, upstream, path, tenant).await
        }
    }
}

/// A request on its way to an upstream.
struct Outbound {
    gateway: Arc<Gateway>,
    upstream: Arc<Upstream>,
    method: Method,
    path: String,
    /// As they go out.
    headers: HeaderMap,
    received: Received,
}

async fn forward(
    gateway: &Arc<Gateway>,
    request: Request<RequestBody>,
    upstream: Arc<Upstream>,
    path: &str,
    tenant: TenantId,
) -> Result<Response<Body>, Refusal> {
    let (head, body) = request.into_parts();
    let route = wire::Route::of(head.method.as_str(), path);
    gateway.metrics.request(word_of(route));
    let wish = RequestOptions::of(gateway, &head.headers)?;
    if wish.mode != Mode::Off && matches!(route, wire::Route::Generate(_)) && gateway.work.is_full()
    {
        return Err(Refusal::Busy);
    }
    let limits = &gateway.config.limits;
    let idle = Timeouts::of(gateway.config.timeouts.body);
    let received =
        receive(&head.headers, body, limits.body_bytes, idle, &gateway.in_flight, &*gateway.clock)
            .await?;
    let mut headers = headers::for_upstream(&head.headers);
    upstream.authorise(&mut headers);
    let job = |wire| Job {
        gateway: gateway.clone(),
        wire,
        tenant,
        upstream: upstream.name.clone(),
        wish: wish.clone(),
        path: path.to_owned(),
        headers: head.headers.clone(),
        body: received.plain().clone(),
        is_rebuilt: Arc::default(),
    };
    let job = match (route, wish.mode) {
        (_, Mode::Off) => None,
        (wire::Route::Generate(wire), _) => Some((job(wire), true)),
        (wire::Route::CountTokens(wire), Mode::On) => Some((job(wire), false)),
        _ => None,
    };
    let passage = Outbound {
        gateway: gateway.clone(),
        upstream,
        method: head.method,
        path: path.to_owned(),
        headers,
        received,
    };
    match job {
        None => {
            let bypassed = wish.mode == Mode::Off;
            passage.pass(if bypassed { "bypassed" } else { "passed" }).await
        }
        Some((job, true)) => passage.turn(job).await,
        Some((job, false)) => passage.predict(job).await,
    }
}

fn word_of(route: wire::Route) -> &'static str {
    match route {
        wire::Route::Generate(Wire::AnthropicMessages) => "anthropic_messages",
        wire::Route::Generate(Wire::ChatCompletions) => "chat_completions",
        wire::Route::Generate(Wire::Responses) => "responses",
        wire::Route::Generate(Wire::Gemini) => "gemini",
        wire::Route::CountTokens(_) => "count_tokens",
        wire::Route::Compact => "compact",
        wire::Route::Socket | wire::Route::Other => "other",
    }
}

impl Outbound {
    /// Sends a body, the client's own where none is given.
    async fn send(&self, body: Option<Bytes>) -> Result<reqwest::Response, Refusal> {
        let mut headers = self.headers.clone();
        let is_ours = body.is_some();
        if is_ours {
            headers::plain(&mut headers, self.received.decoded.is_some());
        }
        let body = body.unwrap_or_else(|| self.received.bytes.clone());
        ask(&self.gateway, &self.upstream, self.method.clone(), &self.path, headers, body).await
    }

    /// Returns what is sent with a body, the client's own where none is given.
    fn sent(&self, body: Option<&Bytes>) -> Sent {
        let body = body.unwrap_or_else(|| self.received.plain()).clone();
        let mut headers = self.headers.clone();
        headers::plain(&mut headers, self.received.decoded.is_some());
        let (upstream, path) = (self.upstream.clone(), self.path.clone());
        Sent { upstream, path, headers, body, at: self.gateway.clock.now() }
    }

    /// Returns the original for a provider that checks what thinking is bound to, `None` where it goes as it came.
    ///
    /// The model thought behind what we sent, which may be other than what the client sends: whatever does not fit is to be
    /// dropped, since a history that is refused cannot go on.
    fn unbound(&mut self, original: &Original) -> Option<Bytes> {
        let body = original.unbound(&self.gateway)?;
        headers::add_betas(&mut self.headers, &[BETA_THINKING]);
        Some(body)
    }

    /// Passes everything on.
    async fn pass(self, outcome: &'static str) -> Result<Response<Body>, Refusal> {
        self.gateway.metrics.outcome(outcome);
        let response = self.send(None).await?;
        Ok(through(&self.gateway, response))
    }

    /// Asks for the size of a request as it will be sent.
    async fn predict(self, job: Job) -> Result<Response<Body>, Refusal> {
        let body = match job.predict().await {
            Ok(body) => body,
            Err(Open::Refused(refusal)) => return Err(refusal),
            Err(_) => None,
        };
        let Some(body) = body else { return self.pass("passed").await };
        self.gateway.metrics.outcome("bounded");
        let response = self.send(Some(body)).await?;
        Ok(through(&self.gateway, response))
    }

    /// Takes part in a turn of a session.
    async fn turn(mut self, job: Job) -> Result<Response<Body>, Refusal> {
        let gateway = self.gateway.clone();
        let (wire, mode, is_rebuilt) = (job.wire, job.wish.mode, job.is_rebuilt.clone());
        let begun = Instant::now();
        let original = job.original();
        let mut trace = Traces::begin(&gateway, wire, &job.headers);
        let mut task = tokio::spawn(job.prepare());
        let timeouts = &gateway.config.timeouts;
        let prepared = tokio::select! {
            biased;
            prepared = &mut task => Some(prepared.unwrap_or(Err(Open::BrokeOff(BrokeOff)))),
            () = deadline(&gateway, &is_rebuilt) => None,
        };
        gateway.metrics.overhead(begun.elapsed());
        headers::plain(&mut self.headers, false);
        let (mut asked, mut place, mut awaited) = (None, None, None);
        let (outcome, body, ender, report) = match prepared {
            None => {
                tracing::warn!(
                    deadline_ms = timeouts.deadline_ms,
                    "not ready in time: the original goes out"
                );
                ("late", self.unbound(&original), PendingTurn::Later(task), None)
            }
            Some(Err(Open::Refused(refusal))) => return Err(refusal),
            Some(Err(open)) => {
                if open.is_expected() {
                    tracing::debug!(why = %open, "passed on untouched");
                    return self.pass("untouched").await;
                }
                tracing::warn!(why = %causes(&open), "the original goes out");
                ("failed_open", self.unbound(&original), PendingTurn::None, None)
            }
            Some(Ok(Prepared { request, found: Some(found), turn, report, .. })) => {
                let report = report.unsent();
                trace.decided("cached", request.model(), Some(&report));
                return answer_cache::serve(&gateway, found, &request, turn, report).await;
            }
            Some(Ok(prepared)) => {
                headers::add_betas(&mut self.headers, &prepared.betas);
                awaited = prepared.awaited;
                place = prepared.turn.place().filter(|_| prepared.body.is_some());
                let outcome = match (mode, &prepared.body) {
                    (Mode::On, Some(_)) => "bounded",
                    (Mode::On, None) => "untouched",
                    _ => "observed",
                };
                asked = Some((prepared.request, prepared.edits));
                (outcome, prepared.body, PendingTurn::Now(prepared.turn), Some(prepared.report))
            }
        };
        let model = asked.as_ref().and_then(|(request, _)| request.model());
        trace.decided(outcome, model, report.as_ref());
        let is_changed = outcome == "bounded" && body.is_some();
        // Only what the session was asked, and not where nothing of ours may be sent.
        let is_ours = mode == Mode::On && asked.is_some() && wire == Wire::AnthropicMessages;
        let mut sent =
            (is_ours && gateway.config.keep_warm.on).then(|| Box::new(self.sent(body.as_ref())));
        let mut response = self.send(body).await?;
        let mut outcome = outcome;
        if is_changed && response.status() == StatusCode::BAD_REQUEST {
            // Whatever it is that the provider does not like, it may be our doing.
            let refused = incoming(&gateway, response).whole(64 << 10).await.unwrap_or_default();
            tracing::warn!(
                answer = %String::from_utf8_lossy(&refused[..refused.len().min(500)]),
                "a bounded request was refused: the original goes out"
            );
            outcome = "failed_open";
            (place, awaited, sent) = (None, None, None);
            let body = self.unbound(&original);
            response = self.send(body).await?;
        }
        trace.answered(response.status().as_u16());
        gateway.metrics.outcome(outcome);
        let mut answer = answer_head(&response, false);
        if let Some(report) = &report {
            report.count(&gateway);
            report.log(outcome);
            report.show(answer.headers_mut());
        }
        answer.headers_mut().insert(headers::OUTCOME, HeaderValue::from_static(outcome));
        let Self { received, upstream, method, path, mut headers, .. } = self;
        headers::plain(&mut headers, received.decoded.is_some());
        let streams = asked.as_ref().is_some_and(|(request, _)| request.streams());
        let again = asked.zip(place).map(|((request, edits), place)| FollowUp {
            upstream,
            method,
            path,
            headers,
            request,
            edits,
            place,
        });
        let kind = kind_of(&response, streams);
        let answering = RelayedAnswer::new(gateway, wire, ender, again)
            .awaited(awaited)
            .traced(trace)
            .sent(sent);
        hand_on(answer, kind, response, answering, received.share).await
    }
}

/// Returns what kind of answer this is to a request that asked for a stream, or did not.
fn kind_of(response: &reqwest::Response, streams: bool) -> Kind {
    match Kind::of(response) {
        // A stream that is one long list: it is not ours to hold until it ends.
        Kind::Whole if streams => Kind::Other,
        kind => kind,
    }
}

/// Hands an answer on, as what it is.
async fn hand_on(
    answer: Response<()>,
    kind: Kind,
    response: reqwest::Response,
    mut answering: RelayedAnswer,
    share: Share,
) -> Result<Response<Body>, Refusal> {
    let gateway = answering.gateway.clone();
    let metrics = gateway.metrics.clone();
    let counted = Counted::new(move |change| metrics.streams(change));
    let mut from = incoming(&gateway, response);
    Ok(match kind {
        Kind::Stream => {
            answer.map(|()| body_of(AnswerStream::new(answering, from, (counted, share))))
        }
        Kind::Whole => {
            let most = gateway.config.limits.answer_bytes;
            let cut = |why: String| {
                gateway.metrics.cut();
                Refusal::Unreachable(why)
            };
            let bytes = from.whole(most).await.map_err(|why| cut(why.to_string()))?;
            let bytes = answering.whole(bytes).await.map_err(cut)?;
            answering.keep().await.map_err(Refusal::NotKept)?;
            answer.map(|()| whole(bytes))
        }
        Kind::Other => answer.map(|()| from.pass_on((counted, answering))),
    })
}

/// Returns when our own work has had its time.
async fn deadline(gateway: &Gateway, is_rebuilt: &AtomicBool) {
    let timeouts = &gateway.config.timeouts;
    let begun = gateway.clock.now();
    gateway.clock.sleep(Duration::from_millis(timeouts.deadline_ms)).await;
    if is_rebuilt.load(Ordering::Relaxed) {
        let spent = gateway.clock.now().0.saturating_sub(begun.0).unsigned_abs();
        let left = timeouts.rebuild_ms.saturating_sub(spent);
        if left > 0 {
            gateway.clock.sleep(Duration::from_millis(left)).await;
        }
    }
}

/// What an answer is, as far as we read it.
enum Kind {
    Stream,
    Whole,
    /// A failure, or nothing that is known: passed on as it is.
    Other,
}

impl Kind {
    fn of(response: &reqwest::Response) -> Self {
        let text =
            |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let encoding = text(CONTENT_ENCODING).unwrap_or("identity");
        if !response.status().is_success() || encoding != "identity" {
            return Self::Other;
        }
        let kind = text(CONTENT_TYPE).unwrap_or("").split(';').next().unwrap_or("").trim();
        match kind {
            "text/event-stream" => Self::Stream,
            "application/json" => Self::Whole,
            _ => Self::Other,
        }
    }
}

fn through(gateway: &Gateway, response: reqwest::Response) -> Response<Body> {
    let answer = answer_head(&response, true);
    let metrics = gateway.metrics.clone();
    let counted = Counted::new(move |change| metrics.streams(change));
    answer.map(|()| incoming(gateway, response).pass_on(counted))
}

/// Sends a request to its upstream.
pub(crate) async fn ask(
    gateway: &Gateway,
    upstream: &Upstream,
    method: http::Method,
    path: &str,
    headers: HeaderMap,
    body: Bytes,
) -> Result<reqwest::Response, Refusal> {
    let first_byte = Timeouts::of(gateway.config.timeouts.first_byte);
    let sent = upstream.send(method, path, headers, body, first_byte, &*gateway.clock).await;
    if let Ok(response) = &sent {
        tracing::debug!(upstream = upstream.name, status = response.status().as_u16(), "answered");
        gateway.metrics.answer(response.status().as_u16());
    }
    sent
}

/// Makes the body of an answer readable piece by piece.
pub(crate) fn incoming(gateway: &Gateway, response: reqwest::Response) -> Incoming {
    let idle = Timeouts::of(gateway.config.timeouts.idle);
    Incoming::new(response, gateway.clock.clone(), idle, gateway.ending())
}

/// Makes the head of the answer to the client of that of the upstream.
pub(crate) fn answer_head(response: &reqwest::Response, is_untouched: bool) -> Response<()> {
    let mut answer = Response::new(());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = headers::for_client(response.headers(), is_untouched);
    answer
}

fn text(text: &str) -> Response<Body> {
    let mut response = Response::new(whole(Bytes::copy_from_slice(text.as_bytes())));
    *response.status_mut() = StatusCode::OK;
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of the future that a function makes, without making it.
    fn size<A, B, F: Future>(_: impl FnOnce(A, B) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_connection_does_not_hold_what_its_last_request_needed() {
        assert!(size(handle) < 1024, "{} bytes for each connection", size(handle));
    }
}
