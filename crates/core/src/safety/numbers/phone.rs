//! Telephone numbers, recognised by a plus, by the groups of national plans, or by the word before them.

use super::super::{Finding, SensitiveKind, before, is_word};
use super::Group;

/// Words before a telephone number.
const CALLS: &[&str] = &["phone", "tel", "mobile", "fax", "whatsapp", "sms", "call", "cell"];
/// Bytes before a number that are searched for such a word.
const BEFORE_PHONE: usize = 16;

/// Reads a telephone number: with a plus and a country, in the groups of a national plan, or behind a telephone word.
pub(super) fn phone(text: &str, group: &Group) -> Option<Finding> {
    let bytes = text.as_bytes();
    if !(7..=15).contains(&group.count) || group.parts().len() > 6 {
        return None;
    }
    let previous = before(bytes, group.start);
    let mut start = group.start;
    let international = previous == b'+' && !is_word(before(bytes, group.start - 1)) && {
        start -= 1;
        let first = start == 0 || bytes[start - 1] == b'\n';
        // An added line of a diff also begins with a plus, and may hold a time in milliseconds, which has 13 digits.
        (9..=15).contains(&group.count)
            && group.digits()[0] != 0
            && !(first && (group.is_plain() && group.count > 12 || group.all_by(b'.')))
            && group.parts()[0] <= if group.is_plain() { 15 } else { 4 }
    };
    let american = american(bytes, group, &mut start);
    let named = || {
        let from = text.floor_char_boundary(start.saturating_sub(BEFORE_PHONE));
        let last = text[from..start].rsplit(['\n', ',', ';', '.']).next().unwrap_or("");
        let lower = last.to_ascii_lowercase();
        // `phone`, `home_phone`, `Phone`; not the `CALL` of a constant.
        let spelled = CALLS.iter().any(|word| {
            lower.match_indices(word).any(|(at, _)| match before(last.as_bytes(), at) {
                b'_' => last[at..].starts_with(word),
                previous => !is_word(previous),
            })
        });
        spelled
            && (group.count >= 9 || !group.is_plain())
            && !lower.contains("call_")
            && !lower.contains("calls")
    };
    // Another number of a row stands before it.
    let in_row = previous == b' ' && before(bytes, group.start.saturating_sub(1)).is_ascii_digit();
    let european = !in_row
        && group.digits()[0] == 0
        && (group.parts() == [2, 2, 2, 2, 2]
            || group.parts() == [5, 6]
            || group.parts() == [3, 4, 4])
        && group.digits()[1] != 0
        && group.all_by(b' ');
    (international || american || european || named())
        .then_some(Finding { kind: SensitiveKind::Phone, bytes: start..group.end })
}

/// Reads `555-234-5678`, `(555) 234-5678` and `1-555-234-5678`; `start` goes back to the bracket.
fn american(bytes: &[u8], group: &Group, start: &mut usize) -> bool {
    let (area, exchange) = match (group.parts(), group.digits()[0]) {
        ([3, 3, 4], _) => (0, 3),
        ([1, 3, 3, 4], 1) => (1, 4),
        _ => return bracketed(bytes, group, start),
    };
    let plan = group.digits()[area] >= 2 && group.digits()[exchange] >= 2;
    plan && !group.mixed && matches!(group.separator, Some(b'-' | b'.'))
}

/// Reads the number behind a bracketed area code: `234-5678` of `(555) 234-5678`.
fn bracketed(bytes: &[u8], group: &Group, start: &mut usize) -> bool {
    if group.parts() != [3, 4] || group.digits()[0] < 2 {
        return false;
    }
    let space = usize::from(before(bytes, group.start) == b' ');
    let Some(open) = group.start.checked_sub(5 + space) else { return false };
    let area = &bytes[open..open + 5];
    let holds = area[0] == b'('
        && area[4] == b')'
        && area[1..4].iter().all(u8::is_ascii_digit)
        && area[1] >= b'2';
    if holds {
        *start = open;
    }
    holds
}
