//! Reasons: why something stands in a context in its form, or not at all.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason for a decision about a message, a record or a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    // A message is kept.
    /// It arrived since the model last spoke.
    Fresh,
    /// The policy sends everything.
    Everything,
    /// Nothing about it asks for a change.
    Small,
    /// The system prompt or the task.
    Protected,
    /// The user or the agent pinned it.
    Pinned,
    /// The newest showing of an instruction or plan file, which the settings pin.
    Instructions,
    /// The current to-do list, which the settings pin.
    ToDo,
    /// It holds an error, and the setting keeps such messages whole.
    ErrorKept,
    /// It defines the task, or stands before the message that does.
    First,
    /// It is among the last turns.
    Last,
    /// It belongs to the exchange of a turn that is always kept.
    Exchange,
    /// Its priority is high and there was room.
    Priority,

    // A message is made smaller, or left out.
    /// Longer than the limit for fresh results.
    Giant,
    /// Read once, and cheaper as an excerpt from here on.
    Settled,
    /// Lines of it stand in the context already, as they were sent; pointers say where.
    SaidOnce,
    /// Older than the window.
    OutsideWindow,
    /// Older than `mask_observations_after` turns.
    Masked,
    /// The older a message of the history, the shorter it is.
    Aged,
    /// The cache was cold, so the change cost nothing.
    Cold,
    /// The budget would have been passed.
    Ceiling,
    /// Cleared in a batch by `clear-tool-uses`.
    Cleared,
    /// Not among the newest messages that fit.
    NotNewest,
    /// Left out by trimming; the summary tells it.
    Summarised,
    /// An earlier attempt of a loop.
    EarlierAttempt,
    /// The user or the agent said that it may go.
    Dropped,

    // A candidate is left out.
    /// It does not fit in what is left of its budget.
    #[serde(alias = "no_room")]
    OverBudget,
    OverMaxMessages,
    /// Less similar to the task or the question than the settings ask for.
    #[serde(alias = "irrelevant")]
    BelowThreshold,
    /// Its score is far below that of the one before it.
    Cliff,
    /// The store has no vector of the present model for it.
    NoVector,
    /// The model did not name it.
    NotNamed,
    /// The menu was full, or the first choice at twice the budget did not have it.
    NotOnMenu,
    /// It was proven wrong or is out of use.
    NotInUse,
    /// A candidate with the same id came before it.
    Twice,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Fresh => "just arrived",
            Self::Everything => "everything is sent",
            Self::Small => "no change would save enough",
            Self::Protected => "system prompt or task",
            Self::Pinned => "pinned",
            Self::Instructions => "pinned: an instruction or plan file",
            Self::ToDo => "pinned: the current to-do list",
            Self::ErrorKept => "holds an error (preserve_errors)",
            Self::First => "the task, or before it",
            Self::Last => "among the last turns",
            Self::Exchange => "belongs to an exchange that is kept",
            Self::Priority => "high priority",
            Self::Giant => "longer than the limit for fresh results",
            Self::Settled => "read once; cheaper as an excerpt",
            Self::SaidOnce => "said before; pointers stand for the lines above",
            Self::OutsideWindow => "older than the window",
            Self::Masked => "older than mask_observations_after",
            Self::Aged => "shorter with age",
            Self::Cold => "the cache was cold, so the change was free",
            Self::Ceiling => "the budget would have been passed",
            Self::Cleared => "cleared in a batch",
            Self::NotNewest => "not among the newest that fit",
            Self::Summarised => "told in the summary",
            Self::EarlierAttempt => "an earlier attempt",
            Self::Dropped => "dropped on request",
            Self::OverBudget => "no room in its budget",
            Self::OverMaxMessages => "enough messages stand there",
            Self::BelowThreshold => "not similar enough",
            Self::Cliff => "much less relevant than the one before it",
            Self::NoVector => "no vector of the present model",
            Self::NotNamed => "the model did not name it",
            Self::NotOnMenu => "not on the menu",
            Self::NotInUse => "not in use",
            Self::Twice => "it stands there already",
        };
        f.write_str(text)
    }
}

/// Writes a reason as plans and receipts hold it: `{"why": "settled"}`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
pub(crate) fn tagged<S: serde::Serializer>(
    reason: &Reason,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Tagged {
        why: Reason,
    }
    Tagged { why: *reason }.serialize(serializer)
}
