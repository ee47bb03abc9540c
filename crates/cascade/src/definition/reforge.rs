//! The refinement of the best attempt, and other instructions for attempts.

use super::ward::Ward;
use crate::template::Template;

record! {
    /// Further rounds of attempts that improve the best one.
    pub struct Reforge {
        /// The number of rounds.
        steps: u32 = 1,
        /// The instructions of a round, after those of the phase and the best output so far.
        honing_prompt: Template,
        /// The attempts of a round.
        factor_per_step: u32 = 2,
        /// Whether the attempts of a round get different instructions.
        mutate: bool = false,
        /// The instructions of the evaluator of rounds, instead of those of the soundings.
        evaluator_override: Option<Template> = None,
        /// The check that ends the rounds early.
        threshold: Option<Ward> = None,
    }
}

words! {
    /// The way in which attempts get different instructions.
    pub enum MutationMode {
        /// A model rewrites the instructions.
        Rewrite "rewrite",
        /// A text stands before the instructions.
        Augment "augment",
        /// A way of thinking stands behind the instructions.
        Approach "approach",
    }
}
