//! Bounds of a phase and its loop of attempts.

use super::count::Count;
use super::validator::Validator;
use crate::template::Template;

record! {
    /// The bounds of a phase, and the condition that ends its loop.
    pub struct Rules {
        /// The most turns of one attempt; where nothing is said, what the runner allows.
        max_turns: Option<Count> = None,
        /// The most attempts of a loop.
        max_attempts: Option<Count> = None,
        /// The validator that ends the loop.
        loop_until: Option<Validator> = None,
        /// The announcement of the validator; made from its name where it is missing.
        loop_until_prompt: Option<Template> = None,
        /// The model is told nothing of the validator.
        loop_until_silent: bool = false,
        /// The instructions of a further attempt.
        retry_instructions: Option<Template> = None,
        /// The prompt of each turn after the first.
        turn_prompt: Option<Template> = None,
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "`record!` declares the struct, and derives the same for all"
)]
impl Default for Rules {
    fn default() -> Self {
        Self {
            max_turns: None,
            max_attempts: None,
            loop_until: None,
            loop_until_prompt: None,
            loop_until_silent: false,
            retry_instructions: None,
            turn_prompt: None,
        }
    }
}

impl Rules {
    /// Attempts of a loop where a cascade says nothing (chosen: what most real cascades say).
    pub const MAX_ATTEMPTS: u32 = 3;
}
