//! The most tokens of a context.

record! {
    /// A ceiling on what a model is sent.
    pub struct TokenBudget {
        /// The most tokens of a context.
        max_total: u32 = 100_000,
        /// Tokens of it that are left for the answer.
        reserve_for_output: u32 = 4_000,
        /// Ceilings of phases, by name.
        phase_overrides | "cell_overrides": Vec<(String, u32)> = Vec::new(),
    }
}
