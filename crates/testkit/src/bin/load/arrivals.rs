//! Arrivals at a fixed rate that does not depend on earlier requests: an open loop.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

/// Sends the intended start of each of `rate × seconds` requests when it has come.
///
/// From a thread of its own: the runtime's timers are a millisecond coarse, which is more than what is measured.
pub(crate) fn arrivals(rate: f64, seconds: f64) -> UnboundedReceiver<Instant> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        let begin = Instant::now() + Duration::from_millis(20);
        let number = (rate * seconds).round() as u64;
        for at in 0..number {
            let intended = begin + Duration::from_secs_f64(at as f64 / rate);
            std::thread::sleep(intended.saturating_duration_since(Instant::now()));
            if sender.send(intended).is_err() {
                return;
            }
        }
    });
    receiver
}
