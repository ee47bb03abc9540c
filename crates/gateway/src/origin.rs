//! Requests that a client sends to the provider's own host, behind a [`ForwardProxy`](crate::ForwardProxy).
//!
//! The paths of a wire are handled as at the gateway's own address. All others belong to the provider alone (sign-in, remote control,
//! telemetry): they go on as they are, and never with the gateway's key.

use std::sync::Arc;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming as RequestBody;
use hyper_util::rt::TokioIo;
use plimsoll_wire::Route;
use reqwest::Url;

use crate::causes::causes;
use crate::config::Timeouts;
use crate::forward::forward;
use crate::gateway::Gateway;
use crate::headers;
use crate::metrics::{Counter, GaugeGuard};
use crate::refusal::RequestRefusal;
use crate::relay::{Body, whole};
use crate::upstream::Upstream;

/// The host of an upstream, as clients name it.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamHost {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The path of the upstream's address, without a final slash.
    base: String,
    /// Scheme, host and port.
    root: String,
}

impl UpstreamHost {
    /// Finds the host of an upstream; `None` where its address is not `https`.
    pub(crate) fn of(upstream: Arc<Upstream>) -> Option<Self> {
        let url = Url::parse(upstream.base()).ok().filter(|url| url.scheme() == "https")?;
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port_or_known_default()?;
        let base = url.path().trim_end_matches('/').to_owned();
        let root = url.origin().ascii_serialization();
        Some(Self { upstream, host, port, base, root })
    }

    /// Returns whether `host:port`, or a host alone, names this host.
    pub(crate) fn is(&self, authority: &str) -> bool {
        let (host, port) = split(authority);
        let port = port.map_or(Some(443), |port| port.parse().ok());
        host.eq_ignore_ascii_case(&self.host) && port == Some(self.port)
    }

    /// Returns the path below the upstream's address.
    fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(&self.base).filter(|rest| rest.starts_with('/'))
    }
}

/// Parts a host from its port; brackets of an address are left out.
pub(crate) fn split(authority: &str) -> (&str, Option<&str>) {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

/// Answers a request to the host; an error becomes a response too.
pub(crate) async fn handle(
    gateway: Arc<Gateway>,
    origin: Arc<UpstreamHost>,
    request: Request<RequestBody>,
) -> Response<Body> {
    let answered = Box::pin(answer(&gateway, &origin, request)).await;
    answered.unwrap_or_else(|refusal| {
        gateway.metrics.add(Counter::Refusals, refusal.word());
        tracing::info!(why = refusal.word(), status = refusal.status().as_u16(), "refused");
        refusal.response(origin.upstream.api)
    })
}

async fn answer(
    gateway: &Arc<Gateway>,
    origin: &UpstreamHost,
    request: Request<RequestBody>,
) -> Result<Response<Body>, RequestRefusal> {
    let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    if !named.is_some_and(|named| origin.is(named)) {
        return Err(RequestRefusal::Foreign);
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let below = origin.below(&path);
    match below.map(|below| Route::of(request.method().as_str(), below)) {
        None | Some(Route::Other) => pass(gateway, origin, request, &path).await,
        Some(Route::Socket) => Err(RequestRefusal::Upgrade),
        Some(Route::Generate(_) | Route::CountTokens(_) | Route::Compact) => {
            let own_places = origin.upstream.has_key();
            let caller = gateway.keys.caller(request.headers(), own_places);
            let tenant = caller.ok_or(RequestRefusal::NoKey)?.tenant;
            let below = below.unwrap_or(&path);
            Box::pin(forward(gateway, request, origin.upstream.clone(), below, tenant)).await
        }
    }
}

/// Passes a request on unread, piece by piece, and the response back.
async fn pass(
    gateway: &Arc<Gateway>,
    origin: &UpstreamHost,
    mut request: Request<RequestBody>,
    path: &str,
) -> Result<Response<Body>, RequestRefusal> {
    let upgrade = upgrade_of(request.headers());
    let switched = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    let (head, body) = request.into_parts();
    let has_body =
        [CONTENT_LENGTH, TRANSFER_ENCODING].iter().any(|name| head.headers.contains_key(name));
    let mut outgoing = headers::for_upstream(&head.headers);
    switch(&mut outgoing, upgrade.as_ref());
    let url = format!("{}{path}", origin.root);
    let mut asked = origin.upstream.client().request(head.method, url).headers(outgoing);
    if has_body {
        asked = asked.body(reqwest::Body::wrap(body));
    }
    gateway.metrics.add(Counter::Requests, "other");
    gateway.metrics.add(Counter::Outcomes, "passed");
    let first_byte = Timeouts::of(gateway.config.timeouts.first_byte);
    let response = tokio::select! {
        biased;
        sent = asked.send() => {
            sent.map_err(|error| RequestRefusal::Unreachable(causes(&error.without_url())))?
        }
        () = gateway.clock.sleep(first_byte) => {
            return Err(RequestRefusal::Silent { seconds: first_byte.as_secs() });
        }
    };
    let mut answer = Response::new(());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = headers::for_client(response.headers(), true);
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let counted = GaugeGuard::new(&gateway.metrics, |metrics| &metrics.streams);
        return Ok(answer.map(|()| gateway.incoming(response).pass_on(counted)));
    }
    let Some(switched) = switched else {
        return Err(RequestRefusal::Unreachable("it switched protocols unasked".to_owned()));
    };
    switch(answer.headers_mut(), upgrade_of(response.headers()).as_ref());
    let mut ending = gateway.ending.subscribe();
    tokio::spawn(async move {
        // When one side leaves, the connection of the other ends.
        if let (Ok(client), Ok(mut provider)) = (switched.await, response.upgrade().await) {
            let mut client = TokioIo::new(client);
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut provider) => {}
                () = crate::relay::until(&mut ending) => {}
            }
        }
    });
    Ok(answer.map(|()| whole(bytes::Bytes::new())))
}

/// Returns the protocol that a message's head asks to switch to.
fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let mut words = asks.flat_map(|value| value.split(','));
    let is_asked = words.any(|word| word.trim().eq_ignore_ascii_case("upgrade"));
    headers.get(UPGRADE).filter(|_| is_asked).cloned()
}

fn switch(headers: &mut HeaderMap, upgrade: Option<&HeaderValue>) {
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, upgrade.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_parted() {
        for (authority, host, port) in [
            ("a.test:443", "a.test", Some("443")),
            ("a.test", "a.test", None),
            ("[::1]:8", "::1", Some("8")),
            ("[::1]", "::1", None),
        ] {
            assert_eq!(split(authority), (host, port), "{authority}");
        }
    }

    #[test]
    fn a_switch_must_be_asked_for_twice() {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        assert_eq!(upgrade_of(&headers), None);
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        assert_eq!(upgrade_of(&headers), Some(HeaderValue::from_static("websocket")));
    }
}
