//! Soundings: several attempts at once, of which one is picked or all are combined.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use futures_util::{StreamExt as _, stream};
use plimsoll_core::Role;
use plimsoll_core::text::push_shortened;
use serde_json::Value;

use super::error::RunError;
use super::evaluation::{Tried, shown};
use super::event::Purpose;
use super::failure::is_recoverable;
use super::phase::{PhaseEnd, Trial};
use super::state::{PhaseRun, RunState};
use super::visit::Visit;
use super::{CascadeRun, RunOutcome, part_of};
use crate::definition::{ModelStrategy, Reforge, SoundingMode, Soundings};

/// Characters of the best output that a further round sees (chosen: as many as a judge sees).
const REFORGED: usize = 20_000;

/// An attempt that succeeded.
struct Sounding {
    past: RunState,
    run: PhaseRun,
    end: PhaseEnd,
    /// US dollars.
    cost: f64,
}

impl Visit<'_> {
    /// Tries the phase several times, each attempt with a past of its own.
    pub(crate) async fn sound_phase(
        &mut self,
        soundings: &Soundings,
        factor: usize,
    ) -> Result<(PhaseRun, PhaseEnd), RunError> {
        let models = self.models(soundings, factor)?;
        let is_mutated = soundings.mutate.unwrap_or(!soundings.mutations.is_empty());
        let instructions = if is_mutated {
            let task = self.task()?;
            self.mutated(soundings, &task, factor).await?
        } else {
            vec![None; factor]
        };
        let trials = models.into_iter().zip(instructions);
        let trials = trials.map(|(model, instructions)| Trial { model, instructions });
        let mut ended = self.trials(soundings, "sounding", trials.collect()).await?;
        let valid = self.valid_outputs(soundings, &ended).await?;
        if soundings.mode == SoundingMode::Aggregate {
            let output = self.aggregate(soundings, &valid).await?;
            let message = self.say(Role::Assistant, output.clone()).await?;
            for (key, value) in ended.into_iter().flat_map(|(_, sounding)| sounding.run.changes) {
                self.set(key, value);
            }
            return Ok((self.finished(output, vec![message]), PhaseEnd::Through));
        }
        let winner = self.pick(soundings, None, &valid).await?;
        let place = ended.iter().position(|(index, _)| *index == winner).unwrap_or(0);
        let mut best = ended.swap_remove(place).1;
        if let Some(reforge) = &soundings.reforge {
            best = self.reforge(soundings, reforge, best).await?;
        }
        self.past.state = best.past.state;
        self.say(Role::Assistant, best.run.output.clone()).await?;
        Ok((best.run, best.end))
    }

    /// Improves the best attempt in further rounds.
    async fn reforge(
        &mut self,
        soundings: &Soundings,
        reforge: &Reforge,
        mut best: Sounding,
    ) -> Result<Sounding, RunError> {
        let task = self.task()?;
        let factor = reforge.factor_per_step.max(1) as usize;
        for step in 1..=reforge.steps {
            let values = [
                ("output".to_owned(), Value::String(best.run.output.clone())),
                ("step".to_owned(), Value::from(step)),
            ];
            let honing = self.render(&reforge.honing_prompt, values)?;
            let mut text = format!("{task}\n\nTHE BEST ANSWER SO FAR:\n");
            push_shortened(&mut text, &best.run.output, REFORGED);
            text.push_str("\n\nIMPROVE IT:\n");
            text.push_str(&honing);
            let mut instructions = vec![None; factor];
            if reforge.mutate {
                instructions = self.mutated(soundings, &text, factor).await?;
            }
            let trials = instructions.into_iter().map(|own| Trial {
                model: None,
                instructions: Some(own.unwrap_or_else(|| text.clone())),
            });
            let part = format!("reforge_{step}");
            let mut ended = self.trials(soundings, &part, trials.collect()).await?;
            let tried = tried(&ended);
            let winner = self.pick(soundings, reforge.evaluator_override.as_ref(), &tried).await?;
            let place = ended.iter().position(|(index, _)| *index == winner).unwrap_or(0);
            best = ended.swap_remove(place).1;
            if let Some(ward) = &reforge.threshold
                && self.validate(&ward.validator, &best.run.output, step).await?.valid
            {
                break;
            }
        }
        Ok(best)
    }

    /// Runs attempts of the phase in sessions of their own, named by `part` and their numbers.
    async fn trials(
        &mut self,
        soundings: &Soundings,
        part: &str,
        trials: Vec<Trial>,
    ) -> Result<Vec<(usize, Sounding)>, RunError> {
        let (phase, name) = (self.phase, self.name());
        let visit = self.past.visits(name);
        let mut attempts = Vec::new();
        for (index, trial) in trials.into_iter().enumerate() {
            let part = format!("{name}.{visit}.{part}_{index}");
            let session = part_of(self.journal.session(), &part)?;
            let run = CascadeRun { sounding: Some(index), ..self.run.clone() };
            let mut past = self.past.clone();
            let attempt = async move {
                let mut journal = run.journal(&session).await?;
                let mut visit = Visit::new(&run, phase, &mut past, &mut journal);
                let (phase_run, end) = Box::pin(visit.attempts(trial)).await?;
                let cost = visit.spent;
                Ok(Sounding { past, run: phase_run, end, cost })
            };
            attempts.push((index, attempt));
        }
        self.sound(soundings, attempts).await
    }

    /// Runs the whole cascade several times and picks one run; the visit is that of its first phase.
    pub(crate) async fn sound_cascade(
        &mut self,
        soundings: &Soundings,
        factor: u32,
    ) -> Result<RunOutcome, RunError> {
        if soundings.reforge.is_some() || soundings.mutate == Some(true) {
            self.note("`reforge` and `mutate` change attempts of phases, not of whole cascades");
        }
        let mut runs = Vec::new();
        for index in 0..factor as usize {
            let session = part_of(self.journal.session(), &format!("sounding_{index}"))?;
            let run = CascadeRun { sounding: Some(index), ..self.run.clone() };
            let (input, state) = (self.past.input.clone(), self.past.state.clone());
            let attempt = async move { Box::pin(run.start(input, state, &session)).await };
            runs.push((index, attempt));
        }
        let mut outcomes = self.sound(soundings, runs).await?;
        let outputs: Vec<Tried> = outcomes
            .iter()
            .map(|(index, outcome)| Tried {
                index: *index,
                output: outcome.output.clone(),
                cost: 0.0,
            })
            .collect();
        let winner = self.pick(soundings, None, &outputs).await?;
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

    /// Assigns models to the attempts; chance comes from the session's id, so that a run can be resumed.
    fn models(
        &self,
        soundings: &Soundings,
        factor: usize,
    ) -> Result<Vec<Option<String>>, RunError> {
        let (mut names, mut dealt) = (Vec::new(), Vec::new());
        for model in &soundings.models.0 {
            let name = self.render(&model.model, [])?;
            dealt.extend(std::iter::repeat_n(name.clone(), model.factor.unwrap_or(1) as usize));
            names.push(name);
        }
        let drawn = |from: &[String], index: usize| {
            let mut hasher = DefaultHasher::new();
            (self.journal.session().as_str(), self.name(), index).hash(&mut hasher);
            let place = hasher.finish() % from.len().max(1) as u64;
            from.get(place as usize).cloned()
        };
        let of = |index: usize| match soundings.model_strategy {
            ModelStrategy::RoundRobin => dealt.get(index % dealt.len().max(1)).cloned(),
            ModelStrategy::Random => drawn(&names, index),
            ModelStrategy::Weighted => drawn(&dealt, index),
        };
        Ok((0..factor).map(of).collect())
    }

    /// Returns the attempts that the validator accepts; all attempts where it accepts none.
    async fn valid_outputs(
        &mut self,
        soundings: &Soundings,
        ended: &[(usize, Sounding)],
    ) -> Result<Vec<Tried>, RunError> {
        let mut all = tried(ended);
        if let Some(validator) = &soundings.validator {
            let mut valid = Vec::new();
            for one in &all {
                if self.validate(validator, &one.output, 1).await?.valid {
                    valid.push(one.index);
                }
            }
            if !valid.is_empty() {
                all.retain(|one| valid.contains(&one.index));
            }
        }
        Ok(all)
    }

    /// Combines all attempts: by a model where the cascade has instructions for it, else one after another.
    async fn aggregate(
        &mut self,
        soundings: &Soundings,
        outputs: &[Tried],
    ) -> Result<String, RunError> {
        let instructions = self.render_option(soundings.aggregator_instructions.as_ref())?;
        let Some(instructions) = instructions else {
            let outputs: Vec<&str> = outputs.iter().map(|one| one.output.as_str()).collect();
            return Ok(outputs.join("\n\n"));
        };
        let question = format!("{instructions}\n\n{}", shown(outputs, false));
        let model = self.model_of(soundings.aggregator_model.as_ref())?;
        self.ask_text(Purpose::Aggregator, &model, question).await
    }
}

fn tried(ended: &[(usize, Sounding)]) -> Vec<Tried> {
    let tried = ended.iter().map(|(index, sounding)| Tried {
        index: *index,
        output: sounding.run.output.clone(),
        cost: sounding.cost,
    });
    tried.collect()
}
