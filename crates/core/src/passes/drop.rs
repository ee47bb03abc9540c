//! Dropped messages go first: as soon as that costs nothing or pays, and before all others where a ceiling is passed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::choose::Reason;
use crate::cost::Prices;
use crate::hash::Ref;
use crate::message::{Block, Message, Role};
use crate::plan::{Plan, Sent, Treatment, newest, sent_tokens};
use crate::policy::PreserveErrors;
use crate::render;
use crate::transcript::{Position, Transcript};

use super::{give_up, stub_of};

/// Characters of a long argument that stay in a dropped call.
const ARGUMENT_KEPT: usize = 200;

/// The input of dropping beside the transcript.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DropGiven<'a> {
    /// The messages that may go first.
    pub(crate) dropped: &'a BTreeSet<Position>,
    /// The first message that may change at all.
    pub(crate) free: Position,
    pub(crate) prices: &'a Prices,
    /// Whether the cache is gone, so that everything is written anyway.
    pub(crate) cold: bool,
    /// Whether thinking is bound to the messages of the model.
    pub(crate) binds: bool,
    /// Whether the policy decides anew at each turn, so that no cached prefix counts.
    pub(crate) at_once: bool,
    /// Further calls that are expected.
    pub(crate) further: u32,
}

/// Gives dropped messages their shortest form, from the place onward from which that gains most; returns their places.
pub(crate) fn drop_named(
    transcript: &Transcript,
    end: Position,
    given: &DropGiven<'_>,
    plan: &mut Plan,
) -> Vec<Position> {
    let fresh = newest(transcript, end);
    if given.dropped.range(given.free.min(fresh)..fresh).next().is_none() {
        return Vec::new();
    }
    let prices = given.prices;
    let break_price = prices.cache_write - prices.cache_read;
    let per_token = prices.cache_read * f64::from(given.further)
        + if given.cold { prices.cache_write } else { 0.0 };
    // From there on the prefix is written anew anyway.
    let broken = plan.changes().iter().map(|change| change.position).min();
    let (mut gain, mut behind, mut best, mut chosen) = (0.0, 0.0, 0.0, 0);
    let mut candidates = Vec::new();
    for position in (given.free..fresh).rev() {
        let tokens = sent_tokens(&plan.decisions()[position]);
        let form = Some(position).filter(|at| given.dropped.contains(at));
        let form = form.and_then(|at| form_of(transcript, at, given.binds, plan));
        let Some((treatment, form)) = form else {
            behind += f64::from(tokens);
            continue;
        };
        gain += f64::from(tokens - form.tokens) * per_token;
        behind += f64::from(form.tokens);
        candidates.push((position, treatment, form));
        let is_free = given.at_once || given.cold || broken.is_some_and(|at| at <= position);
        let net = gain - if is_free { 0.0 } else { behind * break_price };
        if net > best || given.at_once {
            (best, chosen) = (net, candidates.len());
        }
    }
    candidates.truncate(chosen);
    candidates.retain(|(position, treatment, form)| {
        plan.reduce(transcript, *position, *treatment, Reason::Dropped, form.clone())
    });
    candidates.into_iter().map(|(position, ..)| position).collect()
}

/// Gives dropped messages their shortest form, then leaves them out, until the plan has at most `budget` tokens.
pub(crate) fn drop_to_fit(
    transcript: &Transcript,
    end: Position,
    budget: u64,
    dropped: &BTreeSet<Position>,
    plan: &mut Plan,
) {
    let fresh = newest(transcript, end);
    give_up(plan, budget, dropped.range(..fresh).copied(), |plan, position| {
        if let Some((treatment, form)) = form_of(transcript, position, false, plan) {
            plan.reduce(transcript, position, treatment, Reason::Ceiling, form);
        }
    });
    give_up(plan, budget, dropped.range(..fresh).copied(), |plan, position| {
        plan.omit(transcript, position, Reason::Ceiling);
    });
}

/// Takes back the protection of pinned messages, in this order, where the plan has more than `budget` tokens without that.
///
/// System messages, the task and what the model waits for stay.
pub(crate) fn lift(
    transcript: &Transcript,
    end: Position,
    budget: u64,
    pinned: impl Iterator<Item = Position> + Clone,
    plan: &mut Plan,
) {
    let fresh = newest(transcript, end);
    let entries = transcript.entries();
    let task = entries.iter().position(|entry| entry.message.role == Role::User);
    let pinned = pinned
        .filter(|at| *at < fresh && Some(*at) != task && entries[*at].message.role != Role::System);
    give_up(plan, budget, pinned.clone(), |plan, position| {
        plan.lift(position);
        if let Some((treatment, form)) = form_of(transcript, position, false, plan) {
            plan.reduce(transcript, position, treatment, Reason::Ceiling, form);
        }
    });
    give_up(plan, budget, pinned, |plan, position| {
        plan.omit(transcript, position, Reason::Ceiling);
    });
}

/// Returns the shortest form of a message that may still go, where that is smaller than the one it has.
fn form_of(
    transcript: &Transcript,
    position: Position,
    binds: bool,
    plan: &Plan,
) -> Option<(Treatment, Arc<Sent>)> {
    let decision = &plan.decisions()[position];
    let entry = &transcript.entries()[position];
    let (message, original): (&Message, _) = (&entry.message, Ref::message(entry.hash));
    if plan.is_protected(position) {
        return None;
    }
    let thinks = message.blocks.iter().any(|block| matches!(block, Block::Thinking(_)));
    let (treatment, form) = match message.role {
        Role::System => return None,
        Role::Assistant if binds && thinks => return None,
        Role::Tool => (Treatment::Stub, stub_of(transcript, position, PreserveErrors::Lines)?),
        Role::Assistant if message.calls().next().is_some() => {
            let form = render::shorten_arguments(message, ARGUMENT_KEPT, original)?;
            let form = Sent::rendered(Some(position), form, transcript.tokenizer());
            (Treatment::Shorten, Arc::new(form))
        }
        Role::User | Role::Assistant => {
            let form = render::stub_reasoning(message, original)?;
            let form = Sent::rendered(Some(position), form, transcript.tokenizer());
            (Treatment::Stub, Arc::new(form))
        }
    };
    let is_less = treatment >= decision.treatment && form.tokens < sent_tokens(decision);
    is_less.then_some((treatment, form))
}
