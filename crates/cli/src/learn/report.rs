//! The tables of needs, the gain on unseen sessions, and the origin of the figures in the written file.

use std::fmt::{Display, Write as _};
use std::path::Path;

use plimsoll_core::ab::Spread;
use plimsoll_core::learn::{AGES, Fold, LEAST_NEEDS, LEAST_SESSIONS, NeedTable, ResultKind};
use plimsoll_core::policy::Need;
use serde::Serialize;

use crate::figures::{aligned, counted, thousands};
use crate::output::{self, BOLD, DIM, RESET};

/// The tools that the table shows, those with the most needs first.
const TOOLS: usize = 12;

#[derive(Debug, Serialize)]
pub(crate) struct Learnt {
    pub(crate) sessions: usize,
    pub(crate) turns: u64,
    pub(crate) table: NeedTable,
    /// The power of the length that was measured; no setting holds it.
    pub(crate) power: Option<f64>,
    /// The share of the work that is saved on sessions that were left out.
    pub(crate) gain: Option<Spread>,
    pub(crate) is_new: bool,
    pub(crate) default: Need,
    /// The law that was written.
    pub(crate) need: Need,
    /// Kinds with too little evidence.
    pub(crate) kept: Vec<ResultKind>,
    pub(crate) scale: Option<f64>,
    pub(crate) folds: Vec<Fold>,
}

impl Learnt {
    /// Returns the comment at the head of the written file.
    pub(crate) fn origin(&self, base: Option<impl Display>) -> String {
        let mut out = format!(
            "# Written by `plimsoll learn` from {} with {}.\n",
            counted(self.sessions as u64, "session"),
            counted(self.turns, "turn")
        );
        if let Some(base) = base {
            let _ = writeln!(out, "# All other settings are those of {base}.");
        }
        let _ = writeln!(out, "# {}", self.judgement());
        out
    }

    fn judgement(&self) -> String {
        let Some(gain) = &self.gain else { return "Nothing was measured.".to_owned() };
        let figures = format!(
            "work {:+.2} % ± {:.2} on {} that it has not seen",
            -gain.mean * 100.0,
            gain.error() * 100.0,
            counted(gain.count as u64, "session")
        );
        if self.is_new {
            format!("The learnt law: {figures}.")
        } else {
            format!("The default stays, for the learnt law gains nothing sure: {figures}.")
        }
    }

    pub(crate) fn text(&self, path: &Path) -> String {
        let mut out = format!(
            "{}, {}\n\n",
            counted(self.sessions as u64, "session"),
            counted(self.turns, "turn")
        );
        out.push_str(&self.kinds());
        out.push_str(&self.ages());
        out.push_str(&self.tools());
        if let Some(power) = self.power {
            let _ = writeln!(
                out,
                "needs grow with the length to the power {power:.2} (the law has 0.60, which is no setting)"
            );
        }
        let _ = writeln!(out, "{BOLD}{}{RESET}", self.judgement());
        let _ = writeln!(out, "{} is written", output::plain(&path.display().to_string()));
        out
    }

    fn kinds(&self) -> String {
        let heading = ["kind", "sessions", "turns", "needs", "measured", "default", "written"];
        let mut rows = vec![heading.map(|text| format!("{BOLD}{text}{RESET}"))];
        for kind in ResultKind::ALL {
            let cell = self.table.by_kind.get(&kind).copied().unwrap_or_default();
            let sessions = self.table.sessions.get(&kind).copied().unwrap_or_default();
            rows.push([
                kind.as_str().to_owned(),
                thousands(sessions as u64),
                thousands(cell.turns),
                thousands(cell.needs),
                format!("{:.3}", cell.hazard()),
                format!("{:.3}", kind.hazard(&self.default)),
                format!("{:.3}", kind.hazard(&self.need)),
            ]);
        }
        let mut out = aligned(&rows);
        if !self.kept.is_empty() {
            let kinds: Vec<&str> = self.kept.iter().map(|kind| kind.as_str()).collect();
            let _ = writeln!(
                out,
                "{DIM}too little evidence (fewer than {LEAST_NEEDS} needs or {LEAST_SESSIONS} sessions): {}{RESET}",
                kinds.join(", ")
            );
        }
        out.push('\n');
        out
    }

    /// Returns the chance of a need at the next turn by age, in percent.
    fn ages(&self) -> String {
        let mut rows = vec![[
            "needed at the next turn, %".to_owned(),
            "reads".to_owned(),
            "finds".to_owned(),
            "runs".to_owned(),
            "others".to_owned(),
        ]];
        for (at, age) in AGES.iter().enumerate() {
            let until = AGES.get(at + 1).map_or(String::new(), |next| (next - 1).to_string());
            let name = if until == age.to_string() { until } else { format!("{age}–{until}") };
            let [reads, finds, runs, others] = ResultKind::ALL.map(|kind| {
                let cell = self.table.by_age.get(&(kind, *age));
                cell.map_or("–".to_owned(), |cell| {
                    format!("{:.2}", 100.0 * cell.needs as f64 / cell.turns.max(1) as f64)
                })
            });
            rows.push([format!("  {name} turns after the last use"), reads, finds, runs, others]);
        }
        aligned(&rows) + "\n"
    }

    fn tools(&self) -> String {
        let mut tools: Vec<_> = self.table.by_tool.iter().collect();
        tools.sort_by_key(|(name, cell)| (std::cmp::Reverse(cell.needs), (*name).clone()));
        let mut rows =
            vec![["tool", "turns", "needs", "measured"].map(|text| format!("{BOLD}{text}{RESET}"))];
        for (name, cell) in tools.into_iter().take(TOOLS) {
            rows.push([
                output::line(name, 40),
                thousands(cell.turns),
                thousands(cell.needs),
                format!("{:.3}", cell.hazard()),
            ]);
        }
        aligned(&rows) + "\n"
    }
}
