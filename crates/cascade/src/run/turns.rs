//! The turns of a model: what is sent, bounded; what comes back, kept; the tools it calls.

use std::sync::Arc;

use plimsoll_core::context::{State, bound};
use plimsoll_core::plan::Sent;
use plimsoll_core::policy::{Bounds, Budget, IntraPhase, Policy, Settle};
use plimsoll_core::render::{cleared_text, replace_results, replace_texts};
use plimsoll_core::terms::Terms;
use plimsoll_core::{
    Block, ContentHash, Message, Ref, Role, Tokenizer, ToolCall, ToolResult, Transcript,
};
use plimsoll_engine::page::artefact_of;
use plimsoll_engine::{Caching, ChatModel, ChatRequest, ReceiptRecord, Tool, ToolAnswer};
use serde_json::{Map, Value};

use super::Run;
use super::error::RunError;
use super::event::Event;
use super::journal::Journal;
use super::state::RunState;
use super::toolbox::{Caller, EXPAND_REF, ROUTE_TO, SET_STATE, object};
use crate::definition::{ContextTtl, Phase};

/// A conversation with a model, as it was said and as it is sent.
#[derive(Debug)]
pub(crate) struct Talk {
    pub(crate) model: Arc<dyn ChatModel>,
    /// The name by which the model was asked for.
    pub(crate) asked_for: Option<String>,
    policy: Policy,
    strategy: &'static str,
    terms: Terms,
    /// Whether its prices are those of another model.
    estimate: bool,
    sent: Transcript,
    state: State,
    /// All that was said, and what it would have cost to send it.
    whole: Transcript,
    baseline: State,
    /// Where the phase's own messages begin.
    own_from: usize,
    ttl: Option<ContextTtl>,
    /// The name of messages that matter.
    pub(crate) callout: Option<Arc<str>>,
}

impl Talk {
    /// Begins with what the phase sees of others.
    pub(crate) fn new(
        run: &Run,
        phase: &Phase,
        model: Arc<dyn ChatModel>,
        asked_for: Option<String>,
        context: Vec<Arc<Message>>,
    ) -> Self {
        let tokenizer = Tokenizer::for_model(model.model());
        let (policy, strategy) = run.policy(phase);
        let now = run.runner.clock.now();
        let priced = run.runner.pricing.of(Some(model.model()), Some(now));
        let (terms, estimate) = (priced.prices.into(), priced.is_estimate());
        let mut talk = Self {
            model,
            asked_for,
            policy,
            strategy,
            terms,
            estimate,
            sent: Transcript::new(tokenizer),
            state: State::default(),
            whole: Transcript::new(tokenizer),
            baseline: State::default(),
            own_from: context.len(),
            ttl: phase.context_ttl.clone(),
            callout: None,
        };
        for message in context {
            talk.hear(message);
        }
        talk
    }

    /// Adds a message.
    pub(crate) fn hear(&mut self, message: Arc<Message>) {
        self.sent.push(message.clone());
        self.whole.push(message);
    }

    /// Adds a message that is part of the whole and is sent in another form.
    pub(crate) fn note(&mut self, message: Arc<Message>) {
        self.whole.push(message);
    }

    /// Goes on from other messages than those that were said.
    pub(crate) fn go_on_from(&mut self, messages: impl IntoIterator<Item = Arc<Message>>) {
        self.sent = Transcript::new(self.sent.tokenizer());
        self.state = State::default();
        for message in messages {
            self.sent.push(message);
        }
    }

    /// Returns what the phase sees of others.
    pub(crate) fn context(&self) -> Vec<Arc<Message>> {
        self.whole.entries()[..self.own_from].iter().map(|entry| entry.message.clone()).collect()
    }

    /// Returns all that was said in the phase itself.
    pub(crate) fn own(&self) -> Vec<Arc<Message>> {
        self.whole.entries()[self.own_from..].iter().map(|entry| entry.message.clone()).collect()
    }

    /// Tells how many calls there may still be: a change that pays back later than that does not pay.
    fn expect_calls(&mut self, most: u32) {
        if let Policy::Bounded(bounds) = &mut self.policy {
            bounds.settle.most_calls = bounds.settle.most_calls.min(most.max(1));
        }
    }

    /// Returns the tokens of what is there.
    pub(crate) fn tokens(&self) -> u64 {
        self.whole.entries().iter().map(|entry| u64::from(entry.tokens)).sum()
    }
}

/// How the turns of an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TurnsEnd {
    /// The model had said all, or had no turns left.
    Through,
    /// It goes on to another phase.
    GoTo(String),
}

