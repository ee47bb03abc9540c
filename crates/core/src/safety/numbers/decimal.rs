//! Whole numbers that are written with a fraction or an exponent, as in the JSON of languages that know only floating numbers.

use super::super::byte_at;

/// The most digits before the exponent that are read: a floating number of 64 bits has 17.
const MOST_DIGITS: usize = 40;
/// The fewest digits up to the last that is not zero (chosen: `4.2e15` is a measure and no card).
const LEAST_DIGITS: usize = 11;

/// Returns the digits of the number at `at` and its end, if it has a fraction or an exponent and its value is whole.
pub(super) fn whole_digits(bytes: &[u8], at: usize) -> Option<(Vec<u8>, usize)> {
    let digits_at = |at: usize, most: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = digits_at(at, MOST_DIGITS);
    if !b".eE".contains(&byte_at(bytes, at + whole)) {
        return None;
    }
    let mut end = at + whole;
    let mut fraction = 0;
    if byte_at(bytes, end) == b'.' {
        fraction = digits_at(end + 1, MOST_DIGITS);
        end += if fraction > 0 { 1 + fraction } else { 0 };
    }
    if whole + fraction < LEAST_DIGITS {
        return None;
    }
    let mut digits = bytes[at..at + whole].to_vec();
    digits.extend_from_slice(&bytes[end - fraction..end]);
    let mut point = whole;
    if byte_at(bytes, end).eq_ignore_ascii_case(&b'e') {
        let sign = usize::from(b"+-".contains(&byte_at(bytes, end + 1)));
        let length = digits_at(end + 1 + sign, 3);
        let written = str::from_utf8(&bytes[end + 1 + sign..end + 1 + sign + length]).ok()?;
        let exponent: usize = written.parse().ok()?;
        let is_negative = byte_at(bytes, end + 1) == b'-';
        point = if is_negative { point.checked_sub(exponent)? } else { point + exponent };
        end += 1 + sign + length;
    }
    let next = byte_at(bytes, end);
    let goes_on = next.is_ascii_alphanumeric()
        || (b".-".contains(&next) && byte_at(bytes, end + 1).is_ascii_alphanumeric());
    let significant = digits.iter().rposition(|digit| *digit != b'0')? + 1;
    if end == at + whole || goes_on || significant < LEAST_DIGITS || significant > point {
        return None;
    }
    if point > MOST_DIGITS {
        return None;
    }
    digits.resize(point, b'0');
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.drain(..zeros);
    Some((digits, end))
}
