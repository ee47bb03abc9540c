//! The choice by score and cost, without a model: the frontier, and weights.

use crate::definition::{CostAware, CostNormalization, ParetoPolicy};

/// An attempt with its score, 0 to 100, and its cost in dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scored {
    pub(crate) index: usize,
    pub(crate) score: f64,
    pub(crate) cost: f64,
}

/// Returns the attempts that no other one beats: none is as good and cheaper, or as cheap and better.
pub(crate) fn frontier(all: &[Scored]) -> Vec<Scored> {
    let beats = |a: &Scored, b: &Scored| {
        a.score >= b.score && a.cost <= b.cost && (a.score > b.score || a.cost < b.cost)
    };
    all.iter().filter(|one| !all.iter().any(|other| beats(other, one))).copied().collect()
}

/// Returns the attempt of the frontier that a policy picks; `None` without attempts, and where a person picks.
pub(crate) fn pick(frontier: &[Scored], policy: ParetoPolicy) -> Option<usize> {
    let by = |value: &dyn Fn(&Scored) -> f64| {
        let best = frontier.iter().rev().max_by(|a, b| value(a).total_cmp(&value(b)));
        best.map(|one| one.index)
    };
    match policy {
        ParetoPolicy::PreferCheap => by(&|one| -one.cost),
        ParetoPolicy::PreferQuality => by(&|one| one.score),
        ParetoPolicy::Balanced => by(&|one| one.score / one.cost.max(f64::MIN_POSITIVE)),
        ParetoPolicy::Interactive => None,
    }
}

/// Returns the attempt whose score and low cost weigh most.
pub(crate) fn weighed(all: &[Scored], rules: &CostAware) -> Option<usize> {
    let costs: Vec<f64> = match rules.cost_normalization {
        CostNormalization::LogScale => all.iter().map(|one| one.cost.max(1e-9).ln()).collect(),
        _ => all.iter().map(|one| one.cost).collect(),
    };
    let (least, most) = costs
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(*it), high.max(*it)));
    let mean = costs.iter().sum::<f64>() / costs.len().max(1) as f64;
    let variance =
        costs.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / costs.len().max(1) as f64;
    let normal = |cost: f64| match rules.cost_normalization {
        CostNormalization::ZScore if variance > 0.0 => {
            // A logistic curve brings any distance from the mean between 0 and 1.
            1.0 / (1.0 + (-(cost - mean) / variance.sqrt()).exp())
        }
        _ if most > least => (cost - least) / (most - least),
        _ => 0.0,
    };
    let worth = |(one, cost): &(&Scored, &f64)| {
        rules.quality_weight * one.score / 100.0 + rules.cost_weight * (1.0 - normal(**cost))
    };
    let best = all.iter().zip(&costs).rev().max_by(|a, b| worth(a).total_cmp(&worth(b)));
    best.map(|(one, _)| one.index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(index: usize, score: f64, cost: f64) -> Scored {
        Scored { index, score, cost }
    }

    #[test]
    fn the_frontier_has_what_nothing_beats() {
        let all = [
            scored(0, 60.0, 1.0),
            scored(1, 90.0, 4.0),
            scored(2, 59.0, 1.5),
            scored(3, 90.0, 5.0),
            scored(4, 80.0, 1.6),
        ];
        let frontier = frontier(&all);
        let indexes: Vec<usize> = frontier.iter().map(|one| one.index).collect();
        assert_eq!(indexes, [0, 1, 4]);
        assert_eq!(pick(&frontier, ParetoPolicy::PreferCheap), Some(0));
        assert_eq!(pick(&frontier, ParetoPolicy::PreferQuality), Some(1));
        assert_eq!(pick(&frontier, ParetoPolicy::Balanced), Some(0));
        assert_eq!(pick(&frontier, ParetoPolicy::Interactive), None);
        assert_eq!(pick(&[], ParetoPolicy::Balanced), None);
    }

    #[test]
    fn weights_and_normalization_change_the_choice() {
        let all = [scored(0, 70.0, 1.0), scored(1, 90.0, 10.0), scored(2, 75.0, 2.0)];
        let rules = |quality: f64, cost_normalization| CostAware {
            enabled: true,
            quality_weight: quality,
            cost_weight: 1.0 - quality,
            show_costs_to_evaluator: true,
            cost_normalization,
        };
        assert_eq!(weighed(&all, &rules(1.0, CostNormalization::MinMax)), Some(1));
        assert_eq!(weighed(&all, &rules(0.0, CostNormalization::MinMax)), Some(0));
        assert_eq!(weighed(&all, &rules(0.6, CostNormalization::MinMax)), Some(0));
        assert_eq!(weighed(&all, &rules(0.6, CostNormalization::ZScore)), Some(2));
        assert_eq!(weighed(&all, &rules(0.9, CostNormalization::LogScale)), Some(1));
        assert_eq!(weighed(&[], &rules(0.5, CostNormalization::MinMax)), None);
    }
}
