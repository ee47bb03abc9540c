//! The figures of a replay as a table and as JSON.

use std::fmt::Write as _;

use plimsoll_core::need::Score;
use plimsoll_core::replay::{PolicyFigures, Replay, Totals, ratio};
use plimsoll_core::text::plural;
use serde::Serialize;

use super::Run;
use crate::error::CommandError;
use crate::figures::mark;
use crate::figures::thousands;
use crate::load::Loaded;
use crate::output::{self, BAD, BOLD, DIM, GOOD, RESET};

/// Writes the session's head line and one row a policy, the bill first where there is one.
pub(crate) fn text(loaded: &Loaded, full: &Replay, runs: &[Run]) -> String {
    let mut out = head(loaded, full);
    let rows: Vec<ReplayRow<'_>> =
        runs.iter().map(|run| ReplayRow::of(&run.policy, &run.replay)).collect();
    table(&mut out, &ReplayRow::of("full", full), &rows, loaded.estimate);
    out
}

/// The figures of a policy, for one session or several.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayRow<'a> {
    pub(super) policy: &'a str,
    pub(super) totals: &'a Totals,
    pub(super) score: &'a Score,
}

impl<'a> ReplayRow<'a> {
    fn of(policy: &'a str, replay: &'a Replay) -> Self {
        Self { policy, totals: &replay.totals, score: &replay.score }
    }

    /// Returns dollars, else units of cost, and what part they are of those of the full history.
    fn cost(&self, full: &Self) -> (f64, f64) {
        let dollars = &self.totals.dollars;
        match dollars.of_bill() {
            // Of the full history in the same model of the cache, so that the model's error is nobody's saving.
            Some(_) => (dollars.beside, ratio(dollars.beside, full.totals.dollars.beside)),
            None => (dollars.input, ratio(self.totals.cost, full.totals.cost)),
        }
    }
}

impl<'a> From<&'a PolicyFigures> for ReplayRow<'a> {
    fn from(figures: &'a PolicyFigures) -> Self {
        Self { policy: &figures.policy, totals: &figures.totals, score: &figures.score }
    }
}

