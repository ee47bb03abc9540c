//! The chat port: messages in, the model's next message out, whole or as it is written.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_core::ab::Likelihood;
use plimsoll_core::lazy_tools::NativeSearch;
use plimsoll_core::{Block, Message, Role, ToolCall, Usage};
use serde::{Deserialize, Serialize};

use crate::model_error::ModelError;

/// Answers conversations.
///
/// Dropping the future of [`Self::complete`], or a stream, cancels the call: the connection is closed. What was
/// written until then may be paid for. A call that can be repeated at no cost is repeated by the model itself; after the
/// first byte of an answer nothing is.
#[async_trait]
pub trait ChatModel: Send + Sync + Debug {
    /// Returns the name by which it was asked for, `provider/model`.
    fn model(&self) -> &str;

    /// Returns the whole answer.
    ///
    /// Errors: [`ModelError::Unusable`] where JSON was asked for and what came is none, or not of the schema, unless the
    /// request says to return such an answer; a model behind HTTP is asked once more before that. Everything else as the
    /// variants say.
    async fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError>;

    /// Begins an answer and returns it piece by piece.
    ///
    /// Errors until the answer begins are returned here, later ones by the stream.
    async fn stream(&self, request: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError>;

    /// Returns how likely the model finds `answer`, a message of the assistant, as its answer; `None` if its API does not tell.
    ///
    /// Nothing is written, so a call costs the input only.
    async fn likelihood(
        &self,
        _request: &ChatRequest,
        _answer: &Message,
    ) -> Result<Option<Likelihood>, ModelError> {
        Ok(None)
    }
}

/// An answer that is being written.
#[async_trait]
pub trait ChatStream: Send + Debug {
    /// Returns the next piece, in the order in which the model wrote it.
    ///
    /// The last one is [`ChatEvent::Done`] or an error, then `None` for ever. A stream that ends without `Done` is an error,
    /// [`ModelError::Interrupted`]; it never passes for an answer. Dropping the future loses no piece.
    async fn next(&mut self) -> Option<Result<ChatEvent, ModelError>>;
}

/// A request to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// Whole exchanges, in order; each call is answered behind it.
    pub messages: Vec<Message>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// The most that the answer may have, reasoning included.
    pub max_tokens: u32,
    /// The provider's default where none is given; some models take none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    #[serde(default)]
    pub response: Response,
    /// Texts that end the answer where they would appear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    #[serde(default)]
    pub caching: Caching,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferral: Option<Deferral>,
    #[serde(default, skip_serializing_if = "ToolUse::is_free")]
    pub tool_use: ToolUse,
    #[serde(default, skip_serializing_if = "UnfitJson::is_asked_again")]
    pub unfit_json: UnfitJson,
}

impl ChatRequest {
    /// Makes a request for a text of at most 4,096 tokens, the longest that every known model writes (chosen).
    pub fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            tools: Vec::new(),
            max_tokens: 4096,
            temperature: None,
            response: Response::Text,
            stop: Vec::new(),
            caching: Caching::Off,
            deferral: None,
            tool_use: ToolUse::Free,
            unfit_json: UnfitJson::AskAgain,
        }
    }
}

/// Whether the model may call the request's tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolUse {
    #[default]
    Free,
    /// For an answer in words: the tools are sent, since the conversation holds calls of them, and may not be called.
    Never,
}

impl ToolUse {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    fn is_free(&self) -> bool {
        *self == Self::Free
    }
}

/// The treatment of an answer that is not the JSON that was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnfitJson {
    /// The model is asked once more, then the call fails.
    #[default]
    AskAgain,
    /// The answer is returned as it is: the caller judges it, and counts each request.
    Return,
}

impl UnfitJson {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    fn is_asked_again(&self) -> bool {
        *self == Self::AskAgain
    }
}

/// Whether the provider's prompt cache is to keep the request, where it does so only on demand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caching {
    /// For a request that stands alone: writing to a cache costs more than plain input.
    #[default]
    Off,
    /// For a request with which the next one will begin.
    Prefix,
}

/// Tools that wait until the provider's own search finds them; a provider that has none is sent them like all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferral {
    pub search: NativeSearch,
    /// By name, of the request's tools.
    pub tools: Vec<Arc<str>>,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// The JSON schema of its arguments, an object; sent as it stands.
    pub schema: Arc<str>,
}

/// The form of the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    #[default]
    Text,
    /// One JSON value that the schema, itself JSON, allows; an answer that calls tools is not held to it.
    Json { schema: Arc<str> },
}

/// The answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// An assistant's message; its `usage` is that of the reply.
    pub message: Message,
    pub usage: ChatUsage,
    pub stop_reason: StopReason,
    /// The model as the provider names it: more precise than what was asked for.
    pub model: String,
}

impl ChatReply {
    /// Returns the text of the answer, its parts joined as they stand.
    pub fn text(&self) -> String {
        let parts = self.message.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(&**text),
            _ => None,
        });
        parts.collect()
    }

    /// Makes the reply that consists of `blocks`.
    pub fn new(
        blocks: Vec<Block>,
        usage: ChatUsage,
        stop_reason: StopReason,
        model: impl Into<String>,
    ) -> Self {
        let mut message = Message::new(Role::Assistant, blocks);
        message.usage = Some(usage.into());
        Self { message, usage, stop_reason, model: model.into() }
    }
}

/// The usage of a call, in the provider's own tokens; zeros where it reported none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatUsage {
    /// All input: plain, read from the cache and written to it.
    pub input: u64,
    /// The part of `input` that was read from the cache.
    pub cached: u64,
    /// The part of `input` that was written to the cache.
    pub cache_written: u64,
    /// All output, reasoning included.
    pub output: u64,
}

impl From<ChatUsage> for Usage {
    fn from(usage: ChatUsage) -> Self {
        Self {
            prompt_tokens: usage.input,
            cached_tokens: usage.cached,
            written_tokens: usage.cache_written,
            written_long_tokens: 0,
            output_tokens: usage.output,
        }
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said all, or came to a stop text.
    End,
    /// It waits for the results of its calls.
    Calls,
    /// `max_tokens` or the window was full: the answer is cut.
    Length,
    /// It, or a filter of the provider, would not.
    Refused,
    /// Another reason, in the provider's own word.
    Other(String),
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatEvent {
    /// The text goes on.
    Text(String),
    /// Reasoning that the provider shows goes on.
    Reasoning(String),
    /// A call begins, the one at this index of the answer's calls, counted from 0.
    CallBegun { index: u32, id: Arc<str>, name: Arc<str> },
    /// The call's arguments go on; a part of a JSON text.
    CallArguments { index: u32, text: String },
    /// A call is whole.
    Call { index: u32, call: ToolCall },
    /// The answer is whole, with all that the pieces said.
    Done(Box<ChatReply>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_its_usage_in_the_message_and_its_text_in_one_piece() {
        let usage = ChatUsage { input: 10, cached: 4, cache_written: 2, output: 3 };
        let blocks = vec![Block::Text("a".into()), Block::Text("b".into())];
        let reply = ChatReply::new(blocks, usage, StopReason::End, "m");
        assert_eq!(reply.text(), "ab");
        let kept = reply.message.usage.expect("usage");
        assert_eq!((kept.prompt_tokens, kept.cached_tokens, kept.output_tokens), (10, 4, 3));
    }
}
