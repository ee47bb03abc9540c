//! Replay: a recorded session under a policy, turn by turn, through the same [`bound`] that a live request takes.

mod sum;

use serde::Serialize;

use crate::context::{Receipt, State, bound};
use crate::cost::CacheKind;
use crate::message::{Message, MillisSinceEpoch};
use crate::need::{MissedContent, Score, Scorer};
use crate::plan::Context;
use crate::policy::Policy;
use crate::terms::Terms;
use crate::transcript::{Position, Transcript};

pub use sum::{PolicyFigures, ReplaySum, ratio};

/// A session, or the part of it between two compactions of its agent.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    pub transcript: &'a Transcript,
    /// Messages at the beginning that were there before the compaction, or summarise it: no request of theirs is asked again.
    pub known: Position,
}

impl<'a> From<&'a Transcript> for Stretch<'a> {
    fn from(transcript: &'a Transcript) -> Self {
        Self { transcript, known: 0 }
    }
}

/// One turn of a replay, as it happens.
#[derive(Debug)]
pub struct Turn<'a> {
    pub receipt: &'a Receipt,
    pub context: &'a Context,
    pub state: &'a State,
    /// Keys that the next step used and the context had hidden.
    pub missed: &'a [MissedContent],
    /// The stretch that positions are of, counted from 0.
    pub stretch: usize,
    pub terms: &'a Terms,
}

/// A session under a policy.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Replay {
    pub receipts: Vec<Receipt>,
    pub totals: Totals,
    pub score: Score,
    pub missed: Vec<MissedContent>,
}

/// Sums over all turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Totals {
    pub turns: u32,
    /// Input tokens of all turns, and of the full history.
    pub tokens: u64,
    pub full_tokens: u64,
    /// Of them, read from the cache.
    pub cached: f64,
    pub written: f64,
    /// Cost of the input in plain input tokens.
    pub cost: f64,
    /// Tokens of the largest context.
    pub peak: u64,
    /// Turns at which the prefix broke while the cache was warm.
    pub breaks: u32,
    /// Turns whose smallest context that means anything passed the budget.
    pub over_budget: u32,
    pub changes: u32,
    pub dollars: Dollars,
}

/// US dollars, each request by the prices of its own model and time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Dollars {
    /// Input of all turns under the policy.
    pub input: f64,
    /// The bill of the turns whose usage was reported, and their number.
    pub billed: f64,
    pub billed_turns: u32,
    /// The cost of those turns under the policy, with their output as reported.
    pub beside: f64,
}

impl Dollars {
    fn add(&mut self, receipt: &Receipt, terms: &Terms, answer: &Message) {
        let prices = &terms.prices;
        let input = prices.dollars(receipt.cost);
        self.input += input;
        if let Some(usage) = answer.usage.filter(|usage| usage.prompt_tokens > 0) {
            let band = prices.band(usage.prompt_tokens as f64);
            let own = prices.band(receipt.charge.prompt());
            let output = usage.output_tokens as f64 * prices.output / 1e6;
            self.billed += prices.billed(&usage);
            self.billed_turns += 1;
            // A smaller prompt may leave the band of the dearer output.
            self.beside += input + output * own.1.min(band.1);
        }
    }

    fn plus(&mut self, other: &Self) {
        self.input += other.input;
        self.billed += other.billed;
        self.billed_turns += other.billed_turns;
        self.beside += other.beside;
    }

    /// Returns the part of the bill that is left under the policy; `None` without a bill.
    pub fn of_bill(&self) -> Option<f64> {
        (self.billed > 0.0).then(|| self.beside / self.billed)
    }
}

impl Totals {
    fn add(&mut self, receipt: &Receipt) {
        self.turns += 1;
        self.tokens += receipt.tokens;
        self.full_tokens += receipt.full_tokens;
        self.cached += receipt.charge.cached;
        self.written += receipt.charge.written;
        self.cost += receipt.cost;
        self.peak = self.peak.max(receipt.tokens);
        self.breaks += u32::from(receipt.charge.broken);
        self.over_budget += u32::from(receipt.over_budget > 0);
        self.changes += receipt.changes.len() as u32;
    }

    /// Adds another session's.
    pub fn plus(&mut self, other: &Self) {
        self.turns += other.turns;
        self.tokens += other.tokens;
        self.full_tokens += other.full_tokens;
        self.cached += other.cached;
        self.written += other.written;
        self.cost += other.cost;
        self.peak = self.peak.max(other.peak);
        self.breaks += other.breaks;
        self.over_budget += other.over_budget;
        self.changes += other.changes;
        self.dollars.plus(&other.dollars);
    }
}

