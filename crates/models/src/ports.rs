//! The time and the chance that a client takes from outside.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::Clock;

/// Draws numbers; the real one is built by the command line only.
pub trait Chance: Send + Sync + Debug {
    /// Returns a number from 0 to below 1.
    fn draw(&self) -> f64;
}

/// The clock and the chance that clients are given.
#[derive(Debug, Clone)]
pub struct Outside {
    pub clock: Arc<dyn Clock>,
    pub chance: Arc<dyn Chance>,
}

impl Outside {
    /// Returns what `work` gives, or `None` if `limit` is over before.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.clock.sleep(limit) => None,
        }
    }

    /// Returns what is left of `limit`, counted from `start`.
    pub(crate) fn left(&self, start: plimsoll_core::MillisSinceEpoch, limit: Duration) -> Duration {
        let gone = self.clock.now().0.saturating_sub(start.0);
        limit.saturating_sub(Duration::from_millis(u64::try_from(gone).unwrap_or(0)))
    }
}
