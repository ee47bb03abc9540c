//! The session: what every reader produces, and the one function that reads.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::bill::Request;
use plimsoll_core::{Message, MillisSinceEpoch};

use crate::draft::Draft;
use crate::error::ReadError;
use crate::note::{Note, NoteKind};
use crate::{
    anthropic, claude_code, codex, gemini_cli, json, mini_swe_agent, openai, opencode, openhands,
    pi, recognise, repair, requests, swe_agent,
};

/// A format of recorded sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    Pi,
    ClaudeCode,
    Codex,
    OpenAiChat,
    AnthropicMessages,
    SweAgent,
    MiniSweAgent,
    OpenHands,
    GeminiCli,
    OpenCode,
}

impl Format {
    /// All formats, in the order in which they are listed.
    pub const ALL: [Self; 10] = [
        Self::Pi,
        Self::ClaudeCode,
        Self::Codex,
        Self::OpenAiChat,
        Self::AnthropicMessages,
        Self::SweAgent,
        Self::MiniSweAgent,
        Self::OpenHands,
        Self::GeminiCli,
        Self::OpenCode,
    ];

    /// Returns the name that every interface prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::OpenAiChat => "openai-messages",
            Self::AnthropicMessages => "anthropic-messages",
            Self::SweAgent => "swe-agent",
            Self::MiniSweAgent => "mini-swe-agent",
            Self::OpenHands => "openhands",
            Self::GeminiCli => "gemini-cli",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns whether [`crate::write`] can write it.
    pub fn is_writable(self) -> bool {
        matches!(self, Self::Pi | Self::ClaudeCode | Self::OpenAiChat | Self::AnthropicMessages)
    }

    pub(crate) fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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

/// Reads a recorded session of any known format.
///
/// Shape: never panics, whatever the bytes; a record that cannot be read is skipped and noted.
/// Errors: only if there is no message to return.
pub fn read(bytes: &[u8], options: &ReadOptions) -> Result<Session, ReadError> {
    let bytes = json::without_mark(bytes);
    match read_strictly(bytes, *options) {
        Err(error @ ReadError::Malformed { .. }) => match json::mended(bytes) {
            Some(mended) => read_strictly(&mended, *options).or(Err(error)),
            None => Err(error),
        },
        result => result,
    }
}

fn read_strictly(bytes: &[u8], options: ReadOptions) -> Result<Session, ReadError> {
    let format = recognise::recognise(bytes)?;
    finish(format, options, read_as(format, bytes, options)?)
}

fn read_as(format: Format, bytes: &[u8], options: ReadOptions) -> Result<Draft, ReadError> {
    let text = |bytes| json::utf8_document(bytes);
    match format {
        Format::Pi => Ok(pi::read(bytes, options)),
        Format::ClaudeCode => Ok(claude_code::read(bytes, options)),
        Format::Codex => Ok(codex::read(bytes, options)),
        Format::OpenAiChat => openai::read(&text(bytes)),
        Format::AnthropicMessages => anthropic::read(&text(bytes)),
        Format::SweAgent => swe_agent::read(&text(bytes)),
        Format::MiniSweAgent => mini_swe_agent::read(&text(bytes)),
        Format::OpenHands => openhands::read(&text(bytes), options),
        Format::GeminiCli => gemini_cli::read(&text(bytes)),
        Format::OpenCode => opencode::read(&text(bytes)),
    }
}

fn finish(format: Format, options: ReadOptions, draft: Draft) -> Result<Session, ReadError> {
    let Draft {
        mut header,
        mut recorded,
        mut notes,
        mut compactions,
        mut earlier,
        mut known,
        requests: mut asked,
        branches,
        threads,
        place,
        ..
    } = draft;
    // An agent that was stopped as it compacted: what it had last is the session.
    if recorded.is_empty()
        && let Some(last) = earlier.pop()
    {
        (recorded, known) = (last.recorded, last.known);
    }
    if recorded.is_empty() {
        let skipped =
            notes.iter().filter(|note| matches!(note.kind, NoteKind::Skipped { .. })).count();
        return Err(ReadError::NothingReadable { format, skipped });
    }
    let mut stretches = Vec::with_capacity(earlier.len());
    for stretch in earlier {
        let repaired = repair::repair(stretch.recorded, place);
        let known = if stretch.known == 0 { 0 } else { repaired.moved_to(stretch.known) };
        notes.extend(repaired.notes);
        let messages = repaired.recorded.into_iter().map(|one| Arc::new(one.message)).collect();
        stretches.push(Stretch { messages, known });
    }
    let repaired = repair::repair(recorded, place);
    let known = if known == 0 { 0 } else { repaired.moved_to(known) };
    for seen in &mut compactions {
        seen.before = repaired.moved_to(seen.before);
    }
    for asked in &mut asked {
        asked.before = repaired.moved_to(asked.before);
    }
    notes.extend(repaired.notes);
    notes.sort_by_key(|note| note.place);
    // What a compaction kept is repaired in each context alike.
    notes.dedup();
    let (messages, origins): (Vec<_>, Vec<_>) = repaired
        .recorded
        .into_iter()
        .map(|recorded| (Arc::new(recorded.message), recorded.origin))
        .unzip();
    let first = stretches.iter().flat_map(|stretch| &stretch.messages).chain(&messages);
    header.started = header.started.or_else(|| first.into_iter().find_map(|message| message.time));
    let compacted: Vec<usize> = compactions.iter().map(|seen| seen.before).collect();
    let mut requests = requests::of_main(&messages, &asked, &compacted);
    for (thread, draft) in (1..).zip(&threads) {
        requests::push_thread(draft, thread, &mut requests);
    }
    requests::push_branches(branches, &mut requests);
    Ok(Session {
        format,
        options,
        header,
        messages,
        origins,
        notes,
        compactions,
        earlier: stretches,
        known,
        requests,
    })
}
