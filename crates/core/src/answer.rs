//! Cached answers: which answers may be stored, under which key, and which other questions may get one.
//!
//! The key of an answer covers its question and everything around it. A question in other words gets a cached answer only if
//! both questions have the same reading: `reading.rs` removes the differences that change no question, and the remaining words
//! must be equal, in the same order. A difference that no rule knows is therefore a miss. `docs/answers.md` has the
//! measurements.

mod bound;
mod guard;
mod guard_check;
mod lexicon;
mod reading;
mod scope;
mod servable;
mod settings;
mod split;

pub use bound::upper_bound;
pub use guard::{Refusal, Verdict, same_question};
pub use guard_check::{GuardLevel, GuardScore, LabelledPair, guard_scores};
pub use reading::Reading;
pub use scope::{AnswerScope, cache_key};
pub use servable::{AnswerFacts, CacheExclusion, RequestFacts, keepable, servable};
pub use settings::{AgreementRules, AnswerSettings, EquivalenceRules};
