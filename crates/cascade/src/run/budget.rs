//! The token budget of a phase: warnings, the end of a phase beyond it, and summaries of old messages.

use std::fmt::Write as _;
use std::sync::Arc;

use plimsoll_core::text::push_shortened;
use plimsoll_core::{Message, Role};

use super::conversation::{BoundedContext, Conversation};
use super::error::RunError;
use super::event::Purpose;
use super::visit::{Visit, phase_message};
use crate::definition::BudgetStrategy;

/// Characters of a message that its summary is made of (chosen: a page).
const SUMMARISED: usize = 4_000;

impl Visit<'_> {
    fn budget_strategy(&self) -> Option<BudgetStrategy> {
        self.run.cascade.token_budget.as_ref().map(|budget| budget.strategy)
    }

    /// Warns of a request near its budget; one beyond it ends the phase where the strategy says so.
    pub(crate) fn check_budget(&mut self, bounded: &BoundedContext) -> Result<(), RunError> {
        let over = bounded.over_budget;
        if over > 0 && self.budget_strategy() == Some(BudgetStrategy::Fail) {
            return Err(
                self.failed(format!("its context exceeds the token budget by {over} tokens"))
            );
        }
        if over > 0 {
            self.note(format!("the smallest context exceeds the budget by {over} tokens"));
        }
        let Some(budget) = &self.run.cascade.token_budget else { return Ok(()) };
        let Some(ceiling) = self.run.budget(self.phase) else { return Ok(()) };
        let warns_from = ceiling as f64 * budget.warning_threshold;
        if !self.is_warned && bounded.sent_tokens as f64 >= warns_from && over == 0 {
            self.is_warned = true;
            self.note(format!(
                "{} of {ceiling} tokens of the budget are used",
                bounded.sent_tokens
            ));
        }
        Ok(())
    }

    /// Lets a model summarise old messages, where the strategy says so and the context is beyond the budget.
    pub(crate) async fn summarise(
        &mut self,
        conversation: &mut Conversation,
    ) -> Result<(), RunError> {
        if self.budget_strategy() != Some(BudgetStrategy::Summarize)
            || !conversation.is_beyond_budget()
        {
            return Ok(());
        }
        let Some((kept, old, recent)) = conversation.parts() else { return Ok(()) };
        let summarizer =
            self.run.cascade.token_budget.as_ref().and_then(|budget| budget.summarizer.as_ref());
        let own = summarizer.and_then(|summarizer| summarizer.instructions.as_ref());
        let instructions = self.render_option(own)?;
        let mut question = instructions.unwrap_or_else(|| {
            "Summarise the messages below for the one who goes on with the task. Keep every decision, name, number, path and error that may still be needed.".to_owned()
        });
        for message in &old {
            let _ = writeln!(question, "\n\n{}:", message.role.as_str());
            push_shortened(&mut question, &message.shown(), SUMMARISED);
        }
        let model = self.model_of(summarizer.and_then(|summarizer| summarizer.model.as_ref()))?;
        let summary = self.ask_text(Purpose::Summary, &model, question).await?;
        let text = format!("[Summary of {} earlier messages, by a model]:\n{summary}", old.len());
        let summary: Arc<Message> = Arc::new(phase_message(self.phase, Role::User, text));
        let messages = kept.into_iter().chain([summary]).chain(recent);
        conversation.restart_from(messages.collect());
        Ok(())
    }
}
