//! The APIs that are spoken: a request to bytes; `plimsoll_wire` reads what comes back, and `answer` makes it a reply.

mod answer;
mod anthropic;
mod chat;
mod images;
mod likelihood;
mod responses;

use plimsoll_core::{Block, Message, Role};
use plimsoll_engine::{ChatRequest, ModelError, ToolUse};
use plimsoll_wire::Wire;
use serde_json::value::RawValue;

pub(crate) use self::answer::{Assembly, ReplyError, reply};
pub(crate) use self::likelihood::{likelihood, likelihood_body};

use crate::config::ModelApi;
use crate::provider::Provider;

/// Whether the answer is to come in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Whole,
    Streamed,
}

impl ModelApi {
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

    /// Returns the wire on which it is spoken.
    pub(crate) fn wire(self) -> Wire {
        match self {
            Self::Chat => Wire::ChatCompletions,
            Self::Responses => Wire::Responses,
            Self::Anthropic => Wire::AnthropicMessages,
        }
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

/// Returns whether the model may call none of the request's tools.
fn forbids_tools(request: &ChatRequest) -> bool {
    request.tool_use == ToolUse::Never && !request.tools.is_empty()
}

/// Splits the system messages off with which a conversation begins.
fn leading_system(messages: &[Message]) -> (&[Message], &[Message]) {
    let number = messages.iter().take_while(|message| message.role == Role::System).count();
    messages.split_at(number)
}
