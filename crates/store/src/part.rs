//! The parts of a session: its own rows and, before those, some of the sessions that it goes back to.

use plimsoll_engine::{Branch, ReceiptRecord, SessionId};

/// Rows of one session that belong to another, or to itself.
#[derive(Debug, Clone)]
pub(crate) struct SharedPart {
    /// The share of the session in the rows; `from` owns them.
    pub(crate) branch: Branch,
    /// Whether the session owns the rows itself; then it has all of them.
    pub(crate) is_own: bool,
}

impl SharedPart {
    /// Returns the part of a session that it owns itself.
    pub(crate) fn own(session: &SessionId) -> Self {
        let (session, from) = (session.clone(), session.clone());
        let branch =
            Branch { session, from, messages: u32::MAX, turns: u32::MAX, strategies: Vec::new() };
        Self { branch, is_own: true }
    }

    /// Returns a receipt of the owner as the session has it; `None` where it belongs to its owner alone.
    pub(crate) fn share(&self, receipt: ReceiptRecord) -> Option<ReceiptRecord> {
        if self.is_own {
            return Some(receipt);
        }
        self.branch.shares(&receipt).then(|| receipt.inherited(&self.branch.session))
    }
}

/// Puts the receipts of a session's parts in their order; its own, which comes first, stands before one that it shares.
pub(crate) fn joined(mut receipts: Vec<ReceiptRecord>) -> Vec<ReceiptRecord> {
    receipts.sort_by(|a, b| (a.turn, &a.strategy).cmp(&(b.turn, &b.strategy)));
    receipts
        .dedup_by(|after, first| (after.turn, &after.strategy) == (first.turn, &first.strategy));
    receipts
}
