//! Errors as problem+json (RFC 9457).

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use plimsoll_engine::StoreError;
use plimsoll_engine::assemble::AssembleError;
use plimsoll_engine::expand::ExpandError;
use plimsoll_engine::remember::MemoryError;
use serde_json::json;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("there is no {0}")]
    NotFound(String),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Conflict(String),
    /// The settings do not allow it.
    #[error("{0}")]
    Off(String),
    #[error("this path takes {0}")]
    Method(String),
    #[error("the body must be application/json")]
    MediaType,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Expand(#[from] ExpandError),
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    #[error("the work ended without an answer")]
    Lost,
}

impl ApiError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Off(_) => StatusCode::FORBIDDEN,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Store(error)
            | Self::Memory(MemoryError::Store(error))
            | Self::Expand(ExpandError::Store(error))
            | Self::Assemble(AssembleError::Store(error)) => of_store(error),
            Self::Memory(MemoryError::Model(_)) | Self::Assemble(AssembleError::Model(_)) => {
                StatusCode::BAD_GATEWAY
            }
            Self::Memory(MemoryError::Incomplete { .. })
            | Self::Expand(_)
            | Self::Assemble(AssembleError::TooLarge(_) | AssembleError::MemoryTooLarge(_)) => {
                StatusCode::BAD_REQUEST
            }
            Self::Memory(_) => StatusCode::CONFLICT,
            Self::NotFound(_) | Self::Assemble(_) => StatusCode::NOT_FOUND,
            Self::Lost => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Makes the answer.
    pub(crate) fn response(&self) -> Response<Bytes> {
        let status = self.status();
        let mut detail = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !detail.contains(&cause_text) {
                detail = format!("{detail}: {cause_text}");
            }
            source = cause.source();
        }
        let body = json!({
            "type": "about:blank",
            "title": status.canonical_reason().unwrap_or("Error"),
            "status": status.as_u16(),
            "detail": detail,
        });
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Self::Method(allowed) = self
            && let Ok(allowed) = HeaderValue::try_from(allowed)
        {
            headers.insert(ALLOW, allowed);
        }
        response
    }
}

fn of_store(error: &StoreError) -> StatusCode {
    match error {
        StoreError::NotFound { .. } => StatusCode::NOT_FOUND,
        StoreError::Conflict { .. } => StatusCode::CONFLICT,
        StoreError::Invalid { .. } => StatusCode::BAD_REQUEST,
        StoreError::Unsupported { .. } => StatusCode::NOT_IMPLEMENTED,
        StoreError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
