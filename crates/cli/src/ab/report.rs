//! The report: agreement with its spread, and the worst turns side by side.

use std::fmt::Write as _;

use plimsoll_core::ab::{AbSummary, NextStep, Proportion, SampledTurns, Spread, TurnComparison};
use serde::Serialize;

use crate::figures::{aligned, counted, dollars, percent, thousands};
use crate::output::{self, BOLD, DIM, RESET};

/// Characters of a step in the comparison side by side, and of each of its columns.
const SHOWN: usize = 600;
const COLUMN: usize = 38;

#[derive(Debug, Serialize)]
pub(crate) struct AbReport<'a> {
    pub(crate) model: &'a str,
    pub(crate) policy: &'a str,
    /// The measure of similarity.
    pub(crate) measure: &'a str,
    pub(crate) summary: AbSummary,
    pub(crate) sample: &'a SampledTurns,
    pub(crate) sessions: usize,
    pub(crate) seed: u64,
    pub(crate) dollars: f64,
    pub(crate) turns: &'a [TurnComparison],
    #[serde(skip)]
    pub(crate) worst: Vec<&'a TurnComparison>,
}

impl AbReport<'_> {
    pub(crate) fn text(&self) -> String {
        let sums = &self.summary;
        let SampledTurns { eligible, same, too_long, .. } = self.sample;
        let mut out = format!(
            "{BOLD}{}{RESET}, {} against the full history\n{} of {} whose contexts differ, {}, seed {}",
            output::plain(self.model),
            self.policy,
            counted(sums.turns as u64, "turn"),
            thousands(*eligible as u64),
            counted(self.sessions as u64, "session"),
            self.seed
        );
        let _ = writeln!(
            out,
            "\n{DIM}not asked: {} with the same context, {} too long{RESET}\n",
            thousands(*same as u64),
            thousands(*too_long as u64)
        );
        let mut rows: Vec<[String; 2]> = Vec::new();
        let mut row = |name: &str, text: String| rows.push([name.to_owned(), text]);
        let kept = percent(sums.tokens as f64, sums.full_tokens as f64);
        let (full, bounded) = (thousands(sums.full_tokens), thousands(sums.tokens));
        row("input tokens", format!("{full} full, {bounded} bounded ({kept:.0} %)"));
        row("the same tools", proportion(&sums.same_tools));
        row("the same arguments", sums.arguments.as_ref().map_or("no calls".into(), share));
        row("similarity", sums.similarity.as_ref().map_or("none".into(), share));
        row("", format!("by {}", output::plain(self.measure)));
        row(&format!("above {}", sums.bar), proportion(&sums.above_bar));
        if let Some(noise) = &sums.noise {
            row("full context asked again", String::new());
            row("  the same tools", proportion(&noise.same_tools));
            row("  similarity", share(&noise.similarity));
            row(&format!("  above {}", sums.bar), proportion(&noise.above_bar));
        }
        row("tools as recorded, full", proportion(&sums.full_as_recorded));
        row("tools as recorded, bounded", proportion(&sums.bounded_as_recorded));
        if let Some(difference) = &sums.argument_difference {
            let error = difference.error();
            let mean = difference.mean;
            row("arguments as recorded", format!("bounded − full {mean:+.3} ± {error:.3}"));
        }
        if let Some(nats) = &sums.nats {
            let (full, bounded) = (nats.full.mean, nats.bounded.mean);
            let (mean, error) = (nats.difference.mean, nats.difference.error());
            row(
                "likelihood of the record",
                format!(
                    "{full:.2} full, {bounded:.2} bounded nats a token; {mean:+.3} ± {error:.3}"
                ),
            );
        }
        row("spent", dollars(self.dollars, 4));
        out.push_str(&aligned(&rows));
        for turn in &self.worst {
            out.push_str(&side_by_side(turn));
        }
        out
    }
}

fn proportion(found: &Proportion) -> String {
    let [share, low, high] = [found.share(), found.low, found.high].map(|part| part * 100.0);
    format!("{share:.0} % ({} of {}; 95 %: {low:.0} to {high:.0} %)", found.hits, found.of)
}

fn share(spread: &Spread) -> String {
    let Spread { mean, deviation, least, median, .. } = spread;
    format!("mean {mean:.2}, deviation {deviation:.2}, median {median:.2}, least {least:.2}")
}

/// Returns the two answers beside each other, and the recorded step above them.
fn side_by_side(turn: &TurnComparison) -> String {
    let found = &turn.bounded_to_full;
    let arguments =
        found.arguments.map_or(String::new(), |share| format!(", arguments {share:.2}"));
    let tools = if found.same_tools { "same tools" } else { "other tools" };
    let mut out = format!(
        "\n{BOLD}{}, turn {}{RESET}: {tools}{arguments}, similarity {:.2}; {} and {} tokens\n",
        turn.session,
        turn.turn,
        found.similarity,
        thousands(turn.full_tokens),
        thousands(turn.tokens)
    );
    let recorded = output::line(&turn.recorded.shown(), 2 * COLUMN - 8);
    let _ = writeln!(out, "{DIM}recorded: {recorded}{RESET}");
    let (full, bounded) = (lines(&turn.full), lines(&turn.bounded));
    let empty = String::new();
    let mut rows = vec![[format!("{BOLD}full{RESET}"), format!("{BOLD}bounded{RESET}")]];
    for at in 0..full.len().max(bounded.len()) {
        rows.push([full.get(at), bounded.get(at)].map(|line| line.unwrap_or(&empty).clone()));
    }
    out.push_str(&aligned(&rows));
    out
}

/// Returns the lines of a step, none wider than a column.
fn lines(step: &NextStep) -> Vec<String> {
    let shown = output::line(&step.shown(), SHOWN);
    let mut lines: Vec<String> = vec![String::new()];
    for word in shown.split(' ') {
        let width = |text: &str| text.chars().count();
        let is_full = lines.last().is_some_and(|line| width(line) + width(word) >= COLUMN);
        match lines.last_mut() {
            Some(line) if !is_full || line.is_empty() => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(&output::line(word, COLUMN));
            }
            _ => lines.push(output::line(word, COLUMN)),
        }
    }
    lines
}
