//! The session: the common result of all readers.

use std::sync::Arc;

use plimsoll_core::bill::Request;
use plimsoll_core::{Message, MillisSinceEpoch, Tokenizer};

use crate::format::SessionFormat;
use crate::note::SessionNote;

/// The facts that a session records beside its messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    pub id: Option<String>,
    pub working_directory: Option<String>,
    /// The last model that was used.
    pub model: Option<String>,
    /// The system prompt, where it is recorded apart from the messages.
    pub instructions: Option<String>,
    pub started: Option<MillisSinceEpoch>,
    /// The model's window in tokens, as recorded.
    pub context_window: Option<u64>,
}

/// The treatment of compactions by the recording agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compaction {
    /// Ignore them: the session has every message once.
    #[default]
    PassOver,
    /// Follow them: the session has the agent's last context, and its earlier contexts apart.
    Honour,
}

/// Options of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    pub compaction: Compaction,
    /// The conversation to read, as in [`Session::parts`].
    pub part: usize,
}

/// The relation of a conversation to the others of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// The first, or the only one.
    Main,
    SubAgent,
    /// A session of its own, such as one run of many.
    Run,
}

/// A conversation in a file that has several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPart {
    pub kind: PartKind,
    pub name: Option<String>,
    /// Messages before the repair.
    pub messages: usize,
    /// The first message of the user.
    pub task: Option<String>,
}

/// A compaction that the recording agent made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedCompaction {
    /// The index in [`Session::messages`] before which it happened; if it was honoured, the index of the summary.
    pub before: usize,
    /// The line or element that records it, from 1.
    pub source: u32,
    /// The size of the context before it, as recorded.
    pub tokens_before: Option<u64>,
}

/// The place of a block in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlace {
    /// The line or element, from 1.
    pub record: u32,
    /// The index in the record's list of blocks; `None` where the content is a plain string or a field of its own.
    pub index: Option<u32>,
}

/// The place of a message in the file, block by block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// One for each block; empty for a message that a repair made.
    pub pieces: Vec<BlockPlace>,
    /// Whether a repair made the message or changed its role.
    pub repaired: bool,
}

/// A recorded session.
#[derive(Debug, Clone)]
pub struct Session {
    pub format: SessionFormat,
    /// The options that it was read with.
    pub options: ReadOptions,
    pub header: Header,
    /// Oldest first. Every result stands directly behind its call; calls at the very end may be open.
    pub messages: Vec<Arc<Message>>,
    /// The place of each message.
    pub origins: Vec<Origin>,
    pub notes: Vec<SessionNote>,
    pub compactions: Vec<RecordedCompaction>,
    /// Every request with a reported usage: those of the main conversation, then of sub-agents and abandoned branches.
    pub requests: Vec<Request>,
    /// The conversations of the file, if it has several; [`ReadOptions::part`] is an index into them.
    pub parts: Vec<SessionPart>,
    /// The contexts that ended with a compaction, oldest first, if compactions are honoured. `messages` is the last context.
    pub earlier: Vec<EarlierContext>,
    /// How many leading `messages` stood in an earlier context or summarise one.
    pub known: usize,
}

impl Session {
    /// Returns the tokens of system prompt and tools that its client usually sends before the messages.
    ///
    /// The figures are medians of the first requests of recorded sessions; other formats may record the system prompt.
    pub fn usual_overhead(&self, tokenizer: Tokenizer) -> f64 {
        match self.format {
            SessionFormat::ClaudeCode => 42_000.0,
            SessionFormat::Codex => 18_000.0,
            SessionFormat::Pi => 1700.0,
            _ => {
                let instructions = self.header.instructions.as_deref();
                instructions.map_or(0.0, |text| f64::from(tokenizer.count(text)))
            }
        }
    }
}

/// The context of an agent until it compacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierContext {
    /// As [`Session::messages`].
    pub messages: Vec<Arc<Message>>,
    /// How many leading messages stood in an earlier context or summarise one.
    pub known: usize,
}
