//! The system's clock and random numbers, behind the ports of engine and models.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::Clock;
use plimsoll_models::{Chance, Outside};

use crate::clock;

/// Returns the system's clock and chance. Waiting needs a runtime with a timer.
pub(crate) fn outside() -> Outside {
    Outside { clock: Arc::new(SystemClock), chance: Arc::new(SystemChance) }
}

#[derive(Debug)]
struct SystemClock;

#[async_trait::async_trait]
impl Clock for SystemClock {
    fn now(&self) -> MillisSinceEpoch {
        clock::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[derive(Debug)]
struct SystemChance;

impl Chance for SystemChance {
    /// The standard library seeds each of its hashers by chance; that is enough to scatter retries.
    fn draw(&self) -> f64 {
        let bits = RandomState::new().build_hasher().finish() >> 11;
        bits as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_differ_and_stay_below_one() {
        let draws: Vec<f64> = (0..100).map(|_| SystemChance.draw()).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        assert!(draws.iter().any(|draw| *draw < 0.5) && draws.iter().any(|draw| *draw >= 0.5));
    }
}
