//! Bounds of a phase and its loop of attempts.

use super::count::Count;
use super::validator::Validator;
use crate::template::Template;

record! {
    /// How long a phase goes on, and until what.
    pub struct Rules {
        /// The most turns of one attempt; where nothing is said, what the runner allows.
        max_turns: Option<Count> = None,
        /// The most attempts of a loop.
        max_attempts: Option<Count> = None,
        /// The validator that ends the loop.
        loop_until: Option<Validator> = None,
        /// What the model is told of the validator; made from its name where nothing is said.
        loop_until_prompt: Option<Template> = None,
        /// The model is told nothing of the validator.
        loop_until_silent: bool = false,
        /// What a further attempt is told.
        retry_instructions: Option<Template> = None,
        /// What each turn after the first is told.
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
