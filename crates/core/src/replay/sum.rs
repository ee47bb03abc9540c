//! Replays of many sessions, added up for each policy.

use serde::Serialize;

use super::{Replay, Totals};
use crate::need::Score;

/// Returns the part of the whole; 1 where there is nothing.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// The figures of a policy, of one session or several.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PolicyFigures {
    pub policy: String,
    pub totals: Totals,
    pub score: Score,
    /// Input that is paid for, as a part of that of the full history.
    pub cost_ratio: f64,
    /// The part of the bill that is left, where usage was reported.
    pub bill_ratio: Option<f64>,
    pub work_ratio: f64,
}

impl PolicyFigures {
    /// Returns the figures of one session.
    pub fn of(policy: &str, replay: &Replay, full: &Replay) -> Self {
        let mut figures = Self { policy: policy.to_owned(), ..Self::default() };
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
}

/// The sum of several sessions.
#[derive(Debug, Clone)]
pub struct ReplaySum {
    pub sessions: u32,
    /// Sessions of a model that is priced as another.
    pub estimates: u32,
    pub full: PolicyFigures,
    pub policies: Vec<PolicyFigures>,
}

impl ReplaySum {
    /// Begins a sum for policies of these names.
    pub fn new(policies: impl IntoIterator<Item = String>) -> Self {
        let named = |policy| PolicyFigures { policy, ..PolicyFigures::default() };
        let policies = policies.into_iter().map(named).collect();
        Self { sessions: 0, estimates: 0, full: named("full".to_owned()), policies }
    }

    /// Adds a session: its full history, and its replay under each policy in their order.
    pub fn add<'a>(
        &mut self,
        is_estimate: bool,
        full: &Replay,
        replays: impl IntoIterator<Item = &'a Replay>,
    ) {
        self.sessions += 1;
        self.estimates += u32::from(is_estimate);
        self.full.add(full);
        let (totals, score) = (self.full.totals, self.full.score);
        self.full.compare(&totals, &score);
        for (figures, replay) in self.policies.iter_mut().zip(replays) {
            figures.add(replay);
            figures.compare(&totals, &score);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(cost: f64, work: f64) -> Replay {
        Replay {
            receipts: Vec::new(),
            totals: Totals { turns: 1, cost, ..Totals::default() },
            score: Score { work, ..Score::default() },
            missed: Vec::new(),
        }
    }

    #[test]
    fn ratios_are_those_of_the_sums() {
        let mut sum = ReplaySum::new(["a".to_owned()]);
        sum.add(false, &replay(10.0, 10.0), [&replay(5.0, 10.0)]);
        sum.add(true, &replay(30.0, 10.0), [&replay(5.0, 20.0)]);
        assert_eq!((sum.sessions, sum.estimates, sum.full.totals.turns), (2, 1, 2));
        assert_eq!((sum.policies[0].cost_ratio, sum.policies[0].work_ratio), (0.25, 1.5));
        assert_eq!((sum.full.cost_ratio, sum.policies[0].bill_ratio), (1.0, None));
        assert!((ratio(1.0, 0.0) - 1.0).abs() < 1e-9);
    }
}
