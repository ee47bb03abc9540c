//! Choice: candidates fitted to a budget, each at the fullest level of detail that fits.
//!
//! Selection between phases, memory, the working set, recall, the session trimmer and the ceiling are configurations of [`pack`] and
//! [`shrink`]: they differ in what a candidate is, how it is scored, and which forms it has.

mod reason;
mod share;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use reason::Reason;
pub(crate) use reason::tagged;
pub use share::{Share, allocate, flow};

/// How much of a candidate stands in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// One line.
    Micro,
    /// A few sentences.
    Summary,
    /// The original.
    Full,
}

/// The form of a candidate that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form<T> {
    pub level: Level,
    pub tokens: u64,
    /// The text or the message of this form.
    pub value: T,
}

/// A source of forms: a record, a card, a message, a group of messages.
pub trait Forms {
    type Value;

    /// Returns its fullest form of at most `room` tokens.
    ///
    /// A form is written and counted only when it is asked for: counting is what takes time.
    fn form(&self, room: u64) -> Option<Form<Self::Value>>;
}

/// A source that stands in a context as it is, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole<S> {
    pub source: S,
    pub tokens: u64,
}

impl<S> Forms for Whole<S> {
    type Value = ();

    fn form(&self, room: u64) -> Option<Form<()>> {
        let &Self { tokens, .. } = self;
        (tokens <= room).then_some(Form { level: Level::Full, tokens, value: () })
    }
}

/// Something that may stand in a context.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate<S> {
    /// The record or message itself, which has an id and a kind.
    pub source: S,
    /// Its worth; `None` where the order alone decides.
    pub score: Option<f64>,
    /// The reason for its place in the order.
    pub why: Cow<'static, str>,
}

impl<S> Candidate<S> {
    /// Makes a candidate whose place in the order says all about its worth.
    pub fn in_order(source: S) -> Self {
        Self { source, score: None, why: Cow::Borrowed("") }
    }
}

/// A candidate that stands in the context, with its form.
#[derive(Debug, Clone)]
pub struct Pick<S, V> {
    pub candidate: Candidate<S>,
    pub form: Form<V>,
}

/// The result of packing.
#[derive(Debug, Clone)]
pub struct Choice<S, V> {
    /// In the order of the candidates.
    pub picks: Vec<Pick<S, V>>,
    /// In the order of the candidates, each with its reason.
    pub left_out: Vec<(Candidate<S>, Reason)>,
    /// Tokens of all picks, never above the room.
    pub tokens: u64,
}

/// The decision about a candidate that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// A smaller one behind it may still fit.
    PassOver,
    /// Nothing behind it enters: a worse candidate never stands for a better one.
    Stop,
}

/// The room that candidates are packed into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub tokens: u64,
    /// The most candidates.
    pub most: usize,
    /// Tokens of the smallest candidate: with less than this left, packing ends and looks at no further candidate.
    pub least: u64,
    pub overflow: Overflow,
}

impl Room {
    /// Makes a room of `tokens` for any number of candidates, where one that does not fit is passed over.
    pub fn new(tokens: u64) -> Self {
        Self { tokens, most: usize::MAX, least: 0, overflow: Overflow::PassOver }
    }

    /// Makes a room of `tokens` that is closed by the first candidate that does not fit.
    pub fn until_full(tokens: u64) -> Self {
        Self { overflow: Overflow::Stop, ..Self::new(tokens) }
    }
}

/// Packs candidates into `room`, in their order, each in its fullest form that fits.
pub fn pack<S: Forms>(
    candidates: impl IntoIterator<Item = Candidate<S>>,
    room: &Room,
) -> Choice<S, S::Value> {
    let mut choice = Choice { picks: Vec::new(), left_out: Vec::new(), tokens: 0 };
    let mut is_closed = false;
    for candidate in candidates {
        let left = room.tokens - choice.tokens;
        if choice.picks.len() >= room.most {
            choice.left_out.push((candidate, Reason::OverMaxMessages));
        } else if let Some(form) = candidate.source.form(left).filter(|_| !is_closed) {
            choice.tokens += form.tokens.min(left);
            choice.picks.push(Pick { candidate, form });
        } else {
            choice.left_out.push((candidate, Reason::OverBudget));
            if left < room.least {
                break;
            }
            is_closed = room.overflow == Overflow::Stop;
        }
    }
    choice
}

/// Makes `context` smaller, step by step, until `tokens` of it are at most `budget`; returns by how many they still exceed it.
///
/// `step` gives up what is worth least and returns false when nothing is left to give up.
pub fn shrink<C>(
    context: &mut C,
    budget: u64,
    tokens: impl Fn(&C) -> u64,
    mut step: impl FnMut(&mut C) -> bool,
) -> u64 {
    while tokens(context) > budget && step(context) {}
    tokens(context).saturating_sub(budget)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidates(sizes: &[u64]) -> Vec<Candidate<Whole<usize>>> {
        let whole = |(source, &tokens)| Candidate::in_order(Whole { source, tokens });
        sizes.iter().enumerate().map(whole).collect()
    }

    fn check(sizes: &[u64], room: Room, picks: &[usize], left_out: &[(usize, Reason)]) {
        let choice = pack(candidates(sizes), &room);
        let places: Vec<usize> =
            choice.picks.iter().map(|one| one.candidate.source.source).collect();
        let reasons: Vec<_> =
            choice.left_out.iter().map(|(one, why)| (one.source.source, *why)).collect();
        assert_eq!((&*places, &*reasons), (picks, left_out), "{sizes:?} in {room:?}");
    }

    #[test]
    fn a_candidate_that_does_not_fit_is_passed_over_or_closes_the_room() {
        use Reason::{OverBudget, OverMaxMessages};
        let sizes = [40, 80, 30, 30, 20];
        check(&sizes, Room::new(100), &[0, 2, 3], &[(1, OverBudget), (4, OverBudget)]);
        check(&sizes, Room::until_full(100), &[0], &[1, 2, 3, 4].map(|at| (at, OverBudget)));
        let most = Room { most: 2, ..Room::new(100) };
        check(
            &sizes,
            most,
            &[0, 2],
            &[(1, OverBudget), (3, OverMaxMessages), (4, OverMaxMessages)],
        );
        check(&sizes, Room { least: 70, ..Room::new(100) }, &[0], &[(1, OverBudget)]);
        check(&[], Room::new(9), &[], &[]);
    }

    proptest! {
        #[test]
        fn what_is_packed_or_shrunk_fits(sizes in prop::collection::vec(0_u64..90, 0..40), budget in 0_u64..400, stop: bool, most in 0_usize..20) {
            let overflow = if stop { Overflow::Stop } else { Overflow::PassOver };
            let choice = pack(candidates(&sizes), &Room { most, overflow, ..Room::new(budget) });
            prop_assert_eq!(choice.tokens, choice.picks.iter().map(|one| one.form.tokens).sum::<u64>());
            prop_assert!(choice.tokens <= budget && choice.picks.len() <= most);
            prop_assert_eq!(choice.picks.len() + choice.left_out.len(), sizes.len());
            let mut rest = sizes.clone();
            let over = shrink(&mut rest, budget, |rest| rest.iter().sum(), |rest| rest.pop().is_some());
            prop_assert_eq!(over, 0);
            prop_assert!(rest.len() == sizes.len() || rest.iter().sum::<u64>() + sizes[rest.len()] > budget);
        }
    }
}
