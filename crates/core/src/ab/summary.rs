//! The sums over compared turns, with their spread.

use serde::Serialize;

use super::{BAR, StepComparison, TurnComparison};

/// The mean of some figures, and how they spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    pub count: usize,
    pub mean: f64,
    /// The standard deviation of the sample.
    pub deviation: f64,
    pub least: f64,
    pub median: f64,
    pub greatest: f64,
}

impl Spread {
    /// Returns the spread of `figures`; `None` of none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let (least, greatest) = (*figures.first()?, *figures.last()?);
        let count = figures.len();
        let mean = figures.iter().sum::<f64>() / count as f64;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let median = f64::midpoint(figures[(count - 1) / 2], figures[count / 2]);
        Some(Self { count, mean, deviation, least, median, greatest })
    }

    /// Returns the standard error of the mean.
    pub fn error(&self) -> f64 {
        self.deviation / (self.count.max(1) as f64).sqrt()
    }
}

/// A count of hits and the share of all that it may stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Proportion {
    pub hits: usize,
    pub of: usize,
    /// The interval of 95 % around the share, by Wilson's formula, which holds for few cases too.
    pub low: f64,
    pub high: f64,
}

impl Proportion {
    /// Returns the share of `hits`.
    pub fn of(hits: impl IntoIterator<Item = bool>) -> Self {
        let (mut count, mut of) = (0, 0);
        for is_hit in hits {
            count += usize::from(is_hit);
            of += 1;
        }
        if of == 0 {
            return Self { high: 1.0, ..Self::default() };
        }
        // The quantile of the normal distribution for 95 %.
        let (z, n) = (1.96_f64, of as f64);
        let share = count as f64 / n;
        let centre = share + z * z / (2.0 * n);
        let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z * z / n;
        let (low, high) = ((centre - half) / scale, (centre + half) / scale);
        Self { hits: count, of, low: low.max(0.0), high: high.min(1.0) }
    }

    /// Returns the share, 0 of nothing.
    pub fn share(&self) -> f64 {
        self.hits as f64 / self.of.max(1) as f64
    }
}

/// The sums over compared turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbSummary {
    pub turns: usize,
    pub full_tokens: u64,
    pub tokens: u64,
    pub bar: f64,
    pub same_tools: Proportion,
    /// Over the turns in which a step calls a tool.
    pub arguments: Option<Spread>,
    pub similarity: Option<Spread>,
    pub above_bar: Proportion,
    /// The same of two answers to the full context, where they were asked for: no context does better than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<AbNoise>,
    /// How often each context led to the tools of the recorded step.
    pub full_as_recorded: Proportion,
    pub bounded_as_recorded: Proportion,
    /// Agreement of arguments with the recorded step, bounded minus full, turn by turn.
    pub argument_difference: Option<Spread>,
    /// Nats a token of the recorded step, bounded minus full, turn by turn: above 0 the bounded context is worse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nats: Option<NatsSummary>,
}

/// The difference between two answers to the same context.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AbNoise {
    pub same_tools: Proportion,
    pub similarity: Spread,
    pub above_bar: Proportion,
}

/// The likelihood of the recorded steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NatsSummary {
    pub full: Spread,
    pub bounded: Spread,
    pub difference: Spread,
}

impl AbSummary {
    /// Sums up; a step passes if its similarity is above `bar`.
    pub fn of(turns: &[TurnComparison], bar: f64) -> Self {
        let above = |one: &StepComparison| one.similarity > bar;
        let noise = || turns.iter().filter_map(|turn| turn.again_to_full.as_ref());
        let nats = || turns.iter().filter_map(|turn| turn.nats);
        let difference = turns.iter().filter_map(|turn| {
            Some(turn.bounded_to_recorded.arguments? - turn.full_to_recorded.arguments?)
        });
        Self {
            turns: turns.len(),
            full_tokens: turns.iter().map(|turn| turn.full_tokens).sum(),
            tokens: turns.iter().map(|turn| turn.tokens).sum(),
            bar,
            same_tools: Proportion::of(turns.iter().map(|turn| turn.bounded_to_full.same_tools)),
            arguments: Spread::of(turns.iter().filter_map(|turn| turn.bounded_to_full.arguments)),
            similarity: Spread::of(turns.iter().map(|turn| turn.bounded_to_full.similarity)),
            above_bar: Proportion::of(turns.iter().map(|turn| above(&turn.bounded_to_full))),
            noise: Spread::of(noise().map(|one| one.similarity)).map(|similarity| AbNoise {
                same_tools: Proportion::of(noise().map(|one| one.same_tools)),
                similarity,
                above_bar: Proportion::of(noise().map(above)),
            }),
            full_as_recorded: Proportion::of(
                turns.iter().map(|turn| turn.full_to_recorded.same_tools),
            ),
            bounded_as_recorded: Proportion::of(
                turns.iter().map(|turn| turn.bounded_to_recorded.same_tools),
            ),
            argument_difference: Spread::of(difference),
            nats: Spread::of(nats().map(|(full, _)| full)).and_then(|full| {
                Some(NatsSummary {
                    full,
                    bounded: Spread::of(nats().map(|(_, bounded)| bounded))?,
                    difference: Spread::of(nats().map(|(full, bounded)| bounded - full))?,
                })
            }),
        }
    }

