//! Additions to a bounded request beside its messages: marks of the cache, and options for bound thinking.

use std::sync::Arc;

use plimsoll_core::cost::{Life, Prices};
use plimsoll_core::policy::{BoundThinking, Policy};
use plimsoll_core::{Message, Position, Role};
use plimsoll_engine::live::Bounded;
use plimsoll_wire::{BETA_EDITING, BETA_THINKING, ContextEditing, Edits};

use crate::surroundings::RequestSurroundings;

/// The newest results that the provider's own context editing leaves (its default).
const KEPT_RESULTS: u32 = 3;

/// The additions to a request beside its messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestAdditions {
    marks: Vec<(Position, Life)>,
    drop_thinking: bool,
    context_editing: Option<ContextEditing>,
}

impl RequestAdditions {
    /// Decides what a request needs; one that goes out as it came needs nothing.
    pub(crate) fn of(
        policy: &Policy,
        prices: &Prices,
        bounded: &Bounded,
        around: &RequestSurroundings,
        went_out_as_it_came: bool,
        messages: &[Arc<Message>],
    ) -> Self {
        if bounded.note.observed {
            return Self::default();
        }
        let life = around.surroundings.life();
        let mut marks = around.marks.clone();
        marks.extend(bounded.receipt.marks.iter().map(|&at| (at, life)));
        let provider = match policy {
            Policy::Bounded(bounds) => bounds.thinking == BoundThinking::Provider,
            _ => false,
        };
        let context_editing = (provider && prices.bound_thinking).then(|| editing(prices));
        // Cleared results stay cleared, so the entry of a mark behind them is read again, wherever the provider clears next.
        if context_editing.is_some()
            && bounded.receipt.marks.len() < around.surroundings.free_marks
            && let Some(at) = end_of_cleared(messages)
        {
            marks.push((at, life));
        }
        marks.sort_unstable();
        marks.dedup_by_key(|(at, _)| *at);
        Self {
            marks,
            drop_thinking: prices.bound_thinking
                && (bounded.receipt.rewritten || went_out_as_it_came),
            context_editing,
        }
    }

    /// Returns the values of `anthropic-beta` under which the provider reads it.
    pub(crate) fn betas(&self) -> Vec<&'static str> {
        let thinking = self.drop_thinking.then_some(BETA_THINKING);
        let editing = self.context_editing.map(|_| BETA_EDITING);
        thinking.into_iter().chain(editing).collect()
    }

    /// Adds it to the edits of a request.
    pub(crate) fn added_to(self, edits: Edits) -> Edits {
        Edits {
            marks: self.marks,
            drop_thinking: self.drop_thinking,
            context_editing: self.context_editing,
            ..edits
        }
    }
}

/// Returns the newest result that the provider clears once it does.
fn end_of_cleared(messages: &[Arc<Message>]) -> Option<Position> {
    let results = messages.iter().enumerate().rev().filter(|(_, one)| one.role == Role::Tool);
    results.map(|(at, _)| at).nth(KEPT_RESULTS as usize)
}

/// Returns when clearing pays back, even if the provider clears one more result at each request.
///
/// Then every request writes the results that stay, and of them all but the newest had been in the cache; in return it does not
/// read what is cleared. That pays where a context has (write − read) / read times the tokens of those results.
fn editing(prices: &Prices) -> ContextEditing {
    let times = prices.calls_to_pay_back(1.0, 1.0).max(1.0);
    // Chosen: results of 5,000 tokens, twice those that were measured, and no clearing below 50,000.
    let trigger = (times * f64::from(KEPT_RESULTS - 1) * 5000.0).max(50_000.0);
    let trigger = if trigger.is_finite() { trigger as u64 } else { u64::from(u32::MAX) };
    ContextEditing { trigger, keep: KEPT_RESULTS, at_least: trigger / 2 }
}