/// Writes the table of several policies, the full history first.
pub(super) fn table(
    out: &mut String,
    full: &ReplayRow<'_>,
    rows: &[ReplayRow<'_>],
    estimate: bool,
) {
    let _ = writeln!(
        out,
        "{BOLD}{:16}{:>12}{:>5}{:>9}{:>5}{:>6}{:>6}{:>7}{:>6}{:>8}{RESET}",
        "policy", "tokens sent", "%", "cost $", "%", "work", "shown", "places", "blind", "fetches"
    );
    let bill = &full.totals.dollars;
    if bill.of_bill().is_some() {
        let about = mark(estimate);
        let share = percent(ratio(bill.billed, bill.beside));
        let _ = writeln!(out, "{:16}{:>26}{share:>5}", "billed", dollars(about, bill.billed));
    }
    row(out, full, full, estimate);
    for one in rows.iter().filter(|one| one.policy != "full") {
        row(out, full, one, estimate);
    }
    if bill.billed_turns > 0 && bill.billed_turns < full.totals.turns {
        let _ = writeln!(
            out,
            "{DIM}dollars are those of {} turns, which report their usage{RESET}",
            thousands(bill.billed_turns.into())
        );
    }
}

/// Writes a share in four columns.
fn percent(share: f64) -> String {
    if share >= 9.995 { ">9×".to_owned() } else { format!("{:.0}%", 100.0 * share) }
}

fn dollars(about: &str, dollars: f64) -> String {
    // Four digits behind the point where there is room for them.
    let digits = if dollars >= 1000.0 {
        1
    } else if dollars >= 100.0 {
        2
    } else if dollars >= 10.0 {
        3
    } else {
        4
    };
    format!("{about}{dollars:.digits$}")
}

fn head(loaded: &Loaded, full: &Replay) -> String {
    let session = &loaded.session;
    let mut out = format!(
        "{} session, {} messages, {} turns, {} tokens",
        session.format,
        loaded.counted.messages(),
        full.totals.turns,
        thousands(loaded.counted.tokens()),
    );
    if let Some(model) = &session.header.model {
        let _ = write!(out, ", {}", output::line(model, 60));
    }
    let _ = write!(out, "\n{DIM}counted by {}", loaded.counted.transcript.tokenizer());
    if let Some(calibration) = loaded.counted.calibration {
        let _ = write!(out, " (calibrated on {} reports)", calibration.samples);
    }
    let unshown = &loaded.counted.overhead;
    if unshown.before >= 1.0 {
        let told = if unshown.measured { "about" } else { "usually" };
        let before = thousands(unshown.before as u64);
        let _ = write!(out, "\nnot in the file: {told} {before} tokens before the messages");
        if unshown.unseen >= 1.0 {
            let _ = write!(out, ", {} with each answer", thousands(unshown.unseen as u64));
        }
    }
    if loaded.counted.compactions() > 0 {
        let _ = write!(
            out,
            "\n{} {} of the agent honoured; `--no-compaction` ignores them",
            loaded.counted.compactions(),
            plural(loaded.counted.compactions(), "compaction")
        );
    }
    let prices = loaded.terms.effective_prices();
    let _ = writeln!(
        out,
        "\nprices of {}{} ({})\ncache read × {}, write × {}, life {} s{RESET}\n",
        loaded.family,
        if loaded.estimate { ", as an estimate" } else { "" },
        loaded.pricing.date,
        prices.cache_read,
        prices.cache_write,
        prices.cache_seconds
    );
    out
}

fn row(out: &mut String, full: &ReplayRow<'_>, run: &ReplayRow<'_>, estimate: bool) {
    let (totals, score) = (run.totals, run.score);
    let (cost, share) = run.cost(full);
    let colour = if share < 0.995 {
        GOOD
    } else if share > 1.005 {
        BAD
    } else {
        ""
    };
    // A name too long for its column has a line of its own, so that the figures stay under their heads.
    let mut name = output::plain(run.policy);
    if name.chars().count() > 16 {
        let _ = writeln!(out, "{name}");
        name.clear();
    }
    let _ = writeln!(
        out,
        "{name:16}{:>12}{:>5}{:>9}{colour}{:>5}{RESET}{:>6.3}{:>6.1}{:>7.1}{:>6.1}{:>8}",
        thousands(totals.tokens),
        percent(ratio(totals.tokens as f64, totals.full_tokens as f64)),
        dollars(mark(estimate), cost),
        percent(share),
        ratio(score.work, full.score.work),
        100.0 * score.names.share(),
        100.0 * score.places.share(),
        100.0 * score.blind_share(),
        score.fetches,
    );
    if totals.over_budget > 0 {
        let _ = writeln!(
            out,
            "{BAD}{} turns pass the budget even at their smallest; raise `--budget`{RESET}",
            totals.over_budget
        );
    }
}

/// Lists what was needed and hidden.
pub(crate) fn missed(loaded: &Loaded, run: &Run) -> String {
    let mut out = format!("\n{BOLD}needed and hidden under {}{RESET}\n", run.policy);
    if run.replay.missed.is_empty() {
        out.push_str("nothing\n");
    }
    for missed in &run.replay.missed {
        let entry = &loaded.counted.transcript_of(missed.turn).entries()[missed.position];
        let _ = write!(
            out,
            "turn {:>4}  message {:>4} ({}, {} tokens, ref:message:{}): ",
            missed.turn,
            missed.position,
            entry.message.role.as_str(),
            entry.tokens,
            entry.hash
        );
        let mut parts: Vec<String> = missed.names.iter().map(|name| output::plain(name)).collect();
        parts.extend(missed.copied.iter().map(|words| format!("“{}”", output::line(words, 101))));
        if !missed.places.is_empty() {
            let lines = missed.places.len();
            let first = output::line(&missed.places[0], 60);
            parts.push(format!("{lines} {} around an edit: “{first}”", plural(lines, "line")));
        }
        if missed.first {
            parts.push("just arrived, and not shown whole".to_owned());
        }
        out.push_str(&parts.join(", "));
        out.push('\n');
    }
    out
}

/// Writes everything as one JSON document.
pub(crate) fn json(loaded: &Loaded, full: &Replay, runs: &[Run]) -> Result<(), CommandError> {
    #[derive(Serialize)]
    struct ReplayDocument<'a> {
        format: &'a str,
        session: Option<&'a str>,
        model: Option<&'a str>,
        tokenizer: String,
        calibration: Option<plimsoll_core::Calibration>,
        /// Tokens of requests beside the messages.
        unshown: plimsoll_core::calibrate::RequestOverhead,
        compactions: usize,
        prices: &'a str,
        /// Whether the prices are those of another model, so that all figures in money are estimates.
        estimate: bool,
        full: ReplayFigures<'a>,
        policies: Vec<ReplayFigures<'a>>,
    }
    #[derive(Serialize)]
    struct ReplayFigures<'a> {
        policy: &'a str,
        cost_dollars: f64,
        cost_ratio: f64,
        /// The part of the bill that is left, where usage was reported.
        bill_ratio: Option<f64>,
        work_ratio: f64,
        #[serde(flatten)]
        replay: &'a Replay,
    }
    fn figures<'a>(full: &Replay, policy: &'a str, replay: &'a Replay) -> ReplayFigures<'a> {
        ReplayFigures {
            policy,
            cost_dollars: replay.totals.dollars.input,
            cost_ratio: ratio(replay.totals.cost, full.totals.cost),
            bill_ratio: replay.totals.dollars.of_bill(),
            work_ratio: ratio(replay.score.work, full.score.work),
            replay,
        }
    }
    let document = ReplayDocument {
        format: loaded.session.format.as_str(),
        session: loaded.session.header.id.as_deref(),
        model: loaded.session.header.model.as_deref(),
        tokenizer: loaded.counted.transcript.tokenizer().to_string(),
        calibration: loaded.counted.calibration,
        unshown: loaded.counted.overhead,
        compactions: loaded.counted.compactions(),
        prices: &loaded.family,
        estimate: loaded.estimate,
        full: figures(full, "full", full),
        policies: runs.iter().map(|run| figures(full, &run.policy, &run.replay)).collect(),
    };
    output::json(&document)
}
