//! A chat model behind HTTP.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_core::ab::Likelihood;
use plimsoll_core::{Block, Message, Role, json_form};
use plimsoll_engine::{
    ChatEvent, ChatModel, ChatReply, ChatRequest, ChatStream, ModelError, Response,
};
use plimsoll_wire::Events;

use crate::api::{self, Assembly, Delivery, ReplyError};
use crate::config::{JsonBy, ModelApi};
use crate::failure;
use crate::provider::Provider;
use crate::transport::{HttpAnswer, Transport};

/// The provider whose server tells likelihoods.
const VLLM: &str = "vllm";

/// One model of one provider.
#[derive(Debug)]
pub(crate) struct HttpModel {
    model: String,
    /// Its name at the provider.
    own_name: String,
    transport: Transport,
}

impl HttpModel {
    pub(crate) fn new(model: String, own_name: String, transport: Transport) -> Self {
        Self { model, own_name, transport }
    }

    fn provider(&self) -> &Arc<Provider> {
        &self.transport.provider
    }

    async fn post(
        &self,
        request: &ChatRequest,
        delivery: Delivery,
    ) -> Result<HttpAnswer, ModelError> {
        let provider = self.provider();
        provider.need_key()?;
        let instructed = instructed(request, provider);
        let request = instructed.as_ref().unwrap_or(request);
        let body = provider.api.body(request, provider, &self.own_name, delivery)?;
        self.transport.post(provider.api.path(), &body).await
    }
}

/// Puts the schema into words, where the provider's API is not given it.
fn instructed(request: &ChatRequest, provider: &Provider) -> Option<ChatRequest> {
    let Response::Json { schema } = &request.response else { return None };
    if provider.json == JsonBy::Schema {
        return None;
    }
    let block = Block::Text(json_form::instruction(schema).into());
    let mut request = request.clone();
    let leading =
        request.messages.iter().take_while(|message| message.role == Role::System).count();
    match leading.checked_sub(1).and_then(|last| request.messages.get_mut(last)) {
        // Templates of small models know one system message.
        Some(system) => system.blocks.push(block),
        None => request.messages.insert(0, Message::new(Role::System, vec![block])),
    }
    Some(request)
}

fn wrong(wrong: ReplyError, provider: &Provider) -> ModelError {
    match wrong {
        ReplyError::Told(told) => failure::inside(&told, provider),
        ReplyError::Shape(problem) => {
            let problem = provider.clean(&problem);
            let api = provider.api.as_str();
            ModelError::Unusable(format!(
                "{} sent what is no answer of the API `{api}`: {problem}",
                provider.name
            ))
        }
        ReplyError::Cut => {
            ModelError::Interrupted(format!("{} ended before its answer did", provider.name))
        }
    }
}

#[async_trait]
impl ChatModel for HttpModel {
    fn model(&self) -> &str {
        &self.model
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let answer = self.post(request, Delivery::Whole).await?;
        let body = answer.bytes().await?;
        let provider = self.provider();
        api::reply(provider.api.wire(), &body).map_err(|problem| wrong(problem, provider))
    }

    /// Asks vLLM, the one known server that tells how likely it finds given text; for an answer with calls it tells nothing.
    async fn likelihood(
        &self,
        request: &ChatRequest,
        answer: &Message,
    ) -> Result<Option<Likelihood>, ModelError> {
        let provider = self.provider();
        let is_plain = answer.calls().next().is_none() && !answer.shown().trim().is_empty();
        if provider.api != ModelApi::Chat || provider.name != VLLM || !is_plain {
            return Ok(None);
        }
        let mut request = ChatRequest { max_tokens: 1, ..request.clone() };
        let before = self.complete(&request).await?.usage.input;
        request.messages.push(answer.clone());
        provider.need_key()?;
        let body = api::likelihood_body(&request, provider, &self.own_name)?;
        let told = self.transport.post(provider.api.path(), &body).await?.bytes().await?;
        api::likelihood(&told, before).map(Some).map_err(|problem| wrong(problem, provider))
    }

    async fn stream(&self, request: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError> {
        let answer = self.post(request, Delivery::Streamed).await?;
        let provider = self.provider().clone();
        Ok(Box::new(HttpStream {
            assembly: Assembly::new(provider.api.wire()),
            answer,
            provider,
            events: Events::default(),
            is_closed: false,
            pieces: VecDeque::new(),
            has_begun: false,
            is_over: false,
        }))
    }
}

/// A streamed answer; dropping it closes the connection.
#[derive(Debug)]
struct HttpStream {
    answer: HttpAnswer,
    provider: Arc<Provider>,
    events: Events,
    /// The provider has closed its stream in order.
    is_closed: bool,
    assembly: Assembly,
    pieces: VecDeque<ChatEvent>,
    has_begun: bool,
    is_over: bool,
}

impl HttpStream {
    /// Reads until there is a piece; all that is awaited is the next chunk, so nothing is lost when the future is dropped.
    async fn read(&mut self) -> Result<Option<ChatEvent>, ModelError> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Ok(Some(piece));
            }
            if let Some(event) = self.events.next_event() {
                let taken = self.assembly.take(&event, &mut self.pieces);
                taken.map_err(|problem| self.wrong(problem))?;
                continue;
            }
            if self.is_closed {
                self.assembly.end(&mut self.pieces).map_err(|problem| self.wrong(problem))?;
                return Ok(self.pieces.pop_front());
            }
            if let Some(chunk) = self.answer.chunk().await? {
                self.events.push(&chunk);
            } else {
                self.events.end();
                self.is_closed = true;
            }
        }
    }

    /// A failure behind the first piece is an interruption, whatever its name: something was written.
    fn wrong(&self, problem: ReplyError) -> ModelError {
        match wrong(problem, &self.provider) {
            ModelError::Unavailable { message, .. } if self.has_begun => {
                ModelError::Interrupted(message)
            }
            error => error,
        }
    }
}

#[async_trait]
impl ChatStream for HttpStream {
    async fn next(&mut self) -> Option<Result<ChatEvent, ModelError>> {
        if self.is_over {
            return None;
        }
        let piece = self.read().await.transpose();
        self.has_begun = true;
        self.is_over = !matches!(&piece, Some(Ok(piece)) if !matches!(piece, ChatEvent::Done(_)));
        piece
    }
}
