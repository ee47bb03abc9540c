//! The choice among attempts: by a model, by a person, and with their costs in mind.

words! {
    /// The evaluator of attempts.
    pub enum Evaluator {
        /// A model picks.
        Llm "llm" | "model",
        /// A person picks.
        Human "human",
        /// A model picks a few, and a person one of them.
        Hybrid "hybrid",
    }
}

words! {
    /// The way in which costs become comparable with scores.
    pub enum CostNormalization {
        MinMax "min_max",
        ZScore "z_score",
        LogScale "log_scale",
    }
}

record! {
    /// A choice that weighs scores against costs.
    pub struct CostAware {
        /// Whether costs count.
        enabled: bool = true,
        /// The weight of the score.
        quality_weight: f64 = 0.7,
        /// The weight of a low cost.
        cost_weight: f64 = 0.3,
        /// Whether the evaluator is told the costs.
        show_costs_to_evaluator: bool = true,
        /// The way in which costs become comparable.
        cost_normalization: CostNormalization = CostNormalization::MinMax,
    }
}

words! {
    /// The attempt that is picked of those that no other one beats in both score and cost.
    pub enum ParetoPolicy {
        PreferCheap "prefer_cheap",
        PreferQuality "prefer_quality",
        /// The best score for its cost.
        Balanced "balanced",
        /// A person picks.
        Interactive "interactive",
    }
}

record! {
    /// A choice among the attempts that no other one beats in both score and cost.
    pub struct Pareto {
        /// Whether it is made.
        enabled: bool = false,
        /// The attempt that is picked.
        policy: ParetoPolicy = ParetoPolicy::Balanced,
        /// Whether the attempts are noted with score and cost.
        show_frontier: bool = true,
        /// The source of scores: `evaluator_score`, or `validator:NAME`.
        quality_metric: String = "evaluator_score".to_owned(),
        /// Whether the note has the beaten attempts too.
        include_dominated: bool = true,
    }
}
