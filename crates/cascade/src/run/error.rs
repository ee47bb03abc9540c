//! Why a run stopped.

use plimsoll_engine::{ModelError, StoreError, ToolError};
use thiserror::Error;

/// The reason for which a run stopped before its end.
#[derive(Debug, Error)]
pub enum RunError {
    /// The run needs something that is not there; it has not begun.
    #[error("{what}")]
    Missing { what: String },
    /// The record of the session comes from another cascade or another input.
    #[error("the session {session} was run otherwise: {what}; start a new one")]
    Changed { session: String, what: String },
    /// A template of the cascade can't be rendered.
    #[error("phase `{phase}`: {what}")]
    Template { phase: String, what: String },
    /// A phase ended without its result.
    #[error("phase `{phase}` failed: {why}")]
    Failed { phase: String, why: String },
    /// The model of a phase gave no answer.
    #[error("phase `{phase}`: the model gave no answer")]
    Model {
        phase: String,
        #[source]
        source: ModelError,
    },
    /// A person must answer before the run goes on.
    #[error("phase `{phase}` waits for an answer: {question}")]
    Waiting { phase: String, question: String },
    /// A failure that was recorded before the run was resumed; the run went on after it.
    #[error("{why}")]
    Recorded { why: String },
    /// The tool of a phase gave no answer.
    #[error("phase `{phase}`: its tool gave no answer")]
    Tool {
        phase: String,
        #[source]
        source: ToolError,
    },
    /// A message can't be recorded, so the run stops.
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
