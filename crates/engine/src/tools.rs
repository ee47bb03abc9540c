//! The tools port: what a model, a phase or a validator may call, and how.

use std::fmt::Debug;

use async_trait::async_trait;
use plimsoll_core::Image;
use thiserror::Error;

use crate::chat::Tool;

/// The answer of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolAnswer {
    pub text: String,
    pub images: Vec<Image>,
    /// The tool ran and says that it failed; the text says how.
    pub is_error: bool,
}

impl ToolAnswer {
    /// Makes the answer of a tool that did what was asked.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), images: Vec::new(), is_error: false }
    }

    /// Makes the answer of a tool that failed.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), images: Vec::new(), is_error: true }
    }
}

/// Why a tool gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ToolError {
    /// Nobody here has a tool of this name.
    #[error("there is no tool `{name}`")]
    Unknown { name: String },
    /// The arguments are not what the tool takes: the caller can mend them.
    #[error("`{name}` can't be called so: {why}")]
    Invalid { name: String, why: String },
    /// It did not start, answer or end; whether it had an effect is not known.
    #[error("`{name}` gave no answer: {why}")]
    Unavailable { name: String, why: String },
}

/// A place that tools come from.
#[async_trait]
pub trait ToolSource: Send + Sync + Debug {
    /// Returns its tools in the order of their names.
    async fn tools(&self) -> Result<Vec<Tool>, ToolError>;

    /// Calls a tool with arguments that are a JSON object, and waits until it has ended.
    ///
    /// A tool that ran and failed is an answer. Dropping the future ends the tool where that is possible.
    async fn call(&self, name: &str, arguments: &str) -> Result<ToolAnswer, ToolError>;
}
