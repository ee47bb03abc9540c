//! The audit trail of cards: what each job made of its message, kept as the job's result.

use plimsoll_core::safety::Flags;
use serde::{Deserialize, Serialize};

/// The author of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum SummaryAuthor {
    /// It needed no model.
    Fast,
    /// The model of this name.
    Model { model: String },
    /// The model of this name, for the same content elsewhere.
    Known { model: String },
    /// Nobody: it is the beginning of the text.
    Truncated { why: String },
}

/// The work on a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    pub content_hash: String,
    pub summary: SummaryAuthor,
    /// Characters of the message and of its summary.
    pub characters: usize,
    pub summary_characters: usize,
    /// Personal data and secrets that were found before anything left.
    #[serde(default, skip_serializing_if = "Flags::is_empty")]
    pub flags: Flags,
    /// The model of the vector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// Why there is no vector, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_embedding: Option<String>,
}
