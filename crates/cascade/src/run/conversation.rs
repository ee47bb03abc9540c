//! The conversation of a phase with its model: all its messages, and those that are sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_core::context::{Receipt, State, bound};
use plimsoll_core::cost::{Cache, Charge};
use plimsoll_core::plan::{Context, Plan, Sent, Treatment};
use plimsoll_core::policy::{Budget, Cadence, Policy};
use plimsoll_core::terms::Terms;
use plimsoll_core::{Block, Message, Role, Tokenizer, Transcript};
use plimsoll_engine::{Response, Tool};

use super::CascadeRun;
use super::ask::RequestedModel;
use super::expiry::expired;
use super::offer::{OfferedTools, key_of};
use super::opening::opened;
use crate::definition::{ContextTtl, Phase};

/// A conversation with a model.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) model: RequestedModel,
    /// The name of the policy.
    pub(crate) strategy: &'static str,
    pub(crate) terms: Terms,
    /// The entry of the price table, and whether the prices are those of another model.
    pub(crate) priced_as: String,
    pub(crate) is_estimate: bool,
    /// The tools of each request.
    pub(crate) offered: OfferedTools,
    pub(crate) response: Response,
    policy: Policy,
    /// Whether old results may be settled at all.
    settles: bool,
    /// The most tokens of a request, tools and schema included.
    ceiling: Option<u64>,
    sent: Transcript,
    state: State,
    /// The messages that the phase sees of others, and its own.
    context: Vec<Arc<Message>>,
    own: Vec<Arc<Message>>,
    /// The conversation in which everything is sent, to compare with.
    full: Transcript,
    full_terms: Terms,
    baseline: State,
    ttl: Option<ContextTtl>,
    ttl_cache: Cache,
    /// Whether a context had a ref, so that the model can look up what is behind it.
    shows_refs: bool,
    call_ids: BTreeSet<Arc<str>>,
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
    pub(crate) tools: Vec<Tool>,
    /// Tokens of the whole request: messages, tools and schema.
    pub(crate) sent_tokens: u64,
    pub(crate) full_tokens: u64,
    /// The price of the request, plain input = 1.
    pub(crate) cost: f64,
    /// Tokens by which the request exceeds its budget.
    pub(crate) over_budget: u64,
}

impl Conversation {
    /// Begins with the messages that the phase sees of others; `everything` are those of a run that selects nothing.
    pub(crate) fn new(
        run: &CascadeRun,
        phase: &Phase,
        model: RequestedModel,
        context: Vec<Arc<Message>>,
        everything: Option<Vec<Arc<Message>>>,
    ) -> Self {
        let tokenizer = Tokenizer::for_model(model.model.model());
        let (policy, strategy) = run.policy(phase);
        let now = run.runner.clock.now();
        let priced = run.runner.pricing.of(Some(model.model.model()), Some(now));
        let terms: Terms = priced.prices.into();
        let mut conversation = Self {
            model,
            strategy,
            priced_as: priced.name.to_owned(),
            is_estimate: priced.is_estimate(),
            offered: OfferedTools::default(),
            response: Response::Text,
            ceiling: run.budget(phase).or(policy.ceiling()),
            settles: matches!(&policy, Policy::Bounded(bounds) if bounds.settle.enabled),
            policy,
            sent: Transcript::new(tokenizer),
            state: State::default(),
            context: opened(context),
            own: Vec::new(),
            full: Transcript::new(tokenizer),
            full_terms: terms.clone(),
            terms,
            baseline: State::default(),
            ttl: phase.context_ttl.clone(),
            ttl_cache: Cache::default(),
            shows_refs: false,
            call_ids: BTreeSet::new(),
            callout: None,
        };
        for message in everything.map_or_else(|| conversation.context.clone(), opened) {
            conversation.full.push(message);
        }
        for message in conversation.context.clone() {
            conversation.know_calls(&message);
            conversation.sent.push(message);
        }
        conversation
    }

    /// Adds a message of the phase.
    pub(crate) fn push(&mut self, message: Arc<Message>) {
        self.sent.push(message.clone());
        self.push_unsent(message);
    }

    /// Adds a message of the phase that is not sent: another one stands for it.
    pub(crate) fn push_unsent(&mut self, message: Arc<Message>) {
        self.full.push(message.clone());
        self.know_calls(&message);
        self.own.push(message);
    }

    /// Adds a message that would not be there if everything was sent: a lookup, or its result.
    pub(crate) fn push_lookup(&mut self, message: Arc<Message>) {
        self.sent.push(message.clone());
        self.know_calls(&message);
        self.own.push(message);
    }

    /// Sends other messages from now on, instead of the ones before.
    pub(crate) fn restart_from(&mut self, messages: Vec<Arc<Message>>) {
        self.sent = Transcript::new(self.sent.tokenizer());
        self.state.restart();
        for message in messages {
            self.sent.push(message);
        }
    }

