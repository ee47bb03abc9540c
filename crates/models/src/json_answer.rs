//! Answers in JSON, held to their schema.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_core::ab::Likelihood;
use plimsoll_core::{Block, Message, Role, json_form};
use plimsoll_engine::{
    ChatEvent, ChatModel, ChatReply, ChatRequest, ChatStream, ChatUsage, ModelError, Response,
    StopReason, UnfitJson,
};

/// A model whose answers in JSON are checked; one that is wrong is asked for once more.
#[derive(Debug)]
pub(crate) struct JsonCheckedModel {
    pub(crate) inner: Arc<dyn ChatModel>,
}

#[async_trait]
impl ChatModel for JsonCheckedModel {
    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let reply = self.inner.complete(request).await?;
        let Response::Json { schema } = &request.response else { return Ok(reply) };
        if request.unfit_json == UnfitJson::Return {
            return Ok(reply);
        }
        let first = reply.usage;
        let problem = match check(reply.clone(), schema) {
            Ok(reply) => return Ok(reply),
            Err(problem) if problem.is_final => return Err(problem.into()),
            Err(problem) => problem,
        };
        let mut again = request.clone();
        // An empty answer can't be shown: APIs refuse it.
        if !reply.text().trim().is_empty() {
            again.messages.push(Message::text(Role::Assistant, reply.text()));
        }
        again.messages.push(Message::text(Role::User, json_form::repair(&problem.text)));
        let mut repaired = check(self.inner.complete(&again).await?, schema)?;
        repaired.usage = sum(first, repaired.usage);
        repaired.message.usage = Some(repaired.usage.into());
        Ok(repaired)
    }

    async fn likelihood(
        &self,
        request: &ChatRequest,
        answer: &Message,
    ) -> Result<Option<Likelihood>, ModelError> {
        self.inner.likelihood(request, answer).await
    }

    async fn stream(&self, request: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError> {
        let inner = self.inner.stream(request).await?;
        Ok(match &request.response {
            Response::Text => inner,
            Response::Json { schema } => Box::new(CheckedStream { inner, schema: schema.clone() }),
        })
    }
}

struct JsonProblem {
    text: String,
    /// Asking again would give the same.
    is_final: bool,
}

impl From<JsonProblem> for ModelError {
    fn from(problem: JsonProblem) -> Self {
        Self::Unusable(problem.text)
    }
}

/// Returns the reply with nothing but the JSON for its text.
fn check(mut reply: ChatReply, schema: &str) -> Result<ChatReply, JsonProblem> {
    if reply.message.calls().next().is_some() {
        return Ok(reply);
    }
    let answer = reply.text();
    let json = json_form::fit(&answer, schema).map_err(|text| match reply.stop_reason {
        StopReason::Length => JsonProblem {
            text: format!("it was cut by the limit of its length, and {text}"),
            is_final: true,
        },
        StopReason::Refused => JsonProblem { text: "the model refused".into(), is_final: true },
        _ => JsonProblem { text, is_final: false },
    })?;
    let is_text = |block: &Block| matches!(block, Block::Text(_));
    if json != answer || reply.message.blocks.iter().filter(|block| is_text(block)).count() > 1 {
        let json: Arc<str> = json.into();
        reply.message.blocks.retain(|block| !is_text(block));
        reply.message.blocks.push(Block::Text(json));
    }
    Ok(reply)
}

fn sum(first: ChatUsage, second: ChatUsage) -> ChatUsage {
    ChatUsage {
        input: first.input + second.input,
        cached: first.cached + second.cached,
        cache_written: first.cache_written + second.cache_written,
        output: first.output + second.output,
    }
}

/// Pieces that are already written cannot be asked for again, so a wrong answer ends in an error instead of `Done`.
#[derive(Debug)]
struct CheckedStream {
    inner: Box<dyn ChatStream>,
    schema: Arc<str>,
}

#[async_trait]
impl ChatStream for CheckedStream {
    async fn next(&mut self) -> Option<Result<ChatEvent, ModelError>> {
        match self.inner.next().await {
            Some(Ok(ChatEvent::Done(reply))) => {
                let checked = check(*reply, &self.schema).map_err(ModelError::from);
                Some(checked.map(|reply| ChatEvent::Done(Box::new(reply))))
            }
            other => other,
        }
    }
}
