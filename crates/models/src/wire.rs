//! The APIs that are spoken: a request to bytes, an answer's bytes or events to a reply.

mod anthropic;
mod chat;
mod images;
mod responses;

use std::collections::VecDeque;
use std::fmt::Debug;

use plimsoll_core::{Block, Message, Role, ToolCall};
use plimsoll_engine::{ChatEvent, ChatReply, ChatRequest, ModelError};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::config::Api;
use crate::failure::{self, Failure};
use crate::provider::Provider;
use crate::sse::Event;

/// Whether the answer is to come in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Whole,
    Streamed,
}

/// What is wrong with an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Wrong {
    /// The provider tells of a failure.
    Told(Failure),
    /// It is not of the API's shape.
    Shape(String),
    /// It ends before its end.
    Cut,
}

/// Puts an answer together from the events of a stream.
pub(crate) trait Assembly: Send + Debug {
    /// Takes an event and appends the pieces that it brings, [`ChatEvent::Done`] last.
    fn take(&mut self, event: &Event, pieces: &mut VecDeque<ChatEvent>) -> Result<(), Wrong>;

    /// Takes the end of the stream, for APIs that need not announce it.
    fn end(&mut self, pieces: &mut VecDeque<ChatEvent>) -> Result<(), Wrong>;
}

impl Api {
    /// Returns the path below the base URL to which requests go.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Responses => "/responses",
            Self::Anthropic => "/messages",
        }
    }

    /// Writes a request.
    pub(crate) fn body(
        self,
        request: &ChatRequest,
        provider: &Provider,
        model: &str,
        delivery: Delivery,
    ) -> Result<Vec<u8>, ModelError> {
        match self {
            Self::Chat => chat::body(request, provider, model, delivery),
            Self::Responses => responses::body(request, provider, model, delivery),
            Self::Anthropic => anthropic::body(request, provider, model, delivery),
        }
    }

    /// Reads a whole answer.
    pub(crate) fn reply(self, body: &[u8]) -> Result<ChatReply, Wrong> {
        match self {
            Self::Chat => chat::reply(body),
            Self::Responses => responses::reply(body),
            Self::Anthropic => anthropic::reply(body),
        }
    }

    /// Begins to put a streamed answer together.
    pub(crate) fn assembly(self) -> Box<dyn Assembly> {
        match self {
            Self::Chat => Box::<chat::Assembly>::default(),
            Self::Responses => Box::<responses::Assembly>::default(),
            Self::Anthropic => Box::<anthropic::Assembly>::default(),
        }
    }
}

/// Reads JSON of a known shape; what tells of a failure instead is that failure.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Wrong> {
    let read: Result<T, _> = serde_json::from_slice(body);
    // A failure may have all the fields of an answer, each empty.
    match (failure::read(body), read) {
        (Some(told), _) => Err(Wrong::Told(told)),
        (None, Ok(value)) => Ok(value),
        (None, Err(error)) => Err(Wrong::Shape(error.to_string())),
    }
}

/// Takes `text` for JSON that is sent as it stands.
fn raw(text: &str, what: &str) -> Result<Box<RawValue>, ModelError> {
    RawValue::from_string(text.to_owned())
        .map_err(|error| ModelError::Invalid(format!("{what} is no JSON: {error}")))
}

/// Writes a body; none of the shapes can fail to be JSON.
fn written(body: &impl serde::Serialize) -> Result<Vec<u8>, ModelError> {
    serde_json::to_vec(body).map_err(|error| ModelError::Invalid(error.to_string()))
}

/// Returns the texts of a message as one, parts joined by a line break; `None` where there is none.
fn text_of(message: &Message) -> Option<String> {
    let texts: Vec<&str> = message.blocks.iter().filter_map(text_in).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Returns the text of a block that is one and not empty: APIs refuse empty ones.
fn text_in(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Splits the system messages off with which a conversation begins.
fn leading_system(messages: &[Message]) -> (&[Message], &[Message]) {
    let number = messages.iter().take_while(|message| message.role == Role::System).count();
    messages.split_at(number)
}

/// A call whose arguments are still coming.
#[derive(Debug, Default)]
struct Growing {
    id: String,
    name: String,
    arguments: String,
}

impl Growing {
    fn whole(self) -> ToolCall {
        let arguments = if self.arguments.trim().is_empty() { "{}".into() } else { self.arguments };
        ToolCall { id: self.id.into(), name: self.name.into(), arguments: arguments.into() }
    }
}
