//! The stores' one error, cut by what the caller can do.

use std::time::Duration;

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The record does not exist, or belongs to another tenant: the error is the same.
    #[error("not found: {what}")]
    NotFound { what: String },
    /// Something else stands where this was to be put; trying again with the same data fails again.
    #[error("conflict: {what}")]
    Conflict { what: String },
    /// A value cannot be stored as it is: too long, or not of the form that the field asks.
    #[error("invalid {field}: {why}")]
    Invalid { field: &'static str, why: String },
    /// The store cannot be reached or is out of room for now; nothing of the request was kept.
    #[error("the store is unavailable: {why}")]
    Unavailable { why: String, retry_after: Option<Duration> },
    /// The stored data differs from the data that was written; it is not returned.
    #[error("corrupt: {what}")]
    Corrupt { what: String },
    /// The file or schema is of a newer version than this program knows, or the backend lacks the operation.
    #[error("unsupported: {what}")]
    Unsupported { what: String },
    /// Anything else.
    #[error("the store failed")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Returns whether the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
