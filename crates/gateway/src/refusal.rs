//! What the gateway itself refuses, told in the words and shape of the provider that was meant.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use crate::config::Api;
use crate::relay::{Body, whole};

/// Names the answers that are ours and not the provider's.
pub(crate) const REFUSED: HeaderName = HeaderName::from_static("x-plimsoll-refused");

/// Why a request went no further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
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
    #[error("no upstream of this name is configured")]
    NoUpstream,
    #[error("this path is no path")]
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

impl Refusal {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Busy | Self::NotKept(_) | Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::BrokenBody | Self::TooDeep { .. } | Self::Malformed(_) | Self::Path => {
                StatusCode::BAD_REQUEST
            }
            Self::Encoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NoKey => StatusCode::UNAUTHORIZED,
            Self::Foreign => StatusCode::FORBIDDEN,
            Self::NoUpstream => StatusCode::NOT_FOUND,
            Self::Upgrade => StatusCode::UPGRADE_REQUIRED,
            Self::Unreachable(_) => StatusCode::BAD_GATEWAY,
            Self::Silent { .. } => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// Returns the word that metrics and the header of refusals use.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::TooLarge { .. } => "too_large",
            Self::SlowBody => "slow_body",
            Self::BrokenBody => "broken_body",
            Self::Encoding => "encoding",
            Self::TooDeep { .. } => "too_deep",
            Self::Malformed(_) => "malformed",
            Self::NoKey => "no_key",
            Self::Foreign => "foreign",
            Self::NoUpstream => "no_upstream",
            Self::Path => "path",
            Self::Upgrade => "upgrade",
            Self::Unreachable(_) => "unreachable",
            Self::Silent { .. } => "silent",
            Self::NotKept(_) => "not_kept",
            Self::Stopping => "stopping",
        }
    }

    /// Tells whether the rest of the request may still be on its way, so that the connection cannot go on.
    fn leaves_the_body(&self) -> bool {
        !matches!(self, Self::Unreachable(_) | Self::Silent { .. } | Self::NotKept(_))
    }

    /// Makes the answer.
    pub(crate) fn response(&self, api: Api) -> Response<Body> {
        let status = self.status();
        let body = error_body(api, status.as_u16(), &self.to_string());
        let mut response = Response::new(whole(Bytes::from(body)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
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

fn error_body(api: Api, status: u16, message: &str) -> String {
    let message = serde_json::Value::from(message);
    match api {
        Api::Anthropic => {
            let kind = match status {
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                503 => "overloaded_error",
                400..=499 => "invalid_request_error",
                _ => "api_error",
            };
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
        }
        Api::OpenAi => {
            let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
            format!(
                r#"{{"error":{{"message":{message},"type":"{kind}","param":null,"code":null}}}}"#
            )
        }
        Api::Gemini => {
            let word = match status {
                401 => "UNAUTHENTICATED",
                403 => "PERMISSION_DENIED",
                404 => "NOT_FOUND",
                503 => "UNAVAILABLE",
                504 => "DEADLINE_EXCEEDED",
                400..=499 => "INVALID_ARGUMENT",
                _ => "INTERNAL",
            };
            format!(r#"{{"error":{{"code":{status},"message":{message},"status":"{word}"}}}}"#)
        }
    }
}