/// What a turn adds to the state, beside the conversation.
#[derive(Debug, Default)]
pub(crate) struct Set {
    pub(crate) state: Map<String, Value>,
}

impl Run {
    /// Returns the policy of a phase and its name; without settings everything is sent.
    fn policy(&self, phase: &Phase) -> (Policy, &'static str) {
        let budget = self.budget(phase);
        let intra = self.intra_phase(phase);
        let Some(intra_phase) = intra.filter(|intra| intra.enabled) else {
            let Some(budget) = budget else { return (Policy::Full, "full") };
            // Only the ceiling acts: nothing is ever worth a change.
            let settle = Settle { enabled: false, giant: u32::MAX, ..Settle::default() };
            let bounds =
                Bounds { budget: budget.into(), said_once: false, settle, ..Bounds::default() };
            return (Policy::Bounded(bounds), "token_budget");
        };
        let mut bounds = Bounds { intra_phase, ..Bounds::default() };
        bounds.budget = budget.map_or(bounds.budget, Budget::Tokens);
        // Characters to tokens as `work` counts them.
        let least = f64::from(self.cascade.min_masked_size(phase)) / 3.3;
        bounds.settle.least = bounds.settle.least.max(least as u32);
        (Policy::Bounded(bounds), "observation_masking")
    }

    /// Returns the settings within a phase, if it is bounded at all.
    pub(crate) fn intra_phase(&self, phase: &Phase) -> Option<IntraPhase> {
        let settings = self.cascade.intra_phase(phase)?;
        self.runner.settings.intra_phase_enabled.then_some(settings)
    }

    /// Tells whether the model of a phase may be shown a ref instead of what it stands for.
    pub(crate) fn shows_refs(&self, phase: &Phase) -> bool {
        phase.context_ttl.is_some() || self.policy(phase).0 != Policy::Full
    }

    fn budget(&self, phase: &Phase) -> Option<u64> {
        let budget = self.cascade.token_budget.as_ref()?;
        let own = budget.phase_overrides.iter().find(|(name, _)| name == phase.name.as_str());
        let total = own.map_or(budget.max_total, |(_, tokens)| *tokens);
        Some(u64::from(total.saturating_sub(budget.reserve_for_output)))
    }

    /// Lets the model speak until it has said all, goes on to another phase, or has no turns left.
    pub(crate) async fn turns(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &mut Journal,
        talk: &mut Talk,
        tools: &[Tool],
        set: &mut Set,
    ) -> Result<TurnsEnd, RunError> {
        let has_own_tools = tools.iter().any(|tool| !matches!(&*tool.name, ROUTE_TO | EXPAND_REF));
        let given = self.count(phase, past, phase.rules.max_turns.as_ref())?;
        let most = given.unwrap_or(if has_own_tools { self.runner.settings.max_turns } else { 1 });
        // One whose tools are at an end has said all; one without tools goes over it again as often as it may.
        let goes_over = phase.rules.turn_prompt.is_some() || (!has_own_tools && given.is_some());
        // To look up what was left out takes no turn away.
        let mut expansions = 0;
        for turn in 0.. {
            talk.expect_calls(expected(turn, most + expansions));
            let answer = self.turn(phase, journal, talk, tools).await?;
            let calls: Vec<ToolCall> = answer.calls().cloned().collect();
            let mut target = None;
            for call in &calls {
                let result = self.tool(phase, past, journal, call, set, &mut target).await?;
                talk.hear(result);
            }
            self.turn_wards(phase, past, journal, talk).await?;
            if let Some(target) = target {
                return Ok(TurnsEnd::GoTo(target));
            }
            let only_expands = calls.iter().all(|call| &*call.name == EXPAND_REF);
            if !calls.is_empty() && only_expands && expansions < EXPANSIONS {
                expansions += 1;
            }
            let is_last = turn + 1 >= most + expansions;
            if is_last && !calls.is_empty() && given.is_none() {
                self.note(phase.name.as_str(), format!("ended after {most} turns"));
            }
            if is_last || (calls.is_empty() && !goes_over) {
                break;
            }
            if calls.is_empty() || phase.rules.turn_prompt.is_some() {
                let text = match &phase.rules.turn_prompt {
                    Some(prompt) => {
                        let turn = [
                            ("turn".to_owned(), Value::from(turn + 1)),
                            ("max_turns".to_owned(), Value::from(most)),
                        ];
                        self.render(phase, past, prompt, turn)?
                    }
                    None => CONTINUE.to_owned(),
                };
                let prompt = own_message(phase, Role::User, text);
                talk.hear(journal.say(prompt).await?);
            }
        }
        Ok(TurnsEnd::Through)
    }

