//! Percentiles and medians.

use std::time::Duration;

use serde_json::{Value, json};

/// Times in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latencies(Vec<f64>);

impl Latencies {
    pub(crate) fn new(times: impl Iterator<Item = Duration>) -> Self {
        let mut millis: Vec<f64> = times.map(|time| time.as_secs_f64() * 1000.0).collect();
        millis.sort_by(f64::total_cmp);
        Self(millis)
    }

    /// Returns the time, in milliseconds, that this share of all does not exceed.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let at = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(at.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "p50": self.percentile(0.5), "p90": self.percentile(0.9), "p99": self.percentile(0.99),
            "max": self.percentile(1.0),
        })
    }
}

/// Returns the middle of some figures, of two the mean.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}
