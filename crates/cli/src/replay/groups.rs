//! Replayed sessions added up by day, project, model or session, beside the sum of all.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::bill::Division;
use plimsoll_core::cost::day;
use plimsoll_core::replay::{PolicyFigures, Replay, ReplaySum, ratio};
use serde::Serialize;

use super::Run;
use crate::figures::{aligned_right, dollars, mark, thousands};
use crate::load::Loaded;
use crate::output::{self, BOLD, RESET};

/// Stands for a name that a session does not have.
const NOT_RECORDED: &str = "(not recorded)";

/// The sums of a division.
#[derive(Debug)]
pub(super) struct ReplayGroups {
    by: Division,
    sums: BTreeMap<String, ReplaySum>,
}

/// One group as JSON.
#[derive(Debug, Serialize)]
pub(super) struct GroupFigures<'a> {
    name: &'a str,
    sessions: u32,
    estimate: bool,
    full: &'a PolicyFigures,
    policies: &'a [PolicyFigures],
}

impl ReplayGroups {
    pub(super) fn new(by: Division) -> Self {
        Self { by, sums: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, path: &Path, loaded: &Loaded, full: &Replay, runs: &[Run]) {
        let header = &loaded.session.header;
        let name = match self.by {
            Division::Project => header.working_directory.clone(),
            Division::Model => loaded.model().map(str::to_owned),
            Division::Day => header.started.map(day),
            Division::Session => Some(path.display().to_string()),
        };
        let names = runs.iter().map(|run| run.policy.clone());
        let name = name.unwrap_or_else(|| NOT_RECORDED.to_owned());
        let sum = self.sums.entry(name).or_insert_with(|| ReplaySum::new(names));
        sum.add(loaded.estimate, full, runs.iter().map(|run| &run.replay));
    }

    pub(super) fn name(&self) -> &'static str {
        self.by.as_str()
    }

    pub(super) fn figures(&self) -> Vec<GroupFigures<'_>> {
        self.sums
            .iter()
            .map(|(name, sum)| GroupFigures {
                name,
                sessions: sum.sessions,
                estimate: sum.estimates > 0,
                full: &sum.full,
                policies: &sum.policies,
            })
            .collect()
    }

    /// Writes a row for each group and policy: sessions, turns, tokens, dollars of the full history and under the policy.
    pub(super) fn text(&self) -> String {
        let heads = [
            self.by.as_str(),
            "policy",
            "sessions",
            "turns",
            "tokens sent",
            "%",
            "full",
            "cost",
            "%",
        ];
        let mut rows = vec![heads.map(str::to_owned)];
        for (name, sum) in &self.sums {
            for figures in &sum.policies {
                rows.push(row(name, sum, figures));
            }
        }
        let table = aligned_right(&rows);
        let (head, rest) = table.split_once('\n').unwrap_or((&table, ""));
        format!("\n{BOLD}{head}{RESET}\n{rest}")
    }
}

fn row(name: &str, sum: &ReplaySum, figures: &PolicyFigures) -> [String; 9] {
    /// Columns of names, where the figures have theirs in a terminal of 80 (chosen).
    const NAME: usize = 20;
    let (totals, about) = (&figures.totals, mark(sum.estimates > 0));
    // Both beside the bill, where usage was reported.
    let (full, cost, share) = if totals.dollars.of_bill().is_some() {
        let full = sum.full.totals.dollars.beside;
        (full, totals.dollars.beside, ratio(totals.dollars.beside, full))
    } else {
        (sum.full.totals.dollars.input, totals.dollars.input, figures.cost_ratio)
    };
    let width = output::width().map_or(NAME, |width| width.saturating_sub(80 - NAME).clamp(12, 60));
    [
        output::ending(name, width),
        output::line(&figures.policy, 16),
        thousands(sum.sessions.into()),
        thousands(totals.turns.into()),
        thousands(totals.tokens),
        format!("{:.0}%", 100.0 * ratio(totals.tokens as f64, totals.full_tokens as f64)),
        format!("{about}{}", dollars(full, 2)),
        format!("{about}{}", dollars(cost, 2)),
        format!("{:.0}%", 100.0 * share),
    ]
}
