//! Learns the law of forgetting from recorded sessions: how soon and how often results are needed again.
//!
//! The law that settling uses: a result that was last used `t` turns ago is needed at the next turn with a chance of
//! `h / t × (tokens / 1300)^0.6`, with one `h` for each kind of tool ([`crate::policy::Need`]).

mod kind;
mod measure;
mod validate;

pub use kind::ResultKind;
pub use measure::{AGES, NeedCell, NeedTable, measure};
pub use validate::{
    Fold, LEAST_NEEDS, LEAST_SESSIONS, LearntNeed, SCALES, SessionWork, folds, learnt, validated,
};
