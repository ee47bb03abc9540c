//! `plimsoll ab`: the next step after the full and after the bounded context, asked of a model and compared.

mod answers;
mod report;
mod turns;

use std::path::Path;

use anyhow::anyhow;
use plimsoll_core::ab::AbSummary;
use plimsoll_engine::ab::{AbSettings, AbTurn, StepForm, ask_steps, compare_turns};
use plimsoll_models::Models;

use crate::arguments::AbArguments;
use crate::config::{Config, config};
use crate::error::CommandError;
use crate::figures::{counted, dollars, tokens};
use crate::models;
use crate::output;

use answers::AnswerFile;

pub(crate) fn run(arguments: &AbArguments) -> Result<(), CommandError> {
    let mut config = config(&arguments.settings)?;
    let policy = config.policy(&arguments.policy)?;
    let mut answers = match &arguments.out {
        Some(path) => AnswerFile::open(path, arguments.resume)?,
        None => AnswerFile::default(),
    };
    cap(&mut config, arguments.most_dollars, answers.dollars())?;
    let models = models::open(&config.models)?;
    let settings = AbSettings {
        form: if arguments.plain { StepForm::Plain } else { StepForm::Calls },
        max_tokens: arguments.answer_tokens,
        temperature: arguments.temperature,
        again: arguments.again,
        handling: config.safety.summariser,
    };
    let sampled = turns::sampled(arguments, &policy)?;
    if sampled.turns.is_empty() {
        return Err(CommandError::finding(anyhow!(
            "no turn to ask: {} have the same context under both, {} are too long",
            sampled.choice.same,
            sampled.choice.too_long
        )));
    }
    estimate(arguments, &models, &sampled.turns)?;
    if arguments.estimate {
        return Ok(());
    }
    let model = models.chat(&arguments.model).map_err(CommandError::usage)?;
    let embedder = models.embedder().map_err(CommandError::usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CommandError::failure)?;
    let (asked, compared) = runtime.block_on(async {
        let (known, mut file) = answers.parts();
        let asked = ask_steps(
            &*model,
            &sampled.turns,
            &settings,
            known,
            || models.spent_dollars(),
            |answer| file.keep(answer),
        )
        .await?;
        let compared =
            compare_turns(model.model(), &sampled.turns, &settings, known, embedder.as_deref())
                .await
                .map_err(CommandError::failure)?;
        Ok::<_, CommandError>((asked, compared))
    })?;
    let report = report::AbReport {
        model: &arguments.model,
        policy: &arguments.policy,
        measure: embedder.as_ref().map_or("shared words (lexical)", |embedder| embedder.model()),
        summary: AbSummary::of(&compared, arguments.bar),
        sample: &sampled.choice,
        sessions: sampled.sessions,
        seed: arguments.seed,
        dollars: answers.dollars(),
        worst: AbSummary::worst(&compared).into_iter().take(arguments.worst).collect(),
        turns: &compared,
    };
    output::show(arguments.json, &report, || report.text())?;
    for (session, turn, error) in &asked.failed {
        output::warning(&format!("{session}, turn {turn}: {error}"));
    }
    match asked.stopped {
        Some(error) => {
            let left = sampled.turns.len() - compared.len();
            let error = anyhow::Error::new(error)
                .context(format!("{} not compared", counted(left as u64, "turn")));
            Err(CommandError::finding(error).hint("`--resume` asks the rest"))
        }
        None => Ok(()),
    }
}

/// Lowers the cap on the process to what is left of the run's.
fn cap(config: &mut Config, most: Option<f64>, spent: f64) -> Result<(), CommandError> {
    let Some(most) = most else { return Ok(()) };
    if !most.is_finite() || most < 0.0 {
        return Err(CommandError::usage(anyhow!("`--most-dollars` is {most}")));
    }
    let cap = &mut config.models.spending.process_dollars;
    *cap = Some(cap.unwrap_or(f64::INFINITY).min((most - spent).max(0.0)));
    Ok(())
}

/// Prints the most that the answers can cost, kept ones included.
fn estimate(
    arguments: &AbArguments,
    models: &Models,
    turns: &[AbTurn],
) -> Result<(), CommandError> {
    let again = u64::from(arguments.again);
    let input: u64 = turns.iter().map(|turn| turn.full_tokens * (1 + again) + turn.tokens).sum();
    let requests = turns.len() as u64 * (2 + again);
    let output = requests * u64::from(arguments.answer_tokens);
    let most = models
        .most_dollars(&arguments.model, input as f64, output as f64)
        .map_err(CommandError::usage)?;
    let most = most.map_or("nobody knows its prices".to_owned(), |most| {
        format!("at most {}", dollars(most, 4))
    });
    output::note(&format!(
        "{} of {}: {} tokens in, up to {} out; {most}",
        counted(requests, "request"),
        arguments.model,
        tokens(input as f64),
        tokens(output as f64),
    ));
    Ok(())
}

/// Returns an error about a file of answers.
fn wrong(path: &Path, error: impl Into<anyhow::Error>) -> CommandError {
    CommandError::usage(error.into().context(path.display().to_string()))
}
