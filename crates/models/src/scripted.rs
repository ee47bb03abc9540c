//! A model whose answers stand in a file: for tests, examples and work without a network.
//!
//! A script has a JSON object on each line, one for each turn, in order; empty lines and lines that begin with `#` are
//! passed over:
//!
//! ```json
//! {"expect": "weather", "calls": [{"name": "forecast", "arguments": {"place": "Ulm"}}]}
//! {"expect": "rain", "text": "Take an umbrella.", "usage": {"input": 120, "output": 6}}
//! {"fault": "unavailable", "retry_after_seconds": 3}
//! {"text": "That is all.", "by_schema": true, "repeat": true}
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::ab::Likelihood;
use plimsoll_core::{Block, Message, Thinking, ToolCall, json_form};
use plimsoll_engine::{
    ChatModel, ChatReply, ChatRequest, ChatStream, ChatUsage, ModelError, Response, StopReason,
};
use serde::Deserialize;
use serde_json::Value;

use crate::playback::{self, ReplyPieces};

/// Answers with the turns of a script, one for each request; the same script gives the same answers.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    turns: Vec<ScriptedTurn>,
    next: AtomicUsize,
}

/// A turn as the script has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedTurn {
    /// Must occur in what the last message of the request shows.
    #[serde(default)]
    expect: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    text: Option<String>,
    /// A value that is written as the text.
    #[serde(default)]
    json: Option<Value>,
    /// Where the request asks for JSON, the answer is the smallest value of its schema instead of the text.
    #[serde(default)]
    by_schema: bool,
    #[serde(default)]
    calls: Vec<ScriptedCall>,
    /// Without it a quarter of the characters that the request and the answer show.
    #[serde(default)]
    usage: Option<ChatUsage>,
    #[serde(default)]
    stop: Option<StopReason>,
    /// How likely the model finds another answer to the same request.
    #[serde(default)]
    likelihood: Option<Likelihood>,
    /// The turn fails; a stream that is `interrupted` gives the turn's text first.
    #[serde(default)]
    fault: Option<Fault>,
    #[serde(default)]
    retry_after_seconds: Option<u64>,
    /// The last turn of a script only: it answers every further request too.
    #[serde(default)]
    repeat: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    name: String,
    /// An object, or the text of the arguments as the model writes them.
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    id: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fault {
    Invalid,
    Denied,
    Unavailable,
    Interrupted,
    Unusable,
    Capped,
}

