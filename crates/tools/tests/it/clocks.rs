//! Clocks whose time stands, or is over at once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::Clock;

/// No time passes: nothing ever takes too long.
pub(crate) fn standing() -> Arc<dyn Clock> {
    Arc::new(Standing)
}

/// Every wait is over when it begins: what does not answer at once takes too long.
pub(crate) fn racing() -> Arc<dyn Clock> {
    Arc::new(Racing)
}

#[derive(Debug)]
struct Standing;

#[async_trait]
impl Clock for Standing {
    fn now(&self) -> MillisSinceEpoch {
        MillisSinceEpoch(0)
    }

    async fn sleep(&self, _duration: Duration) {
        std::future::pending::<()>().await;
    }
}

#[derive(Debug)]
struct Racing;

#[async_trait]
impl Clock for Racing {
    fn now(&self) -> MillisSinceEpoch {
        MillisSinceEpoch(0)
    }

    async fn sleep(&self, _duration: Duration) {}
}
