//! One request: who asks, what for, where it goes, what comes back.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming as RequestBody;
use plimsoll_engine::TenantId;

use crate::body::{Received, receive};
use crate::config::{Api, Timeouts};
use crate::gateway::Gateway;
use crate::headers;
use crate::metrics::Counted;
use crate::refusal::Refusal;
use crate::relay::{Body, Incoming, whole};
use crate::routes::{Access, Route};
use crate::upstream::Upstream;

/// Answers a request; whatever goes wrong becomes an answer too.
pub(crate) async fn handle(gateway: Arc<Gateway>, request: Request<RequestBody>) -> Response<Body> {
    let (route, access) = Route::of(request.method(), request.uri().path());
    // Known before anything can be refused, so that each is refused in its own words.
    let path = request.uri().path_and_query().map_or("", |path| path.as_str()).to_owned();
    let found = gateway.upstreams.find(&path, request.headers());
    let api = found.as_ref().map_or(Api::OpenAi, |(upstream, _)| upstream.api);
    let answered = answer(&gateway, request, route, access, found).await;
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
        Route::Metrics => Ok(text(&gateway.metrics.write(gateway.in_flight.used(), 0, 0))),
        Route::Hello => Ok(text("plimsoll\n")),
        Route::WebSocket => Err(Refusal::Upgrade),
        Route::Upstream => {
            let (upstream, path) = found?;
            let tenant = tenant.ok_or(Refusal::NoKey)?;
            forward(gateway, request, &upstream, path, tenant).await
        }
    }
}

async fn forward(
    gateway: &Arc<Gateway>,
    request: Request<RequestBody>,
    upstream: &Upstream,
    path: &str,
    _tenant: TenantId,
) -> Result<Response<Body>, Refusal> {
    let (head, body) = request.into_parts();
    let limits = &gateway.config.limits;
    let idle = Timeouts::of(gateway.config.timeouts.body);
    let received =
        receive(&head.headers, body, limits.body_bytes, idle, &gateway.in_flight, &*gateway.clock)
            .await?;
    let mut sent = headers::for_upstream(&head.headers);
    upstream.authorise(&mut sent);
    let Received { bytes, share, .. } = received;
    let response = ask(gateway, upstream, head.method, path, sent, bytes).await?;
    let answer = answer_head(&response, true);
    // The bytes of the request are held as long as its answer may need them again; this one does not.
    drop(share);
    let metrics = gateway.metrics.clone();
    let counted = Counted::new(move |change| metrics.streams(change));
    Ok(answer.map(|()| incoming(gateway, response).pass_on(counted)))
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
