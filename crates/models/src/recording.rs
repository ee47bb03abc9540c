//! Records real traffic, and answers from such a record.
//!
//! A recording has a JSON object on each line: the model's name, the request, and what came of it. Keys and headers are no
//! part of a request, so they can't get in.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::Message;
use plimsoll_core::ab::Likelihood;
use plimsoll_engine::{ChatEvent, ChatModel, ChatReply, ChatRequest, ChatStream, ModelError};
use serde::{Deserialize, Serialize};

use crate::playback::ReplyPieces;
use crate::scripted::text_of;

/// One call, as it is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedCall {
    model: String,
    request: ChatRequest,
    /// The whole answer of a call that was not streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<ChatReply>,
    /// The pieces of one that was, [`ChatEvent::Done`] last if it came to that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    events: Vec<ChatEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RecordedError>,
}

/// A [`ModelError`], as it is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedError {
    Invalid(String),
    Denied(String),
    Unavailable { message: String, retry_after_millis: Option<u64> },
    Interrupted(String),
    Unusable(String),
    Capped(String),
}

impl From<&ModelError> for RecordedError {
    fn from(error: &ModelError) -> Self {
        match error.clone() {
            ModelError::Invalid(message) => Self::Invalid(message),
            ModelError::Denied(message) => Self::Denied(message),
            ModelError::Unavailable { message, retry_after } => Self::Unavailable {
                message,
                retry_after_millis: retry_after
                    .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            },
            ModelError::Interrupted(message) => Self::Interrupted(message),
            ModelError::Unusable(message) => Self::Unusable(message),
            ModelError::Capped(message) => Self::Capped(message),
        }
    }
}

impl From<RecordedError> for ModelError {
    fn from(failed: RecordedError) -> Self {
        match failed {
            RecordedError::Invalid(message) => Self::Invalid(message),
            RecordedError::Denied(message) => Self::Denied(message),
            RecordedError::Unavailable { message, retry_after_millis } => Self::Unavailable {
                message,
                retry_after: retry_after_millis.map(Duration::from_millis),
            },
            RecordedError::Interrupted(message) => Self::Interrupted(message),
            RecordedError::Unusable(message) => Self::Unusable(message),
            RecordedError::Capped(message) => Self::Capped(message),
        }
    }
}

/// The file to which calls are appended.
#[derive(Debug)]
pub(crate) struct Recording {
    path: PathBuf,
    writing: Mutex<()>,
}

impl Recording {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), writing: Mutex::new(()) }
    }

    fn open(&self) -> std::io::Result<std::fs::File> {
        std::fs::OpenOptions::new().create(true).append(true).open(&self.path)
    }

    /// Fails if the file cannot be written, so that no call is paid for whose record would be lost.
    fn ready(&self) -> Result<(), ModelError> {
        let failed = |error| {
            ModelError::Invalid(format!("cannot record to {}: {error}", self.path.display()))
        };
        self.open().map(|_| ()).map_err(failed)
    }

    /// Appends a line. An error is ignored: the answer is worth more than its record.
    fn write(&self, line: &RecordedCall) {
        let Ok(mut text) = serde_json::to_vec(line) else { return };
        text.push(b'\n');
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.open().and_then(|mut file| file.write_all(&text));
    }
}

/// A model whose calls are recorded.
#[derive(Debug)]
pub(crate) struct RecordedModel {
    pub(crate) inner: Arc<dyn ChatModel>,
    pub(crate) recording: Arc<Recording>,
}

impl RecordedModel {
    fn line(&self, request: &ChatRequest) -> RecordedCall {
        let model = self.inner.model().to_owned();
        RecordedCall {
            model,
            request: request.clone(),
            reply: None,
            events: Vec::new(),
            error: None,
        }
    }
}

