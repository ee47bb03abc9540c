//! Pins and drops of a live session: which wishes are new to it, and which pinned texts its client left out.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_core::Message;
use plimsoll_core::cost::Pricing;
use plimsoll_core::pins::{PinnedText, Wish, WishKind, missing};
use plimsoll_core::policy::Policy;

use super::LiveSession;

/// The pins and drops that come with a request.
#[derive(Debug, Clone, Default)]
pub struct RequestPins {
    /// All wishes for the conversation, oldest first; those without a number came with the request itself.
    pub wishes: Vec<Wish>,
    /// Whether the client goes on behind a summary of its own.
    pub is_compacted: bool,
    /// What was pinned in the conversation that the summary stands for.
    pub before: Vec<PinnedText>,
}

impl LiveSession {
    /// Returns the wishes that earlier requests of the session did not have.
    pub(super) fn new_wishes(&self, wishes: &[Wish]) -> Vec<Wish> {
        let known = || self.marks.iter().flat_map(|mark| &mark.note.wishes);
        let numbers: Vec<Option<u32>> = known().map(|wish| wish.number).collect();
        let mut last: HashMap<&str, WishKind> = HashMap::new();
        last.extend(known().map(|wish| (&*wish.prefix, wish.kind)));
        let mut new = Vec::new();
        for wish in wishes {
            let is_new = match wish.number {
                Some(_) => !numbers.contains(&wish.number),
                // A client may send the same header with each request.
                None => last.get(&*wish.prefix) != Some(&wish.kind),
            };
            if is_new {
                last.insert(&wish.prefix, wish.kind);
                new.push(wish.clone());
            }
        }
        new
    }

    /// Returns those of `before` that neither `messages` show nor the session itself.
    pub(super) fn left_out(
        &self,
        before: &[PinnedText],
        messages: &[Arc<Message>],
    ) -> Vec<PinnedText> {
        let shown = |text: &PinnedText| {
            let mut again = self.marks.iter().flat_map(|mark| &mark.note.again);
            again.any(|one| one.reference == text.reference)
        };
        let before = before.iter().filter(|text| !shown(text)).cloned().collect();
        missing(before, messages)
    }

    /// Returns the texts of all that is pinned in the session.
    pub(super) fn pinned_texts(&mut self, pricing: &Pricing) -> Vec<PinnedText> {
        self.wake(pricing);
        let policy = self.marks.last().map_or(Policy::Full, |mark| mark.policy.clone());
        let state = self.state.as_mut();
        state.map_or_else(Vec::new, |state| state.pinned_texts(&self.transcript, &policy))
    }
}
