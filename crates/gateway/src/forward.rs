//! Forwarding: a request on its way to its upstream, untouched or bounded, and the response on its way back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming as RequestBody;
use plimsoll_core::safety::{Handling, redact};
use plimsoll_engine::TenantId;
use plimsoll_wire::{BETA_THINKING, Route, Wire, error_body};
use tokio::time::Instant;

use crate::answer::{FollowUp, PendingTurn, RelayedAnswer};
use crate::answer_cache;
use crate::answer_stream::AnswerStream;
use crate::body::{BodyPace, ReceivedBody, receive};
use crate::causes::causes;
use crate::client_options::RequestOptions;
use crate::config::Mode;
use crate::gateway::Gateway;
use crate::headers;
use crate::in_flight::BodyShare;
use crate::metrics::{Counter, GaugeGuard};
use crate::prepare::{FailOpen, Original, Preparation, PreparedRequest};
use crate::refusal::RequestRefusal;
use crate::relay::{Body, body as body_of, whole};
use crate::upstream::{Upstream, UpstreamRequest};
use crate::warm::SentRequest;
use crate::work::BrokeOff;

/// A request on its way to an upstream.
struct Outbound {
    gateway: Arc<Gateway>,
    /// The request as the client sent it.
    request: UpstreamRequest,
    received: ReceivedBody,
}

/// Sends a request to its upstream: as it came, or as a turn of its session.
pub(crate) async fn forward(
    gateway: &Arc<Gateway>,
    request: Request<RequestBody>,
    upstream: Arc<Upstream>,
    path: &str,
    tenant: TenantId,
) -> Result<Response<Body>, RequestRefusal> {
    let (head, body) = request.into_parts();
    let route = Route::of(head.method.as_str(), path);
    gateway.metrics.add(Counter::Requests, word_of(route));
    let options = RequestOptions::of(gateway, &head.headers)?;
    let mode = options.mode;
    if mode != Mode::Off && matches!(route, Route::Generate(_)) && gateway.work.is_full() {
        return Err(RequestRefusal::Busy);
    }
    let limits = &gateway.config.limits;
    let pace = BodyPace::of(&gateway.config.timeouts, limits);
    let room = (&gateway.in_flight, &tenant);
    let received =
        receive(&head.headers, body, limits.body_bytes, pace, room, &*gateway.clock).await?;
    let mut headers = headers::for_upstream(&head.headers);
    upstream.authorise(&mut headers);
    let (path, upstream_name) = (path.to_owned(), upstream.name.clone());
    let mut body = received.bytes.clone();
    if gateway.config.add.redact {
        // An encoded body cannot be redacted.
        body = received.plain().clone();
        headers::plain(&mut headers, received.decoded.is_some());
    }
    let plain = received.plain().clone();
    let request = UpstreamRequest { upstream, method: head.method, path, headers, body };
    let preparation = |wire| Preparation {
        gateway: gateway.clone(),
        wire,
        tenant,
        upstream: upstream_name,
        options,
        path: request.path.clone(),
        headers: head.headers,
        body: plain,
        is_rebuilt: Arc::default(),
    };
    let preparation = match (route, mode) {
        (Route::Generate(wire), Mode::On | Mode::Observe) => Some((preparation(wire), true)),
        (Route::CountTokens(wire), Mode::On) => Some((preparation(wire), false)),
        _ => None,
    };
    let outbound = Outbound { gateway: gateway.clone(), request, received };
    match preparation {
        None if mode == Mode::Off => outbound.pass("bypassed").await,
        None => outbound.pass("passed").await,
        Some((preparation, true)) => outbound.turn(preparation).await,
        Some((preparation, false)) => outbound.predict(preparation).await,
    }
}

