//! The account of a run: the turns, tokens and cost of each phase.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_cascade::run::{Purpose, RunEvent};
use plimsoll_core::text::{Limit, head};
use plimsoll_engine::SessionId;
use serde::Serialize;

use crate::figures::{cost, thousands};
use crate::output::{BOLD, DIM, RESET};

/// One phase, all its calls of models together.
#[derive(Debug, Clone, Default, Serialize)]
struct Row {
    phase: String,
    turns: u32,
    /// Calls of models by their purpose, the turns among them.
    calls: BTreeMap<Purpose, u32>,
    full_tokens: u64,
    sent_tokens: u64,
    output_tokens: u64,
    /// Tokens of all prompts as the providers report them.
    reported_tokens: u64,
    cost: f64,
    full_cost: f64,
    /// The cost of calls that only managed contexts need; `cost` holds it.
    overhead: f64,
    /// Entries of the price table.
    priced_as: BTreeSet<String>,
    /// Whether a model in it is priced as another one.
    estimate: bool,
    /// Tokens of what earlier phases said, and of the part that was selected.
    earlier_tokens: u64,
    selected_tokens: u64,
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
                purpose,
                full_tokens,
                sent_tokens,
                output_tokens,
                reported_tokens,
                cost,
                full_cost,
                priced_as,
                estimate,
                ..
            } => {
                let row = self.row(phase);
                row.turns += u32::from(purpose.is_turn());
                *row.calls.entry(*purpose).or_default() += 1;
                row.reported_tokens += reported_tokens.unwrap_or(0);
                row.priced_as.insert(priced_as.clone());
                if purpose.is_overhead() {
                    row.overhead += cost;
                }
                row.full_tokens += full_tokens;
                row.sent_tokens += sent_tokens;
                row.output_tokens += output_tokens;
                row.cost += cost;
                row.full_cost += full_cost;
                row.estimate |= estimate;
            }
            RunEvent::ContextSelected {
                phase,
                anchored,
                selected,
                full_tokens,
                selected_tokens,
                ..
            } => {
                let row = self.row(phase);
                row.earlier_tokens += full_tokens;
                row.selected_tokens += selected_tokens;
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
            total.reported_tokens += row.reported_tokens;
            total.overhead += row.overhead;
            total.priced_as.extend(row.priced_as.iter().cloned());
            total.earlier_tokens += row.earlier_tokens;
            total.selected_tokens += row.selected_tokens;
            for (purpose, calls) in &row.calls {
                *total.calls.entry(*purpose).or_default() += calls;
            }
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
            lines.extend(beside(row));
            lines.extend(hashes("anchored", &row.anchored));
            lines.extend(hashes("selected", &row.selected));
        }
        if self.0.len() > 1 {
            lines.push(shown(&self.total()));
        }
        let total = self.total();
        let calls: u32 = total.calls.values().sum();
        let names: Vec<&str> = total.priced_as.iter().map(String::as_str).collect();
        lines.push(format!(
            "{DIM}{}, at the prices of {}{RESET}",
            crate::figures::counted(u64::from(calls), "call"),
            crate::output::plain(&names.join(", ")),
        ));
        lines.push(format!(
            "{DIM}session {session}; `plimsoll log --session {session}` tells more{RESET}"
        ));
        lines
    }
}

/// Returns the line on calls beside the turns, and on what selection left out; `None` where there is nothing to say.
fn beside(row: &Row) -> Option<String> {
    let others = row.calls.iter().filter(|(purpose, _)| **purpose != Purpose::Turn);
    let mut parts: Vec<String> = others
        .map(|(purpose, calls)| format!("{} {calls}", purpose.as_str().replace('_', " ")))
        .collect();
    if row.earlier_tokens > 0 {
        let (selected, earlier) = (thousands(row.selected_tokens), thousands(row.earlier_tokens));
        parts.push(format!("selected {selected} of {earlier} earlier tokens"));
    }
    if row.overhead > 0.0 {
        parts.push(format!("{} for lookups and selection", cost(row.overhead, row.estimate)));
    }
    (!parts.is_empty()).then(|| format!("  {DIM}{}{RESET}", parts.join(", ")))
}
