//! Answers: put together from a body or from events, in core's form and in the wire's.

mod chat;
mod facts;
mod gemini;
mod messages;
mod piece;
mod responses;

use std::fmt::Debug;
use std::ops::AddAssign;
use std::sync::{Arc, OnceLock};

use plimsoll_core::{Block, Message, Role, ToolCall, Usage};

pub(crate) use self::chat::call_index;
pub use self::piece::AnswerPiece;

use super::Wire;
use super::document::{MOST_DEPTH, Value, scanned};
use super::events::StreamEvent;
use super::failure::Failure;
use super::request::{ProviderRequest, answered_blocks};

/// The usage of one answer as the provider counted it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerUsage {
    pub tokens: Usage,
    /// Blocks of thinking that the provider dropped, as it tells where it is asked to drop them.
    pub dropped_thinking: u64,
    /// Tool uses whose results the provider's own context editing left out.
    pub cleared_tool_uses: u64,
}

impl AddAssign for AnswerUsage {
    fn add_assign(&mut self, other: Self) {
        self.tokens.prompt_tokens += other.tokens.prompt_tokens;
        self.tokens.cached_tokens += other.tokens.cached_tokens;
        self.tokens.written_tokens += other.tokens.written_tokens;
        self.tokens.written_long_tokens += other.tokens.written_long_tokens;
        self.tokens.output_tokens += other.tokens.output_tokens;
        self.dropped_thinking += other.dropped_thinking;
        self.cleared_tool_uses += other.cleared_tool_uses;
    }
}

impl From<Usage> for AnswerUsage {
    fn from(tokens: Usage) -> Self {
        Self { tokens, ..Self::default() }
    }
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The provider ended it.
    Complete,
    /// The provider reported an error.
    Failed(Failure),
    /// The body or the stream is not whole.
    Cut,
}

/// An answer of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderAnswer {
    /// The answer as elements of the wire's list of messages, so that it can be sent back.
    pub items: Vec<Arc<str>>,
    /// The answer as core knows it; `None` where it is empty.
    pub message: Option<Arc<Message>>,
    /// `None` where the provider did not count.
    pub usage: Option<AnswerUsage>,
    pub model: Option<String>,
    /// The provider's id of it.
    pub id: Option<String>,
    /// Why the model stopped, in the provider's word.
    pub stop: Option<String>,
    pub ending: Ending,
}

impl ProviderAnswer {
    /// Reads a whole body.
    pub fn of_body(wire: Wire, body: &[u8]) -> Self {
        let mut watch = Watch::new(wire);
        let document = str::from_utf8(body).ok().and_then(scanned);
        if let Some(document) = document {
            watch.body(document.root());
        }
        watch.make()
    }

    /// Returns the blocks of the answer; unlike [`ProviderAnswer::message`] it need not be known again in a request.
    pub fn blocks(&self, wire: Wire) -> Vec<Block> {
        answered_blocks(wire, &self.items)
    }

    /// Returns the calls in it.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.message.iter().flat_map(|message| message.calls())
    }
}

/// The meaning of an event for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Middle,
    /// The answer is complete: behind this event a client believes that it has all.
    End,
    /// The provider reports an error.
    Failure,
    /// The data is no JSON object.
    Unreadable,
}

/// Puts an answer together from events.
#[derive(Debug)]
pub struct Watch {
    wire: Wire,
    draft: Box<dyn AnswerDraft>,
    head: AnswerHead,
    /// The answer as far as it was seen, once it was asked for: putting it together costs as much as reading it did.
    made: OnceLock<ProviderAnswer>,
}

/// The fields of an answer beside its content.
#[derive(Debug, Default)]
struct AnswerHead {
    usage: Option<AnswerUsage>,
    model: Option<String>,
    id: Option<String>,
    stop: Option<String>,
    failure: Option<Failure>,
    ended: bool,
    /// The pieces since they were last taken; `None` where nobody takes them.
    pieces: Option<Vec<AnswerPiece>>,
}

impl AnswerHead {
    fn piece(&mut self, piece: impl FnOnce() -> AnswerPiece) {
        if let Some(pieces) = &mut self.pieces {
            pieces.push(piece());
        }
    }

    fn takes_pieces(&self) -> bool {
        self.pieces.is_some()
    }

    /// Adds a piece of the text in a field, unless it is empty.
    fn text_at(&mut self, value: Value<'_>, key: &str, piece: fn(String) -> AnswerPiece) {
        if self.takes_pieces()
            && let Some(text) = value.get(key).and_then(Value::text)
        {
            self.text(&text, piece);
        }
    }

