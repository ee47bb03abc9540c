//! The receipt of a request, and its tokens by section.

use serde::Serialize;

use crate::cost::Charge;
use crate::pins::PinReceipt;
use crate::plan::{Change, Plan, RoleTokens};
use crate::section::Section;
use crate::transcript::Position;

/// Tokens of a context by section and role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Components {
    pub system: u64,
    pub user: u64,
    /// Texts from memory that stand behind messages of the user.
    pub memory: u64,
    /// Pinned texts that stand behind messages of the user.
    #[serde(skip_serializing_if = "is_zero")]
    pub pinned: u64,
    /// Facts and artefacts that stand before the user's words.
    #[serde(skip_serializing_if = "is_zero")]
    pub facts: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub artefacts: u64,
    /// Our own tools beside those of the client.
    #[serde(skip_serializing_if = "is_zero")]
    pub tools: u64,
    /// Lookups that the model made and that are put back into the request.
    #[serde(skip_serializing_if = "is_zero")]
    pub lookups: u64,
    /// Text of the model, without its calls.
    pub assistant: u64,
    /// Names and arguments of calls.
    pub tool_call: u64,
    pub tool_result: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// The record of one request: its decisions and its cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Receipt {
    /// Counted from 0, as contexts are.
    pub turn: u32,
    /// The place that the model's answer has in the transcript.
    pub position: Position,
    /// Messages and tokens of the full history.
    pub full_messages: usize,
    pub full_tokens: u64,
    /// Messages and tokens that were sent.
    pub messages: usize,
    pub tokens: u64,
    pub components: Components,
    #[serde(flatten)]
    pub charge: Charge,
    /// Cost of the input in plain input tokens.
    pub cost: f64,
    /// Tokens by which the smallest context that means anything passes the budget; 0 where it fits.
    pub over_budget: u64,
    /// The ceiling, where the policy and the model give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Lookups of earlier turns, the oldest ones, that have no room in the request.
    #[serde(default, skip_serializing_if = "is_none")]
    pub lookups_left_out: usize,
    /// Warnings for the user about parts that gave way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub changes: Vec<Change>,
    /// The messages that are pinned or dropped, and by what reason.
    #[serde(default, skip_serializing_if = "PinReceipt::is_empty")]
    pub pins: PinReceipt,
    /// The messages at whose ends we set marks of the provider's cache, beside the client's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Position>,
    /// Whether a message stands in another form than that in which it was first sent, so that thinking which was bound to
    /// that fits no more.
    #[serde(default)]
    pub rewritten: bool,
}

impl Receipt {
    /// Returns the tokens of messages that the cache had; system prompt and tools, `before` tokens of them, stand in front.
    pub fn cached_messages(&self, before: f64) -> f64 {
        (self.charge.cached - before).clamp(0.0, self.tokens as f64)
    }
}

/// Adds up a plan's tokens by section and role; the parts of a message share its tokens by their length.
pub(super) fn components(plan: &Plan) -> Components {
    let mut sum = Components::default();
    for (position, section, text) in plan.additions() {
        let all: usize =
            plan.additions().filter(|(at, ..)| *at == position).map(|(.., text)| text.len()).sum();
        let tokens = u64::from(plan.added_tokens(position)) * text.len() as u64 / all.max(1) as u64;
        *match section {
            Section::Facts => &mut sum.facts,
            Section::Artefacts => &mut sum.artefacts,
            Section::Pinned => &mut sum.pinned,
            Section::Memory => &mut sum.memory,
        } += tokens;
    }
    let RoleTokens { system, user, assistant, tool_call, tool_result } = plan.tokens_by_role();
    Components { system, user, assistant, tool_call, tool_result, ..sum }
}
