//! `plimsoll cache check`: the guard on labelled pairs of questions.

use std::fmt::Write as _;

use plimsoll_core::answer::{
    AgreementRules, AnswerSettings, Reading, Verdict, same_question, upper_bound,
};
use plimsoll_models::BuiltInEmbedder;
use serde::Serialize;

use crate::arguments::CheckArguments;
use crate::config;
use crate::error::CommandError;
use crate::output::{self, thousands};

/// Similarities that are tried beside the configured one.
const TRIED: [f64; 4] = [0.9, 0.95, 0.97, 0.99];

/// A labelled pair, with the cosines of the questions as they are and as they are read.
struct Pair<'a> {
    is_same: bool,
    questions: [&'a str; 2],
    as_asked: f64,
    as_read: f64,
}

/// What stands between similarity and serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Guard {
    /// Nothing: similarity alone.
    Off,
    /// All that must agree, while other words may differ.
    Agreement,
    /// The settings as they are.
    Configured,
}

/// How one guard did on some pairs.
#[derive(Debug, Serialize)]
struct Row {
    lines: &'static str,
    guard: Guard,
    similarity: f64,
    pairs: u64,
    served: u64,
    wrong: u64,
    /// Right ones among those that are served.
    precision: f64,
    /// Those that are rightly served among those labelled the same.
    hit_rate: f64,
    /// Wrong ones among those served: at most this, with 95 % confidence.
    wrong_at_most: f64,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    pairs: usize,
    labelled_same: usize,
    rows: Vec<Row>,
    /// Served by the settings as they are, though labelled different.
    #[serde(skip_serializing_if = "Option::is_none")]
    wrong: Option<Vec<[&'a str; 2]>>,
}

pub(super) fn run(arguments: &CheckArguments) -> Result<(), CommandError> {
    let settings = config::read(arguments.config.as_deref())?.answers;
    let shown = arguments.file.display();
    let text = std::fs::read_to_string(&arguments.file).map_err(|error| {
        CommandError::usage(anyhow::Error::new(error).context(format!("cannot read {shown}")))
    })?;
    let pairs = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            pair(line, &settings).ok_or_else(|| {
                CommandError::usage(anyhow::anyhow!("{shown}:{} is no labelled pair", number + 1))
                    .hint("a line is 1 or 0, a tab, a question, a tab, a question")
            })
        })
        .collect::<Result<Vec<Pair<'_>>, _>>()?;
    let report = report(&pairs, &settings, arguments);
    if arguments.json {
        return output::json(&report);
    }
    output::data(&page(&report))
}

fn pair<'a>(line: &'a str, settings: &AnswerSettings) -> Option<Pair<'a>> {
    let mut parts = line.trim_end_matches('\r').split('\t');
    let is_same = match parts.next()? {
        "1" => true,
        "0" => false,
        _ => return None,
    };
    let questions = [parts.next()?, parts.next()?];
    let read = |question: &str| Reading::of(question, &settings.alike).text();
    parts.next().is_none().then(|| Pair {
        is_same,
        questions,
        as_asked: cosine(questions[0], questions[1]),
        as_read: cosine(&read(questions[0]), &read(questions[1])),
    })
}

/// Returns the cosine of two texts by the built-in embedder; 0 where one has no vector.
fn cosine(a: &str, b: &str) -> f64 {
    let (a, b) = (BuiltInEmbedder.vector(a), BuiltInEmbedder.vector(b));
    a.iter().zip(&b).map(|(a, b)| f64::from(a * b)).sum()
}

impl Guard {
    fn serves(self, pair: &Pair<'_>, similarity: f64, settings: &AnswerSettings) -> bool {
        let [a, b] = pair.questions;
        let settings = match self {
            Self::Off => return pair.as_asked >= similarity,
            Self::Agreement => AnswerSettings {
                similarity_threshold: similarity,
                agree: AgreementRules { words: false, ..settings.agree.clone() },
                ..settings.clone()
            },
            Self::Configured => {
                AnswerSettings { similarity_threshold: similarity, ..settings.clone() }
            }
        };
        same_question(a, b, pair.as_read, &settings) == Verdict::Serve
    }
}

fn report<'a>(
    pairs: &[Pair<'a>],
    settings: &AnswerSettings,
    arguments: &CheckArguments,
) -> Report<'a> {
    let default = settings.similarity_threshold;
    let mut tried: Vec<(Guard, f64)> = Vec::new();
    for guard in [Guard::Off, Guard::Agreement] {
        tried.extend(TRIED.map(|similarity| (guard, similarity)));
    }
    tried.push((Guard::Configured, default));
    let mut rows = Vec::new();
    let halves: &[(&str, Option<usize>)] = if arguments.halves {
        &[("all", None), ("odd", Some(0)), ("even", Some(1))]
    } else {
        &[("all", None)]
    };
    for (lines, rest) in halves {
        let meant = || {
            let numbered = pairs.iter().enumerate();
            numbered.filter(|(at, _)| rest.is_none_or(|rest| at % 2 == rest)).map(|(_, pair)| pair)
        };
        rows.extend(
            tried
                .iter()
                .map(|(guard, similarity)| row(lines, *guard, *similarity, meant(), settings)),
        );
    }
    let is_wrong =
        |pair: &&Pair<'a>| !pair.is_same && Guard::Configured.serves(pair, default, settings);
    let wrong =
        arguments.wrong.then(|| pairs.iter().filter(is_wrong).map(|pair| pair.questions).collect());
    let labelled_same = pairs.iter().filter(|pair| pair.is_same).count();
    Report { pairs: pairs.len(), labelled_same, rows, wrong }
}

fn row<'p, 'a: 'p>(
    lines: &'static str,
    guard: Guard,
    similarity: f64,
    pairs: impl Iterator<Item = &'p Pair<'a>>,
    settings: &AnswerSettings,
) -> Row {
    let (mut all, mut same, mut served, mut wrong) = (0, 0, 0, 0);
    for pair in pairs {
        all += 1;
        same += u64::from(pair.is_same);
        if guard.serves(pair, similarity, settings) {
            served += 1;
            wrong += u64::from(!pair.is_same);
        }
    }
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    Row {
        lines,
        guard,
        similarity,
        pairs: all,
        served,
        wrong,
        precision: share(served - wrong, served),
        hit_rate: share(served - wrong, same),
        wrong_at_most: upper_bound(wrong, served),
    }
}

fn page(report: &Report<'_>) -> String {
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
            Guard::Off => "off",
            Guard::Agreement => "agreement",
            Guard::Configured => "configured",
        };
        // Writing to a string does not fail.
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
