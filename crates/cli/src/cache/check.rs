//! `plimsoll cache check`: the guard on labelled pairs of questions.

use std::fmt::Write as _;

use plimsoll_core::answer::{GuardLevel, GuardScore, LabelledPair, guard_scores};
use plimsoll_models::BuiltInEmbedder;
use serde::Serialize;

use crate::arguments::CheckArguments;
use crate::config;
use crate::error::CommandError;
use crate::figures::thousands;
use crate::output;

#[derive(Debug, Serialize)]
struct GuardReport<'a> {
    pairs: usize,
    labelled_same: usize,
    rows: Vec<GuardScore>,
    /// Pairs that the settings as they are would serve, though they are labelled different.
    #[serde(skip_serializing_if = "Option::is_none")]
    wrong: Option<Vec<[&'a str; 2]>>,
}

pub(super) fn run(arguments: &CheckArguments) -> Result<(), CommandError> {
    let settings = config::read(arguments.config.as_deref())?.answers;
    let shown = arguments.file.display();
    let text = std::fs::read_to_string(&arguments.file)
        .map_err(|error| CommandError::unreadable(&arguments.file, error))?;
    let pairs = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            LabelledPair::parse(line, &settings, cosine).ok_or_else(|| {
                CommandError::usage(anyhow::anyhow!("{shown}:{} is no labelled pair", number + 1))
                    .hint("a line is 1 or 0, a tab, a question, a tab, a question")
            })
        })
        .collect::<Result<Vec<LabelledPair<'_>>, _>>()?;
    let similarity = settings.similarity_threshold;
    let is_wrong = |pair: &&LabelledPair<'_>| {
        !pair.is_same && pair.is_served(GuardLevel::Configured, similarity, &settings)
    };
    let wrong = || pairs.iter().filter(is_wrong).map(|pair| pair.questions).collect();
    let report = GuardReport {
        pairs: pairs.len(),
        labelled_same: pairs.iter().filter(|pair| pair.is_same).count(),
        rows: guard_scores(&pairs, &settings, arguments.halves),
        wrong: arguments.wrong.then(wrong),
    };
    output::show(arguments.json, &report, || page(&report))
}

/// Returns the cosine of two texts by the built-in embedder; 0 where one has no vector.
fn cosine(a: &str, b: &str) -> f64 {
    let (a, b) = (BuiltInEmbedder.vector(a), BuiltInEmbedder.vector(b));
    a.iter().zip(&b).map(|(a, b)| f64::from(a * b)).sum()
}

fn page(report: &GuardReport<'_>) -> String {
    let mut out = format!(
        "{} pairs, {} of them labelled the same\n\n{:6}{:12}{:>11}{:>8}{:>7}{:>11}{:>10}{:>15}\n",
        thousands(report.pairs as u64),
        thousands(report.labelled_same as u64),
        "lines",
        "guard",
        "similarity",
        "served",
        "wrong",
        "precision",
        "hit rate",
        "wrong at most",
    );
    for row in &report.rows {
        let guard = match row.guard {
            GuardLevel::Off => "off",
            GuardLevel::Agreement => "agreement",
            GuardLevel::Configured => "configured",
        };
        let _ = writeln!(
            out,
            "{:6}{guard:12}{:>11.2}{:>8}{:>7}{:>9.1} %{:>8.1} %{:>13.2} %",
            row.lines,
            row.similarity,
            thousands(row.served),
            thousands(row.wrong),
            row.precision * 100.0,
            row.hit_rate * 100.0,
            row.wrong_at_most * 100.0,
        );
    }
    for [a, b] in report.wrong.iter().flatten() {
        let _ = writeln!(out, "\n{}\n{}", output::line(a, 200), output::line(b, 200));
    }
    out
}
