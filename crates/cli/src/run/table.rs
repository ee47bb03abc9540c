//! The account of a run: the turns, tokens and cost of each phase.

use plimsoll_cascade::run::RunEvent;
use plimsoll_core::text::{Limit, head};
use plimsoll_engine::SessionId;
use serde::Serialize;

use crate::figures::{cost, thousands};
use crate::output::{BOLD, DIM, RESET};

/// One phase, all its turns together.
#[derive(Debug, Clone, Default, Serialize)]
struct Row {
    phase: String,
    turns: u32,
    full_tokens: u64,
    sent_tokens: u64,
    output_tokens: u64,
    cost: f64,
    full_cost: f64,
    /// Whether a model in it is priced as another one.
    estimate: bool,
    anchored: Vec<String>,
    selected: Vec<String>,
}

/// All phases, in the order in which they first ran.
#[derive(Debug, Clone, Default)]
pub(super) struct Table(Vec<Row>);

#[derive(Serialize)]
struct RunAccount<'a> {
    session: &'a str,
    phases: &'a [Row],
    total: Row,
}

impl Table {
    pub(super) fn add(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Turn {
                phase,
                full_tokens,
                sent_tokens,
                output_tokens,
                cost,
                full_cost,
                estimate,
                ..
            } => {
                let row = self.row(phase);
                row.turns += 1;
                row.full_tokens += full_tokens;
                row.sent_tokens += sent_tokens;
                row.output_tokens += output_tokens;
                row.cost += cost;
                row.full_cost += full_cost;
                row.estimate |= estimate;
            }
            RunEvent::ContextSelected { phase, anchored, selected, .. } => {
                let row = self.row(phase);
                row.anchored.extend(anchored.iter().cloned());
                row.selected.extend(selected.iter().cloned());
            }
            _ => {}
        }
    }

    fn row(&mut self, phase: &str) -> &mut Row {
        let place = self.0.iter().position(|row| row.phase == phase).unwrap_or_else(|| {
            self.0.push(Row { phase: phase.to_owned(), ..Row::default() });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    fn total(&self) -> Row {
        let mut total = Row { phase: "total".to_owned(), ..Row::default() };
        for row in &self.0 {
            total.turns += row.turns;
            total.full_tokens += row.full_tokens;
            total.sent_tokens += row.sent_tokens;
            total.output_tokens += row.output_tokens;
            total.cost += row.cost;
            total.full_cost += row.full_cost;
            total.estimate |= row.estimate;
        }
        total
    }

    pub(super) fn json(&self, session: &SessionId) -> String {
        let account =
            RunAccount { session: session.as_str(), phases: &self.0, total: self.total() };
        serde_json::to_string(&account).unwrap_or_default()
    }

    pub(super) fn lines(&self, session: &SessionId) -> Vec<String> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let width =
            self.0.iter().map(|row| row.phase.chars().count()).max().unwrap_or(5).clamp(5, 32);
        let mut lines = vec![String::new()];
        lines.push(format!(
            "{BOLD}{:width$} {:>5} {:>10} {:>10} {:>6} {:>9} {:>9}{RESET}",
            "phase", "turns", "full", "sent", "saved", "cost", "full cost"
        ));
        let shown = |row: &Row| {
            let saved = row.full_tokens.saturating_sub(row.sent_tokens) * 100;
            let share = saved.checked_div(row.full_tokens).unwrap_or(0);
            format!(
                "{:width$} {:>5} {:>10} {:>10} {share:>5}% {:>9} {:>9}",
                head(&crate::output::plain(&row.phase), Limit::Characters(width)),
                row.turns,
                thousands(row.full_tokens),
                thousands(row.sent_tokens),
                cost(row.cost, row.estimate),
                cost(row.full_cost, row.estimate),
            )
        };
        for row in &self.0 {
            lines.push(shown(row));
            let hashes = |what: &str, hashes: &[String]| {
                let short: Vec<&str> =
                    hashes.iter().map(|hash| &hash[..hash.len().min(8)]).collect();
                (!short.is_empty()).then(|| format!("  {DIM}{what}: {}{RESET}", short.join(" ")))
            };
            lines.extend(hashes("anchored", &row.anchored));
            lines.extend(hashes("selected", &row.selected));
        }
        if self.0.len() > 1 {
            lines.push(shown(&self.total()));
        }
        lines.push(format!(
            "{DIM}session {session}; `plimsoll log --session {session}` tells more{RESET}"
        ));
        lines
    }
}
