//! Soundings: several attempts at once, of which one is picked or all are combined.

use futures_util::{StreamExt as _, stream};
use plimsoll_core::Role;
use plimsoll_core::text::push_shortened;
use serde_json::Value;

use super::error::RunError;
use super::event::{Purpose, RunEvent};
use super::failure::is_recoverable;
use super::phase::PhaseEnd;
use super::state::{PhaseRun, RunState};
use super::visit::Visit;
use super::{CascadeRun, RunOutcome, part_of};
use crate::definition::{SoundingMode, Soundings};

/// Characters of an attempt that the evaluator sees (chosen: ten of them fit a small window).
const SHOWN: usize = 8_000;

/// An attempt that succeeded.
struct Sounding {
    past: RunState,
    run: PhaseRun,
    end: PhaseEnd,
}

impl Visit<'_> {
    /// Tries the phase several times, each attempt with a past of its own.
    pub(crate) async fn sound_phase(
        &mut self,
        soundings: &Soundings,
        factor: usize,
    ) -> Result<(PhaseRun, PhaseEnd), RunError> {
        let (phase, name) = (self.phase, self.name());
        let models = self.models(soundings, factor)?;
        let visit = self.past.visits(name);
        let mut parts = Vec::new();
        for index in 0..factor {
            let part = format!("{name}.{visit}.sounding_{index}");
            parts.push(part_of(self.journal.session(), &part)?);
        }
        let attempts =
            parts.into_iter().zip(models).enumerate().map(|(index, (session, model))| {
                let run = CascadeRun { sounding: Some(index), ..self.run.clone() };
                let mut past = self.past.clone();
                let attempt = async move {
                    let mut journal = run.journal(&session).await?;
                    let mut visit = Visit::new(&run, phase, &mut past, &mut journal);
                    let (phase_run, end) = Box::pin(visit.attempts(model)).await?;
                    Ok(Sounding { past, run: phase_run, end })
                };
                (index, attempt)
            });
        let attempts = attempts.collect();
        let mut ended = self.sound(soundings, attempts).await?;
        let valid = self.valid_outputs(soundings, &ended).await?;
        if soundings.mode == SoundingMode::Aggregate {
            let output = self.aggregate(soundings, &valid).await?;
            let message = self.say(Role::Assistant, output.clone()).await?;
            for (key, value) in ended.into_iter().flat_map(|(_, sounding)| sounding.run.changes) {
                self.set(key, value);
            }
            return Ok((self.finished(output, vec![message]), PhaseEnd::Through));
        }
        let winner = self.pick(soundings, &valid).await?;
        let place = ended.iter().position(|(index, _)| *index == winner).unwrap_or(0);
        let Sounding { past, run, end } = ended.swap_remove(place).1;
        self.past.state = past.state;
        self.say(Role::Assistant, run.output.clone()).await?;
        Ok((run, end))
    }

    /// Runs the whole cascade several times and picks one run; the visit is that of its first phase.
    pub(crate) async fn sound_cascade(
        &mut self,
        soundings: &Soundings,
        factor: u32,
    ) -> Result<RunOutcome, RunError> {
        let mut runs = Vec::new();
        for index in 0..factor as usize {
            let session = part_of(self.journal.session(), &format!("sounding_{index}"))?;
            let run = CascadeRun { sounding: Some(index), ..self.run.clone() };
            let (input, state) = (self.past.input.clone(), self.past.state.clone());
            let attempt = async move { Box::pin(run.start(input, state, &session)).await };
            runs.push((index, attempt));
        }
        let mut outcomes = self.sound(soundings, runs).await?;
        let outputs: Vec<(usize, String)> =
            outcomes.iter().map(|(index, outcome)| (*index, outcome.output.clone())).collect();
        let winner = self.pick(soundings, &outputs).await?;
        let place = outcomes.iter().position(|(index, _)| *index == winner).unwrap_or(0);
        Ok(outcomes.swap_remove(place).1)
    }

    /// Runs the attempts, several at once, and returns those that succeeded.
    ///
    /// Failures of others are recorded, since the run goes on without them and a resumed run must too.
    async fn sound<T>(
        &mut self,
        soundings: &Soundings,
        attempts: Vec<(usize, impl Future<Output = Result<T, RunError>>)>,
    ) -> Result<Vec<(usize, T)>, RunError> {
        let recorded = self.journal.ended();
        let is_wanted = |index: &usize| recorded.as_ref().is_none_or(|ended| ended.contains(index));
        let attempts = attempts.into_iter().filter(|(index, _)| is_wanted(index));
        let attempts = attempts.map(|(index, attempt)| async move { (index, attempt.await) });
        let at_once = (soundings.max_parallel as usize).max(1);
        let results: Vec<_> = stream::iter(attempts).buffered(at_once).collect().await;
        let mut ended = Vec::new();
        let mut failure = None;
        for (index, result) in results {
            match result {
                Ok(one) => ended.push((index, one)),
                Err(error) if is_recoverable(&error) => {
                    self.note(format!("sounding {index} failed: {error}"));
                    failure = Some(error);
                }
                // An error of the record or the cascade concerns all attempts.
                Err(error) => return Err(error),
            }
        }
        if ended.is_empty() {
            return Err(failure.unwrap_or_else(|| self.failed("no sounding came to an end")));
        }
        if failure.is_some() || recorded.is_some() {
            let numbers: Vec<usize> = ended.iter().map(|(index, _)| *index).collect();
            self.journal.end(self.phase.name.as_str(), &numbers).await?;
        }
        Ok(ended)
    }

    /// Assigns models to the attempts, one after another: random models would make a run that can't be resumed.
    fn models(
        &self,
        soundings: &Soundings,
        factor: usize,
    ) -> Result<Vec<Option<String>>, RunError> {
        let mut names = Vec::new();
        for model in &soundings.models.0 {
            let name = self.render(&model.model, [])?;
            names.extend(std::iter::repeat_n(name, model.factor.unwrap_or(1) as usize));
        }
        Ok((0..factor).map(|index| names.get(index % names.len().max(1)).cloned()).collect())
    }

    /// Returns number and output of the attempts that the validator accepts; of all attempts where it accepts none.
    async fn valid_outputs(
        &mut self,
        soundings: &Soundings,
        ended: &[(usize, Sounding)],
    ) -> Result<Vec<(usize, String)>, RunError> {
        let mut all: Vec<(usize, String)> =
            ended.iter().map(|(index, sounding)| (*index, sounding.run.output.clone())).collect();
        if let Some(validator) = &soundings.validator {
            let mut valid = Vec::new();
            for (index, output) in &all {
                if self.validate(validator, output, 1).await?.valid {
                    valid.push(*index);
                }
            }
            if !valid.is_empty() {
                all.retain(|(index, _)| valid.contains(index));
            }
        }
        Ok(all)
    }

    /// Lets a model pick one of several attempts; without a usable answer the first is taken.
    async fn pick(
        &mut self,
        soundings: &Soundings,
        outputs: &[(usize, String)],
    ) -> Result<usize, RunError> {
        let first = outputs.first().map_or(0, |(index, _)| *index);
        if outputs.len() < 2 {
            return Ok(first);
        }
        let instructions = self.render_option(soundings.evaluator_instructions.as_ref())?;
        let question = format!(
            "{}\n\n{}\n\nAnswer with JSON: {{\"winner\": the number of the attempt, \"reason\": \"…\"}}.",
            instructions.as_deref().unwrap_or("Pick the best attempt."),
            shown(outputs)
        );
        let model = self.model_of(soundings.evaluator_model.as_ref())?;
        let schema = r#"{"type":"object","properties":{"winner":{"type":"integer"},"reason":{"type":"string"}},"required":["winner"]}"#;
        let answer = self.ask(Purpose::Evaluator, &model, question, schema).await?;
        let number = answer.get("winner").and_then(Value::as_u64).map(|number| number as usize);
        let winner = number.filter(|number| outputs.iter().any(|(index, _)| index == number));
        if winner.is_none() {
            self.note("the evaluator picked none of the attempts: the first is taken");
        }
        let winner = winner.unwrap_or(first);
        let reason = answer.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.run.tell(&RunEvent::SoundingsEvaluated {
            phase: self.name().to_owned(),
            winner,
            of: outputs.len(),
            reason,
        });
        Ok(winner)
    }

    /// Combines all attempts: by a model where the cascade has instructions for it, else one after another.
    async fn aggregate(
        &mut self,
        soundings: &Soundings,
        outputs: &[(usize, String)],
    ) -> Result<String, RunError> {
        let instructions = self.render_option(soundings.aggregator_instructions.as_ref())?;
        let Some(instructions) = instructions else {
            let outputs: Vec<&str> = outputs.iter().map(|(_, output)| output.as_str()).collect();
            return Ok(outputs.join("\n\n"));
        };
        let question = format!("{instructions}\n\n{}", shown(outputs));
        let model = self.model_of(soundings.aggregator_model.as_ref())?;
        self.ask_text(Purpose::Aggregator, &model, question).await
    }
}

fn shown(outputs: &[(usize, String)]) -> String {
    let attempts = outputs.iter().map(|(index, output)| {
        let mut text = format!("ATTEMPT {index}:\n");
        push_shortened(&mut text, output, SHOWN);
        text
    });
    attempts.collect::<Vec<_>>().join("\n\n")
}
