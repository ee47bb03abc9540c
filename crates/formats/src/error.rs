//! Errors of reading and writing; each variant has its own remedy.

use crate::format::SessionFormat;

/// Why a file could not be read as a session.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file holds only white space.
    #[error("the file is empty")]
    Empty,
    /// The file has fewer conversations.
    #[error("the file has {count} conversations, and no number {part} among them")]
    NoPart { part: usize, count: usize },
    /// The file has none of the known formats.
    #[error(
        "not a recorded session: expected JSON lines or a JSON document of {}; the file begins with `{begins}`",
        SessionFormat::names()
    )]
    NotASession { begins: String },
    /// A JSON document ends before it is complete.
    #[error("the JSON document ends too early, at line {line}, column {column}")]
    Truncated { line: usize, column: usize },
    /// A JSON document is invalid, or does not have the shape of its format.
    #[error("cannot read the JSON document at line {line}, column {column}")]
    Malformed { line: usize, column: usize, source: serde_json::Error },
    /// The format was recognised, but no message could be read.
    #[error("no message could be read from this {format} session ({skipped} records skipped)")]
    NothingReadable { format: SessionFormat, skipped: usize },
}

impl ReadError {
    /// Returns advice for the caller, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Empty => "the agent may not have written anything yet; look at the file's size",
            Self::NoPart { .. } => "`plimsoll inspect FILE` lists the conversations of a file",
            Self::NotASession { .. } => {
                "give the session file itself, not a log or an export; compressed files must be unpacked first"
            }
            Self::Truncated { .. } => "the file may still be written or was cut off; copy it again",
            Self::Malformed { .. } => "open the file at that line; everything before it is sound",
            Self::NothingReadable { .. } => {
                "the session holds no message yet, or its records are damaged"
            }
        })
    }

    pub(crate) fn json(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        if error.is_eof() {
            Self::Truncated { line, column }
        } else {
            Self::Malformed { line, column, source: error }
        }
    }
}

/// Why a context could not be written back.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The format cannot be written.
    #[error(
        "cannot write {format} sessions back: pi, claude-code, openai-messages, anthropic-messages and cline can be"
    )]
    Unsupported { format: SessionFormat },
    /// The session is one of several in its file.
    #[error("conversation {part} of the file cannot be written without the others")]
    Part { part: usize },
    /// The original is not the file that the session was read from.
    #[error("the original does not match the session at record {record}")]
    OtherOriginal { record: u32 },
    /// A position is outside the session, repeated, or out of order.
    #[error("position {position} is not in the session, or not behind the one before it")]
    Position { position: usize },
    /// The record of a message cannot express the change.
    #[error("message {position} cannot be written: {why}")]
    Change { position: usize, why: &'static str },
    /// A result would stand without its call.
    #[error("the result of the call {call_id} would stand without its call")]
    ResultWithoutCall { call_id: String },
}

impl WriteError {
    /// Returns advice for the caller, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unsupported { .. } => {
                "convert the session with one of the formats that can be written"
            }
            Self::Part { .. } => "trim the main conversation of the file",
            Self::OtherOriginal { .. } => {
                "give the bytes that the session was read from, unchanged"
            }
            Self::Position { .. } | Self::Change { .. } => {
                "keep recorded messages in their order and change only their text, arguments or result"
            }
            Self::ResultWithoutCall { .. } => {
                "keep or drop a call together with all of its results"
            }
        })
    }
}
