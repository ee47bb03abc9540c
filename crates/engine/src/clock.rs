//! The clock port: time is asked for, never taken.

use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::MillisSinceEpoch;

/// A clock that gives the time and waits; only the command line builds the real one.
#[async_trait]
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the present time.
    fn now(&self) -> MillisSinceEpoch;

    /// Returns when `duration` is over, counted from the call; a timeout is a race with it.
    async fn sleep(&self, duration: Duration);
}
