//! Refreshing: when a context that stands is made anew, made smaller or left alone.

use serde::{Deserialize, Serialize};

use crate::memory::assemble::MemoryContext;
use crate::memory::frame::DECISION;

/// Settings of refreshing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RefreshSettings {
    /// An input less similar to the context than this is about something unknown.
    pub least_similarity: f64,
}

impl Default for RefreshSettings {
    fn default() -> Self {
        Self { least_similarity: 0.5 }
    }
}

/// The features of a new turn that decide whether the context stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewTurn<'a> {
    /// The frame that something speaks for; `None` where nothing does: a word of thanks switches nothing.
    pub frame: Option<&'a str>,
    /// How similar the input is to the context that stands.
    pub similarity: f64,
    /// Whether the agent is about to act.
    pub about_to_act: bool,
    /// Tokens that the conversation leaves for the context.
    pub room: u64,
}

/// Why a context is made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefreshReason {
    FrameSwitched,
    UnknownTopic,
    DecisionPoint,
}

/// The decision about an existing context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refresh {
    Keep,
    /// Make it anew for the frame of this name, with the old one as `previous`.
    Rebuild {
        frame: String,
        reason: RefreshReason,
    },
    /// Make it smaller with [`MemoryContext::evicted`].
    Evict {
        room: u64,
    },
}

/// Decides whether the existing context can be reused for this turn.
///
/// Source: `memory-context.md`, Context Refresh; the first rule that holds wins.
pub fn refresh(context: &MemoryContext, turn: &NewTurn<'_>, settings: &RefreshSettings) -> Refresh {
    let rebuild = |frame: &str, reason| Refresh::Rebuild { frame: frame.to_owned(), reason };
    if turn.about_to_act && context.frame != DECISION {
        return rebuild(DECISION, RefreshReason::DecisionPoint);
    }
    match turn.frame {
        // Before an act the frame of decisions stays; the words of the turn do not change it.
        Some(frame) if frame != context.frame && !turn.about_to_act => {
            return rebuild(frame, RefreshReason::FrameSwitched);
        }
        _ => {}
    }
    // A similarity that is no number counts as none.
    if turn.similarity.is_nan() || turn.similarity < settings.least_similarity {
        return rebuild(&context.frame, RefreshReason::UnknownTopic);
    }
    if context.used > turn.room {
        return Refresh::Evict { room: turn.room };
    }
    Refresh::Keep
}

#[cfg(test)]
mod tests {
    use super::*;
    use RefreshReason::{DecisionPoint, FrameSwitched, UnknownTopic};

    #[test]
    fn each_rule_asks_for_its_own() {
        let context = MemoryContext {
            frame: "debugging".into(),
            sections: Vec::new(),
            used: 1000,
            limit: 8000,
            left_out: Vec::new(),
            warnings: Vec::new(),
        };
        let same =
            NewTurn { frame: Some("debugging"), similarity: 0.9, about_to_act: false, room: 2000 };
        let base = RefreshSettings::default();
        let strict = RefreshSettings { least_similarity: 0.95 };
        let rebuild = |frame: &str, reason| Refresh::Rebuild { frame: frame.into(), reason };
        for (turn, settings, expected) in [
            (same, &base, Refresh::Keep),
            (NewTurn { frame: None, ..same }, &base, Refresh::Keep),
            (NewTurn { similarity: 0.5, ..same }, &base, Refresh::Keep),
            (NewTurn { frame: Some("task"), ..same }, &base, rebuild("task", FrameSwitched)),
            (NewTurn { similarity: 0.49, ..same }, &base, rebuild("debugging", UnknownTopic)),
            (NewTurn { similarity: f64::NAN, ..same }, &base, rebuild("debugging", UnknownTopic)),
            (same, &strict, rebuild("debugging", UnknownTopic)),
            (NewTurn { about_to_act: true, ..same }, &base, rebuild("decision", DecisionPoint)),
            (NewTurn { room: 999, ..same }, &base, Refresh::Evict { room: 999 }),
            (NewTurn { room: 1000, ..same }, &base, Refresh::Keep),
        ] {
            assert_eq!(refresh(&context, &turn, settings), expected, "{turn:?}");
        }
        let deciding = MemoryContext { frame: "decision".into(), ..context };
        let acting = NewTurn { about_to_act: true, ..same };
        assert_eq!(refresh(&deciding, &acting, &base), Refresh::Keep);
    }
}
