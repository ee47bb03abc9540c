//! One phase: its context, its attempts until they are valid, and what becomes of it.

use std::sync::Arc;

use plimsoll_core::render::{Attempt, retry_context};
use plimsoll_core::{Message, Role};
use plimsoll_engine::ChatModel;
use serde_json::Value;

use super::Run;
use super::context::{PhaseContext, phase_context};
use super::error::RunError;
use super::event::Event;
use super::failure::can_be_met;
use super::journal::Journal;
use super::state::{Ran, RunState, output_of};
use super::turns::{Set, Talk, TurnsEnd, own_message};
use crate::definition::Phase;

/// Where the way leads behind a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// To whatever comes next.
    Through,
    GoTo(String),
}

impl Run {
    /// Runs a phase and adds it to the past.
    pub(crate) async fn phase(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &mut Journal,
    ) -> Result<Ended, RunError> {
        let begun = if phase.is_tool_call() {
            self.tool_phase(phase, past, journal).await
        } else {
            self.model_phase(phase, past, journal).await
        };
        match (begun, &phase.on_error) {
            (Ok(ended), _) => Ok(ended),
            (Err(error), Some(on_error)) if can_be_met(&error) => {
                self.met(phase, past, journal, on_error, &error).await
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn model_phase(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &mut Journal,
    ) -> Result<Ended, RunError> {
        let factor = match &phase.soundings {
            Some(soundings) => self.count(phase, past, Some(&soundings.factor))?.unwrap_or(1),
            None => 1,
        };
        let (ran, ended) = match &phase.soundings {
            Some(soundings) if factor > 1 => {
                self.sound_phase(phase, soundings, factor as usize, past, journal).await?
            }
            _ => self.attempts(phase, past, journal, None).await?,
        };
        self.end(phase, past, journal, ran).await?;
        Ok(ended)
    }

    /// Tries a phase until its output is valid.
    pub(crate) async fn attempts(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &mut Journal,
        model: Option<String>,
    ) -> Result<(Ran, Ended), RunError> {
        let name = phase.name.as_str();
        let mut set = Set::default();
        let inside = self.sub_cascades(phase, past, journal, &mut set).await?;
        let context = self.context(phase, past, journal).await?;
        for note in &context.notes {
            self.note(name, note.clone());
        }
        let mut seen = context.messages;
        seen.extend(inside);
        let (model, asked_for) = self.model(phase, past, model)?;
        let mut talk = Talk::new(self, phase, model, asked_for, seen);
        talk.callout = match phase.callouts.as_ref().and_then(|callouts| callouts.messages.as_ref())
        {
            Some(template) => Some(self.render(phase, past, template, [])?.into()),
            None => None,
        };
        self.tell(&Event::PhaseBegan {
            phase: name.to_owned(),
            visit: past.visits(name) + 1,
            context_messages: talk.context().len(),
            context_tokens: talk.tokens(),
        });
        self.wards(phase, past, journal, &phase.wards.pre, &input_text(past)).await?;
        let tools = self.offered(phase, past, journal, &talk).await?;
        let instructions = self.instructions(phase, past)?;
        let mut prompts = Vec::new();
        for message in begin(phase, instructions) {
            let message = journal.say(message).await?;
            talk.hear(message.clone());
            prompts.push(message);
        }
        let mut tried: Vec<Attempt> = Vec::new();
        let most = self.most_attempts(phase, past)?;
        loop {
            let before = talk.own().len();
            let end = self.turns(phase, past, journal, &mut talk, &tools, &mut set).await?;
            let own = talk.own();
            let output = output_of(&own[before..]);
            let number = tried.len() as u32 + 1;
            let verdict = self.judge(phase, past, journal, &output, number).await?;
            if verdict.valid {
                let is_short = self.intra_phase(phase).is_some_and(|intra| intra.compress_loops);
                // Later phases see how it was done, not how it failed.
                let messages = if is_short && number > 1 {
                    prompts.iter().chain(&own[before..]).cloned().collect()
                } else {
                    own
                };
                let ended = match end {
                    TurnsEnd::GoTo(target) => Ended::GoTo(target),
                    TurnsEnd::Through => Ended::Through,
                };
                let ran = Ran {
                    phase: name.to_owned(),
                    value: Value::String(output.clone()),
                    output,
                    messages,
                    set: set.state,
                    retention: phase.context_retention,
                };
                return Ok((ran, ended));
            }
            if number >= most {
                let why = format!("not valid after {number} attempts: {}", verdict.reason);
                return Err(RunError::Failed { phase: name.to_owned(), why });
            }
            tried.push(Attempt { number, output, reason: verdict.reason });
            self.retry(phase, past, journal, &mut talk, &prompts, &tried).await?;
        }
    }

    /// Tells the model what was wrong, and what of its attempts it still sees.
    async fn retry(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        talk: &mut Talk,
        prompts: &[Arc<Message>],
        tried: &[Attempt],
    ) -> Result<(), RunError> {
        let Some(last) = tried.last() else { return Ok(()) };
        let own = match &phase.rules.retry_instructions {
            Some(template) => {
                let told = [
                    ("validation_error".to_owned(), Value::String(last.reason.clone())),
                    ("attempt".to_owned(), Value::from(tried.len() + 1)),
                ];
                Some(self.render(phase, past, template, told)?)
            }
            None => None,
        };
        let intra = self.intra_phase(phase).filter(|intra| intra.enabled && intra.compress_loops);
        let again = format!(
            "Please try again (Attempt #{}). Address the validation issues noted above.",
            tried.len() + 1
        );
        let mut text = format!("[Validation Failed]\n{}\n{again}", last.reason);
        if let Some(own) = &own {
            text.push('\n');
            text.push_str(own);
        }
        let said = journal.say(own_message(phase, Role::User, text)).await?;
        let Some(intra) = intra else {
            talk.hear(said);
            return Ok(());
        };
        talk.note(said);
        let mut short = retry_context(prompts, tried, intra.loop_history_limit);
        if let (Some(own), Some(ask)) = (own, short.last_mut()) {
            *ask = Message::text(Role::User, format!("{}\n{own}", ask.shown()));
        }
        let context = talk.context();
        talk.go_on_from(context.into_iter().chain(short.into_iter().map(Arc::new)));
        Ok(())
    }

    /// Returns what a phase sees of those before it.
    pub(crate) async fn context(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
    ) -> Result<PhaseContext, RunError> {
        if let Some(selection) = self.cascade.selection(phase)
            && selection.enabled
            && self.runner.settings.inter_phase_enabled
        {
            return self.chosen_context(phase, past, journal, &selection).await;
        }
        phase_context(phase, past, &|condition| self.holds(phase, past, condition))
    }

    /// Returns the model of a phase, and the name by which it was asked for.
    pub(crate) fn model(
        &self,
        phase: &Phase,
        past: &RunState,
        given: Option<String>,
    ) -> Result<(Arc<dyn ChatModel>, Option<String>), RunError> {
        let template = phase.model.as_ref().or(self.cascade.model.as_ref());
        let name = match (given, template) {
            (Some(name), _) => Some(name),
            (None, Some(template)) => Some(self.render(phase, past, template, [])?),
            (None, None) => None,
        };
        let found = self.runner.models.model(name.as_deref());
        let model =
            found.map_err(|source| RunError::Model { phase: phase.name.to_string(), source })?;
        Ok((model, name))
    }

    /// Returns what the model is told to do, and by what it is measured.
    fn instructions(&self, phase: &Phase, past: &RunState) -> Result<String, RunError> {
        let mut text = match &phase.instructions {
            Some(template) => self.render(phase, past, template, [])?,
            None => String::new(),
        };
        if let Some(told) = self.told_of_validator(phase, past)? {
            text.push_str("\n\n");
            text.push_str(&told);
        }
        Ok(text)
    }
}

/// Returns with what a phase begins: what is to be done, and the line that asks for it.
pub(crate) fn begin(phase: &Phase, instructions: String) -> [Message; 2] {
    let ask = format!("Carry out the phase `{}`.", phase.name);
    [own_message(phase, Role::System, instructions), own_message(phase, Role::User, ask)]
}

fn input_text(past: &RunState) -> String {
    super::context::indented(&past.input)
}