    /// Asks the model once.
    async fn turn(
        &self,
        phase: &Phase,
        journal: &mut Journal,
        talk: &mut Talk,
        tools: &[Tool],
    ) -> Result<Arc<Message>, RunError> {
        let name = phase.name.as_str();
        let position = talk.sent.entries().len();
        let (context, receipt) =
            bound(&talk.sent, position, &talk.policy, &talk.terms, &mut talk.state);
        let everything = talk.whole.entries().len();
        let (_, full) =
            bound(&talk.whole, everything, &Policy::Full, &talk.terms, &mut talk.baseline);
        if receipt.over_budget > 0 {
            let over = receipt.over_budget;
            self.note(name, format!("the smallest context passes the budget by {over} tokens"));
        }
        let messages = Self::expired(talk, &context);
        let sent_tokens = match &talk.ttl {
            Some(_) => {
                let tokenizer = talk.sent.tokenizer();
                messages.iter().map(|message| u64::from(tokenizer.count_message(message))).sum()
            }
            None => receipt.tokens,
        };
        let turn = journal.turn();
        let recorded = journal.answer(Role::Assistant)?;
        let is_recorded = recorded.is_some();
        let answer = if let Some(answer) = recorded {
            self.runner.models.passed_over(talk.asked_for.as_deref());
            answer
        } else {
            let now = self.runner.clock.now();
            let (session, plan) = (journal.session(), talk.state.plan());
            let strategy = talk.strategy;
            let mut record =
                ReceiptRecord::of_context(session, strategy, &receipt, &context, plan, now)
                    .with_turn(turn);
            record.cascade_id = Some(self.cascade.cascade_id.to_string());
            record.full_history_size = full.full_messages as u32;
            record.tokens_saved = full.tokens.cast_signed() - sent_tokens.cast_signed();
            let mut request = ChatRequest::new(messages);
            request.tools = tools.to_vec();
            // The next turn begins with this one.
            request.caching = Caching::Prefix;
            request.max_tokens = self.runner.settings.max_tokens;
            let model = |source| RunError::Model { phase: name.to_owned(), source };
            let mut reply = talk.model.complete(&request).await.map_err(model)?.message;
            reply.phase = Some(name.into());
            reply.callout.clone_from(&talk.callout);
            journal.append(reply, vec![record]).await?
        };
        let output = answer.usage.map_or(0, |usage| usage.output_tokens);
        let of_output = talk.terms.prices.output_ratio() * output as f64;
        self.tell(&Event::Turn {
            phase: name.to_owned(),
            turn,
            model: talk.model.model().to_owned(),
            full_tokens: full.tokens,
            sent_tokens,
            output_tokens: output,
            cost: talk.terms.prices.dollars(receipt.cost + of_output),
            full_cost: talk.terms.prices.dollars(full.cost + of_output),
            estimate: talk.estimate,
            calls: answer.calls().map(|call| call.name.to_string()).collect(),
            is_recorded,
        });
        talk.hear(answer.clone());
        Ok(answer)
    }

    /// Returns the messages that are sent, without what has outlived its time.
    fn expired(talk: &Talk, context: &[Arc<Sent>]) -> Vec<Message> {
        let turn = talk.sent.entries().last().map_or(0, |entry| entry.turn);
        let messages = context.iter().map(|sent| {
            let age = sent.position.map_or(0, |position| turn - talk.sent.entries()[position].turn);
            match &talk.ttl {
                Some(ttl) => {
                    outlived(&sent.message, age, ttl).unwrap_or_else(|| (*sent.message).clone())
                }
                None => (*sent.message).clone(),
            }
        });
        messages.collect()
    }

    /// Runs one call, or takes the result that was recorded.
    async fn tool(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &mut Journal,
        call: &ToolCall,
        set: &mut Set,
        target: &mut Option<String>,
    ) -> Result<Arc<Message>, RunError> {
        let is_recorded = journal.is_recorded();
        let is_own = matches!(&*call.name, ROUTE_TO | SET_STATE);
        let message = if is_own {
            // What changes the run itself is done again, and must come out the same.
            let answer = self.steer(phase, past, call, set, target);
            journal.say(result(phase, call, answer)).await?
        } else if let Some(known) = journal.answer(Role::Tool)? {
            known
        } else {
            let caller = Caller {
                tenant: journal.tenant().clone(),
                session: journal.session().clone(),
                cascade: self.cascade.cascade_id.to_string(),
                now: self.runner.clock.now(),
                number: journal.turn(),
            };
            let answer = self.toolbox.call(&caller, &call.name, &call.arguments).await;
            let answer = answer.unwrap_or_else(|error| ToolAnswer::failed(error.to_string()));
            self.keep(&caller, call, &answer).await?;
            let message = result(phase, call, answer);
            self.save_images(phase, journal.session(), &message)?;
            journal.append(message, Vec::new()).await?
        };
        if let Some(result) = message.results().next() {
            self.tell(&Event::ToolEnded {
                phase: phase.name.to_string(),
                tool: call.name.to_string(),
                is_error: result.is_error,
                characters: result.text.chars().count(),
                is_recorded,
            });
        }
        Ok(message)
    }

