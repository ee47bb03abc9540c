//! The draft: what a reader collects before it is repaired and becomes a session.

use std::sync::Arc;

use plimsoll_core::bill::{AddedContent, Cause};
use plimsoll_core::{Block, Message, MillisSinceEpoch, Role, ToolResult, Usage};
use serde_json::value::RawValue;

use crate::error::ReadError;
use crate::json;
use crate::note::{Note, NoteKind, Place};
use crate::object::{self, Object};
use crate::session::{CompactionSeen, Header, Origin, Piece};

/// A message with its place in the file.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) message: Message,
    pub(crate) origin: Origin,
}

impl Recorded {
    /// Makes a message of one record whose blocks come with their indexes.
    pub(crate) fn new(
        role: Role,
        record: u32,
        time: Option<MillisSinceEpoch>,
        blocks: impl IntoIterator<Item = (Option<u32>, Block)>,
    ) -> Self {
        let (pieces, blocks): (Vec<_>, Vec<_>) =
            blocks.into_iter().map(|(index, block)| (Piece { record, index }, block)).unzip();
        let mut message = Message::new(role, blocks);
        message.time = time;
        message.source = Some(record);
        Self { message, origin: Origin { pieces, repaired: false } }
    }

    /// Makes a message of one text.
    pub(crate) fn text(
        role: Role,
        record: u32,
        time: Option<MillisSinceEpoch>,
        text: impl Into<Arc<str>>,
    ) -> Self {
        Self::new(role, record, time, [(None, Block::Text(text.into()))])
    }

    /// Makes a message of one tool result.
    pub(crate) fn result(
        record: u32,
        time: Option<MillisSinceEpoch>,
        index: Option<u32>,
        result: ToolResult,
    ) -> Self {
        Self::new(Role::Tool, record, time, [(index, Block::ToolResult(result))])
    }

    /// Appends a block that was read from `record`.
    pub(crate) fn push(&mut self, record: u32, index: Option<u32>, block: Block) {
        self.message.blocks.push(block);
        self.origin.pieces.push(Piece { record, index });
    }
}

/// A call of a model, as a reader met it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// The index of its answer: messages before it made its prompt.
    pub(crate) before: usize,
    pub(crate) source: u32,
    pub(crate) id: Option<Arc<str>>,
    pub(crate) time: Option<MillisSinceEpoch>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) usage: Usage,
    pub(crate) thinking_tokens: Option<u64>,
    pub(crate) told: Option<Cause>,
}

/// A call of a model on a branch that was left.
#[derive(Debug, Clone, Default)]
pub(crate) struct Branched {
    pub(crate) asked: Asked,
    /// The line of the request that it continues.
    pub(crate) continues: Option<u32>,
    pub(crate) compacted: bool,
    pub(crate) after_user: bool,
    pub(crate) said: AddedContent,
}

/// What a reader has collected so far.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) header: Header,
    pub(crate) recorded: Vec<Recorded>,
    pub(crate) notes: Vec<Note>,
    pub(crate) compactions: Vec<CompactionSeen>,
    /// Calls of the main conversation's model, where a reader meets them by themselves.
    pub(crate) requests: Vec<Asked>,
    pub(crate) branches: Vec<Branched>,
    /// Other conversations of the file: sub-agents.
    pub(crate) threads: Vec<Self>,
    /// The contexts that ended with a compaction, where those are honoured.
    pub(crate) earlier: Vec<Earlier>,
    /// Messages at the beginning of `recorded` that stood in an earlier context, or stand for it.
    pub(crate) known: usize,
    /// Messages that `earlier` holds.
    held: usize,
    /// How the file's records are called in notes.
    pub(crate) place: fn(u32) -> Place,
}

impl Draft {
    pub(crate) fn of_lines() -> Self {
        Self::new(Place::Line)
    }

