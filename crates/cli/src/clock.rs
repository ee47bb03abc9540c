//! The clock and the calendar, read once by a command that shows ages.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_core::MillisSinceEpoch;

/// Returns the time now; 0 on a machine whose clock stands before 1970.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub(crate) fn now() -> MillisSinceEpoch {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    MillisSinceEpoch(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Starts a stopwatch.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub(crate) fn stopwatch() -> std::time::Instant {
    std::time::Instant::now()
}

/// Writes a time to the minute, `2026-01-31 14:05 UTC`; a time outside the calendar as its number.
pub(crate) fn date(time: MillisSinceEpoch) -> String {
    jiff::Timestamp::from_millisecond(time.0).map_or_else(
        |_| format!("{} ms", time.0),
        |stamp| stamp.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

/// Reads a time, `2026-01-31T14:05:00Z`, or a date as its first moment in UTC.
pub(crate) fn parse(text: &str) -> Option<MillisSinceEpoch> {
    if let Ok(stamp) = text.parse::<jiff::Timestamp>() {
        return Some(MillisSinceEpoch(stamp.as_millisecond()));
    }
    let date: jiff::civil::Date = text.parse().ok()?;
    let stamp = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(MillisSinceEpoch(stamp.timestamp().as_millisecond()))
}

/// Writes a span of time by its two largest units, `3 h 12 min`.
pub(crate) fn span(millis: i64) -> String {
    const UNITS: [(&str, i64); 4] = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let seconds = millis.max(0) / 1000;
    let Some(at) = UNITS.iter().position(|(_, size)| seconds >= *size) else {
        return "0 s".to_owned();
    };
    let (unit, size) = UNITS[at];
    let mut out = format!("{} {unit}", seconds / size);
    if let Some((smaller, part)) = UNITS.get(at + 1)
        && seconds % size / part > 0
    {
        let _ = write!(out, " {} {smaller}", seconds % size / part);
    }
    out
}

/// Writes how long before `now` something was, by its largest unit: `3 h ago`.
pub(crate) fn age(now: MillisSinceEpoch, then: MillisSinceEpoch) -> String {
    let seconds = now.0.saturating_sub(then.0) / 1000;
    match seconds {
        ..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units() {
        assert_eq!(span(-5), "0 s");
        assert_eq!(span(59_999), "59 s");
        assert_eq!(span(3_600_000), "1 h");
        assert_eq!(span(11_521_000), "3 h 12 min");
        assert_eq!(span(90_000_000_000), "1041 d 16 h");
    }

    #[test]
    fn ages_have_one_unit() {
        let age = |seconds: i64| age(MillisSinceEpoch(seconds * 1000), MillisSinceEpoch(0));
        assert_eq!(age(-9), "just now");
        assert_eq!(age(61), "1 min ago");
        assert_eq!(age(7200), "2 h ago");
        assert_eq!(age(864_000), "10 d ago");
    }

    #[test]
    fn times_and_dates_are_read() {
        let day = 1_738_022_400_000;
        assert_eq!(parse("2025-01-28"), Some(MillisSinceEpoch(day)));
        assert_eq!(parse("2025-01-28T00:00:01Z"), Some(MillisSinceEpoch(day + 1000)));
        assert_eq!(parse("yesterday"), None);
    }

    #[test]
    fn dates_are_utc_to_the_minute() {
        assert_eq!(date(MillisSinceEpoch(1_738_018_796_900)), "2025-01-27 22:59 UTC");
        assert_eq!(date(MillisSinceEpoch(i64::MAX)), "9223372036854775807 ms");
    }
}
