//! The spending cap: what a call may cost is set aside before it, and what it cost is booked after.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use plimsoll_core::ab::Likelihood;
use plimsoll_core::cost::{Prices, Pricing};
use plimsoll_core::{Block, Message};
use plimsoll_engine::{
    ChatEvent, ChatModel, ChatReply, ChatRequest, ChatStream, ChatUsage, ModelError,
};

use crate::config::{Price, SpendingConfig};
use crate::provider::Provider;

/// Bytes for a token, fewer than in any session that was measured (2.8 characters): a cap must hold, so this guesses high.
const BYTES_PER_TOKEN: f64 = 2.8;

/// Tokens of the largest image, as Anthropic documents them.
const IMAGE_TOKENS: f64 = 1600.0;

/// Tokens around a message: role and marks (chosen; real ones need some 4).
const MESSAGE_TOKENS: f64 = 16.0;

/// The money that this process spent.
#[derive(Debug)]
pub(crate) struct Ledger {
    config: SpendingConfig,
    pricing: Pricing,
    /// US dollars, those set aside included.
    spent: Mutex<f64>,
}

/// The prices of the model of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rates {
    input: f64,
    cached: f64,
    written: f64,
    output: f64,
}

impl From<Price> for Rates {
    /// A price without more: cached input is taken to cost as much as any.
    fn from(price: Price) -> Self {
        Self { input: price.input, cached: price.input, written: price.input, output: price.output }
    }
}

impl From<Prices> for Rates {
    fn from(prices: Prices) -> Self {
        Self {
            input: prices.input,
            cached: prices.input * prices.cache_read,
            written: prices.input * prices.cache_write,
            output: prices.output,
        }
    }
}

impl Rates {
    fn dollars(self, usage: ChatUsage) -> f64 {
        let plain = usage.input.saturating_sub(usage.cached + usage.cache_written);
        (plain as f64 * self.input
            + usage.cached as f64 * self.cached
            + usage.cache_written as f64 * self.written
            + usage.output as f64 * self.output)
            / 1e6
    }

    /// Returns the most that so much can cost.
    pub(crate) fn most(self, input: f64, output: f64) -> f64 {
        (input * self.input.max(self.written) + output * self.output) / 1e6
    }
}

impl Ledger {
    pub(crate) fn new(config: SpendingConfig, pricing: Pricing) -> Result<Self, ModelError> {
        let dollars = [config.process_dollars, config.call_dollars];
        let price = config.unknown_model.map_or([0.0; 2], |price| [price.input, price.output]);
        let all = dollars.into_iter().flatten().chain(price);
        if all.into_iter().any(|number| !number.is_finite() || number < 0.0) {
            return Err(ModelError::Invalid(
                "a figure of `spending` is negative or no number".into(),
            ));
        }
        Ok(Self { config, pricing, spent: Mutex::new(0.0) })
    }

    /// Returns US dollars spent or set aside.
    pub(crate) fn spent(&self) -> f64 {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the prices of a model; `None` if they are unknown.
    ///
    /// Errors: [`ModelError::Capped`] if they are unknown and a cap is set.
    pub(crate) fn rates(
        &self,
        provider: &Provider,
        model: &str,
    ) -> Result<Option<Rates>, ModelError> {
        let known = self.pricing.known(model, None).map(|known| known.prices.into());
        let rates = provider.price.map(Rates::from).or(known);
        let rates = rates.or_else(|| self.config.unknown_model.map(Rates::from));
        let is_capped = self.config.process_dollars.or(self.config.call_dollars).is_some();
        if rates.is_none() && is_capped {
            return Err(ModelError::Capped(format!(
                "nobody knows what `{model}` of {} costs; set `price` of the provider or `spending.unknown_model`",
                provider.name
            )));
        }
        Ok(rates)
    }

    /// Sets aside the most that a call can cost.
    ///
    /// Errors: [`ModelError::Capped`] if that would pass a cap; nothing is set aside then.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        rates: Option<Rates>,
        input: f64,
        output: f64,
    ) -> Result<Reservation, ModelError> {
        let amount = rates.map_or(0.0, |rates| rates.most(input, output));
        if let Some(cap) = self.config.call_dollars.filter(|cap| amount > *cap) {
            return Err(ModelError::Capped(format!(
                "this call may cost ${amount:.4}, and one may cost ${cap:.4}"
            )));
        }
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cap) = self.config.process_dollars.filter(|cap| *spent + amount > *cap) {
            return Err(ModelError::Capped(format!(
                "this call may cost ${amount:.4}, and ${:.4} of ${cap:.4} are spent",
                *spent
            )));
        }
        *spent += amount;
        Ok(Reservation { ledger: self.clone(), rates, amount })
    }
}

/// An amount that is set aside. It stays spent unless it is settled, since a call that broke off may have been paid for.
#[derive(Debug)]
pub(crate) struct Reservation {
    ledger: Arc<Ledger>,
    rates: Option<Rates>,
    amount: f64,
}

