//! Pieces of a streamed answer, as a client shows them while they come.

use std::sync::Arc;

use plimsoll_core::ToolCall;

/// A piece of an answer, in the order in which the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPiece {
    /// The text goes on.
    Text(String),
    /// Reasoning that the provider shows goes on.
    Reasoning(String),
    /// A call begins, the one at this index of the answer's calls, counted from 0. The id is empty where the provider gives none.
    CallBegun { index: u32, id: Arc<str>, name: Arc<str> },
    /// The call's arguments go on, as the model wrote them.
    CallArguments { index: u32, text: String },
    /// A call is whole. Chat Completions does not tell that before the answer ends.
    Call { index: u32, call: ToolCall },
}
