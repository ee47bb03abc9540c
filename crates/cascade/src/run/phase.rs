//! A phase: its context, its attempts until one is valid, and its end.

use std::sync::Arc;

use plimsoll_core::render::{Attempt, retry_context, retry_request};
use plimsoll_core::{Message, Role};
use serde_json::Value;

use super::context::{PhaseContext, indented, phase_context};
use super::conversation::Conversation;
use super::error::RunError;
use super::event::RunEvent;
use super::failure::is_recoverable;
use super::state::{PhaseRun, output_of};
use super::validate::response_of;
use super::visit::{Visit, phase_message};
use crate::definition::Phase;

/// The model and the instructions that set an attempt apart from the others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trial {
    /// The model, instead of the phase's.
    pub(crate) model: Option<String>,
    /// The instructions, instead of the phase's.
    pub(crate) instructions: Option<String>,
}

/// The phase that comes after one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PhaseEnd {
    /// The one that follows in the cascade.
    Through,
    GoTo(String),
}

impl Visit<'_> {
    /// Runs the phase and adds its run to the past.
    pub(crate) async fn run(&mut self) -> Result<PhaseEnd, RunError> {
        let is_screen = self.phase.instructions.is_none()
            && self.phase.sub_cascades.is_empty()
            && self.phase.asks();
        let result = match self.phase.tool.as_deref() {
            Some(tool) => self.tool_phase(tool).await,
            None if is_screen => self.screen_phase().await,
            None => self.model_phase().await,
        };
        let result = match result {
            Ok(end) => self.ask_after(end).await,
            failed => failed,
        };
        match (result, &self.phase.on_error) {
            (Err(error), Some(on_error)) if is_recoverable(&error) => {
                self.recover(on_error, &error).await
            }
            (result, _) => result,
        }
    }

    async fn model_phase(&mut self) -> Result<PhaseEnd, RunError> {
        let soundings = self.phase.soundings.as_ref();
        let factor = self.count(soundings.map(|soundings| &soundings.factor))?.unwrap_or(1);
        let (run, end) = match soundings {
            Some(soundings) if factor > 1 => self.sound_phase(soundings, factor as usize).await?,
            _ => self.attempts(Trial::default()).await?,
        };
        self.end(run).await?;
        Ok(end)
    }

    /// Tries the phase until its output is valid.
    pub(crate) async fn attempts(
        &mut self,
        trial: Trial,
    ) -> Result<(PhaseRun, PhaseEnd), RunError> {
        let (phase, name) = (self.phase, self.name());
        let inside = self.sub_cascades().await?;
        let context = self.context().await?;
        for note in context.notes {
            self.note(note);
        }
        let mut seen = context.messages;
        seen.extend(inside.iter().cloned());
        let memory = self.recalled().await?;
        seen.extend(memory.clone());
        let everything = context.everything.map(|mut all| {
            all.extend(inside.into_iter().chain(memory));
            all
        });
        let mut conversation =
            Conversation::new(self.run, phase, self.model(trial.model)?, seen, everything);
        conversation.response = response_of(phase.output_schema.as_ref().map(|it| &it.0));
        let callout = phase.callouts.as_ref().and_then(|callouts| callouts.messages.as_ref());
        conversation.callout = self.render_option(callout)?.map(Into::into);
        self.run.tell(&RunEvent::PhaseBegan {
            phase: name.to_owned(),
            visit: self.past.visits(name) + 1,
            context_messages: conversation.context().len(),
            context_tokens: conversation.context_tokens(),
        });
        let input = indented(&self.past.input);
        self.wards(&phase.wards.pre, &input).await?;
        conversation.offered = self.offered_tools(&conversation.model.clone()).await?;
        let mut prompts = Vec::new();
        for message in prompts_of(phase, self.instructions(trial.instructions)?) {
            let message = self.journal.say(message).await?;
            conversation.push(message.clone());
            prompts.push(message);
        }
        let mut failed: Vec<Attempt> = Vec::new();
        let most = self.most_attempts()?;
        loop {
            let before = conversation.own_messages().len();
            let end = self.turns(&mut conversation).await?;
            let own = conversation.own_messages().to_vec();
            let output = output_of(&own[before..]);
            let number = failed.len() as u32 + 1;
            let validation = self.judge(&output, number).await?;
            if validation.valid {
                let is_short =
                    self.run.intra_phase(phase).is_some_and(|intra| intra.compress_loops);
                // Later phases see the valid attempt only.
                let messages = if is_short && number > 1 {
                    prompts.iter().chain(&own[before..]).cloned().collect()
                } else {
                    own
                };
                return Ok((self.finished(output, messages), end));
            }
            if number >= most {
                let why = format!("not valid after {number} attempts: {}", validation.reason);
                return Err(self.failed(why));
            }
            failed.push(Attempt { number, output, reason: validation.reason });
            self.retry(&mut conversation, &prompts, &failed).await?;
        }
    }

    /// Gives the model the reason for which the attempt failed, and chooses which attempts it still sees.
    async fn retry(
        &mut self,
        conversation: &mut Conversation,
        prompts: &[Arc<Message>],
        failed: &[Attempt],
    ) -> Result<(), RunError> {
        let Some(last) = failed.last() else { return Ok(()) };
        let instructions = match &self.phase.rules.retry_instructions {
            Some(template) => {
                let values = [
                    ("validation_error".to_owned(), Value::String(last.reason.clone())),
                    ("attempt".to_owned(), Value::from(failed.len() + 1)),
                ];
                Some(self.render(template, values)?)
            }
            None => None,
        };
        let again = retry_request(failed.len());
        let mut text = format!("[Validation Failed]\n{}\n{again}", last.reason);
        if let Some(instructions) = &instructions {
            text.push('\n');
            text.push_str(instructions);
        }
        let message = self.say(Role::User, text).await?;
        let intra = self.run.intra_phase(self.phase);
        let short = intra.and_then(|intra| retry_context(prompts, failed, &intra));
        if let Some(mut short) = short {
            if let (Some(instructions), Some(ask)) = (instructions, short.last_mut()) {
                *ask = Message::text(Role::User, format!("{}\n{instructions}", ask.shown()));
            }
            let context = conversation.context().iter().cloned();
            let short: Vec<_> = context.chain(short.into_iter().map(Arc::new)).collect();
            let turns = self.count(self.phase.rules.max_turns.as_ref())?.unwrap_or(1);
            let has_one_request = turns == 1 && !conversation.offered.has_own();
            if conversation.pays(&short, &message, has_one_request) {
                conversation.push_unsent(message);
                conversation.restart_from(short);
                return Ok(());
            }
        }
        conversation.push(message);
        Ok(())
    }

    /// Returns the messages that the phase sees of those before it.
    async fn context(&mut self) -> Result<PhaseContext, RunError> {
        if let Some(selection) = self.run.cascade.selection(self.phase)
            && selection.enabled
            && self.run.runner.settings.inter_phase_enabled
        {
            return self.select_context(&selection).await;
        }
        phase_context(self.phase, self.past, &|condition| self.holds(Some(condition)))
    }

    /// Returns the task of the model, and how it will be checked.
    fn instructions(&self, instead: Option<String>) -> Result<String, RunError> {
        let mut text = match instead {
            Some(instead) => instead,
            None => self.task()?,
        };
        if let Some(about) = self.about_validator()? {
            text.push_str("\n\n");
            text.push_str(&about);
        }
        Ok(text)
    }
}

/// Returns the first messages of a phase: the task, and the line that asks for it.
pub(crate) fn prompts_of(phase: &Phase, instructions: String) -> [Message; 2] {
    let ask = format!("Carry out the phase `{}`.", phase.name);
    [phase_message(phase, Role::System, instructions), phase_message(phase, Role::User, ask)]
}