    /// Adds a piece of a text, unless it is empty.
    fn text(&mut self, text: &str, piece: fn(String) -> AnswerPiece) {
        if !text.is_empty() {
            self.piece(|| piece(text.to_owned()));
        }
    }
}

/// An answer of a wire as it is put together.
trait AnswerDraft: Debug + Send + Sync {
    /// Takes in the data of an event; returns whether the answer ends with it.
    fn take(&mut self, data: Value<'_>, head: &mut AnswerHead) -> bool;

    /// Takes in a whole body.
    fn body(&mut self, body: Value<'_>, head: &mut AnswerHead);

    /// Returns the answer as elements of the wire's list of messages.
    fn items(&self) -> Vec<Arc<str>>;
}

impl Watch {
    pub fn new(wire: Wire) -> Self {
        let draft: Box<dyn AnswerDraft> = match wire {
            Wire::AnthropicMessages => Box::new(messages::MessagesDraft::default()),
            Wire::ChatCompletions => Box::new(chat::ChatDraft::default()),
            Wire::Responses => Box::new(responses::ResponsesDraft::default()),
            Wire::Gemini => Box::new(gemini::GeminiDraft::default()),
        };
        Self { wire, draft, head: AnswerHead::default(), made: OnceLock::new() }
    }

    /// As [`Watch::new`], for a caller that takes the [`Watch::pieces`] too.
    pub fn in_pieces(wire: Wire) -> Self {
        let mut watch = Self::new(wire);
        watch.head.pieces = Some(Vec::new());
        watch
    }

    /// Returns the pieces that came since they were asked for last.
    pub fn pieces(&mut self) -> Vec<AnswerPiece> {
        self.head.pieces.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes in an event; unknown events are ignored.
    pub fn see(&mut self, event: &StreamEvent) -> Moment {
        let Some(data) = &event.data else { return Moment::Middle };
        if data.trim() == "[DONE]" {
            self.made.take();
            self.head.ended |= self.head.stop.is_some();
            return Moment::End;
        }
        match scanned(data) {
            Some(document) => self.take(document.root()),
            None => Moment::Unreadable,
        }
    }

    pub(crate) fn take(&mut self, data: Value<'_>) -> Moment {
        self.made.take();
        if let Some(failure) = Failure::of(data) {
            self.head.failure = Some(failure);
            return Moment::Failure;
        }
        let ended = self.draft.take(data, &mut self.head);
        if self.head.failure.is_some() {
            return Moment::Failure;
        }
        if ended { Moment::End } else { Moment::Middle }
    }

    /// Takes a whole body.
    pub(crate) fn body(&mut self, body: Value<'_>) {
        self.made.take();
        if let Some(failure) = Failure::of(body) {
            self.head.failure = Some(failure);
            return;
        }
        self.draft.body(body, &mut self.head);
    }

    /// Returns how the answer ended, as far as it was head.
    pub fn ending(&self) -> Ending {
        match (&self.head.failure, self.head.ended) {
            (Some(failure), _) => Ending::Failed(failure.clone()),
            (None, true) => Ending::Complete,
            (None, false) => Ending::Cut,
        }
    }

    /// Returns the answer as far as it was head.
    pub fn answer(&self) -> &ProviderAnswer {
        self.made.get_or_init(|| self.make())
    }

    fn make(&self) -> ProviderAnswer {
        let items = self.draft.items();
        let head = &self.head;
        let ending = self.ending();
        ProviderAnswer {
            message: message_of(self.wire, &items),
            items,
            usage: head.usage,
            model: head.model.clone(),
            id: head.id.clone(),
            stop: head.stop.clone(),
            ending,
        }
    }
}

/// Reads elements of the wire's list of messages as the answer that they are.
///
/// It goes the way of a request, so that the answer is known again when a client sends it back.
pub(crate) fn message_of(wire: Wire, items: &[Arc<str>]) -> Option<Arc<Message>> {
    let request = request_of(wire, items)?;
    request.messages().iter().rfind(|message| message.role == Role::Assistant).cloned()
}

/// Reads elements of the wire's list of messages by the way of requests, in which every block has its bytes.
pub(crate) fn request_of(wire: Wire, items: &[Arc<str>]) -> Option<ProviderRequest> {
    let body = format!("{{\"{}\":[{}]}}", wire.list_key(), items.join(","));
    ProviderRequest::parse(wire, body.as_bytes(), "", MOST_DEPTH).ok()
}

fn owned(value: Option<Value<'_>>) -> Option<String> {
    value.and_then(Value::text).map(Into::into)
}

fn number(object: Option<Value<'_>>, keys: &[&str]) -> Option<u64> {
    object?.any(keys)?.number()
}
