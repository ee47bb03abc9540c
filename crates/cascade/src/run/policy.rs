//! The policy of a phase: how the context of each turn is bounded.

use plimsoll_core::policy::{Bounds, Budget, IntraPhase, Policy, Settle};

use super::CascadeRun;
use crate::definition::{BudgetStrategy, Phase};

impl CascadeRun {
    /// Returns the policy of a phase and its name; without settings everything is sent.
    pub(crate) fn policy(&self, phase: &Phase) -> (Policy, &'static str) {
        let budget = self.budget(phase);
        let intra = self.intra_phase(phase);
        let strategy = self.cascade.token_budget.as_ref().map(|budget| budget.strategy);
        if let (Some(budget), Some(BudgetStrategy::PruneOldest)) = (budget, strategy) {
            return (Policy::Newest { budget }, "prune_oldest");
        }
        let Some(intra_phase) = intra.filter(|intra| intra.enabled) else {
            let fails = strategy == Some(BudgetStrategy::Fail);
            let Some(budget) = budget.filter(|_| !fails) else { return (Policy::Full, "full") };
            // Only the ceiling acts: nothing is ever worth a change.
            let settle = Settle {
                enabled: false,
                giant: u32::MAX,
                giant_file: u32::MAX,
                ..Settle::default()
            };
            let bounds =
                Bounds { budget: budget.into(), said_once: false, settle, ..Bounds::default() };
            return (Policy::Bounded(bounds), "token_budget");
        };
        // A phase may end at any turn, so a change is paid for by what was saved before, and never by hope.
        let settle = Settle { allowance: 0.0, investment: 0.0, ..Settle::default() };
        let mut bounds = Bounds { intra_phase, settle, ..Bounds::default() };
        bounds.budget = budget.map_or(bounds.budget, Budget::Tokens);
        // Characters to tokens as `work` counts them.
        let least = f64::from(self.cascade.min_masked_size(phase)) / 3.3;
        bounds.settle.least = bounds.settle.least.max(least as u32);
        (Policy::Bounded(bounds), "observation_masking")
    }

    /// Returns the settings within a phase, if its context is bounded at all.
    pub(crate) fn intra_phase(&self, phase: &Phase) -> Option<IntraPhase> {
        let settings = self.cascade.intra_phase(phase)?;
        self.runner.settings.intra_phase_enabled.then_some(settings)
    }

    /// Returns whether the model of a phase may see a ref instead of a message.
    pub(crate) fn shows_refs(&self, phase: &Phase) -> bool {
        phase.context_ttl.is_some() || self.policy(phase).0 != Policy::Full
    }

    /// Returns the most tokens of a request of the phase, tools and schema included.
    pub(crate) fn budget(&self, phase: &Phase) -> Option<u64> {
        let budget = self.cascade.token_budget.as_ref()?;
        let own = budget.phase_overrides.iter().find(|(name, _)| name == phase.name.as_str());
        let total = own.map_or(budget.max_total, |(_, tokens)| *tokens);
        Some(u64::from(total.saturating_sub(budget.reserve_for_output)))
    }
}
