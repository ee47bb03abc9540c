//! A clock that stands until a test moves it.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::Clock;
use tokio::sync::watch;

/// Time as a test wants it: waits up to a limit are over at once, longer ones when the test moves the clock past them.
///
/// So pauses between retries pass by themselves, and a timeout strikes only on purpose.
#[derive(Debug)]
pub struct ManualClock {
    now: watch::Sender<i64>,
    limit: Duration,
    waits: Mutex<Vec<Duration>>,
}

impl ManualClock {
    /// Makes a clock that stands at `now`; a wait of at most `limit` moves it by itself.
    pub fn new(now: MillisSinceEpoch, limit: Duration) -> Self {
        Self { now: watch::Sender::new(now.0), limit, waits: Mutex::default() }
    }

    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        self.now.send_modify(|now| *now = now.saturating_add(millis(by)));
    }

    /// Returns the waits that passed by themselves, in order.
    pub fn waits(&self) -> Vec<Duration> {
        self.waits.lock().expect("no test panics while it holds this").clone()
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> MillisSinceEpoch {
        MillisSinceEpoch(*self.now.borrow())
    }

    async fn sleep(&self, duration: Duration) {
        if duration <= self.limit {
            self.waits.lock().expect("no test panics while it holds this").push(duration);
            self.advance(duration);
            return;
        }
        let until = self.now().0.saturating_add(millis(duration));
        // The sender lives as long as the clock, so this ends by the time only.
        let _ = self.now.subscribe().wait_for(|now| *now >= until).await;
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
