//! Whole while fresh, then settled for good as soon as that pays.
//!
//! For each old message two smaller forms are weighed: without the lines that other messages show, and the skeleton.
//! What a form saves at every further call is set against what it hides: the chance that it is needed again, times the
//! price of fetching it back. A change breaks the prefix, so changes are made from a place onward, where their sum
//! outweighs the rewriting of what stands behind.

mod messages;

use crate::attempts::Attempts;
use crate::cost::Prices;
use crate::plan::{Plan, Reason, newest, sent_tokens};
use crate::policy::Bounds;
use crate::transcript::{Position, Transcript};

use messages::Level;
pub(crate) use messages::Settled;

/// What settling is given beside the transcript.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) bounds: &'a Bounds,
    pub(crate) prices: &'a Prices,
    pub(crate) attempts: &'a Attempts,
    /// Whether the cache is gone, so that every change is free.
    pub(crate) cold: bool,
}

/// What one turn's decisions rest on.
#[derive(Debug, Clone, Copy)]
struct Terms<'a> {
    bounds: &'a Bounds,
    prices: &'a Prices,
    attempts: &'a Attempts,
    cold: bool,
    turn: u32,
    /// Calls that are expected to read what a tool answered, and what the model said.
    for_result: f64,
    for_said: f64,
    /// Tokens of the context.
    context: f64,
}

impl Terms<'_> {
    /// Returns the price of fetching back an original of `tokens`: the context read once more, the original written, and
    /// a call of 100 tokens.
    fn fetch(&self, tokens: u32) -> f64 {
        self.prices.cache_read * self.context
            + self.prices.cache_write * f64::from(tokens)
            + 100.0 * self.prices.output_ratio()
    }

    /// Returns what a token saved now is worth over the calls expected.
    fn saved_token(&self, calls: f64) -> f64 {
        let free = if self.cold { self.prices.cache_write - self.prices.cache_read } else { 0.0 };
        self.prices.cache_read * calls + free
    }
}

/// A change that would be worth making.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    position: Position,
    level: Level,
    reason: Reason,
    /// Plain input tokens saved over the calls expected, less the price of what may be needed again.
    gain: f64,
    /// Tokens by which the message shrinks.
    saved: f64,
}

/// Settles what pays.
pub(crate) fn settle(
    transcript: &Transcript,
    end: Position,
    given: &Given<'_>,
    settled: &mut Settled,
    plan: &mut Plan,
) {
    let Given { bounds, prices, attempts, cold } = *given;
    let seen = settled.seen();
    settled.read(transcript, end);
    let fresh = newest(transcript, end);
    let turn = plan.turn();
    let calls = u64::from(bounds.settle.calls_expected);
    let terms = Terms {
        bounds,
        prices,
        attempts,
        cold,
        turn,
        for_result: calls as f64,
        for_said: u64::from(turn).clamp(calls * 3 / 5, calls * 6 / 5) as f64,
        context: plan.tokens() as f64,
    };
    for position in fresh.max(seen)..end {
        settled.cut_giant(transcript, position, &terms, plan);
    }
    let mut candidates = Vec::new();
    for position in 0..fresh {
        if plan.is_protected(position) {
            continue;
        }
        settled.weigh(transcript, position, &terms);
        candidates.extend(settled.best(transcript, position, &terms));
    }
    let Some(start) = place(plan, seen, &candidates, &terms) else { return };
    for candidate in candidates.iter().filter(|candidate| candidate.position >= start) {
        // Weighed again: an earlier change of this turn may have hidden what this one counted on.
        settled.reweigh(transcript, candidate.position, &terms);
        settled.change(transcript, candidate.position, candidate.level, candidate.reason, plan);
    }
}

/// Finds the place from which making all changes gains most, or none.
fn place(
    plan: &Plan,
    seen: Position,
    candidates: &[Candidate],
    terms: &Terms<'_>,
) -> Option<Position> {
    let break_price =
        (1.0 + terms.bounds.settle.caution) * (terms.prices.cache_write - terms.prices.cache_read);
    let (mut gain, mut removed, mut behind) = (0.0, 0.0, 0.0);
    let (mut best, mut start) = (0.0, None);
    let mut at = plan.decisions().len();
    for candidate in candidates.iter().rev() {
        while at > candidate.position {
            at -= 1;
            // What the cache has not seen yet is written in any case.
            if at < seen {
                behind += f64::from(sent_tokens(&plan.decisions()[at]));
            }
        }
        gain += candidate.gain;
        if candidate.position < seen {
            removed += candidate.saved;
        }
        let rewritten = if terms.cold { 0.0 } else { f64::max(0.0, behind - removed) };
        let net = gain - rewritten * break_price;
        if net > best {
            best = net;
            start = Some(candidate.position);
        }
    }
    start
}