    /// Returns whether a request of `short` costs less than one that goes on with `next`.
    ///
    /// The next request is the only one that is certain. A conversation that begins again is written to the provider's cache as
    /// a whole, so a short one may cost more than a long one that is read from there. One below the size that a provider caches
    /// is paid for in full by each further request of the attempt, unless an attempt has one request only.
    pub(crate) fn pays(
        &self,
        short: &[Arc<Message>],
        next: &Arc<Message>,
        has_one_request: bool,
    ) -> bool {
        if let Policy::Bounded(bounds) = &self.policy
            && bounds.intra_phase.cadence == Cadence::EveryTurn
        {
            return true;
        }
        let tokenizer = self.sent.tokenizer();
        let whole = |message: &Arc<Message>| Sent::rendered(None, (**message).clone(), tokenizer);
        let planned = self.state.plan().decisions().len();
        let since = self.sent.entries()[planned..].iter().map(|entry| &entry.message);
        let mut long: Vec<Sent> =
            self.state.plan().render().iter().map(|sent| (**sent).clone()).collect();
        long.extend(since.chain([next]).map(whole));
        let short: Vec<Sent> = short.iter().map(whole).collect();
        let sum = |sent: &[Sent]| -> f64 { sent.iter().map(|one| f64::from(one.tokens)).sum() };
        let (tokens, now) = (sum(&long), next.time);
        if self.ceiling.is_some_and(|ceiling| tokens > ceiling as f64) {
            return true;
        }
        let prices = &self.terms.prices;
        let least = f64::from(prices.cache_least);
        let is_too_small =
            prices.cache_read < 1.0 && sum(&short) + self.terms.around.before < least;
        if is_too_small && !has_one_request && least > tokens * prices.cache_read {
            return false;
        }
        self.state.quote(&self.terms, &short, now) < self.state.quote(&self.terms, &long, now)
    }

    /// Returns the messages that the phase sees of others.
    pub(crate) fn context(&self) -> &[Arc<Message>] {
        &self.context
    }

    /// Returns the messages of the phase itself.
    pub(crate) fn own_messages(&self) -> &[Arc<Message>] {
        &self.own
    }

    /// Returns the tokens of the messages that the phase sees of others.
    pub(crate) fn context_tokens(&self) -> u64 {
        let tokenizer = self.sent.tokenizer();
        self.context.iter().map(|message| u64::from(tokenizer.count_message(message))).sum()
    }

    /// Returns the plan of the last request.
    pub(crate) fn plan(&self) -> &Plan {
        self.state.plan()
    }

    /// Returns whether the next request would be beyond its budget if nothing was made smaller.
    pub(crate) fn is_beyond_budget(&self) -> bool {
        let tokenizer = self.sent.tokenizer();
        let tools = self.offered.tokens(tokenizer) + self.offered.lookup_tokens(tokenizer);
        let messages: u64 = self.sent.entries().iter().map(|entry| u64::from(entry.tokens)).sum();
        self.ceiling.is_some_and(|ceiling| messages + tools > ceiling)
    }

    /// Returns the messages in three parts, for a summary of the second: the phase's prompts, old ones, and the newest turn;
    /// `None` where nothing is old.
    #[expect(clippy::type_complexity, reason = "three lists, named where they are taken apart")]
    pub(crate) fn parts(
        &self,
    ) -> Option<(Vec<Arc<Message>>, Vec<Arc<Message>>, Vec<Arc<Message>>)> {
        let messages: Vec<Arc<Message>> =
            self.sent.entries().iter().map(|entry| entry.message.clone()).collect();
        let own: Vec<Arc<Message>> = self.own.iter().take(2).cloned().collect();
        let newest = messages.iter().rposition(|message| message.role == Role::Assistant);
        let newest = newest.unwrap_or(messages.len());
        let is_prompt = |message: &Arc<Message>| own.iter().any(|one| one == message);
        let recent: Vec<_> =
            messages[newest..].iter().filter(|message| !is_prompt(message)).cloned().collect();
        let old: Vec<_> =
            messages[..newest].iter().filter(|message| !is_prompt(message)).cloned().collect();
        (!old.is_empty()).then_some((own, old, recent))
    }

    /// Gives the calls of an answer ids that no other call of the conversation has: some wires refuse the same id twice.
    pub(crate) fn rename_calls(&self, answer: &mut Message) {
        let mut taken = self.call_ids.clone();
        for block in &mut answer.blocks {
            let Block::ToolCall(call) = block else { continue };
            let mut number = 2;
            let mut id = call.id.clone();
            while !taken.insert(id.clone()) {
                id = format!("{}_{number}", call.id).into();
                number += 1;
            }
            call.id = id;
        }
    }

    fn know_calls(&mut self, message: &Message) {
        self.call_ids.extend(message.calls().map(|call| call.id.clone()));
    }

