//! Numbers of persons: cards, accounts, telephones, national ids, checked by checksum where they have one.

mod decimal;
mod iban;
mod national;
mod phone;

use super::{Finding, SensitiveKind, before, byte_at, follows_escape, is_word};

use decimal::whole_digits;
use iban::iban;
use national::{chinese_check, is_chinese, is_cpf, is_dni, is_nir, is_social_security, nie, nino};
use phone::phone;

/// Adds the numbers found in `text`.
pub(super) fn find(text: &str, found: &mut Vec<Finding>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte.is_ascii_digit() {
            if !before(bytes, at).is_ascii_alphanumeric() || follows_escape(bytes, at) {
                let group = Group::read(bytes, at, b" -.");
                let finding = (group.count >= 7).then(|| of_group(text, &group)).flatten();
                let finding = finding.or_else(|| columns(text, at));
                if let Some(finding) = finding.or_else(|| written_card(bytes, at)) {
                    at = finding.bytes.end;
                    found.push(finding);
                    continue;
                }
            }
            // No number begins inside a run of digits.
            while at < bytes.len() && bytes[at].is_ascii_digit() {
                at += 1;
            }
            continue;
        }
        if byte.is_ascii_uppercase()
            && (!before(bytes, at).is_ascii_alphanumeric() || follows_escape(bytes, at))
        {
            let next = byte_at(bytes, at + 1);
            let alone = before(bytes, at) != b'_';
            let finding = if next.is_ascii_uppercase() {
                iban(bytes, at).or_else(|| nino(bytes, at).filter(|_| alone))
            } else if next.is_ascii_digit() && alone {
                nie(bytes, at)
            } else {
                None
            };
            if let Some(finding) = finding {
                at = finding.bytes.end;
                found.push(finding);
                continue;
            }
        }
        at += 1;
    }
}

/// A run of digits with single separators between them.
struct Group {
    start: usize,
    /// Behind the last digit.
    end: usize,
    /// The digits, at most [`MOST_DIGITS`], as numbers.
    digits: [u8; MOST_DIGITS],
    /// How many digits there are; no number of a person has more than [`MOST_DIGITS`].
    count: usize,
    /// Lengths of the parts between separators, at most eight.
    parts: [usize; 8],
    part_count: usize,
    /// The separator, if all are the same.
    separator: Option<u8>,
    mixed: bool,
}

/// The longest number that is looked for is a card of 19 digits.
const MOST_DIGITS: usize = 20;

impl Group {
    /// Reads from `start` on; one of `separators` may stand between two digits.
    fn read(bytes: &[u8], start: usize, separators: &[u8]) -> Self {
        let mut group = Self {
            start,
            end: start,
            digits: [0; MOST_DIGITS],
            count: 0,
            parts: [0; 8],
            part_count: 0,
            separator: None,
            mixed: false,
        };
        let mut at = start;
        let mut part = 0;
        // The end at the longest number keeps the work on a megabyte of digits linear.
        while at < bytes.len() && group.count <= MOST_DIGITS {
            let byte = bytes[at];
            if byte.is_ascii_digit() {
                if group.count < MOST_DIGITS {
                    group.digits[group.count] = byte - b'0';
                }
                group.count += 1;
                part += 1;
                at += 1;
                group.end = at;
                continue;
            }
            if !separators.contains(&byte)
                || !byte_at(bytes, at + 1).is_ascii_digit()
                || group.part_count == 7
            {
                break;
            }
            group.parts[group.part_count] = part;
            group.part_count += 1;
            part = 0;
            group.mixed |= group.separator.is_some_and(|separator| separator != byte);
            group.separator = Some(byte);
            at += 1;
        }
        group.parts[group.part_count] = part;
        group.part_count += 1;
        group
    }

    fn digits(&self) -> &[u8] {
        &self.digits[..self.count.min(MOST_DIGITS)]
    }

    fn parts(&self) -> &[usize] {
        &self.parts[..self.part_count]
    }

    fn is_plain(&self) -> bool {
        self.separator.is_none()
    }

    fn all_by(&self, separator: u8) -> bool {
        self.separator == Some(separator) && !self.mixed
    }

    fn number(&self, from: usize, length: usize) -> u32 {
        self.digits()[from..from + length]
            .iter()
            .fold(0, |number, digit| number * 10 + u32::from(*digit))
    }
}

