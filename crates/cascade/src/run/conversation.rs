//! The conversation of a phase with its model: all its messages, and those that are sent.

use std::sync::Arc;

use plimsoll_core::context::{Receipt, State, bound};
use plimsoll_core::plan::{Context, Plan, Sent};
use plimsoll_core::policy::Policy;
use plimsoll_core::render::{cleared_text, replace_results, replace_texts};
use plimsoll_core::terms::Terms;
use plimsoll_core::{Block, ContentHash, Message, Ref, Role, Tokenizer, Transcript};

use super::CascadeRun;
use super::ask::RequestedModel;
use crate::definition::{ContextTtl, Phase};

/// A conversation with a model.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) model: RequestedModel,
    /// The name of the policy.
    pub(crate) strategy: &'static str,
    pub(crate) terms: Terms,
    /// Whether the prices are those of another model.
    pub(crate) is_estimate: bool,
    policy: Policy,
    sent: Transcript,
    state: State,
    /// All messages, and the state of sending them all, to compare with.
    whole: Transcript,
    baseline: State,
    /// The position of the phase's first own message.
    own_from: usize,
    ttl: Option<ContextTtl>,
    /// The name that marks the model's messages as important.
    pub(crate) callout: Option<Arc<str>>,
}

/// The context of one request, bounded.
#[derive(Debug)]
pub(crate) struct BoundedContext {
    pub(crate) context: Context,
    pub(crate) receipt: Receipt,
    /// The receipt of the request that would send all messages.
    pub(crate) full: Receipt,
    /// The messages to send, without those that are past their time.
    pub(crate) messages: Vec<Message>,
    pub(crate) sent_tokens: u64,
}

impl Conversation {
    /// Begins with the messages that the phase sees of others.
    pub(crate) fn new(
        run: &CascadeRun,
        phase: &Phase,
        model: RequestedModel,
        context: Vec<Arc<Message>>,
    ) -> Self {
        let tokenizer = Tokenizer::for_model(model.model.model());
        let (policy, strategy) = run.policy(phase);
        let now = run.runner.clock.now();
        let priced = run.runner.pricing.of(Some(model.model.model()), Some(now));
        let (terms, is_estimate) = (priced.prices.into(), priced.is_estimate());
        let mut conversation = Self {
            model,
            strategy,
            terms,
            is_estimate,
            policy,
            sent: Transcript::new(tokenizer),
            state: State::default(),
            whole: Transcript::new(tokenizer),
            baseline: State::default(),
            own_from: context.len(),
            ttl: phase.context_ttl.clone(),
            callout: None,
        };
        for message in context {
            conversation.push(message);
        }
        conversation
    }

    /// Adds a message.
    pub(crate) fn push(&mut self, message: Arc<Message>) {
        self.sent.push(message.clone());
        self.whole.push(message);
    }

    /// Adds a message that is not sent: another one stands for it.
    pub(crate) fn push_unsent(&mut self, message: Arc<Message>) {
        self.whole.push(message);
    }

    /// Sends other messages from now on, instead of the ones before.
    pub(crate) fn restart_from(&mut self, messages: impl IntoIterator<Item = Arc<Message>>) {
        self.sent = Transcript::new(self.sent.tokenizer());
        self.state = State::default();
        for message in messages {
            self.sent.push(message);
        }
    }

    /// Returns the messages that the phase sees of others.
    pub(crate) fn context(&self) -> Vec<Arc<Message>> {
        self.whole.entries()[..self.own_from].iter().map(|entry| entry.message.clone()).collect()
    }

    /// Returns the messages of the phase itself.
    pub(crate) fn own_messages(&self) -> Vec<Arc<Message>> {
        self.whole.entries()[self.own_from..].iter().map(|entry| entry.message.clone()).collect()
    }

    /// Limits the calls that are expected: a change that pays back later does not pay.
    pub(crate) fn expect_calls(&mut self, most: u32) {
        if let Policy::Bounded(bounds) = &mut self.policy {
            bounds.settle.most_calls = bounds.settle.most_calls.min(most.max(1));
        }
    }

    /// Returns the tokens of all messages.
    pub(crate) fn tokens(&self) -> u64 {
        self.whole.entries().iter().map(|entry| u64::from(entry.tokens)).sum()
    }

    /// Returns the plan of the last request.
    pub(crate) fn plan(&self) -> &Plan {
        self.state.plan()
    }

    /// Bounds the context of the next request.
    pub(crate) fn bound(&mut self) -> BoundedContext {
        let position = self.sent.entries().len();
        let (context, receipt) =
            bound(&self.sent, position, &self.policy, &self.terms, &mut self.state);
        let all = self.whole.entries().len();
        let (_, full) = bound(&self.whole, all, &Policy::Full, &self.terms, &mut self.baseline);
        let messages = self.unexpired(&context);
        let sent_tokens = match &self.ttl {
            Some(_) => {
                let tokenizer = self.sent.tokenizer();
                messages.iter().map(|message| u64::from(tokenizer.count_message(message))).sum()
            }
            None => receipt.tokens,
        };
        BoundedContext { context, receipt, full, messages, sent_tokens }
    }

    /// Returns the messages that are sent, without content that is past its time.
    fn unexpired(&self, context: &[Arc<Sent>]) -> Vec<Message> {
        let turn = self.sent.entries().last().map_or(0, |entry| entry.turn);
        let messages = context.iter().map(|sent| {
            let age = sent.position.map_or(0, |position| turn - self.sent.entries()[position].turn);
            let expired = self.ttl.as_ref().and_then(|ttl| expired(&sent.message, age, ttl));
            expired.unwrap_or_else(|| (*sent.message).clone())
        });
        messages.collect()
    }
}

/// Returns a message without content that is past its time; `None` where it keeps everything.
///
/// A ref stands for the content, so exchanges stay whole and the model can get it back.
fn expired(message: &Message, age: u32, ttl: &ContextTtl) -> Option<Message> {
    let is_over = |most: Option<u32>| most.is_some_and(|most| age >= most);
    let original = Ref::message(ContentHash::of(message));
    let of_role = match message.role {
        Role::Tool => ttl.tool_results,
        Role::Assistant => ttl.assistant,
        Role::User => ttl.user,
        Role::System => ttl.system,
    };
    if is_over(of_role) {
        if message.role == Role::Tool {
            return replace_results(message, |_| cleared_text(original));
        }
        return replace_texts(message, |_| Some(format!("[no longer shown; {original}]")));
    }
    if !is_over(ttl.images) {
        return None;
    }
    let mut without = message.clone();
    for block in &mut without.blocks {
        match block {
            Block::Image(_) => {
                *block = Block::Text(format!("[image no longer shown; {original}]").into());
            }
            Block::ToolResult(result) => result.images.clear(),
            _ => {}
        }
    }
    (without != *message).then_some(without)
}
