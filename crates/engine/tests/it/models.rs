//! A model, an embedder and a clock that do as they are told.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::{Block, MillisSinceEpoch};
use plimsoll_engine::{
    ChatModel, ChatReply, ChatRequest, ChatStream, ChatUsage, Clock, Embedder, Embedding,
    ModelError, StopReason,
};

/// Gives the answers it was made with, in order, and keeps what it was asked.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    answers: Mutex<VecDeque<Result<String, ModelError>>>,
    asked: Mutex<Vec<ChatRequest>>,
}

impl Scripted {
    pub(crate) fn new(answers: impl IntoIterator<Item = Result<String, ModelError>>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() }
    }

    pub(crate) fn saying(answers: &[&str]) -> Self {
        Self::new(answers.iter().map(|answer| Ok((*answer).to_owned())))
    }

    /// The last message of each request.
    pub(crate) fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().expect("no test panics while it holds this");
        let last = |request: &ChatRequest| request.messages.last().expect("a message").shown();
        asked.iter().map(last).collect()
    }
}

impl Scripted {
    /// The most tokens that the last answer might have had.
    pub(crate) fn longest(&self) -> u32 {
        let asked = self.asked.lock().expect("no test panics while it holds this");
        asked.last().expect("a request").max_tokens
    }
}

#[async_trait]
impl ChatModel for Scripted {
    fn model(&self) -> &'static str {
        "test/scripted"
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        self.asked.lock().expect("no test panics while it holds this").push(request.clone());
        let next = self.answers.lock().expect("no test panics while it holds this").pop_front();
        let text = next.unwrap_or_else(|| Err(ModelError::Invalid("no more answers".into())))?;
        let usage = ChatUsage { input: 100, output: 20, ..ChatUsage::default() };
        let blocks = vec![Block::Text(text.into())];
        Ok(ChatReply::new(blocks, usage, StopReason::End, "scripted"))
    }

    async fn stream(&self, _: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError> {
        Err(ModelError::Invalid("it does not stream".into()))
    }
}

/// A model that never answers.
#[derive(Debug)]
pub(crate) struct Stuck;

#[async_trait]
impl ChatModel for Stuck {
    fn model(&self) -> &'static str {
        "test/stuck"
    }

    async fn complete(&self, _: &ChatRequest) -> Result<ChatReply, ModelError> {
        std::future::pending().await
    }

    async fn stream(&self, _: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError> {
        std::future::pending().await
    }
}

pub(crate) fn unavailable() -> ModelError {
    ModelError::Unavailable { message: "busy".into(), retry_after: Some(Duration::from_secs(30)) }
}

/// Looks for three words; a text without any of them has a vector of zeros.
#[derive(Debug)]
pub(crate) struct Words(pub(crate) &'static str);

#[async_trait]
impl Embedder for Words {
    fn model(&self) -> &str {
        self.0
    }

    fn dimension(&self) -> usize {
        3
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, ModelError> {
        let vector = |text: &&str| {
            let counts =
                ["cache", "parser", "weather"].map(|word| text.matches(word).count() as f32);
            let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt();
            let vector = counts.iter().map(|count| count / length.max(1e-9)).collect();
            Embedding { model: self.0.to_owned(), vector }
        };
        Ok(texts.iter().map(vector).collect())
    }
}

/// An embedder that nobody can reach.
#[derive(Debug)]
pub(crate) struct Unreachable;

#[async_trait]
impl Embedder for Unreachable {
    fn model(&self) -> &'static str {
        "unreachable"
    }

    fn dimension(&self) -> usize {
        3
    }

    async fn embed(&self, _: &[&str]) -> Result<Vec<Embedding>, ModelError> {
        Err(unavailable())
    }
}

/// A clock that is set by hand.
#[derive(Debug, Default)]
pub(crate) struct Manual(Mutex<i64>);

impl Manual {
    pub(crate) fn forward(&self, seconds: i64) {
        *self.0.lock().expect("no test panics while it holds this") += seconds * 1000;
    }
}

#[async_trait]
impl Clock for Manual {
    fn now(&self) -> MillisSinceEpoch {
        MillisSinceEpoch(*self.0.lock().expect("no test panics while it holds this"))
    }

    async fn sleep(&self, duration: Duration) {
        self.forward(i64::try_from(duration.as_secs()).unwrap_or(0));
    }
}
