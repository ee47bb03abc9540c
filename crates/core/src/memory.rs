//! Memory: records, their lifecycles, their relevance to a question, and the system prompt made of them.
//!
//! Other crates store records; here are the rules that need no store and no clock.

pub mod assemble;
pub mod calibration;
mod evict;
pub mod extract;
pub mod frame;
pub mod layers;
pub mod lifecycle;
pub mod question;
mod quote;
pub mod refresh;
pub mod score;
pub mod select;
pub mod similar;
pub mod write;

use serde::{Deserialize, Serialize};

pub(crate) use quote::quoted_line;

/// The kind of a record; the kinds of a fact are those of the facts ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    Decision,
    Entity,
    Task,
    Metric,
    Link,
    Fact,
    Procedure,
    Episode,
    Censor,
}

/// The state of a record in the lifecycle of its kind (`memory-context.md`, Garbage Collection & Lifecycle).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryState {
    /// Facts: new, confirmed by another source, confirmed three times or marked, contradicted by a newer one, proven wrong.
    New,
    Confirmed,
    Core,
    Superseded,
    Inactive,
    /// Episodes: recent, older than 30 days, older than 90.
    Active,
    Summarized,
    Archived,
    /// Procedures, beside `Active`: by their effectiveness after five activations; taken out of use.
    Effective,
    Ineffective,
    Retired,
    /// Censors, beside `Active` and `Retired`: new, and of raised severity.
    Created,
    Escalated,
    /// Decisions: recorded, awaiting their outcome, reviewed.
    Recorded,
    Pending,
    Reviewed,
}

/// The outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Success,
    Partial,
    Failure,
    Pending,
}

names!(MemoryKind {
    Decision "decision",
    Entity "entity",
    Task "task",
    Metric "metric",
    Link "link",
    Fact "fact",
    Procedure "procedure",
    Episode "episode",
    Censor "censor",
});
names!(MemoryState {
    New "new",
    Confirmed "confirmed",
    Core "core",
    Superseded "superseded",
    Inactive "inactive",
    Active "active",
    Summarized "summarized",
    Archived "archived",
    Effective "effective",
    Ineffective "ineffective",
    Retired "retired",
    Created "created",
    Escalated "escalated",
    Recorded "recorded",
    Pending "pending",
    Reviewed "reviewed",
});
names!(Outcome {
    Success "success",
    Partial "partial",
    Failure "failure",
    Pending "pending",
});

impl MemoryState {
    /// Returns whether a query without `all_states` returns records in this state.
    pub fn is_current(self) -> bool {
        !matches!(self, Self::Superseded | Self::Inactive | Self::Archived | Self::Retired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json_and_read_back() {
        fn check<T: Serialize + PartialEq + std::fmt::Debug>(
            all: &[T],
            name: impl Fn(&T) -> (&'static str, Option<T>),
        ) {
            for value in all {
                let (printed, read) = name(value);
                assert_eq!(serde_json::to_value(value).expect("a name"), printed);
                assert_eq!(read.as_ref(), Some(value));
            }
        }
        check(MemoryKind::ALL, |v| (v.as_str(), MemoryKind::from_name(v.as_str())));
        check(MemoryState::ALL, |v| (v.as_str(), MemoryState::from_name(v.as_str())));
        check(Outcome::ALL, |v| (v.as_str(), Outcome::from_name(v.as_str())));
        assert_eq!(MemoryKind::from_name("opinion"), None);
    }
}
