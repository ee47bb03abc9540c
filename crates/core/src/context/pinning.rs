//! Pins and drops of one request, between the passes of its policy.

use super::{Moment, State, first_free};
use crate::choose::Reason;
use crate::cost::Prices;
use crate::message::Role;
use crate::passes::{self, DropGiven};
use crate::pins::{PinnedText, SortedPins, Wish};
use crate::plan::{Plan, Treatment};
use crate::policy::{BoundThinking, Policy, Settle};
use crate::section::Section;
use crate::terms::Terms;
use crate::transcript::{Position, Transcript};

impl State {
    /// Gives the next request, and all later ones, wishes of the user or the agent.
    pub fn wish(&mut self, wishes: impl IntoIterator<Item = Wish>) {
        self.pins.wish(wishes);
    }

    /// Gives the next request pinned texts that the client left out; they stand behind the next message of the user.
    pub fn show_again(&mut self, texts: impl IntoIterator<Item = PinnedText>) {
        self.pins.show_again(texts);
    }

    /// Returns the texts of all that is pinned, for a conversation that goes on without these messages.
    pub fn pinned_texts(&mut self, transcript: &Transcript, policy: &Policy) -> Vec<PinnedText> {
        self.pins.texts(transcript, policy.pin())
    }

    /// Restores pinned messages that may change, and puts the others behind the newest message of the user.
    pub(super) fn show_pinned(&mut self, at: &Pinning<'_>) {
        let &Pinning { transcript, end, free, everything, .. } = at;
        let mut locked = Vec::new();
        for (&position, _) in
            at.sorted.pinned.iter().filter(|(_, reason)| **reason == Reason::Pinned)
        {
            let decision = &self.plan.decisions()[position];
            // What the ceiling took would break the prefix at each turn, back and forth.
            let is_final = decision.reason == Reason::Ceiling;
            if decision.treatment == Treatment::Keep || everything || is_final {
                continue;
            }
            if position < free {
                locked.push(position);
                continue;
            }
            self.plan.restore(transcript, position, Reason::Pinned);
            let shown = self.plan.decisions()[position].form.message.shown();
            if position < self.said.seen() {
                self.said.changed(position, &shown);
            }
        }
        let is_asked = |at: &Position| transcript.entries()[*at].message.role == Role::User;
        let last = end.checked_sub(1).filter(is_asked);
        // A conversation that only begins has no prefix that a change could break.
        let first = || (free..end).rev().find(is_asked).filter(|_| self.sent.is_empty());
        let Some(place) = last.or_else(first) else { return };
        if let Some(text) = self.pins.place(transcript, locked) {
            self.plan.add(place, Section::Pinned, text.into(), transcript.tokenizer());
        }
    }
}

/// The place of pins in one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pinning<'a> {
    pub(super) transcript: &'a Transcript,
    pub(super) end: Position,
    pub(super) sorted: &'a SortedPins,
    /// The first message that may still change.
    pub(super) free: Position,
    /// Whether the policy sends everything.
    pub(super) everything: bool,
    binds: bool,
    cold: bool,
    prices: &'a Prices,
    further: u32,
}

impl<'a> Pinning<'a> {
    pub(super) fn of(
        transcript: &'a Transcript,
        end: Position,
        policy: &Policy,
        terms: &Terms,
        moment: &Moment<'a>,
        sorted: &'a SortedPins,
    ) -> Self {
        let (thinking, settle) = match policy {
            Policy::Bounded(bounds) => (bounds.thinking, bounds.settle.clone()),
            _ => (BoundThinking::Keep, Settle::default()),
        };
        let turns = transcript.entries()[..end].last().map_or(0, |entry| entry.turn);
        Self {
            transcript,
            end,
            sorted,
            free: first_free(transcript, end, terms, thinking),
            everything: policy.sends_everything(),
            binds: terms.binds() && thinking != BoundThinking::Drop,
            cold: moment.cold,
            prices: moment.prices,
            further: turns.max(settle.least_calls).min(settle.most_calls),
        }
    }

    /// Protects what is pinned.
    pub(super) fn protect(&self, plan: &mut Plan) {
        self.sorted.protect(plan);
    }

    /// Gives dropped messages their shortest form where that pays, or `at_once`; returns their places.
    pub(super) fn drop_named(&self, at_once: bool, plan: &mut Plan) -> Vec<Position> {
        let given = DropGiven {
            dropped: &self.sorted.dropped,
            free: self.free,
            prices: self.prices,
            cold: self.cold,
            binds: self.binds,
            at_once,
            further: self.further,
        };
        passes::drop_named(self.transcript, self.end, &given, plan)
    }

    /// Makes dropped messages go first where the plan has more than `room` tokens.
    pub(super) fn make_room(&self, room: u64, plan: &mut Plan) {
        if plan.tokens() > room {
            passes::drop_to_fit(self.transcript, self.end, room, &self.sorted.dropped, plan);
        }
    }

    /// Gives up pins where the plan still has more than `room` tokens, those of the settings first.
    pub(super) fn give_way(&self, room: u64, plan: &mut Plan) {
        if plan.tokens() <= room {
            return;
        }
        let pins = || self.sorted.pinned.iter();
        let standing = pins().filter(|(_, reason)| **reason != Reason::Pinned);
        let wished = pins().filter(|(_, reason)| **reason == Reason::Pinned);
        let ordered = standing.chain(wished).map(|(position, _)| *position);
        passes::lift(self.transcript, self.end, room, ordered, plan);
    }
}