    /// Begins to read a document: a list of records alone, or an object that holds one under `key`.
    pub(crate) fn of_document<'a>(
        text: &'a str,
        key: &str,
    ) -> Result<(Self, Object<'a>, Vec<&'a RawValue>), ReadError> {
        let (document, list) = object::document(text, key).map_err(ReadError::json)?;
        Ok((Self::new(Place::Element), document, list))
    }

    fn new(place: fn(u32) -> Place) -> Self {
        Self {
            header: Header::default(),
            recorded: Vec::new(),
            notes: Vec::new(),
            compactions: Vec::new(),
            requests: Vec::new(),
            branches: Vec::new(),
            threads: Vec::new(),
            earlier: Vec::new(),
            known: 0,
            held: 0,
            place,
        }
    }

    /// Hands each line's object to `take`; a line that is none is mended and tried again, and else skipped with a note.
    pub(crate) fn each_line(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&mut Self, u32, &Object<'_>),
    ) {
        for (number, line) in json::lines(bytes) {
            if line.len() > json::LONGEST_LINE {
                self.skip(number, format!("longer than {} MiB", json::LONGEST_LINE >> 20));
            } else if let Ok(text) = str::from_utf8(line) {
                self.record(number, text, &mut take);
            } else {
                self.skip(number, "not UTF-8");
            }
        }
    }

    /// Hands each element's object to `take`, as [`Draft::each_line`] does.
    pub(crate) fn each_element(
        &mut self,
        elements: &[&RawValue],
        mut take: impl FnMut(&mut Self, u32, &Object<'_>),
    ) {
        for (number, element) in (1..).zip(elements) {
            self.record(number, element.get(), &mut take);
        }
    }

    fn record(
        &mut self,
        number: u32,
        text: &str,
        take: &mut impl FnMut(&mut Self, u32, &Object<'_>),
    ) {
        if !text.starts_with('{') {
            return self.skip(number, "not a JSON object");
        }
        match Object::read(text) {
            Ok(object) => take(self, number, &object),
            Err(error) => match json::mended(text).as_deref().and_then(Object::parse) {
                Some(object) => take(self, number, &object),
                None => self.skip(number, why(&error)),
            },
        }
    }

    pub(crate) fn note(&mut self, record: u32, kind: NoteKind) {
        self.notes.push(Note { place: (self.place)(record), kind });
    }

    pub(crate) fn skip(&mut self, record: u32, why: impl Into<String>) {
        self.note(record, NoteKind::Skipped { why: why.into() });
    }

    /// Returns the newest message if the model wrote it.
    pub(crate) fn open_assistant(&mut self) -> Option<&mut Recorded> {
        self.recorded.last_mut().filter(|last| last.message.role == Role::Assistant)
    }

    /// Returns the newest message that the model wrote.
    pub(crate) fn last_assistant(&mut self) -> Option<&mut Recorded> {
        self.recorded.iter_mut().rev().find(|recorded| recorded.message.role == Role::Assistant)
    }

    /// Ends the context where the agent forgot it; what was paid for it stays.
    pub(crate) fn forget(&mut self) {
        for asked in &mut self.requests {
            asked.before = 0;
        }
        self.restart(Vec::new());
    }

    /// Ends the context so far; the next begins with `kept`, to which a summary may be added before [`Draft::begun`].
    pub(crate) fn restart(&mut self, kept: Vec<Recorded>) {
        let recorded = std::mem::replace(&mut self.recorded, kept);
        let known = std::mem::take(&mut self.known).min(recorded.len());
        self.held += recorded.len();
        // Nothing was said since the last compaction.
        if known < recorded.len() && self.held <= MOST_HELD {
            self.earlier.push(Earlier { recorded, known });
        }
        self.compactions.clear();
        self.begun();
    }

    /// Takes what stands in the context now for known.
    pub(crate) fn begun(&mut self) {
        self.known = self.recorded.len();
    }

    pub(crate) fn compacted(&mut self, source: u32, tokens_before: Option<u64>) {
        let before = self.recorded.len();
        self.compactions.push(CompactionSeen { before, source, tokens_before });
    }
}

fn why(error: &serde_json::Error) -> String {
    let kind = if error.is_eof() { "the JSON ends too early" } else { "not JSON" };
    // The record is a line of its own: only the column means anything to the reader.
    format!("{kind}: {}", error.to_string().replace(" at line 1 column ", " at column "))
}

/// A context that ended with a compaction.
#[derive(Debug)]
pub(crate) struct Earlier {
    pub(crate) recorded: Vec<Recorded>,
    pub(crate) known: usize,
}

/// Messages of all earlier contexts together, at most: each holds again what it keeps of the one before, so a file could ask
/// for the square of its size (chosen: far above any recorded).
const MOST_HELD: usize = 4_000_000;

/// Returns a usage unless it is all zero, which aborted requests report.
pub(crate) fn usage(prompt: u64, cached: u64, output: u64) -> Option<Usage> {
    (prompt > 0).then_some(Usage {
        prompt_tokens: prompt,
        cached_tokens: cached,
        output_tokens: output,
        ..Usage::default()
    })
}
