//! Catching up: turns that wait are given to the store until it has them all.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::StoreError;

use crate::append::append;
use crate::backlog::WaitingTurn;
use crate::causes::causes;
use crate::gateway::Gateway;
use crate::metrics::Counter;
use crate::relay::until;

/// The pauses between two attempts: doubled from the first to the last (chosen: a lock is short, a full disk is not).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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
            Ok(_) => gateway.metrics.add(Counter::Store, "caught_up"),
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