#[async_trait]
impl ChatModel for RecordedModel {
    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        self.recording.ready()?;
        let answer = self.inner.complete(request).await;
        let mut line = self.line(request);
        match &answer {
            Ok(reply) => line.reply = Some(reply.clone()),
            Err(error) => line.error = Some(error.into()),
        }
        self.recording.write(&line);
        answer
    }

    async fn likelihood(
        &self,
        request: &ChatRequest,
        answer: &Message,
    ) -> Result<Option<Likelihood>, ModelError> {
        self.inner.likelihood(request, answer).await
    }

    async fn stream(&self, request: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError> {
        self.recording.ready()?;
        let mut line = self.line(request);
        match self.inner.stream(request).await {
            Ok(inner) => {
                let (recording, line) = (self.recording.clone(), Some(line));
                Ok(Box::new(RecordedStream { inner, recording, line }))
            }
            Err(error) => {
                line.error = Some((&error).into());
                self.recording.write(&line);
                Err(error)
            }
        }
    }
}

#[derive(Debug)]
struct RecordedStream {
    inner: Box<dyn ChatStream>,
    recording: Arc<Recording>,
    /// `None` once it is written.
    line: Option<RecordedCall>,
}

impl RecordedStream {
    fn write(&mut self) {
        if let Some(line) = self.line.take() {
            self.recording.write(&line);
        }
    }
}

#[async_trait]
impl ChatStream for RecordedStream {
    async fn next(&mut self) -> Option<Result<ChatEvent, ModelError>> {
        let piece = self.inner.next().await;
        if let Some(line) = &mut self.line {
            match &piece {
                Some(Ok(piece)) => line.events.push(piece.clone()),
                Some(Err(error)) => line.error = Some(error.into()),
                None => {}
            }
        }
        if !matches!(&piece, Some(Ok(piece)) if !matches!(piece, ChatEvent::Done(_))) {
            self.write();
        }
        piece
    }
}

impl Drop for RecordedStream {
    fn drop(&mut self) {
        self.write();
    }
}

/// Answers requests from a recording: each recorded call once, in order among those of the same request.
#[derive(Debug)]
pub struct ReplayModel {
    name: String,
    left: Mutex<Vec<RecordedCall>>,
}

impl ReplayModel {
    /// Reads a recording; `name` is what the model is called.
    ///
    /// Errors: [`ModelError::Invalid`] with the line that is wrong.
    pub fn parse(name: &str, recording: &str) -> Result<Self, ModelError> {
        let lines = recording.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let lines = lines.map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| {
                ModelError::Invalid(format!(
                    "line {} of the recording of `{name}`: {error}",
                    at + 1
                ))
            })
        });
        let left = Mutex::new(lines.collect::<Result<_, _>>()?);
        Ok(Self { name: name.to_owned(), left })
    }

    /// Reads a recording from a file, as [`Self::parse`].
    pub fn from_file(name: &str, path: &Path) -> Result<Self, ModelError> {
        Self::parse(name, &text_of(path)?)
    }

    fn take(&self, request: &ChatRequest) -> Result<RecordedCall, ModelError> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let at = left.iter().position(|line| line.request == *request);
        let at = at.ok_or_else(|| {
            ModelError::Invalid(format!(
                "the recording of `{}` has no such request left",
                self.name
            ))
        })?;
        Ok(left.remove(at))
    }
}

fn cut() -> ModelError {
    ModelError::Interrupted("the recorded answer was not read to its end".into())
}

#[async_trait]
impl ChatModel for ReplayModel {
    fn model(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let line = self.take(request)?;
        if let Some(error) = line.error {
            return Err(error.into());
        }
        let done = line.events.into_iter().find_map(|event| match event {
            ChatEvent::Done(reply) => Some(*reply),
            _ => None,
        });
        line.reply.or(done).ok_or_else(cut)
    }

    async fn stream(&self, request: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError> {
        let line = self.take(request)?;
        if let Some(reply) = line.reply {
            return Ok(Box::new(ReplyPieces::reply(reply)));
        }
        let is_done = matches!(line.events.last(), Some(ChatEvent::Done(_)));
        match line.error {
            Some(error) if line.events.is_empty() => Err(error.into()),
            error => {
                let error = error.map(ModelError::from).or_else(|| (!is_done).then(cut));
                Ok(Box::new(ReplyPieces::new(line.events, error)))
            }
        }
    }
}