/// Replays `transcript` under `policy`; `each` sees every turn with its context.
pub fn replay(
    transcript: &Transcript,
    policy: &Policy,
    terms: &Terms,
    each: impl FnMut(Turn<'_>),
) -> Replay {
    replay_stretches([transcript.into()], policy, 0.0, |_| terms.clone(), each)
}

/// Replays a session that its agent compacted, one stretch after the other; `terms` are those of the request that a message
/// answers.
///
/// `shared` tokens at the beginning are always in the cache ([`crate::calibrate::RequestOverhead`]).
/// Turns are counted over all stretches. Tools and system prompt stay in the cache over a compaction; content that a
/// compaction took away can be needed by no turn behind it.
pub fn replay_stretches<'a>(
    stretches: impl IntoIterator<Item = Stretch<'a>>,
    policy: &Policy,
    shared: f64,
    terms: impl Fn(&Message) -> Terms,
    each: impl FnMut(Turn<'_>),
) -> Replay {
    play(stretches, policy, shared, terms, Scoring::Needs, each)
}

/// Replays as [`replay_stretches`] does, but looks for nothing that was needed and hidden, which takes a third of the time.
pub fn bound_stretches<'a>(
    stretches: impl IntoIterator<Item = Stretch<'a>>,
    policy: &Policy,
    shared: f64,
    terms: impl Fn(&Message) -> Terms,
    each: impl FnMut(Turn<'_>),
) -> Replay {
    play(stretches, policy, shared, terms, Scoring::Off, each)
}

/// Whether a replay looks for content that was needed and hidden.
#[derive(Clone, Copy, PartialEq)]
enum Scoring {
    Needs,
    Off,
}

fn play<'a>(
    stretches: impl IntoIterator<Item = Stretch<'a>>,
    policy: &Policy,
    shared: f64,
    terms: impl Fn(&Message) -> Terms,
    scoring: Scoring,
    mut each: impl FnMut(Turn<'_>),
) -> Replay {
    let mut replay = Replay::default();
    let mut last_time = None;
    for (index, stretch) in stretches.into_iter().enumerate() {
        let transcript = stretch.transcript;
        let turns_before = replay.totals.turns;
        let mut state = State::default();
        let mut scorer = Scorer::default();
        for position in transcript.requests().filter(|at| *at >= stretch.known) {
            let answer = &transcript.entries()[position].message;
            let terms = terms(answer);
            let time = transcript.time_before(position);
            let (context, mut receipt) = bound(transcript, position, policy, &terms, &mut state);
            if index > 0 && replay.totals.turns == turns_before {
                keep_before(&mut receipt, &terms, last_time, time);
            }
            if shared > receipt.charge.cached {
                receipt.charge.share(shared);
                receipt.cost = terms.prices.input_cost(&receipt.charge);
            }
            last_time = answer.time.or(time).or(last_time);
            let mut missed = match scoring {
                Scoring::Needs => scorer.turn(transcript, position, &context, &terms, receipt.cost),
                Scoring::Off => Vec::new(),
            };
            receipt.turn = replay.totals.turns;
            for missed in &mut missed {
                missed.turn = receipt.turn;
            }
            each(Turn {
                receipt: &receipt,
                context: &context,
                state: &state,
                missed: &missed,
                stretch: index,
                terms: &terms,
            });
            replay.totals.add(&receipt);
            replay.totals.dollars.add(&receipt, &terms, answer);
            replay.receipts.push(receipt);
            replay.missed.extend(missed);
        }
        replay.score.add(&scorer.score());
    }
    replay
}

/// Charges tools and system prompt as read if the last request before a compaction left them in the cache.
fn keep_before(
    receipt: &mut Receipt,
    terms: &Terms,
    last: Option<MillisSinceEpoch>,
    now: Option<MillisSinceEpoch>,
) {
    let around = &terms.around;
    let is_kept = terms.prices.cache != CacheKind::Marks || around.before_mark.is_some();
    let is_long = around.before >= f64::from(terms.prices.cache_least);
    if !is_kept || !is_long || terms.effective_prices().is_cold(last, now) {
        return;
    }
    let charge = &mut receipt.charge;
    let read = around.before.min(charge.written);
    charge.cached += read;
    charge.written -= read;
    charge.written_long = (charge.written_long - read).max(0.0).min(charge.written);
    receipt.cost = terms.prices.input_cost(charge);
}

#[cfg(test)]
mod tests;
