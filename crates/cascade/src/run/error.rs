//! Why a run stopped.

use plimsoll_engine::{ModelError, StoreError, ToolError};
use thiserror::Error;

/// Why a run stopped before its end, cut by what can be done about it.
#[derive(Debug, Error)]
pub enum RunError {
    /// Something that the run needs is not there: nothing was done.
    #[error("{what}")]
    Missing { what: String },
    /// What was recorded of the session was said by another cascade, or to another input.
    #[error("the session {session} was run otherwise: {what}; start a new one")]
    Changed { session: String, what: String },
    /// A template of the cascade can't be rendered.
    #[error("phase `{phase}`: {what}")]
    Template { phase: String, what: String },
    /// A phase ended without what was asked of it.
    #[error("phase `{phase}` failed: {why}")]
    Failed { phase: String, why: String },
    /// The model of a phase gave no answer.
    #[error("phase `{phase}`: the model gave no answer")]
    Model {
        phase: String,
        #[source]
        source: ModelError,
    },
    /// It failed before the run was resumed, and the run went on from there.
    #[error("{why}")]
    Met { why: String },
    /// The tool of a phase gave no answer.
    #[error("phase `{phase}`: its tool gave no answer")]
    Tool {
        phase: String,
        #[source]
        source: ToolError,
    },
    /// What happened can't be kept, so nothing further is done.
    #[error("the run can't be recorded")]
    Store(#[from] StoreError),
    /// An image can't be saved.
    #[error("{path} can't be written")]
    Image {
        path: String,
        #[source]
        source: std::io::Error,
    },
}
