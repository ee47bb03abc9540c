//! The turns of a model: each request is bounded, each answer recorded.

use std::sync::Arc;

use plimsoll_core::{Block, Message, Role};
use plimsoll_engine::{Caching, ChatRequest, ModelError, ReceiptRecord, ToolUse, UnfitJson};
use serde_json::Value;

use super::conversation::{BoundedContext, Conversation};
use super::error::RunError;
use super::event::{Purpose, RunEvent};
use super::phase::PhaseEnd;
use super::toolbox::{EXPAND_REF, ROUTE_TO, SET_STATE};
use super::visit::{Visit, phase_message};

impl Visit<'_> {
    /// Runs turns until the model is done, goes on to another phase, or has no turns left.
    ///
    /// A turn is an answer that may call tools. Results of the last turn are used: the model is asked once more, for its answer
    /// without tools.
    pub(crate) async fn turns(
        &mut self,
        conversation: &mut Conversation,
    ) -> Result<PhaseEnd, RunError> {
        let rules = &self.phase.rules;
        let has_own_tools = conversation.offered.has_own();
        let given = self.count(rules.max_turns.as_ref())?;
        let usual = if has_own_tools { self.run.runner.settings.max_turns } else { 1 };
        let most = given.unwrap_or(usual);
        // A model with tools is done when it calls none; one without tools uses all the turns that it is given.
        let is_repeated = rules.turn_prompt.is_some() || (!has_own_tools && given.is_some());
        // A turn that only looks up content counts for none.
        let mut expansions = 0;
        for turn in 0.. {
            let answer = self.turn(conversation, Purpose::Turn).await?;
            let mut calls = 0;
            let mut only_steers = true;
            let mut target = None;
            let is_lookup = is_lookup(&answer);
            for call in answer.calls() {
                let (result, goes_to) = self.answer_call(call).await?;
                if is_lookup {
                    conversation.push_lookup(result);
                } else {
                    conversation.push(result);
                }
                target = goes_to.or(target);
                calls += 1;
                only_steers &= matches!(&*call.name, ROUTE_TO | SET_STATE);
            }
            self.turn_wards(conversation).await?;
            if let Some(target) = target {
                return Ok(PhaseEnd::GoTo(target));
            }
            if is_lookup && expansions < EXPANSIONS {
                expansions += 1;
            }
            let is_last = turn + 1 >= most + expansions;
            if is_last && calls > 0 && !only_steers {
                self.note(format!(
                    "turn {most} of {most} called tools: the model is asked for its answer without them"
                ));
                conversation.push(self.say(Role::User, ANSWER).await?);
                self.turn(conversation, Purpose::FinalAnswer).await?;
            }
            if is_last || (calls == 0 && !is_repeated) {
                break;
            }
            if calls == 0 || rules.turn_prompt.is_some() {
                let text = match &rules.turn_prompt {
                    Some(prompt) => {
                        let turn = [
                            ("turn".to_owned(), Value::from(turn + 1)),
                            ("max_turns".to_owned(), Value::from(most)),
                        ];
                        self.render(prompt, turn)?
                    }
                    None => CONTINUE.to_owned(),
                };
                conversation.push(self.say(Role::User, text).await?);
            }
        }
        Ok(PhaseEnd::Through)
    }

    /// Asks the model once.
    async fn turn(
        &mut self,
        conversation: &mut Conversation,
        purpose: Purpose,
    ) -> Result<Arc<Message>, RunError> {
        self.summarise(conversation).await?;
        let mut bounded = conversation.bound();
        self.check_budget(&bounded)?;
        let turn = self.journal.turn();
        let recorded = self.journal.answer(Role::Assistant)?;
        let is_recorded = recorded.is_some();
        let runner = &self.run.runner;
        let answer = if let Some(answer) = recorded {
            runner.models.passed_over(conversation.model.name.as_deref());
            answer
        } else {
            let receipt = self.turn_receipt(conversation, &bounded);
            let mut request = ChatRequest::new(std::mem::take(&mut bounded.messages));
            request.tools = std::mem::take(&mut bounded.tools);
            request.response = conversation.response.clone();
            // The phase judges the answer itself, and asks again with its own words.
            request.unfit_json = UnfitJson::Return;
            if purpose == Purpose::FinalAnswer {
                request.tool_use = ToolUse::Never;
            }
            // The next turn begins with the same messages.
            request.caching = Caching::Prefix;
            request.max_tokens = runner.settings.max_tokens;
            let reply = conversation.model.model.complete(&request).await;
            let mut reply = match reply {
                Ok(reply) => reply.message,
                Err(ModelError::Unusable(why)) => self.unusable(&why),
                Err(error) => return Err(self.no_answer(error)),
            };
            conversation.rename_calls(&mut reply);
            if purpose == Purpose::FinalAnswer {
                self.drop_calls(&mut reply);
            }
            reply.phase = Some(self.name().into());
            reply.callout.clone_from(&conversation.callout);
            self.journal.append(reply, vec![receipt]).await?
        };
        let is_lookup = is_lookup(&answer);
        let prices = &conversation.terms.prices;
        let output_tokens = answer.usage.map_or(0, |usage| usage.output_tokens);
        let output_cost = prices.output_ratio() * output_tokens as f64;
        self.spent += prices.dollars(bounded.cost + output_cost);
        let full = if is_lookup { 0.0 } else { bounded.full.cost + output_cost };
        self.run.tell(&RunEvent::Turn {
            phase: self.name().to_owned(),
            turn,
            purpose: if is_lookup { Purpose::Lookup } else { purpose },
            model: conversation.model.model.model().to_owned(),
            full_tokens: if is_lookup { 0 } else { bounded.full_tokens },
            sent_tokens: bounded.sent_tokens,
            output_tokens,
            reported_tokens: answer.usage.map(|usage| usage.prompt_tokens),
            cost: prices.dollars(bounded.cost + output_cost),
            full_cost: prices.dollars(full),
            priced_as: conversation.priced_as.clone(),
            estimate: conversation.is_estimate,
            calls: answer.calls().map(|call| call.name.to_string()).collect(),
            is_recorded,
        });
        if is_lookup {
            conversation.push_lookup(answer.clone());
        } else if !answer.shown().is_empty() || answer.calls().next().is_some() {
            conversation.push(answer.clone());
        }
        Ok(answer)
    }

    /// Returns the record of an answer that was paid for and has another form than the request asks for.
    pub(crate) fn unusable(&self, why: &str) -> Message {
        self.note(format!("an answer of the model can't be used: {why}"));
        phase_message(self.phase, Role::Assistant, format!("{UNUSABLE}{why}]"))
    }

    /// Leaves out the calls of an answer that was asked for without any.
    fn drop_calls(&self, reply: &mut Message) {
        let called: Vec<String> = reply.calls().map(|call| call.name.to_string()).collect();
        if !called.is_empty() {
            self.note(format!("not called, since no turn is left: {}", called.join(", ")));
            reply.blocks.retain(|block| !matches!(block, Block::ToolCall(_)));
        }
    }

    fn turn_receipt(&self, conversation: &Conversation, bounded: &BoundedContext) -> ReceiptRecord {
        let now = self.run.runner.clock.now();
        let mut record = ReceiptRecord::of_context(
            self.journal.session(),
            conversation.strategy,
            &bounded.receipt,
            &bounded.context,
            conversation.plan(),
            now,
        )
        .with_turn(self.journal.turn());
        record.cascade_id = Some(self.run.cascade.cascade_id.to_string());
        record.full_history_size = bounded.full.full_messages as u32;
        record.tokens_saved = bounded.full_tokens.cast_signed() - bounded.sent_tokens.cast_signed();
        record
    }
}

/// Returns whether an answer only looks up content that was left out.
fn is_lookup(answer: &Message) -> bool {
    let mut calls = answer.calls().peekable();
    calls.peek().is_some() && calls.all(|call| &*call.name == EXPAND_REF)
}

/// The beginning of the record of an answer that can't be used.
pub(crate) const UNUSABLE: &str = "[unusable: ";

/// Turns of one attempt that only look up content and count for none (chosen).
const EXPANSIONS: u32 = 5;

/// The user's message of a turn without a prompt of its own.
const CONTINUE: &str = "Continue.";

/// The user's message that asks for the answer of a phase whose turns are used up.
const ANSWER: &str =
    "No turn is left for tools. Give your answer now, with what the tools returned.";