impl ScriptedModel {
    /// Reads a script; `name` is what the model is called.
    ///
    /// Errors: [`ModelError::Invalid`] with the line that is wrong.
    pub fn parse(name: &str, script: &str) -> Result<Self, ModelError> {
        let lines = script.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let told = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let turns = told.map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| {
                ModelError::Invalid(format!("line {number} of the script of `{name}`: {error}"))
            })
        });
        let turns = turns.collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), turns, next: AtomicUsize::new(0) })
    }

    /// Reads a script from a file, as [`Self::parse`].
    pub fn from_file(name: &str, path: &Path) -> Result<Self, ModelError> {
        Self::parse(name, &text_of(path)?)
    }

    /// Passes over the next turn: its answer is known from elsewhere.
    pub fn pass_over(&self) {
        self.next.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many turns are left.
    pub fn left(&self) -> usize {
        self.turns.len().saturating_sub(self.next.load(Ordering::Relaxed))
    }

    fn turn(&self, request: &ChatRequest) -> Result<(usize, &ScriptedTurn), ModelError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let again = self.turns.last().filter(|turn| turn.repeat);
        let turn = self.turns.get(number).or(again).ok_or_else(|| {
            ModelError::Invalid(format!(
                "the script of `{}` has {} turns, and this is request {}",
                self.name,
                self.turns.len(),
                number + 1
            ))
        })?;
        let shown = request.messages.last().map(Message::shown).unwrap_or_default();
        match &turn.expect {
            Some(expected) if !shown.contains(expected.as_str()) => {
                Err(ModelError::Invalid(format!(
                    "turn {} of the script of `{}` expects `{expected}` in the last message",
                    number + 1,
                    self.name
                )))
            }
            _ => Ok((number, turn)),
        }
    }

    fn reply(&self, number: usize, turn: &ScriptedTurn, request: &ChatRequest) -> ChatReply {
        let mut blocks = Vec::new();
        if let Some(text) = &turn.reasoning {
            blocks.push(Block::Thinking(Thinking {
                text: text.as_str().into(),
                signature: "".into(),
            }));
        }
        let json = turn.json.as_ref().map(Value::to_string);
        let by_schema = match &request.response {
            Response::Json { schema } if turn.by_schema => {
                serde_json::from_str(schema).ok().map(|schema| json_form::smallest(&schema))
            }
            _ => None,
        };
        let texts = match by_schema {
            Some(value) => vec![value.to_string()],
            None => turn.text.clone().into_iter().chain(json).collect(),
        };
        blocks.extend(texts.into_iter().map(|text| Block::Text(text.into())));
        for (index, call) in turn.calls.iter().enumerate() {
            let id = call.id.clone().unwrap_or_else(|| format!("call_{}_{index}", number + 1));
            let arguments = match &call.arguments {
                Value::String(text) => text.clone(),
                Value::Null => "{}".to_owned(),
                value => value.to_string(),
            };
            let name = call.name.as_str().into();
            blocks.push(Block::ToolCall(ToolCall {
                id: id.into(),
                name,
                arguments: arguments.into(),
            }));
        }
        let stop = turn.stop.clone().unwrap_or(match turn.calls.len() {
            0 => StopReason::End,
            _ => StopReason::Calls,
        });
        let mut reply = ChatReply::new(blocks, ChatUsage::default(), stop, &self.name);
        reply.usage = turn.usage.unwrap_or_else(|| ChatUsage {
            input: request.messages.iter().map(quarter).sum(),
            output: quarter(&reply.message),
            ..ChatUsage::default()
        });
        reply.message.usage = Some(reply.usage.into());
        reply
    }
}

fn quarter(message: &Message) -> u64 {
    (message.shown().chars().count() as u64).div_ceil(4)
}

impl ScriptedTurn {
    fn fault(&self) -> Option<ModelError> {
        let told = || "the script says so".to_owned();
        Some(match self.fault? {
            Fault::Invalid => ModelError::Invalid(told()),
            Fault::Denied => ModelError::Denied(told()),
            Fault::Unavailable => ModelError::Unavailable {
                message: told(),
                retry_after: self.retry_after_seconds.map(Duration::from_secs),
            },
            Fault::Interrupted => ModelError::Interrupted(told()),
            Fault::Unusable => ModelError::Unusable(told()),
            Fault::Capped => ModelError::Capped(told()),
        })
    }
}

/// Reads a file of fixtures.
pub(crate) fn text_of(path: &Path) -> Result<String, ModelError> {
    std::fs::read_to_string(path)
        .map_err(|error| ModelError::Invalid(format!("cannot read {}: {error}", path.display())))
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn model(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let (number, turn) = self.turn(request)?;
        match turn.fault() {
            Some(error) => Err(error),
            None => Ok(self.reply(number, turn, request)),
        }
    }

    /// Returns the likelihood that the turn of the last answer tells.
    async fn likelihood(
        &self,
        _request: &ChatRequest,
        _answer: &Message,
    ) -> Result<Option<Likelihood>, ModelError> {
        let last = self.next.load(Ordering::Relaxed).min(self.turns.len()).checked_sub(1);
        Ok(last.and_then(|last| self.turns[last].likelihood))
    }

    async fn stream(&self, request: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError> {
        let (number, turn) = self.turn(request)?;
        let reply = self.reply(number, turn, request);
        match turn.fault() {
            Some(error @ ModelError::Interrupted(_)) => {
                Ok(Box::new(ReplyPieces::new(playback::pieces(&reply), Some(error))))
            }
            Some(error) => Err(error),
            None => Ok(Box::new(ReplyPieces::reply(reply))),
        }
    }
}
