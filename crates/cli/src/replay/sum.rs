//! The sum of many replayed sessions, and the figures of each where they are asked for.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::replay::{PolicyFigures, Replay, ReplaySum};
use serde::Serialize;

use super::Run;
use super::groups::{GroupFigures, ReplayGroups};
use super::report::{ReplayRow, table};
use crate::figures::thousands;
use crate::load::Loaded;

/// One session of several.
#[derive(Debug, Serialize)]
pub(super) struct SessionFigures {
    #[serde(rename = "session")]
    path: String,
    model: Option<String>,
    estimate: bool,
    full: PolicyFigures,
    policies: Vec<PolicyFigures>,
}

impl SessionFigures {
    pub(super) fn of(path: &Path, loaded: &Loaded, full: &Replay, runs: &[Run]) -> Self {
        let policies = runs.iter().map(|run| PolicyFigures::of(&run.policy, &run.replay, full));
        Self {
            path: path.display().to_string(),
            model: loaded.model().map(str::to_owned),
            estimate: loaded.estimate,
            full: PolicyFigures::of("full", full, full),
            policies: policies.collect(),
        }
    }
}

/// The sum as JSON.
#[derive(Debug, Serialize)]
pub(super) struct SumDocument<'a> {
    sessions: u32,
    /// Whether a model of theirs is priced as another one.
    estimate: bool,
    full: &'a PolicyFigures,
    policies: &'a [PolicyFigures],
    #[serde(skip_serializing_if = "<[SessionFigures]>::is_empty")]
    each: &'a [SessionFigures],
    /// What `groups` are: days, projects, models or sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<GroupFigures<'a>>,
}

pub(super) fn document<'a>(
    sum: &'a ReplaySum,
    each: &'a [SessionFigures],
    groups: Option<&'a ReplayGroups>,
) -> SumDocument<'a> {
    SumDocument {
        sessions: sum.sessions,
        estimate: sum.estimates > 0,
        full: &sum.full,
        policies: &sum.policies,
        each,
        by: groups.map(ReplayGroups::name),
        groups: groups.map(ReplayGroups::figures).unwrap_or_default(),
    }
}

pub(super) fn text(sum: &ReplaySum) -> String {
    let turns = thousands(sum.full.totals.turns.into());
    let mut out = format!("{} sessions, {turns} turns", sum.sessions);
    if sum.estimates > 0 {
        let _ = write!(out, ", {} of a model that is priced as another", sum.estimates);
    }
    out.push_str("\n\n");
    let rows: Vec<ReplayRow<'_>> = sum.policies.iter().map(ReplayRow::from).collect();
    table(&mut out, &ReplayRow::from(&sum.full), &rows, sum.estimates > 0);
    out
}
