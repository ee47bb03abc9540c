//! What a bounded request asks of the provider beside its messages: marks of the cache, and what to do with bound thinking.

use plimsoll_core::Position;
use plimsoll_core::cost::{Life, Prices};
use plimsoll_core::policy::{BoundThinking, Policy};
use plimsoll_engine::live::Bounded;
use plimsoll_formats::provider::{BETA_EDITING, BETA_THINKING, ContextEditing, Edits};

use crate::around::Around;

/// The newest results that the provider's own context editing leaves (its default).
const KEPT_RESULTS: u32 = 3;

/// What is set in a request beside its messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    marks: Vec<(Position, Life)>,
    drop_thinking: bool,
    context_editing: Option<ContextEditing>,
}

impl Options {
    /// Decides what a request needs; one that goes out as it came needs nothing.
    pub(crate) fn of(
        policy: &Policy,
        prices: &Prices,
        bounded: &Bounded,
        around: &Around,
        went_out_as_it_came: bool,
    ) -> Self {
        if bounded.note.observed {
            return Self::default();
        }
        let life = around.surroundings.life();
        let mut marks = around.marks.clone();
        marks.extend(bounded.receipt.marks.iter().map(|&at| (at, life)));
        marks.sort_unstable();
        marks.dedup_by_key(|(at, _)| *at);
        let provider = match policy {
            Policy::Bounded(bounds) => bounds.thinking == BoundThinking::Provider,
            _ => false,
        };
        let context_editing = (provider && prices.bound_thinking).then(|| editing(prices));
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

/// Returns when clearing pays back: what is cleared at once must be so much that its reading at the calls to come, as many as
/// it takes to fill the trigger again, costs more than writing what stands behind.
fn editing(prices: &Prices) -> ContextEditing {
    // Clearing breaks the prefix from the cleared place on; with half of a context gone it pays back after
    // (write − read) / read calls (`Prices::calls_to_pay_back`), which a session of the trigger's size has before it.
    let calls = prices.calls_to_pay_back(1.0, 1.0).max(1.0);
    // Chosen: a call that adds 2,000 tokens, and no clearing below 50,000.
    let trigger = (calls * 2000.0).max(50_000.0);
    let trigger = if trigger.is_finite() { trigger as u64 } else { u64::from(u32::MAX) };
    ContextEditing { trigger, keep: KEPT_RESULTS, at_least: trigger / 2 }
}
