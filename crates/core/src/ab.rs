//! The regression test of contexts: does a model take the same next step with the bounded context as with the full one?
//!
//! Source: `context-strategy.md` 11.1, which compares two answers and asks for a similarity above 0.95.

mod form;
mod sample;
mod step;
mod summary;

use serde::{Deserialize, Serialize};

pub use form::{ObservedTool, answered_in_plain, in_calls, in_plain, observed_tools};
pub use sample::{SampledTurns, TurnSize, sample};
pub use step::{NextStep, StepCall, StepComparison, argument_agreement, shared_words};
pub use summary::{AbSummary, Proportion, Spread};

/// The similarity above which two steps count as alike, the document's.
pub const BAR: f64 = 0.95;

/// The likelihood of a text under a model: the natural logarithm, and the tokens that it is a sum of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Likelihood {
    pub log_probability: f64,
    pub tokens: u32,
}

impl Likelihood {
    /// Returns nats a token, less is better; `None` for an empty text.
    pub fn nats(&self) -> Option<f64> {
        (self.tokens > 0).then(|| -self.log_probability / f64::from(self.tokens))
    }
}

/// The steps of one turn, and how they compare.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnComparison {
    pub session: String,
    pub turn: u32,
    /// Tokens of the full and of the bounded context.
    pub full_tokens: u64,
    pub tokens: u64,
    pub recorded: NextStep,
    pub full: NextStep,
    pub bounded: NextStep,
    /// The step after the bounded context against that after the full one.
    pub bounded_to_full: StepComparison,
    /// Both against the recorded step.
    pub full_to_recorded: StepComparison,
    pub bounded_to_recorded: StepComparison,
    /// A second answer to the full context against the first: the model's own noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_to_full: Option<StepComparison>,
    /// Nats a token of the recorded step after the full and after the bounded context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nats: Option<(f64, f64)>,
}
