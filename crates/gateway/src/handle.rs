//! One request: who asks, for what, and where it goes.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming as RequestBody;
use plimsoll_engine::{SessionId, TenantId};

use crate::body::{BodyPace, receive};
use crate::config::Api;
use crate::forward::forward;
use crate::gateway::Gateway;
use crate::metrics::Counter;
use crate::ports::Pages;
use crate::refusal::RequestRefusal;
use crate::relay::{Body, whole};
use crate::routes::{GatewayRoute, RouteAccess};
use crate::upstream::Upstream;

/// Answers a request; an error becomes a response too.
pub(crate) async fn handle(gateway: Arc<Gateway>, request: Request<RequestBody>) -> Response<Body> {
    let (route, access) = GatewayRoute::of(request.method(), request.uri().path());
    // Found before anything can be refused, so that a refusal has the shape of the provider's errors.
    let path = request.uri().path_and_query().map_or("", |path| path.as_str()).to_owned();
    let found = gateway.upstreams.find(&path, request.headers());
    let api = found.as_ref().map_or(Api::OpenAi, |(upstream, _)| upstream.api);
    let pages = gateway.pages.as_ref();
    let is_page = pages.is_some_and(|pages| pages.access(request.uri().path()).is_some());
    // Boxed, and freed when the head of the response is there: hyper keeps the memory of this future as long as the connection.
    let answered = Box::pin(answer(&gateway, request, route, access, found)).await;
    answered.unwrap_or_else(|refusal| {
        gateway.metrics.add(Counter::Refusals, refusal.word());
        tracing::info!(why = refusal.word(), status = refusal.status().as_u16(), "refused");
        if is_page { refusal.problem() } else { refusal.response(api) }
    })
}

/// Answers a request for the store's own pages.
async fn page(
    gateway: &Arc<Gateway>,
    pages: &dyn Pages,
    access: RouteAccess,
    request: Request<RequestBody>,
) -> Result<Response<Body>, RequestRefusal> {
    if !gateway.admits_pages(request.method(), request.headers()) {
        return Err(RequestRefusal::Foreign);
    }
    // No upstream's key is meant here, so that the usual places carry the gateway's.
    let caller = gateway.keys.caller(request.headers(), true);
    let tenant = match (access, caller) {
        (RouteAccess::Open, _) => TenantId::default(),
        (_, None) => return Err(RequestRefusal::NoKey),
        (RouteAccess::Operator, Some(caller)) if !caller.is_operator => {
            return Err(RequestRefusal::Operator);
        }
        (_, Some(caller)) => caller.tenant,
    };
    let (head, body) = request.into_parts();
    let limits = &gateway.config.limits;
    let pace = BodyPace::of(&gateway.config.timeouts, limits);
    let room = (&gateway.in_flight, &tenant);
    let received =
        receive(&head.headers, body, limits.body_bytes, pace, room, &*gateway.clock).await?;
    let body = received.plain().clone();
    let answer = pages.answer(&tenant, Request::from_parts(head, body)).await;
    Ok(answer.map(whole))
}

async fn answer(
    gateway: &Arc<Gateway>,
    request: Request<RequestBody>,
    route: GatewayRoute,
    access: RouteAccess,
    found: Result<(Arc<Upstream>, &str), RequestRefusal>,
) -> Result<Response<Body>, RequestRefusal> {
    if route == GatewayRoute::Health {
        return Ok(text("alive\n"));
    }
    if let Some(pages) = &gateway.pages
        && let Some(access) = pages.access(request.uri().path())
    {
        return Box::pin(page(gateway, &**pages, access, request)).await;
    }
    if !gateway.admits(request.method(), request.headers()) {
        return Err(RequestRefusal::Foreign);
    }
    let own_places = found.as_ref().is_ok_and(|(upstream, _)| upstream.has_key());
    let caller = gateway.keys.caller(request.headers(), own_places);
    match (access, &caller) {
        (RouteAccess::Open, _) => {}
        (_, None) => return Err(RequestRefusal::NoKey),
        (RouteAccess::Operator, Some(caller)) if !caller.is_operator => {
            return Err(RequestRefusal::Operator);
        }
        _ => {}
    }
    match route {
        GatewayRoute::Health => Ok(text("alive\n")),
        GatewayRoute::Ready if *gateway.stopping.borrow() => Err(RequestRefusal::Stopping),
        GatewayRoute::Ready if gateway.backlog.is_behind() => {
            Ok(text("ready, but the history is behind\n"))
        }
        GatewayRoute::Ready if !store_answers(gateway).await => {
            Ok(text("ready, but the store does not answer\n"))
        }
        GatewayRoute::Ready => Ok(text("ready\n")),
        GatewayRoute::Metrics => Ok(text(&{
            let (sessions, bytes) = gateway.sessions.size();
            gateway.metrics.write(gateway.in_flight.used(), sessions, bytes)
        })),
        GatewayRoute::Hello => Ok(text("plimsoll\n")),
        GatewayRoute::WebSocket => Err(RequestRefusal::Upgrade),
        GatewayRoute::Upstream => {
            let (upstream, path) = found?;
            let tenant = caller.ok_or(RequestRefusal::NoKey)?.tenant;
            if !upstream.opens(request.method(), path) {
                return Err(RequestRefusal::NotAllowed);
            }
            Box::pin(forward(gateway, request, upstream, path, tenant)).await
        }
    }
}

/// Refuses a request with two lengths, before anybody knows for whom it is.
pub(crate) fn ambiguous(gateway: &Gateway) -> Response<Body> {
    let refusal = RequestRefusal::Framing;
    gateway.metrics.add(Counter::Refusals, refusal.word());
    refusal.response(Api::OpenAi)
}

/// Reads from the store: a file that was deleted, or a server that is gone, is noticed before the next turn.
async fn store_answers(gateway: &Gateway) -> bool {
    let Ok(session) = SessionId::new("readyz") else { return true };
    match gateway.history.messages(&TenantId::default(), &session, 0, 1).await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(%error, "the store does not answer");
            false
        }
    }
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
