//! What is learnt from some sessions, judged on others.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{NeedTable, ResultKind};
use crate::ab::Spread;
use crate::policy::Need;

/// Needs and sessions that a kind must show before its default is replaced. Chosen: below them a single session decides.
pub const LEAST_NEEDS: u64 = 20;
pub const LEAST_SESSIONS: usize = 3;

/// Needs that the default counts for beside those that were seen. Chosen, as settling weighs its own prior against a session.
const PRIOR: f64 = 20.0;

/// The factors that are tried on what was measured. The default of 0.7 had the least work on other sessions; measured needs
/// come in clusters, so the plain figure hides too little.
pub const SCALES: [f64; 3] = [0.4, 0.7, 1.0];

/// A law that was learnt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LearntNeed {
    pub need: Need,
    /// The kinds whose figure is the default, for lack of evidence.
    pub kept: Vec<ResultKind>,
}

/// Returns the law that `table` shows, scaled; kinds with little evidence keep their default.
pub fn learnt(table: &NeedTable, default: &Need, scale: f64) -> LearntNeed {
    let mut need = default.clone();
    let mut kept = Vec::new();
    for kind in ResultKind::ALL {
        let cell = table.by_kind.get(&kind).copied().unwrap_or_default();
        let sessions = table.sessions.get(&kind).copied().unwrap_or_default();
        if cell.needs < LEAST_NEEDS || sessions < LEAST_SESSIONS {
            kept.push(kind);
            continue;
        }
        let hazard = kind.hazard_mut(&mut need);
        let measured = cell.hazard() * scale;
        let weight = cell.needs as f64 / (cell.needs as f64 + PRIOR);
        // Three digits: more is no knowledge.
        *hazard = ((*hazard * (1.0 - weight) + measured * weight) * 1000.0).round() / 1000.0;
    }
    LearntNeed { need, kept }
}

/// Deals `sessions` into at most `folds` groups that are left out in turn; each session is left out once.
pub fn folds(sessions: usize, folds: usize) -> Vec<Vec<usize>> {
    let folds = folds.clamp(1, sessions.max(1));
    let mut groups = vec![Vec::new(); folds];
    for session in 0..sessions {
        groups[session % folds].push(session);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// The work of a session under the default law and under another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SessionWork {
    pub default: f64,
    pub learnt: f64,
}

impl SessionWork {
    /// Returns the share of the work that is saved; below 0 it is more work.
    pub fn gain(&self) -> f64 {
        if self.default > 0.0 { 1.0 - self.learnt / self.default } else { 0.0 }
    }
}

/// One group of sessions, judged under the law of all others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fold {
    pub need: Need,
    /// The factor that was best on the other sessions; `None` where the default was.
    pub scale: Option<f64>,
    /// By session.
    pub work: BTreeMap<usize, SessionWork>,
}

/// Standard errors that a mean gain must be above: chance alone gives that once in twenty times.
const SURE: f64 = 1.64;

/// Returns the gains on sessions that were left out, and whether they are more than chance.
pub fn validated(folds: &[Fold]) -> (Option<Spread>, bool) {
    let gains = folds.iter().flat_map(|fold| fold.work.values().map(SessionWork::gain));
    let spread = Spread::of(gains);
    let is_gain = spread.is_some_and(|gain| gain.count > 1 && gain.mean > SURE * gain.error());
    (spread, is_gain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::NeedCell;

    fn table(needs: u64, sessions: usize) -> NeedTable {
        let cell = NeedCell { turns: 1000, needs, expected: 100.0 };
        NeedTable {
            by_kind: BTreeMap::from([(ResultKind::Reads, cell)]),
            sessions: BTreeMap::from([(ResultKind::Reads, sessions)]),
            ..NeedTable::default()
        }
    }

    #[test]
    fn little_evidence_keeps_the_default() {
        let default = Need::default();
        assert_eq!(learnt(&table(LEAST_NEEDS - 1, 9), &default, 1.0).need, default);
        assert_eq!(learnt(&table(900, LEAST_SESSIONS - 1), &default, 1.0).need, default);
        let found = learnt(&table(980, 3), &default, 0.7);
        // 980 / (980 + 20) of 9.8 × 0.7, and the rest of the default.
        assert!((found.need.reads - 6.726).abs() < 0.001, "{found:?}");
        assert_eq!(found.kept, [ResultKind::Finds, ResultKind::Runs, ResultKind::Others]);
        assert!((found.need.runs - default.runs).abs() < 1e-12);
    }

    #[test]
    fn each_session_is_left_out_once() {
        assert_eq!(folds(5, 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(folds(2, 5), [[0], [1]]);
        assert!(folds(0, 5).is_empty());
    }

    fn fold(work: &[(f64, f64)]) -> Fold {
        let work =
            work.iter().map(|(default, learnt)| SessionWork { default: *default, learnt: *learnt });
        Fold { need: Need::default(), scale: None, work: work.enumerate().collect() }
    }

    #[test]
    fn a_gain_must_be_more_than_chance() {
        let (gain, is_gain) = validated(&[fold(&[(100.0, 90.0), (100.0, 91.0), (10.0, 9.0)])]);
        assert!(is_gain && gain.expect("sessions").mean > 0.09);
        let mixed = fold(&[(100.0, 80.0), (100.0, 130.0), (100.0, 85.0)]);
        assert!(!validated(&[mixed]).1);
        assert!(!validated(&[fold(&[(100.0, 50.0)])]).1, "one session proves nothing");
        assert_eq!(validated(&[]), (None, false));
    }
}
