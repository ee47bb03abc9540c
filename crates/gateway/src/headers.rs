//! Headers on their way through: those of one connection and those of the gateway are not forwarded.

use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// All headers of ours begin so, in both directions.
const OURS: &str = "x-plimsoll-";

pub(crate) const MODE: HeaderName = HeaderName::from_static("x-plimsoll-mode");
pub(crate) const SESSION: HeaderName = HeaderName::from_static("x-plimsoll-session");
pub(crate) const POLICY: HeaderName = HeaderName::from_static("x-plimsoll-policy");
pub(crate) const BUDGET: HeaderName = HeaderName::from_static("x-plimsoll-budget");
pub(crate) const CACHE: HeaderName = HeaderName::from_static("x-plimsoll-cache");
pub(crate) const PIN: HeaderName = HeaderName::from_static("x-plimsoll-pin");
pub(crate) const DROP: HeaderName = HeaderName::from_static("x-plimsoll-drop");
pub(crate) const PREVIEW: HeaderName = HeaderName::from_static("x-plimsoll-preview");
pub(crate) const OUTCOME: HeaderName = HeaderName::from_static("x-plimsoll-outcome");
pub(crate) const TOKENS_BEFORE: HeaderName = HeaderName::from_static("x-plimsoll-tokens-before");
pub(crate) const TOKENS_AFTER: HeaderName = HeaderName::from_static("x-plimsoll-tokens-after");
pub(crate) const TOKENS_SAVED: HeaderName = HeaderName::from_static("x-plimsoll-tokens-saved");
pub(crate) const TOKENS_OBSERVED: HeaderName =
    HeaderName::from_static("x-plimsoll-tokens-observed");
pub(crate) const OVER_BUDGET: HeaderName = HeaderName::from_static("x-plimsoll-over-budget");
pub(crate) const PRESSURE: HeaderName = HeaderName::from_static("x-plimsoll-pressure");
pub(crate) const BILLED: HeaderName = HeaderName::from_static("x-plimsoll-billed-usd");
pub(crate) const SAVED: HeaderName = HeaderName::from_static("x-plimsoll-saved-usd");
pub(crate) const BILL_ESTIMATE: HeaderName = HeaderName::from_static("x-plimsoll-bill-estimate");
/// Says whether the history lacks turns that were answered.
pub(crate) const HISTORY: HeaderName = HeaderName::from_static("x-plimsoll-history");
pub(crate) const BEHIND: HeaderValue = HeaderValue::from_static("behind");
pub(crate) const ANSWER_KEY: HeaderName = HeaderName::from_static("x-plimsoll-answer-key");

/// Belongs to a connection, and so never to what is forwarded (RFC 9110, 7.6.1).
fn is_hop_by_hop(name: &HeaderName) -> bool {
    [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE].contains(name)
        || ["keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"]
            .contains(&name.as_str())
}

/// Returns the headers that go on, in their order, without those that a `Connection` header names.
fn forwarded(headers: &HeaderMap, also: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let nominated: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        .collect();
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let stays = is_hop_by_hop(name)
            || nominated.contains(name)
            || name.as_str().starts_with(OURS)
            || also(name);
        if !stays {
            kept.append(name, value.clone());
        }
    }
    kept
}

/// Returns the headers of a client that go to the upstream. The new connection has its own host, length and expectation.
pub(crate) fn for_upstream(headers: &HeaderMap) -> HeaderMap {
    forwarded(headers, |name| [HOST, CONTENT_LENGTH, EXPECT].contains(name))
}

/// Anthropic's header for the further features that a request uses.
pub(crate) const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// Adapts the headers of a request whose body the gateway wrote, or whose answer it reads.
pub(crate) fn plain(headers: &mut HeaderMap, body_is_decoded: bool) {
    if body_is_decoded {
        headers.remove(CONTENT_ENCODING);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Adds values to `anthropic-beta`, each once.
pub(crate) fn add_betas(headers: &mut HeaderMap, betas: &[&'static str]) {
    for beta in betas {
        let known = headers.get_all(BETA).iter().filter_map(|value| value.to_str().ok());
        if !known.flat_map(|value| value.split(',')).any(|value| value.trim() == *beta) {
            headers.append(BETA, HeaderValue::from_static(beta));
        }
    }
}

/// Returns the headers of an upstream that go to the client.
///
/// The length stays only where the body does: an answer that we put together has another.
pub(crate) fn for_client(headers: &HeaderMap, is_untouched: bool) -> HeaderMap {
    forwarded(headers, |name| name == CONTENT_LENGTH && !is_untouched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_connection_stays_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("te", "trailers"),
            ("x-plimsoll-key", "k"),
            ("anthropic-beta", "a"),
            ("anthropic-beta", "b"),
            ("host", "here"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let kept = for_upstream(&headers);
        let kept: Vec<_> = kept
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().expect("text")))
            .collect();
        assert_eq!(kept, [("anthropic-beta", "a"), ("anthropic-beta", "b")]);
    }
}
