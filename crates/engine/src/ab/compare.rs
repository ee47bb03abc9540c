//! The comparison of the answers, by an embedder or by words.

use std::collections::HashMap;
use std::hash::BuildHasher;

use plimsoll_core::ab::{NextStep, StepComparison, TurnComparison, shared_words};

use super::{AbSettings, AbTurn, Arm, StepAnswer, StepQuestion};
use crate::embedder::Embedder;
use crate::model_error::ModelError;

/// Compares the turns of which every arm has an answer; similarity is the cosine of `embedder`, else that of shared words.
///
/// Errors: those of the embedder.
pub async fn compare_turns<S: BuildHasher>(
    model: &str,
    turns: &[AbTurn],
    settings: &AbSettings,
    answers: &HashMap<String, StepAnswer, S>,
    embedder: Option<&dyn Embedder>,
) -> Result<Vec<TurnComparison>, ModelError> {
    let mut compared = Vec::new();
    for turn in turns {
        let answer = |arm| answers.get(&StepQuestion::new(turn, arm, model, settings).key);
        let (Some(full), Some(bounded)) = (answer(Arm::Full), answer(Arm::Bounded)) else {
            continue;
        };
        let again = settings.again.then(|| answer(Arm::FullAgain)).flatten();
        if settings.again && again.is_none() {
            continue;
        }
        let recorded = NextStep::from(&settings.recorded(turn));
        let recorded = match settings.form {
            super::StepForm::Calls => recorded,
            super::StepForm::Plain => {
                plimsoll_core::ab::answered_in_plain(&recorded.text, &turn.tools)
            }
        };
        let steps = [&recorded, &full.step, &bounded.step];
        let steps: Vec<&NextStep> =
            steps.into_iter().chain(again.map(|again| &again.step)).collect();
        let alike = likeness(&steps, embedder).await?;
        let compare = |one: usize, other: usize| {
            StepComparison::of(steps[one], steps[other], alike(one, other))
        };
        let nats = |answer: &StepAnswer| answer.likelihood.and_then(|found| found.nats());
        compared.push(TurnComparison {
            session: turn.session.clone(),
            turn: turn.turn,
            full_tokens: turn.full_tokens,
            tokens: turn.tokens,
            bounded_to_full: compare(2, 1),
            full_to_recorded: compare(1, 0),
            bounded_to_recorded: compare(2, 0),
            again_to_full: again.map(|_| compare(3, 1)),
            nats: nats(full).zip(nats(bounded)),
            full: full.step.clone(),
            bounded: bounded.step.clone(),
            recorded,
        });
    }
    Ok(compared)
}

/// Returns the likeness of any two of the steps.
async fn likeness(
    steps: &[&NextStep],
    embedder: Option<&dyn Embedder>,
) -> Result<impl Fn(usize, usize) -> f64 + use<>, ModelError> {
    let texts: Vec<String> = steps.iter().map(|step| step.shown()).collect();
    let vectors = match embedder {
        Some(embedder) => {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            Some(embedder.embed(&texts).await?)
        }
        None => None,
    };
    Ok(move |one: usize, other: usize| match &vectors {
        Some(vectors) => vectors[one].cosine(&vectors[other]).unwrap_or_default(),
        None => shared_words(&texts[one], &texts[other]),
    })
}