    /// Bounds the context of the next request.
    pub(crate) fn bound(&mut self) -> BoundedContext {
        let tokenizer = self.sent.tokenizer();
        let schema = match &self.response {
            Response::Text => 0,
            Response::Json { schema } => u64::from(tokenizer.count(schema)),
        };
        let offered = self.offered.tokens(tokenizer);
        let lookup = self.offered.lookup_tokens(tokenizer);
        self.reserve(offered + schema, lookup);
        let before = offered + schema;
        let own = if self.shows_refs { lookup } else { 0 };
        self.terms.around.own_tools = own as u32;
        self.terms.around.before = (before + own) as f64;
        self.terms.around.before_key = key_of(&self.offered.tools(self.shows_refs));
        self.full_terms.around.before = before as f64;
        self.full_terms.around.before_key = key_of(&self.offered.tools(false));
        let position = self.sent.entries().len();
        let (context, receipt) =
            bound(&self.sent, position, &self.policy, &self.terms, &mut self.state);
        let all = self.full.entries().len();
        let (_, full) = bound(&self.full, all, &Policy::Full, &self.full_terms, &mut self.baseline);
        let (messages, has_expired) = self.unexpired(&context);
        let tokens = |messages: &[Message]| -> u64 {
            messages.iter().map(|message| u64::from(tokenizer.count_message(message))).sum()
        };
        self.shows_refs |= has_expired || self.has_refs();
        let cost = match &self.ttl {
            Some(_) => self.ttl_cost(&messages),
            None => receipt.cost,
        };
        let own = if self.shows_refs { lookup } else { 0 };
        let sent_tokens = tokens(&messages) + before + own;
        let ceiling = self.ceiling.unwrap_or(u64::MAX);
        BoundedContext {
            context,
            full_tokens: full.full_tokens + before,
            full,
            messages,
            tools: self.offered.tools(self.shows_refs),
            over_budget: sent_tokens.saturating_sub(ceiling),
            sent_tokens,
            cost,
            receipt,
        }
    }

    /// Leaves room in the budget for tools and schema, and allows only changes that can't cost more than they save.
    fn reserve(&mut self, before: u64, lookup: u64) {
        let lookup_later = if self.shows_refs { 0 } else { lookup };
        if let (Policy::Newest { budget }, Some(ceiling)) = (&mut self.policy, self.ceiling) {
            *budget = ceiling.saturating_sub(before + lookup_later);
        }
        let Policy::Bounded(bounds) = &mut self.policy else { return };
        if let Some(ceiling) = self.ceiling {
            bounds.budget = Budget::Tokens(ceiling.saturating_sub(before + lookup_later));
        }
        if !bounds.intra_phase.enabled || bounds.intra_phase.cadence == Cadence::EveryTurn {
            return;
        }
        // The tool that looks up a ref comes before all messages: the first ref makes the provider read everything anew.
        let prices = &self.terms.prices;
        let anew = (prices.cache_write - prices.cache_read).max(0.0);
        let usual = plimsoll_core::policy::Settle::default();
        let entries = self.sent.entries();
        let planned = self.state.plan().decisions().len().min(entries.len());
        let stands: u64 = self.state.plan().tokens() + before;
        let giant = entries[planned..].iter().map(|entry| entry.tokens).max().unwrap_or(0);
        let gain = f64::from(giant) * GIANT_SAVED * prices.cache_write;
        let open = self.shows_refs || anew == 0.0;
        let pays = gain > stands as f64 * anew + lookup as f64 * prices.cache_write;
        bounds.said_once_from = if anew > 0.0 { u64::from(prices.cache_least) } else { 0 };
        bounds.settle.enabled = open && self.settles;
        bounds.settle.giant = if open || pays { usual.giant } else { u32::MAX };
    }

    /// Returns whether the plan has a form with a ref.
    fn has_refs(&self) -> bool {
        let decisions = self.state.plan().decisions().iter();
        decisions.into_iter().any(|decision| {
            decision.reason != plimsoll_core::choose::Reason::SaidOnce
                && !matches!(decision.treatment, Treatment::Keep | Treatment::Omit)
        })
    }

    /// Returns the messages that are sent, without content that is past its time, and whether there was some.
    fn unexpired(&self, context: &[Arc<Sent>]) -> (Vec<Message>, bool) {
        let turn = self.sent.entries().last().map_or(0, |entry| entry.turn);
        let mut has_expired = false;
        let messages = context.iter().map(|sent| {
            let age = sent.position.map_or(0, |position| turn - self.sent.entries()[position].turn);
            let expired = self.ttl.as_ref().and_then(|ttl| expired(&sent.message, age, ttl));
            has_expired |= expired.is_some();
            expired.unwrap_or_else(|| (*sent.message).clone())
        });
        let messages = messages.collect();
        (messages, has_expired)
    }

    fn ttl_cost(&mut self, messages: &[Message]) -> f64 {
        let tokenizer = self.sent.tokenizer();
        let sent: Vec<Sent> = messages
            .iter()
            .map(|message| Sent::rendered(None, message.clone(), tokenizer))
            .collect();
        let now = messages.iter().filter_map(|message| message.time).max();
        let pieces = self.terms.pieces(&sent, &[]);
        let charge: Charge = self.ttl_cache.charge(&self.terms.prices, &pieces, now);
        self.terms.prices.input_cost(&charge)
    }
}

/// The share of a giant result that its excerpt saves: what [`plimsoll_core::policy::Settle::kept`] leaves.
const GIANT_SAVED: f64 = 0.9;