fn word_of(route: Route) -> &'static str {
    match route {
        Route::Generate(Wire::AnthropicMessages) => "anthropic_messages",
        Route::Generate(Wire::ChatCompletions) => "chat_completions",
        Route::Generate(Wire::Responses) => "responses",
        Route::Generate(Wire::Gemini) => "gemini",
        Route::CountTokens(_) => "count_tokens",
        Route::Compact => "compact",
        Route::Socket | Route::Other => "other",
    }
}

impl Outbound {
    /// Returns the request with a body of ours, in plain form.
    fn with_body(&self, body: Bytes) -> UpstreamRequest {
        let mut request = UpstreamRequest { body, ..self.request.clone() };
        headers::plain(&mut request.headers, self.received.decoded.is_some());
        request
    }

    /// Returns the request without its body, for what is asked further: it has a copy of the headers, which would keep the buffer
    /// in which they came as long as the answer.
    fn further(&self) -> UpstreamRequest {
        let mut request = self.with_body(Bytes::new());
        for value in request.headers.values_mut() {
            let is_sensitive = value.is_sensitive();
            if let Ok(copy) = HeaderValue::from_bytes(value.as_bytes()) {
                *value = copy;
                value.set_sensitive(is_sensitive);
            }
        }
        request
    }

    /// Sends a body, the client's own where none is given.
    async fn send(&self, body: Option<Bytes>) -> Result<reqwest::Response, RequestRefusal> {
        match body {
            Some(body) => self.gateway.ask(&self.with_body(body)).await,
            None => self.gateway.ask(&self.request).await,
        }
    }

    /// Returns the original for a provider that checks what thinking is bound to, `None` where it goes as it came.
    ///
    /// The model thought behind what we sent, which may be other than what the client sends: whatever does not fit is to be
    /// dropped, since a history that is refused cannot go on.
    fn unbound(&mut self, original: &Original) -> Option<Bytes> {
        let body = original.unbound(&self.gateway)?;
        headers::add_betas(&mut self.request.headers, &[BETA_THINKING]);
        Some(body)
    }

    /// Passes everything on.
    async fn pass(self, outcome: &'static str) -> Result<Response<Body>, RequestRefusal> {
        self.gateway.metrics.add(Counter::Outcomes, outcome);
        let response = self.send(None).await?;
        self.through(response).await
    }

    /// Hands a response on unread, but an error without our key.
    async fn through(&self, response: reqwest::Response) -> Result<Response<Body>, RequestRefusal> {
        let answer = answer_head(&response, &self.request.upstream, true);
        if is_failure(&response) && self.request.upstream.has_key() {
            return failed(&self.gateway, &self.request, answer, response).await;
        }
        let counted = GaugeGuard::new(&self.gateway.metrics, |metrics| &metrics.streams);
        Ok(answer.map(|()| self.gateway.incoming(response).pass_on(counted)))
    }

    /// Asks for the size of a request as it will be sent.
    async fn predict(self, preparation: Preparation) -> Result<Response<Body>, RequestRefusal> {
        let body = match preparation.predict().await {
            Ok(body) => body,
            Err(FailOpen::Refused(refusal)) => return Err(refusal),
            Err(_) => None,
        };
        let Some(body) = body else { return self.pass("passed").await };
        self.gateway.metrics.add(Counter::Outcomes, "bounded");
        let response = self.send(Some(body)).await?;
        self.through(response).await
    }

    /// Writes the start of a provider's refusal to the log, without secrets.
    async fn warn_of_refusal(&self, response: reqwest::Response) {
        let refused = self.gateway.incoming(response).whole(64 << 10).await.unwrap_or_default();
        let refused = self.request.upstream.without_key(refused);
        let refused = String::from_utf8_lossy(&refused[..refused.len().min(500)]).into_owned();
        tracing::warn!(
            answer = %redact(&refused, Handling::REDACT).0,
            "a bounded request was refused: the original goes out"
        );
    }

