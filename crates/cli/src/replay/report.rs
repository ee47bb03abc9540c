//! The figures of a replay as a table and as JSON.

use std::fmt::Write as _;

use plimsoll_core::replay::Replay;
use serde::Serialize;

use super::Run;
use crate::error::CommandError;
use crate::load::Loaded;
use crate::output::{self, BAD, BOLD, DIM, GOOD, RESET, thousands};
use crate::pricing::mark;

/// Writes the session's head line and one row a policy.
pub(crate) fn text(loaded: &Loaded, full: &Replay, runs: &[Run]) -> String {
    let mut out = head(loaded, full);
    let _ = writeln!(
        out,
        "{BOLD}{:16}{:>12}{:>5}{:>9}{:>5}{:>6}{:>6}{:>6}{:>7}{:>8}{RESET}",
        "policy", "tokens sent", "%", "cost $", "%", "work", "reuse", "runs", "breaks", "fetches"
    );
    let baseline = Run { policy: "full".to_owned(), replay: full.clone() };
    let rows = std::iter::once(&baseline).chain(runs.iter().filter(|run| run.policy != "full"));
    for run in rows {
        row(&mut out, loaded, full, run);
    }
    out
}

fn head(loaded: &Loaded, full: &Replay) -> String {
    let session = &loaded.session;
    let mut out = format!(
        "{} session, {} messages, {} turns, {} tokens",
        session.format,
        session.messages.len(),
        full.totals.turns,
        thousands(loaded.transcript.tokens()),
    );
    if let Some(model) = &session.header.model {
        let _ = write!(out, ", {}", output::line(model, 60));
    }
    let _ = write!(out, "\n{DIM}counted by {}", loaded.transcript.tokenizer());
    if let Some(calibration) = loaded.calibration {
        let _ = write!(out, " (calibrated on {} reports)", calibration.samples);
        if calibration.overhead > 0 {
            let _ = write!(
                out,
                "\nabout {} tokens of system prompt and tools are not in the file",
                thousands(u64::from(calibration.overhead))
            );
        }
    }
    let prices = &loaded.terms.prices;
    let _ = writeln!(
        out,
        "\nprices of {}{} ({}): cache read × {}, write × {}, life {} s{RESET}\n",
        loaded.family,
        if loaded.estimate { ", as an estimate" } else { "" },
        loaded.pricing.date,
        prices.cache_read,
        prices.cache_write,
        prices.cache_seconds
    );
    out
}

fn row(out: &mut String, loaded: &Loaded, full: &Replay, run: &Run) {
    let (totals, score) = (&run.replay.totals, &run.replay.score);
    let share = ratio(totals.cost, full.totals.cost);
    let colour = if share < 0.995 {
        GOOD
    } else if share > 1.005 {
        BAD
    } else {
        ""
    };
    // A name too long for its column has a line of its own, so that the figures stay under their heads.
    let mut name = output::plain(&run.policy);
    if name.chars().count() > 16 {
        let _ = writeln!(out, "{name}");
        name.clear();
    }
    let _ = writeln!(
        out,
        "{name:16}{:>12}{:>4.0}%{:>9}{colour}{:>4.0}%{RESET}{:>6.3}{:>6.1}{:>6.1}{:>7}{:>8}",
        thousands(totals.tokens),
        100.0 * ratio(totals.tokens as f64, totals.full_tokens as f64),
        format!("{}{:.4}", mark(loaded.estimate), loaded.terms.prices.dollars(totals.cost)),
        100.0 * share,
        ratio(score.work, full.score.work),
        100.0 * score.reuse(),
        100.0 * score.run_reuse(),
        totals.breaks,
        score.expansions,
    );
    if totals.over_budget > 0 {
        let _ = writeln!(
            out,
            "{BAD}{} turns pass the budget even at their smallest; raise `--budget`{RESET}",
            totals.over_budget
        );
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// Lists what was needed and hidden.
pub(crate) fn missed(loaded: &Loaded, run: &Run) -> String {
    let mut out = format!("\n{BOLD}needed and hidden under {}{RESET}\n", run.policy);
    if run.replay.missed.is_empty() {
        out.push_str("nothing\n");
    }
    for missed in &run.replay.missed {
        let entry = &loaded.transcript.entries()[missed.position];
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
        if parts.is_empty() {
            parts.push("just arrived, and not shown whole".to_owned());
        }
        out.push_str(&parts.join(", "));
        out.push('\n');
    }
    out
}

/// Writes everything as one JSON document.
pub(crate) fn json(loaded: &Loaded, full: &Replay, runs: &[Run]) -> Result<String, CommandError> {
    #[derive(Serialize)]
    struct Document<'a> {
        format: &'a str,
        session: Option<&'a str>,
        model: Option<&'a str>,
        tokenizer: String,
        calibration: Option<plimsoll_core::Calibration>,
        prices: &'a str,
        /// Whether the prices are those of another model, so that all figures in money are estimates.
        estimate: bool,
        full: Figures<'a>,
        policies: Vec<Figures<'a>>,
    }
    #[derive(Serialize)]
    struct Figures<'a> {
        policy: &'a str,
        cost_dollars: f64,
        cost_ratio: f64,
        work_ratio: f64,
        reuse: f64,
        run_reuse: f64,
        #[serde(flatten)]
        replay: &'a Replay,
    }
    fn figures<'a>(
        loaded: &Loaded,
        full: &Replay,
        policy: &'a str,
        replay: &'a Replay,
    ) -> Figures<'a> {
        Figures {
            policy,
            cost_dollars: loaded.terms.prices.dollars(replay.totals.cost),
            cost_ratio: ratio(replay.totals.cost, full.totals.cost),
            work_ratio: ratio(replay.score.work, full.score.work),
            reuse: replay.score.reuse(),
            run_reuse: replay.score.run_reuse(),
            replay,
        }
    }
    let document = Document {
        format: loaded.session.format.as_str(),
        session: loaded.session.header.id.as_deref(),
        model: loaded.session.header.model.as_deref(),
        tokenizer: loaded.transcript.tokenizer().to_string(),
        calibration: loaded.calibration,
        prices: &loaded.family,
        estimate: loaded.estimate,
        full: figures(loaded, full, "full", full),
        policies: runs.iter().map(|run| figures(loaded, full, &run.policy, &run.replay)).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document).map_err(CommandError::failure)?;
    text.push('\n');
    Ok(text)
}
