//! Soundings: several attempts at once, of which one is picked or all are brought together.

use futures_util::{StreamExt as _, stream};
use plimsoll_core::{Message, Role};
use serde_json::Value;

use super::error::RunError;
use super::event::Event;
use super::failure::can_be_met;
use super::journal::Journal;
use super::phase::Ended;
use super::state::{Ran, RunState};
use super::turns::own_message;
use super::{Outcome, Run, part_of};
use crate::definition::{Phase, SoundingMode, Soundings};

/// Characters of an attempt that the evaluator is shown (chosen: ten of them fit a small window).
const SHOWN: usize = 8_000;

/// An attempt that came to an end.
struct Sounded {
    index: usize,
    past: RunState,
    ran: Ran,
    ended: Ended,
}

impl Run {
    /// Tries a phase several times, each attempt with a past of its own.
    pub(crate) async fn sound_phase(
        &self,
        phase: &Phase,
        soundings: &Soundings,
        factor: usize,
        past: &mut RunState,
        journal: &mut Journal,
    ) -> Result<(Ran, Ended), RunError> {
        let name = phase.name.as_str();
        let models = self.dealt(phase, past, soundings, factor)?;
        let visit = past.visits(name);
        let mut parts = Vec::new();
        for index in 0..factor {
            parts.push(part_of(journal.session(), &format!("{name}.{visit}.sounding_{index}"))?);
        }
        // A resumed run goes on with those that it went on with before.
        let known = journal.ended();
        let is_known = |index: &usize| known.as_ref().is_none_or(|ended| ended.contains(index));
        let all = parts.into_iter().zip(models).enumerate();
        let attempts = all.filter(|(index, _)| is_known(index)).map(|(index, (session, model))| {
            let run = Self { sounding: Some(index), ..self.clone() };
            let mut past = past.clone();
            async move {
                let attempt = async {
                    let mut journal = run.journal(&session).await?;
                    let begun = Box::pin(run.attempts(phase, &mut past, &mut journal, model));
                    let (ran, ended) = begun.await?;
                    Ok(Sounded { index, past, ran, ended })
                };
                (index, attempt.await)
            }
        });
        let at_once = (soundings.max_parallel as usize).max(1);
        let results = stream::iter(attempts).buffered(at_once).collect().await;
        let sounded = self.gathered(phase, journal, results).await?;
        let mut sounded: Vec<Sounded> = sounded.into_iter().map(|(_, one)| one).collect();
        let valid = self.valid_ones(phase, soundings, past, journal, &sounded).await?;
        let outputs: Vec<(usize, &str)> =
            valid.iter().map(|&at| (sounded[at].index, sounded[at].ran.output.as_str())).collect();
        if soundings.mode == SoundingMode::Aggregate {
            let output = self.aggregated(phase, soundings, past, journal, &outputs).await?;
            let message = Message::text(Role::Assistant, output.clone());
            let said = journal.say(Message { phase: Some(name.into()), ..message }).await?;
            let set = sounded.iter().flat_map(|one| one.ran.set.clone()).collect();
            past.state.extend(sounded.into_iter().flat_map(|one| one.ran.set));
            let ran = Ran {
                phase: name.to_owned(),
                value: Value::String(output.clone()),
                output,
                messages: vec![said],
                set,
                retention: phase.context_retention,
            };
            return Ok((ran, Ended::Through));
        }
        let winner = self.picked_winner(phase, soundings, past, journal, &outputs).await?;
        let place = sounded.iter().position(|one| one.index == winner).unwrap_or(0);
        let Sounded { past: its_past, ran, ended, .. } = sounded.swap_remove(place);
        past.state = its_past.state;
        let said = own_message(phase, Role::Assistant, ran.output.clone());
        journal.say(said).await?;
        Ok((ran, ended))
    }

    /// Returns the soundings of the cascade, where it is to be tried more than once and this is not such a try.
    pub(crate) fn cascade_soundings(
        &self,
        past: &RunState,
    ) -> Result<Option<&Soundings>, RunError> {
        let (Some(soundings), None) = (&self.cascade.soundings, self.sounding) else {
            return Ok(None);
        };
        let Some(first) = self.cascade.phases.first() else { return Ok(None) };
        let factor = self.count(first, past, Some(&soundings.factor))?;
        Ok(factor.is_some_and(|factor| factor > 1).then_some(soundings))
    }

    /// Runs the whole cascade several times and picks one run.
    pub(crate) async fn sound_cascade(
        &self,
        soundings: &Soundings,
        past: RunState,
        journal: &mut Journal,
    ) -> Result<Outcome, RunError> {
        let Some(first) = self.cascade.phases.first() else {
            return Ok(Outcome { output: String::new(), past });
        };
        let factor = self.count(first, &past, Some(&soundings.factor))?.unwrap_or(1).max(1);
        let mut parts = Vec::new();
        for index in 0..factor as usize {
            parts.push((index, part_of(journal.session(), &format!("sounding_{index}"))?));
        }
        let known = journal.ended();
        let is_known = |index: &usize| known.as_ref().is_none_or(|ended| ended.contains(index));
        let runs =
            parts.into_iter().filter(|(index, _)| is_known(index)).map(|(index, session)| {
                let run = Self { sounding: Some(index), ..self.clone() };
                let (input, state) = (past.input.clone(), past.state.clone());
                async move { (index, Box::pin(run.start(input, state, &session)).await) }
            });
        let at_once = (soundings.max_parallel as usize).max(1);
        let results = stream::iter(runs).buffered(at_once).collect().await;
        let mut outcomes = self.gathered(first, journal, results).await?;
        let shown: Vec<(usize, &str)> =
            outcomes.iter().map(|(index, outcome)| (*index, outcome.output.as_str())).collect();
        let winner = self.picked_winner(first, soundings, &past, journal, &shown).await?;
        let place = outcomes.iter().position(|(index, _)| *index == winner).unwrap_or(0);
        Ok(outcomes.swap_remove(place).1)
    }