    /// Takes part in a turn of a session.
    async fn turn(mut self, preparation: Preparation) -> Result<Response<Body>, RequestRefusal> {
        let gateway = self.gateway.clone();
        let (wire, mode, is_rebuilt) =
            (preparation.wire, preparation.options.mode, preparation.is_rebuilt.clone());
        let begun = Instant::now();
        let original = preparation.original();
        let mut trace = gateway.traces.begin(wire, &preparation.headers);
        let mut task = tokio::spawn(preparation.prepare());
        let timeouts = &gateway.config.timeouts;
        let counted = gateway.work.prepares();
        let prepared = tokio::select! {
            biased;
            prepared = &mut task => Some(prepared.unwrap_or(Err(FailOpen::BrokeOff(BrokeOff)))),
            () = deadline(&gateway, &is_rebuilt) => None,
        };
        drop(counted);
        gateway.metrics.overhead(begun.elapsed());
        headers::plain(&mut self.request.headers, false);
        let (mut asked, mut place, mut awaited) = (None, None, None);
        let (outcome, body, turn, report) = match prepared {
            None => {
                tracing::warn!(
                    deadline_ms = timeouts.deadline_ms,
                    "not ready in time: the original goes out"
                );
                ("late", self.unbound(&original), PendingTurn::Later(task), None)
            }
            Some(Err(FailOpen::Refused(refusal))) => return Err(refusal),
            Some(Err(open)) => {
                if open.is_expected() {
                    tracing::debug!(why = %open, "passed on untouched");
                    return self.pass("untouched").await;
                }
                tracing::warn!(why = %causes(&open), "the original goes out");
                ("failed_open", self.unbound(&original), PendingTurn::None, None)
            }
            Some(Ok(PreparedRequest { request, found: Some(found), turn, report, .. })) => {
                let report = report.unsent();
                trace.decided("cached", request.model(), Some(&report));
                return answer_cache::serve(&gateway, found, &request, turn, report).await;
            }
            Some(Ok(prepared)) => {
                headers::add_betas(&mut self.request.headers, &prepared.betas);
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
        let mut sent = (is_ours && gateway.config.keep_warm.on).then(|| {
            let body = body.clone().unwrap_or_else(|| self.received.plain().clone());
            Box::new(SentRequest { request: self.with_body(body), at: gateway.clock.now() })
        });
        let mut response = self.send(body).await?;
        let mut outcome = outcome;
        if is_changed && response.status() == StatusCode::BAD_REQUEST {
            // The cause may be a change of ours.
            self.warn_of_refusal(response).await;
            outcome = "failed_open";
            (place, awaited, sent) = (None, None, None);
            let body = self.unbound(&original);
            response = self.send(body).await?;
        }
        trace.answered(response.status().as_u16());
        gateway.metrics.add(Counter::Outcomes, outcome);
        let mut answer = answer_head(&response, &self.request.upstream, false);
        if let Some(report) = &report {
            report.count(&gateway.metrics);
            report.log(outcome);
            report.show(answer.headers_mut());
        }
        answer.headers_mut().insert(headers::OUTCOME, HeaderValue::from_static(outcome));
        if gateway.backlog.is_behind() {
            answer.headers_mut().insert(headers::HISTORY, headers::BEHIND);
        }
        if is_failure(&response) && self.request.upstream.has_key() {
            return failed(&gateway, &self.request, answer, response).await;
        }
        let streams = asked.as_ref().is_some_and(|(request, _)| request.streams());
        // Only a request that offers tools of ours is asked further, so only that one is kept.
        let offers = asked.filter(|(_, edits)| !edits.add_tools.is_empty());
        let follow_up = offers.zip(place).map(|((request, edits), place)| FollowUp {
            upstream: self.further(),
            request,
            edits,
            place,
        });
        let kind = kind_of(&response, streams);
        let mut relayed = RelayedAnswer::new(gateway, wire, turn, follow_up);
        (relayed.awaited, relayed.trace, relayed.sent) = (awaited, trace, sent);
        hand_on(answer, kind, response, relayed, self.received.share).await
    }
}

/// Returns what kind of answer this is to a request that asked for a stream, or did not.
fn kind_of(response: &reqwest::Response, streams: bool) -> AnswerKind {
    match AnswerKind::of(response) {
        // A stream that is one long list: it is not ours to hold until it ends.
        AnswerKind::Whole if streams => AnswerKind::Other,
        kind => kind,
    }
}

/// Hands an answer on, as what it is.
async fn hand_on(
    mut answer: Response<()>,
    kind: AnswerKind,
    response: reqwest::Response,
    mut relayed: RelayedAnswer,
    share: BodyShare,
) -> Result<Response<Body>, RequestRefusal> {
    let gateway = relayed.gateway.clone();
    let counted = GaugeGuard::new(&gateway.metrics, |metrics| &metrics.streams);
    let mut from = gateway.incoming(response);
    Ok(match kind {
        AnswerKind::Stream => {
            answer.map(|()| body_of(AnswerStream::new(relayed, from, (counted, share))))
        }
        AnswerKind::Whole => {
            let most = gateway.config.limits.answer_bytes;
            let cut = |why: String| {
                gateway.metrics.add(Counter::Answers, "cut");
                RequestRefusal::Unreachable(why)
            };
            let bytes = from.whole(most).await.map_err(|why| cut(why.to_string()))?;
            let bytes = relayed.whole(bytes).await.map_err(cut)?;
            relayed.keep().await.map_err(RequestRefusal::NotKept)?;
            if gateway.backlog.is_behind() {
                answer.headers_mut().insert(headers::HISTORY, headers::BEHIND);
            }
            answer.map(|()| whole(bytes))
        }
        AnswerKind::Other => answer.map(|()| from.pass_on((counted, relayed))),
    })
}

/// Returns when the time for our own work is over.
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

/// The kind of an answer, as far as the gateway reads it.
enum AnswerKind {
    Stream,
    Whole,
    /// A failure or an unknown kind, which is passed on as it is.
    Other,
}

impl AnswerKind {
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

/// Returns whether an upstream's answer is an error, or a redirect, which no API of a model gives.
fn is_failure(response: &reqwest::Response) -> bool {
    let status = response.status();
    status.is_client_error() || status.is_server_error() || status.is_redirection()
}

/// The most bytes of an error of an upstream that has our key (chosen: such a text is read by people).
const LONGEST_ERROR: usize = 1 << 20;

/// Hands an error on without our key, which some upstreams repeat; of a refused key, nothing but that.
async fn failed(
    gateway: &Gateway,
    request: &UpstreamRequest,
    answer: Response<()>,
    response: reqwest::Response,
) -> Result<Response<Body>, RequestRefusal> {
    let upstream = &request.upstream;
    let encoded = response.headers().contains_key(CONTENT_ENCODING);
    let body = gateway.incoming(response).whole(LONGEST_ERROR).await;
    let body = body.map_err(|cut| RequestRefusal::Unreachable(cut.to_string()))?;
    let (mut head, ()) = answer.into_parts();
    let body = if head.status == StatusCode::UNAUTHORIZED || encoded {
        // Providers show parts of a key that they do not know.
        head.headers.remove(CONTENT_ENCODING);
        head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let wire = upstream.api.wire();
        let told = match head.status {
            StatusCode::UNAUTHORIZED => "the upstream refused the gateway's key",
            _ => "the upstream answered with an encoded error",
        };
        Bytes::from(error_body(wire, head.status.as_u16(), told))
    } else {
        upstream.without_key(body)
    };
    head.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(head, whole(body)))
}

/// Makes the head of the answer to the client of that of the upstream.
fn answer_head(
    response: &reqwest::Response,
    upstream: &Upstream,
    is_untouched: bool,
) -> Response<()> {
    let mut answer = Response::new(());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = headers::for_client(response.headers(), is_untouched);
    upstream.without_key_in(answer.headers_mut());
    answer
}
