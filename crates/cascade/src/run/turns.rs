//! The turns of a model: each request is bounded, each answer recorded.

use std::sync::Arc;

use plimsoll_core::{Message, Role};
use plimsoll_engine::{Caching, ChatRequest, ReceiptRecord, Tool};
use serde_json::Value;

use super::conversation::{BoundedContext, Conversation};
use super::error::RunError;
use super::event::RunEvent;
use super::phase::PhaseEnd;
use super::toolbox::{EXPAND_REF, ROUTE_TO};
use super::visit::Visit;

impl Visit<'_> {
    /// Runs turns until the model is done, goes on to another phase, or has no turns left.
    pub(crate) async fn turns(
        &mut self,
        conversation: &mut Conversation,
        tools: &[Tool],
    ) -> Result<PhaseEnd, RunError> {
        let rules = &self.phase.rules;
        let has_own_tools = tools.iter().any(|tool| !matches!(&*tool.name, ROUTE_TO | EXPAND_REF));
        let given = self.count(rules.max_turns.as_ref())?;
        let usual = if has_own_tools { self.run.runner.settings.max_turns } else { 1 };
        let most = given.unwrap_or(usual);
        // A model with tools is done when it calls none; one without tools uses all the turns that it is given.
        let is_repeated = rules.turn_prompt.is_some() || (!has_own_tools && given.is_some());
        // A turn that only looks up content counts for none.
        let mut expansions = 0;
        for turn in 0.. {
            conversation.expect_calls(expected(turn, most + expansions));
            let answer = self.turn(conversation, tools).await?;
            let mut calls = 0;
            let mut only_expands = true;
            let mut target = None;
            for call in answer.calls() {
                let (result, goes_to) = self.answer_call(call).await?;
                conversation.push(result);
                target = goes_to.or(target);
                calls += 1;
                only_expands &= &*call.name == EXPAND_REF;
            }
            self.turn_wards(conversation).await?;
            if let Some(target) = target {
                return Ok(PhaseEnd::GoTo(target));
            }
            if calls > 0 && only_expands && expansions < EXPANSIONS {
                expansions += 1;
            }
            let is_last = turn + 1 >= most + expansions;
            if is_last && calls > 0 && given.is_none() {
                self.note(format!("ended after {most} turns"));
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
        tools: &[Tool],
    ) -> Result<Arc<Message>, RunError> {
        let mut bounded = conversation.bound();
        let over = bounded.receipt.over_budget;
        if over > 0 {
            self.note(format!("the smallest context passes the budget by {over} tokens"));
        }
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
            request.tools = tools.to_vec();
            // The next turn begins with the same messages.
            request.caching = Caching::Prefix;
            request.max_tokens = runner.settings.max_tokens;
            let reply = conversation.model.model.complete(&request).await;
            let mut reply = reply.map_err(|error| self.no_answer(error))?.message;
            reply.phase = Some(self.name().into());
            reply.callout.clone_from(&conversation.callout);
            self.journal.append(reply, vec![receipt]).await?
        };
        let prices = &conversation.terms.prices;
        let output_tokens = answer.usage.map_or(0, |usage| usage.output_tokens);
        let output_cost = prices.output_ratio() * output_tokens as f64;
        self.run.tell(&RunEvent::Turn {
            phase: self.name().to_owned(),
            turn,
            model: conversation.model.model.model().to_owned(),
            full_tokens: bounded.full.tokens,
            sent_tokens: bounded.sent_tokens,
            output_tokens,
            cost: prices.dollars(bounded.receipt.cost + output_cost),
            full_cost: prices.dollars(bounded.full.cost + output_cost),
            estimate: conversation.is_estimate,
            calls: answer.calls().map(|call| call.name.to_string()).collect(),
            is_recorded,
        });
        conversation.push(answer.clone());
        Ok(answer)
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
        record.tokens_saved = bounded.full.tokens.cast_signed() - bounded.sent_tokens.cast_signed();
        record
    }
}

/// Returns the calls that a phase expects after a turn, where its rules limit them.
///
/// A change has to pay back before the phase ends; but contexts that shrink late leave long ones to be sent. Measured on the
/// examples of 10 and 16 turns: with all calls still open the short one saves half its tokens and costs 15 % more than it would
/// whole, with the calls really left the long one saves a seventh; this saves 47 and 69 % at 2 % more and 4 % less cost.
fn expected(turn: u32, most: u32) -> u32 {
    most.saturating_sub(turn).saturating_mul(most) / 2
}

/// Turns of one attempt that only look up content and count for none (chosen).
const EXPANSIONS: u32 = 5;

/// The user's message of a turn without a prompt of its own.
const CONTINUE: &str = "Continue.";
