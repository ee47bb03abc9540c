//! The error of a tool, a resource or a prompt, rendered once for MCP.

use plimsoll_engine::StoreError;
use plimsoll_engine::expand::ExpandError;
use plimsoll_engine::remember::MemoryError;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};

/// Why a request of a client has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum McpFailure {
    #[error("{0}")]
    Input(String),
    #[error("{0} is unknown")]
    Unknown(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Expand(#[from] ExpandError),
}

impl McpFailure {
    /// Renders it as the result of a tool, which the model reads.
    pub(crate) fn result(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.to_string())])
    }

    /// Renders it as an error of the protocol, for resources and prompts.
    pub(crate) fn protocol(&self) -> ErrorData {
        match self {
            Self::Store(StoreError::NotFound { .. })
            | Self::Expand(ExpandError::Store(StoreError::NotFound { .. })) => {
                ErrorData::resource_not_found(self.to_string(), None)
            }
            Self::Store(error) if !matches!(error, StoreError::Invalid { .. }) => {
                ErrorData::internal_error(self.to_string(), None)
            }
            _ => ErrorData::invalid_params(self.to_string(), None),
        }
    }
}
