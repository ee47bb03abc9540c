//! Times as agents record them: RFC 3339, the same without a zone, or numbers of seconds or milliseconds.

use plimsoll_core::MillisSinceEpoch;

/// The largest number of seconds (chosen: the year 5138); larger numbers are milliseconds.
const LARGEST_SECONDS: f64 = 1e11;

/// Reads a time from its text.
pub(crate) fn from_text(text: &str) -> Option<MillisSinceEpoch> {
    if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
        return Some(MillisSinceEpoch(timestamp.as_millisecond()));
    }
    // Python writes local times without a zone; the servers that record sessions run in UTC.
    let local = text.parse::<jiff::civil::DateTime>().ok()?;
    let zoned = local.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(MillisSinceEpoch(zoned.timestamp().as_millisecond()))
}

/// Reads a time from a number.
pub(crate) fn from_number(number: f64) -> Option<MillisSinceEpoch> {
    let millis = if number > LARGEST_SECONDS { number } else { number * 1000.0 };
    (millis.is_finite() && millis.abs() < 1e15).then_some(MillisSinceEpoch(millis as i64))
}

/// Writes a time as RFC 3339 with milliseconds, as JavaScript does.
pub(crate) fn to_text(time: MillisSinceEpoch) -> String {
    let timestamp =
        jiff::Timestamp::from_millisecond(time.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{timestamp:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_one_instant_agree() {
        let expected = Some(MillisSinceEpoch(1_738_018_796_900));
        assert_eq!(from_text("2025-01-27T22:59:56.900Z"), expected);
        assert_eq!(from_text("2025-01-27T23:59:56.900+01:00"), expected);
        assert_eq!(from_text("2025-01-27T22:59:56.900854"), expected);
        assert_eq!(from_number(1_738_018_796_900.0), expected);
        assert_eq!(from_number(1_738_018_796.9), expected);
        assert_eq!(to_text(MillisSinceEpoch(1_738_018_796_900)), "2025-01-27T22:59:56.900Z");
        assert_eq!(from_text("yesterday"), None);
        assert_eq!(from_number(f64::INFINITY), None);
    }
}
