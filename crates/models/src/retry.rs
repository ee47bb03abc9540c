//! Retries of a call: pure, the chance is an argument.

use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;

use crate::config::Retries;

/// Returns how long to wait before the attempt after number `attempt`, counted from 1; `None` where there is none.
///
/// Full jitter: anything between nothing and a bound that doubles, so that many clients don't come back together. A server
/// that says when is never asked earlier; `chance` is from 0 to below 1.
/// Source: Amazon Web Services, Architecture Blog, "Exponential Backoff And Jitter", "full jitter".
pub(crate) fn pause(
    retries: Retries,
    attempt: u32,
    asked: Option<Duration>,
    chance: f64,
) -> Option<Duration> {
    if attempt >= retries.attempts {
        return None;
    }
    let longest = Duration::from_secs(retries.longest_seconds);
    let asked = asked.unwrap_or_default();
    if asked > longest {
        return None;
    }
    let doubled = 1_u64.checked_shl(attempt - 1).unwrap_or(u64::MAX);
    let bound = Duration::from_millis(retries.base_millis.saturating_mul(doubled)).min(longest);
    let chance = if chance.is_finite() { chance.clamp(0.0, 1.0) } else { 1.0 };
    Some((asked + bound.mul_f64(chance)).min(longest.max(asked)))
}

/// Reads `Retry-After`: seconds, or a date of HTTP. A date that is over asks for no wait.
pub(crate) fn retry_after(value: &str, now: MillisSinceEpoch) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        let seconds = if seconds < 0.0 { 0.0 } else { seconds };
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    let wait = date.timestamp().as_millisecond().saturating_sub(now.0);
    Some(Duration::from_millis(u64::try_from(wait).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRIES: Retries = Retries { attempts: 4, base_millis: 500, longest_seconds: 60 };

    #[test]
    fn pauses_are_anything_up_to_a_doubling_bound() {
        let millis =
            |attempt, chance| pause(RETRIES, attempt, None, chance).map(|pause| pause.as_millis());
        assert_eq!(
            [millis(1, 0.0), millis(1, 0.5), millis(1, 1.0)],
            [Some(0), Some(250), Some(500)]
        );
        assert_eq!(
            [millis(2, 1.0), millis(3, 1.0), millis(4, 1.0)],
            [Some(1000), Some(2000), None]
        );
        let many = Retries { attempts: 100, ..RETRIES };
        assert_eq!(pause(many, 99, None, 1.0), Some(Duration::from_mins(1)));
        assert!(pause(many, 1, None, f64::NAN).is_some());
    }

    #[test]
    fn a_server_is_never_asked_earlier_than_it_says() {
        let seconds = Duration::from_secs;
        assert_eq!(pause(RETRIES, 1, Some(seconds(7)), 0.0), Some(seconds(7)));
        assert_eq!(pause(RETRIES, 1, Some(seconds(7)), 1.0), Some(Duration::from_millis(7500)));
        assert_eq!(pause(RETRIES, 1, Some(seconds(60)), 1.0), Some(seconds(60)));
        assert_eq!(pause(RETRIES, 1, Some(seconds(61)), 0.0), None, "longer than anybody waits");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        // One minute before the date that the standard of HTTP shows.
        let now = MillisSinceEpoch(784_111_777_000 - 60_000);
        let read = |value| retry_after(value, now);
        assert_eq!(read(" 120 "), Some(Duration::from_mins(2)));
        assert_eq!(read("1.5"), Some(Duration::from_millis(1500)));
        assert_eq!(read("-3"), Some(Duration::ZERO));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_mins(1)));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!([read("soon"), read(""), read("1e300"), read("NaN")], [None, None, None, None]);
    }
}