    /// Returns the attempts that came to an end; that others failed is recorded, since the run goes on without them.
    async fn gathered<T>(
        &self,
        phase: &Phase,
        journal: &mut Journal,
        results: Vec<(usize, Result<T, RunError>)>,
    ) -> Result<Vec<(usize, T)>, RunError> {
        let name = phase.name.as_str();
        let mut ended = Vec::new();
        let mut failed = None;
        for (index, result) in results {
            match result {
                Ok(one) => ended.push((index, one)),
                Err(error) if can_be_met(&error) => {
                    self.note(name, format!("sounding {index} failed: {error}"));
                    failed = Some(error);
                }
                // What concerns the record or the cascade concerns all.
                Err(error) => return Err(error),
            }
        }
        if ended.is_empty() {
            let why = "no sounding came to an end".to_owned();
            return Err(failed.unwrap_or(RunError::Failed { phase: name.to_owned(), why }));
        }
        if failed.is_some() || journal.ended().is_some() {
            let numbers: Vec<usize> = ended.iter().map(|(index, _)| *index).collect();
            journal.end(name, &numbers).await?;
        }
        Ok(ended)
    }

    /// Deals the models to the attempts, one after another: a die would make a run that can't be repeated.
    fn dealt(
        &self,
        phase: &Phase,
        past: &RunState,
        soundings: &Soundings,
        factor: usize,
    ) -> Result<Vec<Option<String>>, RunError> {
        let given = &soundings.models.0;
        if given.is_empty() {
            return Ok(vec![None; factor]);
        }
        let mut names = Vec::new();
        for model in given {
            let name = self.render(phase, past, &model.model, [])?;
            names.extend(std::iter::repeat_n(name, model.factor.unwrap_or(1) as usize));
        }
        Ok((0..factor).map(|index| names.get(index % names.len().max(1)).cloned()).collect())
    }

    /// Returns the places of the attempts that the validator lets through; all of them where it lets none.
    async fn valid_ones(
        &self,
        phase: &Phase,
        soundings: &Soundings,
        past: &RunState,
        journal: &mut Journal,
        sounded: &[Sounded],
    ) -> Result<Vec<usize>, RunError> {
        let all = (0..sounded.len()).collect();
        let Some(validator) = &soundings.validator else { return Ok(all) };
        let mut valid = Vec::new();
        for (place, one) in sounded.iter().enumerate() {
            let verdict =
                self.validated(phase, past, journal, validator, &one.ran.output, 1).await?;
            if verdict.valid {
                valid.push(place);
            }
        }
        Ok(if valid.is_empty() { all } else { valid })
    }

    /// Lets a model pick one of several; the first where it picks none.
    async fn picked_winner(
        &self,
        phase: &Phase,
        soundings: &Soundings,
        past: &RunState,
        journal: &mut Journal,
        outputs: &[(usize, &str)],
    ) -> Result<usize, RunError> {
        let first = outputs.first().map_or(0, |(index, _)| *index);
        if outputs.len() < 2 {
            return Ok(first);
        }
        let own = match &soundings.evaluator_instructions {
            Some(template) => self.render(phase, past, template, [])?,
            None => "Pick the best attempt.".to_owned(),
        };
        let question = format!(
            "{own}\n\n{}\n\nAnswer with JSON: {{\"winner\": the number of the attempt, \"reason\": \"…\"}}.",
            shown(outputs)
        );
        let asked = self.of_template(phase, past, soundings.evaluator_model.as_ref())?;
        let (model, asked_for) = self.model(phase, past, asked)?;
        let schema = r#"{"type":"object","properties":{"winner":{"type":"integer"},"reason":{"type":"string"}},"required":["winner"]}"#;
        let answer = self.ask(phase, journal, model, asked_for, question, schema).await?;
        let named = answer.get("winner").and_then(Value::as_u64).map(|number| number as usize);
        let winner = named.filter(|number| outputs.iter().any(|(index, _)| index == number));
        if winner.is_none() {
            self.note(
                phase.name.as_str(),
                "the evaluator picked none of the attempts: the first is taken",
            );
        }
        let winner = winner.unwrap_or(first);
        let reason = answer.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.tell(&Event::SoundingsEvaluated {
            phase: phase.name.to_string(),
            winner,
            of: outputs.len(),
            reason,
        });
        Ok(winner)
    }

    /// Brings all attempts together: by a model where the cascade says how, else one after another.
    async fn aggregated(
        &self,
        phase: &Phase,
        soundings: &Soundings,
        past: &RunState,
        journal: &mut Journal,
        outputs: &[(usize, &str)],
    ) -> Result<String, RunError> {
        let Some(template) = &soundings.aggregator_instructions else {
            return Ok(outputs.iter().map(|(_, output)| *output).collect::<Vec<_>>().join("\n\n"));
        };
        let own = self.render(phase, past, template, [])?;
        let question = format!("{own}\n\n{}", shown(outputs));
        let asked = self.of_template(phase, past, soundings.aggregator_model.as_ref())?;
        let (model, asked_for) = self.model(phase, past, asked)?;
        let answer = self.ask_text(phase, journal, model, asked_for, question).await?;
        Ok(super::state::text_of(&answer))
    }
}

fn shown(outputs: &[(usize, &str)]) -> String {
    let attempts = outputs.iter().map(|(index, output)| {
        let mut text = format!("ATTEMPT {index}:\n");
        plimsoll_core::text::push_shortened(&mut text, output, SHOWN);
        text
    });
    attempts.collect::<Vec<_>>().join("\n\n")
}
