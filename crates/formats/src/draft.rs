//! The draft of a session: a reader fills it, and the repair makes a session of it.

use std::sync::Arc;

use plimsoll_core::bill::{AddedContent, Cause};
use plimsoll_core::{Block, Message, MillisSinceEpoch, Role, ToolResult, Usage};
use serde_json::value::RawValue;

use crate::error::ReadError;
use crate::json;
use crate::note::{NoteKind, RecordPlace, SessionNote};
use crate::object::{self, Object};
use crate::session::{BlockPlace, Header, Origin, RecordedCompaction};

/// A message with its place in the file.
#[derive(Debug, Clone)]
pub(crate) struct RecordedMessage {
    pub(crate) message: Message,
    pub(crate) origin: Origin,
}

impl RecordedMessage {
    /// Makes a message of one record's blocks and their indexes.
    pub(crate) fn new(
        role: Role,
        record: u32,
        time: Option<MillisSinceEpoch>,
        blocks: impl IntoIterator<Item = (Option<u32>, Block)>,
    ) -> Self {
        let (pieces, blocks): (Vec<_>, Vec<_>) =
            blocks.into_iter().map(|(index, block)| (BlockPlace { record, index }, block)).unzip();
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
        self.origin.pieces.push(BlockPlace { record, index });
    }
}

/// A request to a model, as the file reports it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordedRequest {
    /// The index of its response; the messages before that index were its prompt.
    pub(crate) before: usize,
    pub(crate) source: u32,
    pub(crate) id: Option<Arc<str>>,
    pub(crate) time: Option<MillisSinceEpoch>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) usage: Usage,
    pub(crate) thinking_tokens: Option<u64>,
    pub(crate) told: Option<Cause>,
}

/// A request on a branch of the conversation that the user left.
#[derive(Debug, Clone, Default)]
pub(crate) struct BranchRequest {
    pub(crate) request: RecordedRequest,
    /// The line of the request whose conversation it continues.
    pub(crate) continues: Option<u32>,
    pub(crate) compacted: bool,
    pub(crate) after_user: bool,
    pub(crate) said: AddedContent,
}

/// A session as a reader has collected it so far.
#[derive(Debug)]
pub(crate) struct SessionDraft {
    pub(crate) header: Header,
    pub(crate) messages: Vec<RecordedMessage>,
    pub(crate) notes: Vec<SessionNote>,
    pub(crate) compactions: Vec<RecordedCompaction>,
    /// Requests of the main conversation, where the file reports them apart from its messages.
    pub(crate) requests: Vec<RecordedRequest>,
    pub(crate) branches: Vec<BranchRequest>,
    /// The conversations of sub-agents in the same file.
    pub(crate) threads: Vec<Self>,
    /// Further sessions in the same file.
    pub(crate) runs: Vec<Self>,
    /// The name among the conversations of the file.
    pub(crate) name: Option<String>,
    /// The contexts that ended with a compaction, where compactions are honoured.
    pub(crate) earlier: Vec<EarlierDraft>,
    /// How many leading `messages` stood in an earlier context or summarise one.
    pub(crate) known: usize,
    /// The number of messages in `earlier`.
    held: usize,
    /// Makes the place of a record in notes: a line or an element.
    pub(crate) place: fn(u32) -> RecordPlace,
}

impl SessionDraft {
    pub(crate) fn of_lines() -> Self {
        Self::new(RecordPlace::Line)
    }

    /// Begins a draft from a document: a list of records, or an object that holds one under `key`.
    pub(crate) fn of_document<'a>(
        text: &'a str,
        key: &str,
    ) -> Result<(Self, Object<'a>, Vec<&'a RawValue>), ReadError> {
        let (document, list) = object::document(text, key).map_err(ReadError::json)?;
        Ok((Self::new(RecordPlace::Element), document, list))
    }

    pub(crate) fn of_elements() -> Self {
        Self::new(RecordPlace::Element)
    }

    fn new(place: fn(u32) -> RecordPlace) -> Self {
        Self {
            header: Header::default(),
            messages: Vec::new(),
            notes: Vec::new(),
            compactions: Vec::new(),
            requests: Vec::new(),
            branches: Vec::new(),
            threads: Vec::new(),
            runs: Vec::new(),
            name: None,
            earlier: Vec::new(),
            known: 0,
            held: 0,
            place,
        }
    }

    /// Hands the object of each line to `take`. Invalid JSON is mended where possible, else skipped with a note.
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

    /// Hands the object of each element to `take`, as [`SessionDraft::each_line`] does.
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
        self.notes.push(SessionNote { place: (self.place)(record), kind });
    }

    pub(crate) fn skip(&mut self, record: u32, why: impl Into<String>) {
        self.note(record, NoteKind::Skipped { why: why.into() });
    }

    /// Returns the newest message if the model wrote it.
    pub(crate) fn open_assistant(&mut self) -> Option<&mut RecordedMessage> {
        self.messages.last_mut().filter(|last| last.message.role == Role::Assistant)
    }

    /// Returns the newest message that the model wrote.
    pub(crate) fn last_assistant(&mut self) -> Option<&mut RecordedMessage> {
        self.messages.iter_mut().rev().find(|recorded| recorded.message.role == Role::Assistant)
    }

    /// Ends the context where the agent dropped all of it; the reported requests stay.
    pub(crate) fn forget(&mut self) {
        for request in &mut self.requests {
            request.before = 0;
        }
        self.restart(Vec::new());
    }

    /// Ends the context so far. The next begins with `kept`; the caller may add a summary before [`SessionDraft::begun`].
    pub(crate) fn restart(&mut self, kept: Vec<RecordedMessage>) {
        let messages = std::mem::replace(&mut self.messages, kept);
        let known = std::mem::take(&mut self.known).min(messages.len());
        self.held += messages.len();
        // Otherwise no message came since the last compaction.
        if known < messages.len() && self.held <= MOST_HELD {
            self.earlier.push(EarlierDraft { messages, known });
        }
        self.compactions.clear();
        self.begun();
    }

    /// Marks all messages of the context as known.
    pub(crate) fn begun(&mut self) {
        self.known = self.messages.len();
    }

    pub(crate) fn compacted(&mut self, source: u32, tokens_before: Option<u64>) {
        let before = self.messages.len();
        self.compactions.push(RecordedCompaction { before, source, tokens_before });
    }
}

fn why(error: &serde_json::Error) -> String {
    let kind = if error.is_eof() { "the JSON ends too early" } else { "not JSON" };
    // The parser saw one record only, so its line number is always 1.
    format!("{kind}: {}", error.to_string().replace(" at line 1 column ", " at column "))
}

/// A context that ended with a compaction.
#[derive(Debug)]
pub(crate) struct EarlierDraft {
    pub(crate) messages: Vec<RecordedMessage>,
    pub(crate) known: usize,
}

/// The most messages of all earlier contexts together (chosen: far above any recorded file). Each context repeats the
/// messages that it keeps, so a crafted file could need memory for the square of its size.
const MOST_HELD: usize = 4_000_000;

/// Returns a usage; aborted requests report zeros, which are none.
pub(crate) fn usage(prompt: u64, cached: u64, output: u64) -> Option<Usage> {
    (prompt > 0).then_some(Usage {
        prompt_tokens: prompt,
        cached_tokens: cached,
        output_tokens: output,
        ..Usage::default()
    })
}
