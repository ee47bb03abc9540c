//! The session: what every reader produces.

use std::sync::Arc;

use plimsoll_core::bill::Request;
use plimsoll_core::{Message, MillisSinceEpoch};

use crate::format::Format;
use crate::note::Note;

/// What a session says about itself apart from its messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    pub id: Option<String>,
    pub working_directory: Option<String>,
    /// The model that was used last.
    pub model: Option<String>,
    /// The system prompt, where it is recorded apart from the messages.
    pub instructions: Option<String>,
    pub started: Option<MillisSinceEpoch>,
    /// The model's window in tokens, as recorded.
    pub context_window: Option<u64>,
}

/// What to do where the recording agent compacted its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compaction {
    /// Read on as if it had not happened: every message is there once.
    #[default]
    PassOver,
    /// Read what the agent had in its context afterwards, and apart from it what it had before.
    Honour,
}

/// How to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    pub compaction: Compaction,
}

/// A compaction that the recording agent made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSeen {
    /// The index in [`Session::messages`] before which it happened; where it was honoured, of the summary.
    pub before: usize,
    /// Line or element that records it, from 1.
    pub source: u32,
    /// The size of the context before it, as recorded.
    pub tokens_before: Option<u64>,
}

/// Where one block of a message stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Line or element, from 1.
    pub record: u32,
    /// The index in the record's list of blocks; `None` where the content is a plain string or a field of its own.
    pub index: Option<u32>,
}

/// Where a message stands in the file, block by block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// One for each block; empty where the message was made by a repair.
    pub pieces: Vec<Piece>,
    /// Whether a repair made the message or changed its role.
    pub repaired: bool,
}

/// A recorded session.
#[derive(Debug, Clone)]
pub struct Session {
    pub format: Format,
    /// How it was read.
    pub options: ReadOptions,
    pub header: Header,
    /// Oldest first; every result stands directly behind its call, calls at the very end may be open.
    pub messages: Vec<Arc<Message>>,
    /// For each message, where it was read from.
    pub origins: Vec<Origin>,
    pub notes: Vec<Note>,
    pub compactions: Vec<CompactionSeen>,
    /// Each call of a model that reports its usage, those of sub-agents and abandoned branches too; the main conversation first.
    pub requests: Vec<Request>,
    /// Where compactions are honoured: the contexts that ended with one, oldest first. `messages` is the last.
    pub earlier: Vec<Stretch>,
    /// Messages at the beginning of `messages` that stood in an earlier context or summarise it.
    pub known: usize,
}

/// What an agent had in its context until it compacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// As [`Session::messages`].
    pub messages: Vec<Arc<Message>>,
    /// Messages at the beginning that stood in an earlier context or summarise it.
    pub known: usize,
}
