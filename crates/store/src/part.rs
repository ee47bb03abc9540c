//! The parts of a session: its own rows and, before those, some of the sessions that it goes back to.

use plimsoll_engine::{ReceiptRecord, SessionId};

/// Rows of one session that belong to another, or to itself.
#[derive(Debug, Clone)]
pub(crate) struct SharedPart {
    pub(crate) owner: SessionId,
    /// Its messages below this position.
    pub(crate) messages: u32,
    /// Its receipts of turns below this one, under these strategies and of no more messages; all, where it owns them itself.
    pub(crate) turns: u32,
    pub(crate) strategies: Vec<String>,
    pub(crate) is_own: bool,
}

impl SharedPart {
    /// Returns a receipt of the owner as the session has it; `None` where it belongs to its owner alone.
    pub(crate) fn share(
        &self,
        receipt: ReceiptRecord,
        session: &SessionId,
    ) -> Option<ReceiptRecord> {
        if self.is_own {
            return Some(receipt);
        }
        let is_shared = receipt.turn < self.turns
            && receipt.full_history_size <= self.messages
            && self.strategies.contains(&receipt.strategy);
        is_shared.then(|| receipt.inherited(session))
    }
}

/// Puts the receipts of a session's parts in their order; its own, which comes first, stands before one that it shares.
pub(crate) fn joined(mut receipts: Vec<ReceiptRecord>) -> Vec<ReceiptRecord> {
    receipts.sort_by(|a, b| (a.turn, &a.strategy).cmp(&(b.turn, &b.strategy)));
    receipts
        .dedup_by(|after, first| (after.turn, &after.strategy) == (first.turn, &first.strategy));
    receipts
}
