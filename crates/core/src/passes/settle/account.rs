//! The account of a session: its savings so far, and its cost without Plimsoll.

use crate::plan::{Plan, sent_tokens};
use crate::transcript::{Position, Transcript};

use super::{Given, unseen};

/// Sums in plain input tokens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Account {
    saved: f64,
    full: f64,
}

impl Account {
    /// Adds a request: its planned cost before this turn's changes, and the cost of the full history.
    ///
    /// Messages from `seen` on are new to the provider.
    pub(super) fn request(
        &mut self,
        transcript: &Transcript,
        plan: &Plan,
        given: &Given<'_>,
        seen: Position,
    ) {
        let decisions = plan.decisions();
        let seen = seen.min(decisions.len());
        let (mut fresh, mut fresh_sent) = ((0.0, 0.0), 0);
        for (position, decision) in decisions.iter().enumerate().skip(seen) {
            let unseen = unseen(transcript, position, given.terms);
            fresh.0 += f64::from(decision.whole.tokens) + unseen;
            fresh.1 += f64::from(sent_tokens(decision)) + unseen;
            fresh_sent += u64::from(sent_tokens(decision));
        }
        // The sums give what the provider had seen before, so that only new messages are added up.
        let turns = transcript.entries()[..seen].last().map_or(0, |last| last.turn);
        let unseen = f64::from(turns) * given.terms.around.unseen;
        let old = (
            transcript.tokens_before(seen) as f64 + unseen,
            (plan.tokens_by_role().total() - fresh_sent) as f64 + unseen,
        );
        let prices = given.prices;
        let of_old = if given.cold { prices.cache_write } else { prices.cache_read };
        let whole = old.0 * of_old + fresh.0 * prices.cache_write;
        // Tools and system prompt are written once and read from then on.
        let before = if seen == 0 || given.cold { prices.cache_write } else { prices.cache_read };
        self.full += whole + before * given.terms.around.before;
        self.saved += whole - (old.1 * of_old + fresh.1 * prices.cache_write);
    }

    /// Subtracts the cost of a break or a lookup.
    pub(super) fn spend(&mut self, cost: f64) {
        self.saved -= cost;
    }

    /// Returns the most that a break may cost: half of the savings so far, and a share of the whole bill.
    ///
    /// Half, since counts are off by some percent, and one late break would take all that a long session had saved.
    pub(super) fn allowed(&self, share: f64) -> f64 {
        let saved = if self.saved > 0.0 { self.saved / 2.0 } else { self.saved };
        f64::max(0.0, saved + self.full * share)
    }
}
