//! How sure a record is by who said it.

use plimsoll_core::memory::score::OPERATOR;
use serde::{Deserialize, Serialize};

/// How sure a record is when its caller does not say, by who said it.
///
/// "Confidence = source confidence", says `memory-context.md` and names no numbers; these are chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SourceConfidence {
    /// For what the operator says.
    pub operator: f32,
    /// For what the user says.
    pub user: f32,
    /// For what the model says.
    pub assistant: f32,
    /// For what a tool returns.
    pub tool: f32,
    /// For what anybody else says.
    pub other: f32,
}

impl Default for SourceConfidence {
    fn default() -> Self {
        Self { operator: 1.0, user: 0.9, assistant: 0.7, tool: 0.6, other: 0.5 }
    }
}

impl SourceConfidence {
    pub(super) fn of(&self, origin: &str) -> f32 {
        match origin {
            OPERATOR => self.operator,
            "user" => self.user,
            "assistant" => self.assistant,
            "tool" => self.tool,
            _ => self.other,
        }
    }
}