    /// Sets the state, or the way on.
    fn steer(
        &self,
        phase: &Phase,
        past: &mut RunState,
        call: &ToolCall,
        set: &mut Set,
        target: &mut Option<String>,
    ) -> ToolAnswer {
        let arguments = match object(&call.name, &call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return ToolAnswer::failed(error.to_string()),
        };
        if &*call.name == SET_STATE {
            let Some(key) = arguments.get("key").and_then(Value::as_str) else {
                return ToolAnswer::failed("the argument `key`, a text, is missing");
            };
            let value = arguments.get("value").cloned().unwrap_or(Value::Null);
            past.state.insert(key.to_owned(), value.clone());
            set.state.insert(key.to_owned(), value);
            return ToolAnswer::text(format!("`{key}` is set"));
        }
        let open = self.open_handoffs(phase, past).unwrap_or_default();
        let allowed: Vec<&str> = open.iter().map(|handoff| handoff.target.name.as_str()).collect();
        // Models name the argument as they please.
        let named = ["target", "phase", "phase_name", "cell", "name", "to"];
        let asked = named.iter().find_map(|key| arguments.get(*key)).and_then(Value::as_str);
        match asked {
            Some(name) if allowed.contains(&name) => {
                *target = Some(name.to_owned());
                ToolAnswer::text(format!("going on to `{name}`"))
            }
            _ => ToolAnswer::failed(format!("`target` is one of: {}", allowed.join(", "))),
        }
    }

    /// Keeps a large result as an artefact, whole.
    async fn keep(
        &self,
        caller: &Caller,
        call: &ToolCall,
        answer: &ToolAnswer,
    ) -> Result<(), RunError> {
        if answer.text.len() <= self.runner.settings.artefact_from {
            return Ok(());
        }
        let (tenant, session) = (&caller.tenant, Some(&caller.session));
        let mut artefact =
            artefact_of(tenant, session, &answer.text, COUNTED, self.runner.clock.now());
        // A known payload says itself where it is from; of anything else only the call is known.
        artefact.source_meta.get_or_insert_with(|| {
            let source = serde_json::json!({
                "tool": call.name, "arguments": call.arguments, "cascade": caller.cascade,
            });
            source.to_string()
        });
        self.runner.knowledge.put_artefact(&artefact).await?;
        Ok(())
    }
}

/// By what the views of artefacts are measured.
const COUNTED: Tokenizer = Tokenizer::O200k { factor: 1.0 };

/// Returns the calls that a phase expects behind a turn, where its rules bound them.
///
/// A change has to pay back before the phase ends; but contexts that shrink late leave long ones to be sent. Measured on the
/// examples of 10 and 16 turns: with all calls still open the short one saves half its tokens and costs 15 % more than it would
/// whole, with the calls really left the long one saves a seventh; this saves 47 and 69 % at 2 % more and 4 % less cost.
fn expected(turn: u32, most: u32) -> u32 {
    most.saturating_sub(turn).saturating_mul(most) / 2
}

/// Turns that only look up what was left out and count for none, in one attempt (chosen).
const EXPANSIONS: u32 = 5;

/// What a turn without a prompt of its own is told.
const CONTINUE: &str = "Continue.";

/// Makes a message of a phase's own.
pub(crate) fn own_message(phase: &Phase, role: Role, text: impl Into<Arc<str>>) -> Message {
    let mut message = Message::text(role, text);
    message.phase = Some(phase.name.as_str().into());
    message
}

fn result(phase: &Phase, call: &ToolCall, answer: ToolAnswer) -> Message {
    let result = ToolResult {
        call_id: call.id.clone(),
        text: answer.text.into(),
        images: answer.images,
        is_error: answer.is_error,
    };
    let mut message = Message::new(Role::Tool, vec![Block::ToolResult(result)]);
    message.phase = Some(phase.name.as_str().into());
    message
}

/// Returns a message without what has outlived its time; `None` where nothing has.
///
/// What is left says that something was there and how to get it back, so exchanges stay whole.
fn outlived(message: &Message, age: u32, ttl: &ContextTtl) -> Option<Message> {
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
