//! The questions: those without a kept answer are asked, one after the other.

use std::collections::HashMap;
use std::hash::BuildHasher;

use super::{AbSettings, AbTurn, StepAnswer, StepQuestion};
use crate::chat::ChatModel;
use crate::model_error::ModelError;

/// Failures in a row, without any answer before, after which asking stops: the model will not answer the others either. Chosen.
const HOPELESS: usize = 3;

/// The course of the questions.
#[derive(Debug, Default)]
pub struct AbCourse {
    /// Answers that were kept by an earlier run.
    pub known: usize,
    pub answered: usize,
    /// Questions that the model refused or answered in a form that cannot be read, with the reason.
    pub failed: Vec<(String, u32, ModelError)>,
    /// The error that ended the questions, if one did; they can be resumed.
    pub stopped: Option<ModelError>,
}

/// Asks all questions of `turns` that `answers` does not hold, and adds each answer to it after `keep` has kept it.
///
/// `spent` tells the dollars that the model's calls cost so far. The arms of a turn are asked one after the other, so that an
/// end by the cap leaves few turns half done. Errors: only those of `keep`.
pub async fn ask_steps<E, S: BuildHasher>(
    model: &dyn ChatModel,
    turns: &[AbTurn],
    settings: &AbSettings,
    answers: &mut HashMap<String, StepAnswer, S>,
    spent: impl Fn() -> f64,
    mut keep: impl FnMut(&StepAnswer) -> Result<(), E>,
) -> Result<AbCourse, E> {
    let mut asked = AbCourse::default();
    for turn in turns {
        for arm in settings.arms() {
            let question = StepQuestion::new(turn, arm, model.model(), settings);
            if answers.contains_key(&question.key) {
                asked.known += 1;
                continue;
            }
            let before = spent();
            match answer(model, &question, settings).await {
                Ok(mut answer) => {
                    answer.dollars = (spent() - before).max(0.0);
                    keep(&answer)?;
                    answers.insert(answer.key.clone(), answer);
                    asked.answered += 1;
                }
                Err(
                    error @ (ModelError::Denied(_)
                    | ModelError::Capped(_)
                    | ModelError::Unavailable { .. }),
                ) => {
                    asked.stopped = Some(error);
                    return Ok(asked);
                }
                Err(error) => {
                    asked.failed.push((turn.session.clone(), turn.turn, error.clone()));
                    if asked.answered == 0 && asked.failed.len() >= HOPELESS {
                        asked.stopped = Some(error);
                        return Ok(asked);
                    }
                }
            }
        }
    }
    Ok(asked)
}

async fn answer(
    model: &dyn ChatModel,
    question: &StepQuestion<'_>,
    settings: &AbSettings,
) -> Result<StepAnswer, ModelError> {
    let StepQuestion { turn, arm, request, key } = question;
    let reply = model.complete(request).await?;
    let is_first = *arm != super::Arm::FullAgain;
    let likelihood =
        if is_first { model.likelihood(request, &settings.recorded(turn)).await? } else { None };
    Ok(StepAnswer {
        key: key.clone(),
        session: turn.session.clone(),
        turn: turn.turn,
        arm: *arm,
        step: settings.step(&reply, turn),
        likelihood,
        usage: reply.usage,
        dollars: 0.0,
    })
}
