//! Many sessions, added up for each policy.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::replay::{Replay, Totals};
use plimsoll_core::reuse::Score;
use serde::Serialize;

use super::Run;
use super::report::{Row, ratio, table};
use crate::load::Loaded;
use crate::output::thousands;

/// What a policy gave for all sessions so far, or for one.
#[derive(Debug, Clone, Default, Serialize)]
struct Figures {
    policy: String,
    totals: Totals,
    score: Score,
    cost_ratio: f64,
    bill_ratio: Option<f64>,
    work_ratio: f64,
}

impl Figures {
    fn named(policy: String) -> Self {
        Self { policy, ..Self::default() }
    }

    fn of(policy: &str, replay: &Replay, full: &Replay) -> Self {
        let mut figures = Self::named(policy.to_owned());
        figures.add(replay);
        figures.compare(&full.totals, &full.score);
        figures
    }

    fn add(&mut self, replay: &Replay) {
        self.totals.plus(&replay.totals);
        self.score.add(&replay.score);
    }

    fn compare(&mut self, full: &Totals, score: &Score) {
        self.cost_ratio = ratio(self.totals.cost, full.cost);
        self.bill_ratio = self.totals.dollars.of_bill();
        self.work_ratio = ratio(self.score.work, score.work);
    }

    fn row(&self) -> Row<'_> {
        Row { policy: &self.policy, totals: &self.totals, score: &self.score }
    }
}

/// One session of several.
#[derive(Debug, Serialize)]
struct Session {
    #[serde(rename = "session")]
    path: String,
    model: Option<String>,
    estimate: bool,
    full: Figures,
    policies: Vec<Figures>,
}

/// The sum of all sessions.
#[derive(Debug)]
pub(super) struct Sum {
    sessions: u32,
    estimates: u32,
    full: Figures,
    policies: Vec<Figures>,
    each: Vec<Session>,
}

/// The sum as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    sessions: u32,
    /// Whether a model of theirs is priced as another one.
    estimate: bool,
    full: &'a Figures,
    policies: &'a [Figures],
    #[serde(skip_serializing_if = "<[Session]>::is_empty")]
    each: &'a [Session],
}

impl Sum {
    pub(super) fn new(policies: impl Iterator<Item = String>) -> Self {
        let policies = policies.map(Figures::named).collect();
        let full = Figures::named("full".to_owned());
        Self { sessions: 0, estimates: 0, full, policies, each: Vec::new() }
    }

    /// Adds a session; its own figures are kept only where `each` is told.
    pub(super) fn add(
        &mut self,
        path: &Path,
        loaded: &Loaded,
        full: &Replay,
        runs: &[Run],
        each: bool,
    ) {
        self.sessions += 1;
        self.estimates += u32::from(loaded.estimate);
        self.full.add(full);
        for (figures, run) in self.policies.iter_mut().zip(runs) {
            figures.add(&run.replay);
        }
        let (totals, score) = (self.full.totals, self.full.score);
        self.full.compare(&totals, &score);
        for figures in &mut self.policies {
            figures.compare(&totals, &score);
        }
        if each {
            self.each.push(Session {
                path: path.display().to_string(),
                model: loaded.model().map(str::to_owned),
                estimate: loaded.estimate,
                full: Figures::of("full", full, full),
                policies: runs
                    .iter()
                    .map(|run| Figures::of(&run.policy, &run.replay, full))
                    .collect(),
            });
        }
    }

    pub(super) fn document(&self) -> Document<'_> {
        Document {
            sessions: self.sessions,
            estimate: self.estimates > 0,
            full: &self.full,
            policies: &self.policies,
            each: &self.each,
        }
    }

    pub(super) fn text(&self) -> String {
        let turns = thousands(self.full.totals.turns.into());
        let mut out = format!("{} sessions, {turns} turns", self.sessions);
        if self.estimates > 0 {
            let _ = write!(out, ", {} of a model that is priced as another", self.estimates);
        }
        out.push_str("\n\n");
        let rows: Vec<Row<'_>> = self.policies.iter().map(Figures::row).collect();
        table(&mut out, &self.full.row(), &rows, self.estimates > 0);
        out
    }
}
