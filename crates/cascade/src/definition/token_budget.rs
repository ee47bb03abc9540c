//! The most tokens of a context.

use crate::template::Template;

words! {
    /// The way in which a context beyond the ceiling is made smaller.
    pub enum BudgetStrategy {
        /// Old results become stubs, then old messages are left out.
        SlidingWindow "sliding_window",
        /// Old messages are left out.
        PruneOldest "prune_oldest",
        /// A model summarises old messages.
        Summarize "summarize" | "summarise",
        /// The phase fails.
        Fail "fail",
    }
}

record! {
    /// The model that summarises old messages.
    pub struct Summarizer {
        /// The model, instead of the phase's.
        model: Option<Template> = None,
        /// The instructions of the summary.
        instructions | "prompt": Option<Template> = None,
    }
}

record! {
    /// A ceiling on the tokens of requests.
    pub struct TokenBudget {
        /// The most tokens of a context.
        max_total: u32 = 100_000,
        /// Tokens of it that are left for the answer.
        reserve_for_output: u32 = 4_000,
        /// The way in which a context beyond the ceiling is made smaller.
        strategy: BudgetStrategy = BudgetStrategy::SlidingWindow,
        /// The share of the ceiling from which on a run warns.
        warning_threshold: f64 = 0.8,
        /// The model that summarises old messages.
        summarizer: Option<Summarizer> = None,
        /// Ceilings of phases, by name.
        phase_overrides | "cell_overrides": Vec<(String, u32)> = Vec::new(),
    }
}
