//! The JSON of model providers: requests and answers are read, changed without touching the other bytes, and checked.
//!
//! Four wires are known: Anthropic Messages, `OpenAI` Chat Completions and Responses, and Gemini's `generateContent`. A
//! [`ProviderRequest`] knows where in its bytes each of core's messages stands; [`ProviderRequest::rewrite`] splices [`Edits`] into them,
//! and [`check()`] says what a server would refuse. Nothing here does input or output.

mod answer;
mod check;
mod content;
mod document;
mod events;
mod failure;
mod patch;
mod redaction;
mod reply;
mod request;
mod rewrite;
mod route;
mod synthetic_answer;
mod warming;

pub use answer::{AnswerPiece, AnswerUsage, Ending, Moment, ProviderAnswer, Watch};
pub use check::{Violation, check, check_rewritten};
pub use document::DEFAULT_DEPTH;
pub use events::{Events, StreamEvent};
pub use failure::{Failure, FailureKind, error_body, error_event};
pub use redaction::redact_body;
pub use reply::{Forward, Progress, Reply};
pub use request::{CacheQuestion, Marks, OfferedTool, ProviderRequest, RequestError, RequestKind};
pub use rewrite::{
    BETA_EDITING, BETA_THINKING, ContextEditing, Continuation, Edits, OwnCall, RewriteError,
    Rewritten, WithheldCall, WithheldCalls,
};
pub use route::Route;
pub use synthetic_answer::SyntheticAnswer;

use std::fmt;

/// The interface of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wire {
    /// Anthropic's `/v1/messages`.
    AnthropicMessages,
    /// `OpenAI`'s `/v1/chat/completions`, and what many others offer under that name.
    ChatCompletions,
    /// `OpenAI`'s `/v1/responses`.
    Responses,
    /// Google's `models/NAME:generateContent`.
    Gemini,
}

impl Wire {
    pub const ALL: [Self; 4] =
        [Self::AnthropicMessages, Self::ChatCompletions, Self::Responses, Self::Gemini];

    /// Returns the field of a request that holds the list of messages.
    pub fn list_key(self) -> &'static str {
        match self {
            Self::AnthropicMessages | Self::ChatCompletions => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        }
    }

    /// Returns the field of a message that holds its blocks, as far as they are a list.
    fn content_key(self) -> &'static str {
        if self == Self::Gemini { "parts" } else { "content" }
    }

    /// Returns the wire's name as every interface prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::ChatCompletions => "openai-chat",
            Self::Responses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
