//! How a call to a model fails, cut by what the caller can do.

use std::time::Duration;

use thiserror::Error;

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    /// The request can't be served as it is: another one is needed.
    #[error("the model refused the request: {0}")]
    Invalid(String),
    /// Nobody may call this model with these credentials.
    #[error("no access to the model: {0}")]
    Denied(String),
    /// It may answer later; what can be repeated at no cost was repeated already.
    #[error("the model can't be reached now: {message}")]
    Unavailable { message: String, retry_after: Option<Duration> },
    /// The answer broke off after it had begun, or never came although the request was taken: it may have been paid for, so it
    /// is not asked for again by itself.
    #[error("the model's answer broke off: {0}")]
    Interrupted(String),
    /// The answer does not fit the request: no JSON, another schema, vectors of another dimension.
    #[error("the model's answer is unusable: {0}")]
    Unusable(String),
    /// The spending cap would be passed.
    #[error("the spending cap is reached: {0}")]
    Capped(String),
}

impl ModelError {
    /// Returns whether the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
