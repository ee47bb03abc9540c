//! The backlog: turns that the store did not take, kept in memory until it does.
//!
//! An answer is paid for when it comes, so a store that is full or locked must not withhold it. The order of turns is kept: while
//! one waits, those behind it wait too.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use plimsoll_engine::{HistoryBatch, TenantId};

/// A turn that waits for the store.
#[derive(Debug, Clone)]
pub(crate) struct WaitingTurn {
    pub(crate) tenant: TenantId,
    pub(crate) batch: HistoryBatch,
    /// The positions of messages that repeat earlier ones.
    pub(crate) repeated: BTreeSet<u32>,
}

impl WaitingTurn {
    fn bytes(&self) -> usize {
        let messages = self.batch.messages.iter().map(|record| record.message.shown().len() + 500);
        let receipts = self.batch.receipts.iter().map(|record| record.receipt.len() + 500);
        messages.chain(receipts).sum()
    }
}

#[derive(Debug, Default)]
struct Queue {
    turns: VecDeque<(WaitingTurn, usize)>,
    bytes: usize,
    is_worked_on: bool,
}

/// The turns that wait.
#[derive(Debug)]
pub(crate) struct Backlog {
    queue: Mutex<Queue>,
    most: usize,
}

impl Backlog {
    pub(crate) fn new(most: usize) -> Self {
        Self { queue: Mutex::default(), most }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Queue) -> T) -> T {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether the store lacks turns that were answered.
    pub(crate) fn is_behind(&self) -> bool {
        self.with(|queue| !queue.turns.is_empty())
    }

    /// Returns whether no more turns can wait.
    pub(crate) fn is_full(&self) -> bool {
        self.with(|queue| queue.bytes >= self.most && !queue.turns.is_empty())
    }

    /// Lets a turn wait; false where there is no room.
    pub(crate) fn push(&self, turn: WaitingTurn) -> bool {
        let bytes = turn.bytes();
        self.with(|queue| {
            if queue.bytes + bytes > self.most && !queue.turns.is_empty() {
                return false;
            }
            queue.bytes += bytes;
            queue.turns.push_back((turn, bytes));
            true
        })
    }

    /// Returns the turn that has waited longest.
    pub(crate) fn first(&self) -> Option<WaitingTurn> {
        self.with(|queue| queue.turns.front().map(|(turn, _)| turn.clone()))
    }

    /// Lets go of the turn that has waited longest.
    pub(crate) fn done(&self) {
        self.with(|queue| {
            if let Some((_, bytes)) = queue.turns.pop_front() {
                queue.bytes -= bytes;
            }
        });
    }

    /// Returns how many turns wait.
    pub(crate) fn waiting(&self) -> usize {
        self.with(|queue| queue.turns.len())
    }

    /// Returns whether the caller is the one to work on it.
    pub(crate) fn begins(&self) -> bool {
        self.with(|queue| {
            !queue.turns.is_empty() && !std::mem::replace(&mut queue.is_worked_on, true)
        })
    }

    /// Ends the work, unless a turn came meanwhile.
    pub(crate) fn ends(&self) -> bool {
        self.with(|queue| {
            queue.is_worked_on = !queue.turns.is_empty();
            !queue.is_worked_on
        })
    }
}
