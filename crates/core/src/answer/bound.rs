//! The upper bound of a rate that was measured on few failures.

/// Returns the upper end of the one-sided 95 % interval (Clopper and Pearson) for a rate, after `failures` in `trials`.
///
/// Source: Biometrika 26 (1934): the rate at which so few failures would occur once in twenty times.
pub fn upper_bound(failures: u64, trials: u64) -> f64 {
    const CHANCE: f64 = 0.05;
    if failures >= trials {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    // Each step halves the interval: sixty reach the last bit.
    for _ in 0..60 {
        let rate = f64::midpoint(low, high);
        if at_most(failures, trials, rate) > CHANCE {
            low = rate;
        } else {
            high = rate;
        }
    }
    high
}

/// Returns the chance of at most `failures` among `trials` at `rate`.
fn at_most(failures: u64, trials: u64, rate: f64) -> f64 {
    let mut logarithm = trials as f64 * (-rate).ln_1p();
    let mut sum = logarithm.exp();
    for k in 1..=failures {
        // Each term follows from the last one, in logarithms, so that none underflows.
        let step = (trials - k + 1) as f64 / k as f64;
        logarithm += step.ln() + rate.ln() - (-rate).ln_1p();
        sum += logarithm.exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_tables() {
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-4, "{found}");
        // Without a failure it is 1 - 0.05^(1/n).
        close(upper_bound(0, 300), 0.009_936);
        close(upper_bound(0, 298), 0.010_002);
        close(upper_bound(1, 473), 0.009_987);
        close(upper_bound(5, 100), 0.102_27);
        close(upper_bound(0, 0), 1.0);
        close(upper_bound(7, 7), 1.0);
        assert!(upper_bound(900, 20_000) < 0.048);
    }
}
