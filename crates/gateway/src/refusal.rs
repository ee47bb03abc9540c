//! Refusals: the requests that the gateway rejects itself, with an error in the shape of the provider that was meant.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use plimsoll_wire::error_body;

use crate::config::Api;
use crate::in_flight::NoRoom;
use crate::relay::{Body, whole};

/// Names the answers that are ours and not the provider's.
pub(crate) const REFUSED: HeaderName = HeaderName::from_static("x-plimsoll-refused");

/// Why a request went no further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestRefusal {
    #[error("the gateway has no room for this request now")]
    Busy,
    #[error("the body has more than {most} bytes, decoded")]
    TooLarge { most: usize },
    #[error("the body did not come in time")]
    SlowBody,
    #[error("the body broke off")]
    BrokenBody,
    #[error("the body's content-encoding cannot be read; gzip, deflate, br and zstd can")]
    Encoding,
    #[error("the body is nested deeper than {most} levels")]
    TooDeep { most: usize },
    #[error("{0}")]
    Malformed(String),
    #[error("a key of this gateway is needed: send it as x-plimsoll-key")]
    NoKey,
    #[error(
        "this name or origin may not call the gateway; `hosts` and `origins` of [gateway] list those that may"
    )]
    Foreign,
    #[error(
        "the request has more than one length, or an encoding of the transfer other than chunked"
    )]
    Framing,
    #[error("this path needs a key of the operator")]
    Operator,
    #[error("redaction is on, and {0}, so nothing is sent")]
    Unredacted(String),
    #[error(
        "the gateway's own key is not for this path; `paths` of the upstream names further ones"
    )]
    NotAllowed,
    #[error("no upstream of this name is configured")]
    NoUpstream,
    #[error("this path is none, or leaves the upstream's own")]
    Path,
    #[error("WebSockets are not spoken here; use HTTP")]
    Upgrade,
    #[error("the upstream cannot be reached: {0}")]
    Unreachable(String),
    #[error("the upstream sent nothing for {seconds} s")]
    Silent { seconds: u64 },
    #[error("what was said could not be kept, so the answer is held back: {0}")]
    NotKept(String),
    #[error("the gateway is shutting down")]
    Stopping,
}

impl From<NoRoom> for RequestRefusal {
    fn from(_: NoRoom) -> Self {
        Self::Busy
    }
}

impl RequestRefusal {
    /// Returns the status of the response, and the word for metrics and the header of refusals.
    fn status_and_word(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            Self::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            Self::SlowBody => (StatusCode::REQUEST_TIMEOUT, "slow_body"),
            Self::BrokenBody => (StatusCode::BAD_REQUEST, "broken_body"),
            Self::Encoding => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoding"),
            Self::TooDeep { .. } => (StatusCode::BAD_REQUEST, "too_deep"),
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, "malformed"),
            Self::NoKey => (StatusCode::UNAUTHORIZED, "no_key"),
            Self::Foreign => (StatusCode::FORBIDDEN, "foreign"),
            Self::Framing => (StatusCode::BAD_REQUEST, "framing"),
            Self::Operator => (StatusCode::FORBIDDEN, "operator"),
            Self::Unredacted(_) => (StatusCode::BAD_REQUEST, "unredacted"),
            Self::NotAllowed => (StatusCode::FORBIDDEN, "not_allowed"),
            Self::NoUpstream => (StatusCode::NOT_FOUND, "no_upstream"),
            Self::Path => (StatusCode::BAD_REQUEST, "path"),
            Self::Upgrade => (StatusCode::UPGRADE_REQUIRED, "upgrade"),
            Self::Unreachable(_) => (StatusCode::BAD_GATEWAY, "unreachable"),
            Self::Silent { .. } => (StatusCode::GATEWAY_TIMEOUT, "silent"),
            Self::NotKept(_) => (StatusCode::SERVICE_UNAVAILABLE, "not_kept"),
            Self::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status_and_word().0
    }

    pub(crate) fn word(&self) -> &'static str {
        self.status_and_word().1
    }

    /// Returns whether the rest of the request may still arrive, so that the connection cannot be used again.
    fn leaves_the_body(&self) -> bool {
        !matches!(self, Self::Unreachable(_) | Self::Silent { .. } | Self::NotKept(_))
    }

    /// Makes the answer in the shape of a provider's errors.
    pub(crate) fn response(&self, api: Api) -> Response<Body> {
        let body = error_body(api.wire(), self.status().as_u16(), &self.to_string());
        self.answer(body, "application/json")
    }

    /// Makes the answer to a request for the store's own pages: problem+json of RFC 9457.
    pub(crate) fn problem(&self) -> Response<Body> {
        let status = self.status();
        let body = serde_json::json!({
            "type": "about:blank",
            "title": status.canonical_reason().unwrap_or("Error"),
            "status": status.as_u16(),
            "detail": self.to_string(),
        });
        self.answer(body.to_string(), "application/problem+json")
    }

    fn answer(&self, body: String, kind: &'static str) -> Response<Body> {
        let status = self.status();
        let mut response = Response::new(whole(Bytes::from(body)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(REFUSED, HeaderValue::from_static(self.word()));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.leaves_the_body() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
