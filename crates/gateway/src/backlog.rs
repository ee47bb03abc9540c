//! The backlog: turns that the store did not take, kept in memory until it does.
//!
//! An answer is paid for when it comes, so a store that is full or locked must not withhold it. The order of turns is kept: while
//! one waits, those behind it wait too.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_engine::{HistoryBatch, StoreError, TenantId};

use crate::causes::causes;
use crate::gateway::Gateway;
use crate::metrics::Counter;
use crate::relay::until;
use crate::turn::append;

/// The pauses between two attempts: doubled from the first to the last (chosen: a lock is short, a full disk is not).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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

    fn first(&self) -> Option<WaitingTurn> {
        self.with(|queue| queue.turns.front().map(|(turn, _)| turn.clone()))
    }

    fn done(&self) {
        self.with(|queue| {
            if let Some((_, bytes)) = queue.turns.pop_front() {
                queue.bytes -= bytes;
            }
        });
    }

    /// Returns whether the caller is the one to work on it.
    fn begins(&self) -> bool {
        self.with(|queue| {
            !queue.turns.is_empty() && !std::mem::replace(&mut queue.is_worked_on, true)
        })
    }

    /// Ends the work, unless a turn came meanwhile.
    fn ends(&self) -> bool {
        self.with(|queue| {
            queue.is_worked_on = !queue.turns.is_empty();
            !queue.is_worked_on
        })
    }
}

/// Begins to give the waiting turns to the store, until it has them all or the gateway stops.
pub(crate) fn catch_up(gateway: &Arc<Gateway>) {
    if !gateway.backlog.begins() {
        return;
    }
    let gateway = gateway.clone();
    let held = gateway.behind.subscribe();
    tokio::spawn(async move {
        let _held = held;
        let mut stopping = gateway.stopping.subscribe();
        let mut pause = FIRST_PAUSE;
        loop {
            let is_last = tokio::select! {
                biased;
                () = until(&mut stopping) => true,
                () = gateway.clock.sleep(pause) => false,
            };
            if give(&gateway).await && gateway.backlog.ends() {
                tracing::info!("the history has caught up");
                return;
            }
            if is_last {
                let left = gateway.backlog.with(|queue| queue.turns.len());
                tracing::error!(left, "the gateway stops, and the store lacks answered turns");
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    });
}

/// Gives the store one waiting turn after the other; returns whether it has all.
async fn give(gateway: &Arc<Gateway>) -> bool {
    while let Some(WaitingTurn { tenant, batch, repeated }) = gateway.backlog.first() {
        let now = gateway.clock.now();
        match append(gateway, &tenant, batch, &repeated, now).await {
            Ok(()) => gateway.metrics.add(Counter::Store, "caught_up"),
            // It would be refused for ever: the session went on elsewhere, and has these messages from there.
            Err(error @ (StoreError::Conflict { .. } | StoreError::Invalid { .. })) => {
                tracing::warn!(error = %causes(&error), "a waiting turn has no place any more");
            }
            Err(error) => {
                tracing::warn!(error = %causes(&error), "the store still takes nothing");
                return false;
            }
        }
        gateway.backlog.done();
    }
    true
}
