//! Cached answers: which may be kept, under which key, and when another question may have one.
//!
//! An answer is kept under its question and all that it was asked in. For a question in other words a cached answer is
//! served only where both read the same once what does not change a question is taken out of them (`reading.rs`): whatever
//! is left must be the same, in the same order. So what nobody thought of is a difference, and a difference is a miss.
//! `docs/answers.md` has the measurements.

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