    /// Returns the turns, the least alike first: other tools before other arguments before other texts.
    pub fn worst(turns: &[TurnComparison]) -> Vec<&TurnComparison> {
        let mut worst: Vec<&TurnComparison> = turns.iter().collect();
        let key = |turn: &TurnComparison| {
            let found = turn.bounded_to_full;
            (found.same_tools, found.arguments.unwrap_or(1.0), found.similarity)
        };
        worst.sort_by(|one, other| {
            let (one, other) = (key(one), key(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.total_cmp(&other.2))
        });
        worst
    }
}

impl Default for AbSummary {
    fn default() -> Self {
        Self::of(&[], BAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ab::NextStep;

    fn turn(same_tools: bool, arguments: Option<f64>, similarity: f64) -> TurnComparison {
        let found = StepComparison { same_tools, arguments, similarity };
        TurnComparison {
            session: "s".into(),
            turn: 0,
            full_tokens: 100,
            tokens: 60,
            recorded: NextStep::default(),
            full: NextStep::default(),
            bounded: NextStep::default(),
            bounded_to_full: found,
            full_to_recorded: StepComparison { same_tools: true, arguments: Some(1.0), ..found },
            bounded_to_recorded: found,
            again_to_full: None,
            nats: Some((2.0, 2.0 + similarity)),
        }
    }

    #[test]
    fn a_spread_has_mean_deviation_and_median() {
        let spread = Spread::of([1.0, 4.0, 2.0, 3.0]).expect("figures");
        assert_eq!((spread.count, spread.mean, spread.median), (4, 2.5, 2.5));
        assert!((spread.deviation - 1.290_994).abs() < 1e-5);
        assert!((spread.error() - 0.645_497).abs() < 1e-5);
        assert_eq!(Spread::of([]), None);
        assert!(Spread::of([7.0]).expect("one").deviation < 1e-12);
    }

    #[test]
    fn a_share_of_few_is_uncertain() {
        let all = Proportion::of([true; 4]);
        assert_eq!((all.hits, all.of), (4, 4));
        assert!((all.low - 0.510).abs() < 0.001, "{all:?}");
        let half = Proportion::of((0..100).map(|at| at < 50));
        assert!((half.low - 0.404).abs() < 0.001 && (half.high - 0.596).abs() < 0.001);
        assert!((Proportion::of([]).high - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_sums_and_the_worst_turns() {
        let turns =
            [turn(true, Some(0.5), 0.9), turn(false, Some(0.0), 0.4), turn(true, None, 0.96)];
        let sums = AbSummary::of(&turns, BAR);
        assert_eq!((sums.same_tools.hits, sums.above_bar.hits), (2, 1));
        assert_eq!(sums.arguments.expect("two turns call tools").count, 2);
        assert_eq!((sums.full_tokens, sums.tokens), (300, 180));
        assert_eq!((sums.full_as_recorded.hits, sums.bounded_as_recorded.hits), (3, 2));
        assert!((sums.nats.expect("likelihoods").difference.mean - 0.753).abs() < 0.001);
        assert!((sums.argument_difference.expect("two").mean + 0.75).abs() < 1e-12);
        let worst: Vec<f64> =
            AbSummary::worst(&turns).iter().map(|turn| turn.bounded_to_full.similarity).collect();
        assert_eq!(worst, [0.4, 0.9, 0.96]);
    }
}