/// Reads a card whose groups of four stand behind tabs or `_`; other numbers are never printed so.
fn columns(text: &str, at: usize) -> Option<Finding> {
    let separator = byte_at(text.as_bytes(), at + 4);
    if !b"\t_".contains(&separator) {
        return None;
    }
    let group = Group::read(text.as_bytes(), at, &[separator]);
    of_group(text, &group).filter(|finding| finding.kind == SensitiveKind::PaymentCard)
}

/// Reads a card that was written as a decimal number: `4111111111111111.0`, `4.111111111111111e15`.
fn written_card(bytes: &[u8], at: usize) -> Option<Finding> {
    let (digits, end) = whole_digits(bytes, at)?;
    let mut group = Group::read(&digits, 0, b"");
    (group.start, group.end) = (at, end);
    let previous = before(bytes, at);
    let within = b".-/".contains(&previous) && before(bytes, at - 1).is_ascii_alphanumeric();
    (!within && is_card(&group))
        .then_some(Finding { kind: SensitiveKind::PaymentCard, bytes: at..end })
}

fn of_group(text: &str, group: &Group) -> Option<Finding> {
    let bytes = text.as_bytes();
    let (previous, next) = (before(bytes, group.start), byte_at(bytes, group.end));
    // It is not part of a longer number, name or version. A minus, a dash and the point of a sentence may stand before it.
    let signed = b".-".contains(&previous).then(|| before(bytes, group.start - 1));
    let goes_on = |next: u8| {
        next.is_ascii_alphanumeric()
            || (b".-".contains(&next) && byte_at(bytes, group.end + 1).is_ascii_alphanumeric())
    };
    let is_whole = previous != b'/' && !goes_on(next) && group.count <= MOST_DIGITS;
    let in_name = previous == b'_' || next == b'_';
    let stands_alone = is_whole && !in_name && signed.is_none_or(|before| !is_word(before));
    let finding = |kind| Some(Finding { kind, bytes: group.start..group.end });
    // Cards have the strongest form, so a name before them hides nothing.
    if is_whole && !signed.is_some_and(|before| before.is_ascii_digit()) && is_card(group) {
        return finding(SensitiveKind::PaymentCard);
    }
    if stands_alone
        && (is_social_security(group) || is_cpf(group) || is_nir(group) || is_chinese(group))
    {
        return finding(SensitiveKind::NationalId);
    }
    if group.count == 17
        && group.is_plain()
        && byte_at(bytes, group.end).eq_ignore_ascii_case(&b'X')
        && chinese_check(group) == Some(10)
        && !in_name
        && !is_word(byte_at(bytes, group.end + 1))
    {
        return Some(Finding {
            kind: SensitiveKind::NationalId,
            bytes: group.start..group.end + 1,
        });
    }
    if group.count == 8
        && group.is_plain()
        && is_dni(group, byte_at(bytes, group.end))
        && !is_word(byte_at(bytes, group.end + 1))
        && !in_name
        && !b"-./".contains(&previous)
    {
        return Some(Finding {
            kind: SensitiveKind::NationalId,
            bytes: group.start..group.end + 1,
        });
    }
    if stands_alone && signed.is_none() { phone(text, group) } else { None }
}

fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let value = u32::from(*digit) << (place % 2);
            if value > 9 { value - 9 } else { value }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Recognises cards by the number ranges of ISO/IEC 7812 that the networks publish, in printed groups or in none.
fn is_card(group: &Group) -> bool {
    let length = group.count;
    if !(14..=19).contains(&length) || group.mixed {
        return false;
    }
    let grouped =
        matches!(group.parts(), [4, 4, 4, 4] | [4, 6, 4 | 5] | [4, 4, 4, 4, 3] | [14..=19]);
    let (two, three, four) = (group.number(0, 2), group.number(0, 3), group.number(0, 4));
    let network = match length {
        14 => (300..=305).contains(&three) || matches!(two, 36 | 38 | 39),
        15 => matches!(two, 34 | 37),
        16 => {
            two / 10 == 4
                || (51..=55).contains(&two)
                || (2221..=2720).contains(&four)
                || four == 6011
                || two == 65
                || (644..=649).contains(&three)
                || (3528..=3589).contains(&four)
                || two == 62
        }
        19 => two / 10 == 4 || two == 62,
        _ => two == 62,
    };
    // Examples of forms repeat one digit.
    let digits = group.digits();
    let first = digits[0];
    network && grouped && luhn(digits) && digits.iter().any(|digit| *digit != first)
}
