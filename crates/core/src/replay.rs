//! Replay: a recorded session under a policy, turn by turn, through the same [`bound`] that a live request takes.

use serde::Serialize;

use crate::bound::{Receipt, State, bound};
use crate::plan::Context;
use crate::policy::Policy;
use crate::reuse::{Missed, Score, Scorer};
use crate::terms::Terms;
use crate::transcript::Transcript;

/// One turn of a replay, as it happens.
#[derive(Debug)]
pub struct Turn<'a> {
    pub receipt: &'a Receipt,
    pub context: &'a Context,
    pub state: &'a State,
    /// What was needed next and hidden.
    pub missed: &'a [Missed],
}

/// A session under a policy.
#[derive(Debug, Clone, Serialize)]
pub struct Replay {
    pub receipts: Vec<Receipt>,
    pub totals: Totals,
    pub score: Score,
    pub missed: Vec<Missed>,
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
}

/// Replays `transcript` under `policy`; `each` sees every turn with its context.
pub fn replay(
    transcript: &Transcript,
    policy: &Policy,
    terms: &Terms,
    mut each: impl FnMut(Turn<'_>),
) -> Replay {
    let mut state = State::default();
    let mut scorer = Scorer::default();
    let mut replay = Replay {
        receipts: Vec::new(),
        totals: Totals::default(),
        score: Score::default(),
        missed: Vec::new(),
    };
    for position in transcript.requests() {
        let (context, receipt) = bound(transcript, position, policy, terms, &mut state);
        let missed = scorer.turn(transcript, position, &context);
        each(Turn { receipt: &receipt, context: &context, state: &state, missed: &missed });
        replay.totals.add(&receipt);
        replay.receipts.push(receipt);
        replay.missed.extend(missed);
    }
    replay.score = scorer.score();
    replay
}
