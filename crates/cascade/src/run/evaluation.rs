//! The choice among attempts: a model or a person picks, or score and cost decide.

use std::fmt::Write as _;

use plimsoll_core::text::push_shortened;
use serde_json::Value;

use super::error::RunError;
use super::event::{Purpose, RunEvent};
use super::pareto::{self, Scored};
use super::visit::Visit;
use crate::definition::{Evaluator, Soundings, Validator};
use crate::template::Template;

/// Characters of an attempt that the evaluator sees (chosen: ten of them fit a small window).
const SHOWN: usize = 8_000;

/// An attempt that ended, as an evaluator sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tried {
    pub(crate) index: usize,
    pub(crate) output: String,
    /// US dollars.
    pub(crate) cost: f64,
}

impl Visit<'_> {
    /// Picks one of several attempts by `instructions`, else by those of the soundings.
    pub(crate) async fn pick(
        &mut self,
        soundings: &Soundings,
        instructions: Option<&Template>,
        tried: &[Tried],
    ) -> Result<usize, RunError> {
        let first = tried.first().map_or(0, |one| one.index);
        if tried.len() < 2 {
            return Ok(first);
        }
        let instructions = instructions.or(soundings.evaluator_instructions.as_ref());
        let instructions = self.render_option(instructions)?;
        let instructions = instructions.as_deref().unwrap_or("Pick the best attempt.");
        let costs = soundings.cost_aware_evaluation.as_ref().filter(|rules| rules.enabled);
        let pareto = soundings.pareto_frontier.as_ref().filter(|pareto| pareto.enabled);
        let (picked, reason) = match soundings.evaluator {
            Evaluator::Human => self.picked_by_person(instructions, tried).await?,
            Evaluator::Hybrid => {
                let few = self.prefiltered(soundings, instructions, tried).await?;
                self.picked_by_person(instructions, &few).await?
            }
            Evaluator::Llm if pareto.is_some() || costs.is_some() => {
                let scored = self.scored(soundings, instructions, tried).await?;
                match (pareto, costs) {
                    (Some(pareto), _) => {
                        let frontier = pareto::frontier(&scored);
                        if pareto.show_frontier {
                            let shown = if pareto.include_dominated { &scored } else { &frontier };
                            self.note(told(shown, &frontier));
                        }
                        if let Some(index) = pareto::pick(&frontier, pareto.policy) {
                            (Some(index), format!("`{}`", pareto.policy.as_str()))
                        } else {
                            let is_open = |one: &&Tried| {
                                frontier.iter().any(|other| other.index == one.index)
                            };
                            let open: Vec<Tried> = tried.iter().filter(is_open).cloned().collect();
                            self.picked_by_person(instructions, &open).await?
                        }
                    }
                    (None, Some(rules)) => {
                        (pareto::weighed(&scored, rules), "score and cost".to_owned())
                    }
                    (None, None) => (None, String::new()),
                }
            }
            Evaluator::Llm => self.picked_by_model(soundings, instructions, tried).await?,
        };
        let known = picked.filter(|index| tried.iter().any(|one| one.index == *index));
        if known.is_none() {
            self.note("the evaluator picked none of the attempts: the first is taken");
        }
        let winner = known.unwrap_or(first);
        self.run.tell(&RunEvent::SoundingsEvaluated {
            phase: self.name().to_owned(),
            winner,
            of: tried.len(),
            reason,
        });
        Ok(winner)
    }

    async fn picked_by_model(
        &mut self,
        soundings: &Soundings,
        instructions: &str,
        tried: &[Tried],
    ) -> Result<(Option<usize>, String), RunError> {
        let question = format!(
            "{instructions}\n\n{}\n\nAnswer with JSON: {{\"winner\": the number of the attempt, \"reason\": \"…\"}}.",
            shown(tried, false)
        );
        let model = self.model_of(soundings.evaluator_model.as_ref())?;
        let schema = r#"{"type":"object","properties":{"winner":{"type":"integer"},"reason":{"type":"string"}},"required":["winner"]}"#;
        let answer = self.ask(Purpose::Evaluator, &model, question, schema).await?;
        let reason = answer.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok((number(answer.get("winner")), reason))
    }

    /// Lets a model leave a few attempts for a person.
    async fn prefiltered(
        &mut self,
        soundings: &Soundings,
        instructions: &str,
        tried: &[Tried],
    ) -> Result<Vec<Tried>, RunError> {
        let most = soundings.llm_prefilter.unwrap_or(2).max(1) as usize;
        if tried.len() <= most {
            return Ok(tried.to_vec());
        }
        let own = self.render_option(soundings.llm_prefilter_instructions.as_ref())?;
        let question = format!(
            "{}\n\n{}\n\nAnswer with JSON: {{\"best\": the numbers of the {most} best attempts}}.",
            own.as_deref().unwrap_or(instructions),
            shown(tried, false)
        );
        let model = self.model_of(soundings.evaluator_model.as_ref())?;
        let schema = r#"{"type":"object","properties":{"best":{"type":"array","items":{"type":"integer"}}},"required":["best"]}"#;
        let answer = self.ask(Purpose::Evaluator, &model, question, schema).await?;
        let best = answer.get("best").and_then(Value::as_array).into_iter().flatten();
        let best: Vec<usize> = best.filter_map(|value| number(Some(value))).collect();
        let few: Vec<Tried> =
            tried.iter().filter(|one| best.contains(&one.index)).take(most).cloned().collect();
        Ok(if few.is_empty() { tried.to_vec() } else { few })
    }

    async fn picked_by_person(
        &mut self,
        instructions: &str,
        tried: &[Tried],
    ) -> Result<(Option<usize>, String), RunError> {
        let question = format!(
            "{instructions}\n\n{}\n\nWhich attempt is the best? Give its number.",
            shown(tried, false)
        );
        let answer = self.ask_person(question, None).await?;
        let digits: String = answer.chars().filter(char::is_ascii_digit).collect();
        Ok((digits.parse().ok(), "a person picked it".to_owned()))
    }

    /// Returns all attempts with a score, by the evaluator or a validator.
    async fn scored(
        &mut self,
        soundings: &Soundings,
        instructions: &str,
        tried: &[Tried],
    ) -> Result<Vec<Scored>, RunError> {
        let metric = soundings.pareto_frontier.as_ref().filter(|pareto| pareto.enabled);
        let validator = metric.and_then(|pareto| pareto.quality_metric.strip_prefix("validator:"));
        if let Some(name) = validator {
            let validator = Validator::Named(name.trim().to_owned());
            let mut scored = Vec::new();
            for one in tried {
                let valid = self.validate(&validator, &one.output, 1).await?.valid;
                let score = if valid { 100.0 } else { 0.0 };
                scored.push(Scored { index: one.index, score, cost: one.cost });
            }
            return Ok(scored);
        }
        let rules = soundings.cost_aware_evaluation.as_ref();
        let shows_costs = rules.is_some_and(|rules| rules.show_costs_to_evaluator);
        let question = format!(
            "{instructions}\n\n{}\n\nAnswer with JSON: {{\"scores\": [{{\"attempt\": its number, \"score\": 0 to 100}}, …]}}, every attempt by its quality alone.",
            shown(tried, shows_costs)
        );
        let model = self.model_of(soundings.evaluator_model.as_ref())?;
        let schema = r#"{"type":"object","properties":{"scores":{"type":"array","items":{"type":"object","properties":{"attempt":{"type":"integer"},"score":{"type":"number"}},"required":["attempt","score"]}}},"required":["scores"]}"#;
        let answer = self.ask(Purpose::Evaluator, &model, question, schema).await?;
        let scores = answer.get("scores").and_then(Value::as_array);
        let score = |index: usize| {
            let of = |one: &&Value| number(one.get("attempt")) == Some(index);
            let found = scores.into_iter().flatten().find(of)?;
            found.get("score").and_then(Value::as_f64)
        };
        let scored = tried.iter().map(|one| Scored {
            index: one.index,
            score: score(one.index).unwrap_or(0.0).clamp(0.0, 100.0),
            cost: one.cost,
        });
        Ok(scored.collect())
    }
}

fn number(value: Option<&Value>) -> Option<usize> {
    value.and_then(Value::as_u64).map(|number| number as usize)
}

/// Writes the attempts one after another, each shortened.
pub(crate) fn shown(tried: &[Tried], with_costs: bool) -> String {
    let attempts = tried.iter().map(|one| {
        let mut text = format!("ATTEMPT {}", one.index);
        if with_costs {
            let _ = write!(text, " (cost ${:.4})", one.cost);
        }
        text.push_str(":\n");
        push_shortened(&mut text, &one.output, SHOWN);
        text
    });
    attempts.collect::<Vec<_>>().join("\n\n")
}

/// Writes the attempts with score and cost, those of the frontier marked.
fn told(all: &[Scored], frontier: &[Scored]) -> String {
    let each = all.iter().map(|one| {
        let mark = if frontier.contains(one) { " (frontier)" } else { "" };
        format!("attempt {} scores {:.0} at ${:.4}{mark}", one.index, one.score, one.cost)
    });
    each.collect::<Vec<_>>().join(", ")
}