impl Reservation {
    /// Books the usage of the call; without a report the whole reservation stays spent.
    pub(crate) fn settle(self, usage: ChatUsage) {
        if usage != ChatUsage::default() {
            let cost = self.rates.map_or(0.0, |rates| rates.dollars(usage));
            self.book(cost);
        }
    }

    /// Books a failed call; a refused request costs nothing.
    pub(crate) fn fail(self, error: &ModelError) {
        match error {
            ModelError::Interrupted(_) | ModelError::Unusable(_) => {}
            ModelError::Invalid(_)
            | ModelError::Denied(_)
            | ModelError::Unavailable { .. }
            | ModelError::Capped(_) => self.book(0.0),
        }
    }

    fn book(&self, cost: f64) {
        let mut spent = self.ledger.spent.lock().unwrap_or_else(PoisonError::into_inner);
        *spent += cost - self.amount;
    }
}

/// Returns about how many tokens `bytes` have, rather too many than too few.
pub(crate) fn tokens_of(bytes: usize) -> f64 {
    (bytes as f64 / BYTES_PER_TOKEN).ceil()
}

fn input_tokens(request: &ChatRequest) -> f64 {
    let tools = request.tools.iter().map(|tool| {
        tokens_of(tool.name.len() + tool.description.len() + tool.schema.len()) + MESSAGE_TOKENS
    });
    let messages = request.messages.iter().map(message_tokens);
    let schema = match &request.response {
        plimsoll_engine::Response::Json { schema } => tokens_of(schema.len()) + 64.0,
        plimsoll_engine::Response::Text => 0.0,
    };
    tools.chain(messages).sum::<f64>() + schema
}

fn message_tokens(message: &Message) -> f64 {
    let blocks = message.blocks.iter().map(|block| match block {
        Block::Text(text) => tokens_of(text.len()),
        Block::Image(_) => IMAGE_TOKENS,
        Block::ToolCall(call) => tokens_of(call.name.len() + call.arguments.len()) + MESSAGE_TOKENS,
        Block::ToolResult(result) => {
            tokens_of(result.text.len())
                + result.images.len() as f64 * IMAGE_TOKENS
                + MESSAGE_TOKENS
        }
        Block::Thinking(thinking) => tokens_of(thinking.text.len() + thinking.signature.len()),
        Block::Opaque(opaque) => tokens_of(opaque.raw.len()),
    });
    blocks.sum::<f64>() + MESSAGE_TOKENS
}

/// A model whose calls are booked.
#[derive(Debug)]
pub(crate) struct CappedModel {
    pub(crate) inner: Arc<dyn ChatModel>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) provider: Arc<Provider>,
}

impl CappedModel {
    fn reserve(&self, request: &ChatRequest) -> Result<Reservation, ModelError> {
        let rates = self.ledger.rates(&self.provider, self.inner.model())?;
        self.ledger.reserve(rates, input_tokens(request), f64::from(request.max_tokens))
    }
}

#[async_trait]
impl ChatModel for CappedModel {
    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let reservation = self.reserve(request)?;
        let answer = self.inner.complete(request).await;
        match &answer {
            Ok(reply) => reservation.settle(reply.usage),
            Err(error) => reservation.fail(error),
        }
        answer
    }

    async fn likelihood(
        &self,
        request: &ChatRequest,
        answer: &Message,
    ) -> Result<Option<Likelihood>, ModelError> {
        let rates = self.ledger.rates(&self.provider, self.inner.model())?;
        let input = input_tokens(request) + message_tokens(answer);
        let reservation = self.ledger.reserve(rates, input, 1.0)?;
        let found = self.inner.likelihood(request, answer).await;
        match &found {
            // The API does not tell it, or refused the request.
            Ok(None) => reservation.book(0.0),
            // No usage comes with it: the reservation stays spent.
            Ok(Some(_)) => {}
            Err(error) => reservation.fail(error),
        }
        found
    }

    async fn stream(&self, request: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError> {
        let reservation = self.reserve(request)?;
        match self.inner.stream(request).await {
            Ok(inner) => Ok(Box::new(CappedStream { inner, reservation: Some(reservation) })),
            Err(error) => {
                reservation.fail(&error);
                Err(error)
            }
        }
    }
}

#[derive(Debug)]
struct CappedStream {
    inner: Box<dyn ChatStream>,
    reservation: Option<Reservation>,
}

#[async_trait]
impl ChatStream for CappedStream {
    async fn next(&mut self) -> Option<Result<ChatEvent, ModelError>> {
        let piece = self.inner.next().await;
        match &piece {
            Some(Ok(ChatEvent::Done(reply))) => {
                if let Some(reservation) = self.reservation.take() {
                    reservation.settle(reply.usage);
                }
            }
            Some(Err(error)) => {
                if let Some(reservation) = self.reservation.take() {
                    reservation.fail(error);
                }
            }
            _ => {}
        }
        piece
    }
}
