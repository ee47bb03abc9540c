//! Numbers that belong to a person: cards, accounts, telephones, national ids. Checksums where there are some.

use super::{Finding, Sensitive, before, byte_at, is_word};

/// Adds the numbers found in `text`.
pub(super) fn find(text: &str, found: &mut Vec<Finding>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte.is_ascii_digit() {
            if !is_word(before(bytes, at)) || after_escape(bytes, at) {
                let group = Group::read(bytes, at);
                if group.count >= 7
                    && let Some(finding) = of_group(text, &group)
                {
                    at = finding.bytes.end;
                    found.push(finding);
                    continue;
                }
            }
            // The rest of the same run begins nothing.
            while at < bytes.len() && bytes[at].is_ascii_digit() {
                at += 1;
            }
            continue;
        }
        if byte.is_ascii_uppercase() && !is_word(before(bytes, at)) {
            let next = byte_at(bytes, at + 1);
            let finding = if next.is_ascii_uppercase() {
                iban(bytes, at).or_else(|| nino(bytes, at))
            } else if next.is_ascii_digit() {
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

/// A run of digits with single separators between, as it stands at one place.
struct Group {
    start: usize,
    /// Behind the last digit.
    end: usize,
    /// The digits, at most [`MOST_DIGITS`], as numbers.
    digits: [u8; MOST_DIGITS],
    /// How many there are; more than [`MOST_DIGITS`] belong to nobody.
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
    fn read(bytes: &[u8], start: usize) -> Self {
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
        // A megabyte of digits is not read again for each of its parts: beyond the most it ends.
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
            if !b" -.".contains(&byte)
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

fn of_group(text: &str, group: &Group) -> Option<Finding> {
    let bytes = text.as_bytes();
    // Part of a longer number, name or version.
    let stands_alone = {
        let (previous, next) = (before(bytes, group.start), byte_at(bytes, group.end));
        let dotted = previous == b'.' || previous == b'-' || previous == b'/';
        let goes_on = is_word(next)
            || (b".-".contains(&next) && byte_at(bytes, group.end + 1).is_ascii_alphanumeric());
        !dotted && !goes_on && group.count <= MOST_DIGITS
    };
    let finding = |kind| Some(Finding { kind, bytes: group.start..group.end });
    if stands_alone {
        if is_card(group) {
            return finding(Sensitive::PaymentCard);
        }
        if is_social_security(group) || is_cpf(group) || is_nir(group) || is_chinese(group) {
            return finding(Sensitive::NationalId);
        }
    }
    if group.count == 17
        && group.is_plain()
        && byte_at(bytes, group.end).eq_ignore_ascii_case(&b'X')
        && chinese_check(group) == Some(10)
        && !is_word(byte_at(bytes, group.end + 1))
    {
        return Some(Finding { kind: Sensitive::NationalId, bytes: group.start..group.end + 1 });
    }
    if group.count == 8
        && group.is_plain()
        && is_dni(group, byte_at(bytes, group.end))
        && !is_word(byte_at(bytes, group.end + 1))
        && !b"-./".contains(&before(bytes, group.start))
    {
        return Some(Finding { kind: Sensitive::NationalId, bytes: group.start..group.end + 1 });
    }
    if stands_alone { phone(text, group) } else { None }
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

/// Cards by the number ranges of ISO/IEC 7812 that the networks publish, in the groups that are printed or in none.
fn is_card(group: &Group) -> bool {
    let length = group.count;
    if !(14..=19).contains(&length) || group.mixed || group.separator == Some(b'.') {
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
    // Rows of one digit, or of two, stand for a card in examples of forms.
    let digits = group.digits();
    let first = digits[0];
    network && grouped && luhn(digits) && digits.iter().any(|digit| *digit != first)
}

/// United States, Social Security Number: the areas, groups and serials that are never given out are none.
fn is_social_security(group: &Group) -> bool {
    if group.parts() != [3, 2, 4] || !group.all_by(b'-') {
        return false;
    }
    let area = group.number(0, 3);
    !matches!(area, 0 | 666 | 900..) && group.number(3, 2) != 0 && group.number(5, 4) != 0
}

/// Brazil, CPF, as it is printed: `000.000.000-00`, with two check digits.
fn is_cpf(group: &Group) -> bool {
    if group.parts() != [3, 3, 3, 2] || !group.mixed {
        return false;
    }
    let digits = group.digits();
    let check = |count: usize| {
        let weights = (2..=u32::try_from(count).unwrap_or(0) + 1).rev();
        let sum: u32 = digits[..count]
            .iter()
            .zip(weights)
            .map(|(digit, weight)| u32::from(*digit) * weight)
            .sum();
        (sum * 10 % 11 % 10) as u8
    };
    digits[9] == check(9) && digits[10] == check(10) && digits.iter().any(|d| *d != digits[0])
}

/// France, NIR: 13 digits and the key modulo 97.
fn is_nir(group: &Group) -> bool {
    let grouped = matches!(group.parts(), [15] | [1, 2, 2, 2, 3, 3, 2] | [13, 2]);
    if group.count != 15 || !grouped || !matches!(group.digits()[0], 1 | 2) {
        return false;
    }
    let month = group.number(3, 2);
    let number = group.digits()[..13].iter().fold(0_u64, |n, digit| n * 10 + u64::from(*digit));
    (1..=12).contains(&month) && 97 - number % 97 == u64::from(group.number(13, 2))
}

/// China, resident identity number (GB 11643): a date inside, and a check digit.
fn is_chinese(group: &Group) -> bool {
    group.count == 18 && group.is_plain() && chinese_check(group) == Some(group.digits()[17])
}

fn chinese_check(group: &Group) -> Option<u8> {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    if !is_date(group.number(6, 4), group.number(10, 2), group.number(12, 2))
        || group.digits()[0] == 0
    {
        return None;
    }
    let sum: u32 =
        group.digits().iter().zip(WEIGHTS).map(|(digit, weight)| u32::from(*digit) * weight).sum();
    Some(((12 - sum % 11) % 11) as u8)
}

fn is_date(year: u32, month: u32, day: u32) -> bool {
    (1900..=2099).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)
}

/// The letter of a Spanish DNI or NIE, by the number modulo 23.
fn spanish_letter(number: u32) -> u8 {
    b"TRWAGMYFPDXBNJZSQVHLCKE"[(number % 23) as usize]
}

/// Spain, DNI: eight digits and their letter; a date with a letter behind it is a timestamp.
fn is_dni(group: &Group, letter: u8) -> bool {
    letter == spanish_letter(group.number(0, 8))
        && !is_date(group.number(0, 4), group.number(4, 2), group.number(6, 2))
}

/// Spain, NIE: X, Y or Z in the place of the first digit.
fn nie(bytes: &[u8], at: usize) -> Option<Finding> {
    let first = u32::from(bytes[at].checked_sub(b'X').filter(|first| *first < 3)?);
    let digits = bytes.get(at + 1..at + 8)?;
    if !digits.iter().all(u8::is_ascii_digit) || is_word(byte_at(bytes, at + 9)) {
        return None;
    }
    let number = digits.iter().fold(first, |number, digit| number * 10 + u32::from(digit - b'0'));
    (byte_at(bytes, at + 8) == spanish_letter(number))
        .then_some(Finding { kind: Sensitive::NationalId, bytes: at..at + 9 })
}

/// United Kingdom, National Insurance number: prefixes as HMRC gives them out, and a letter of A to D behind.
fn nino(bytes: &[u8], at: usize) -> Option<Finding> {
    const NEVER: [&[u8]; 7] = [b"BG", b"GB", b"NK", b"KN", b"TN", b"NT", b"ZZ"];
    let prefix = bytes.get(at..at + 2)?;
    if b"DFIQUV".contains(&prefix[0]) || b"DFIOQUV".contains(&prefix[1]) || NEVER.contains(&prefix)
    {
        return None;
    }
    let spaced = byte_at(bytes, at + 2) == b' ';
    let mut end = at + 2;
    for _ in 0..3 {
        end += usize::from(spaced);
        let pair = bytes.get(end..end + 2)?;
        let separated = !spaced || bytes[end - 1] == b' ';
        if !separated || !pair.iter().all(u8::is_ascii_digit) {
            return None;
        }
        end += 2;
    }
    end += usize::from(spaced && byte_at(bytes, end) == b' ');
    let closed = (b'A'..=b'D').contains(&byte_at(bytes, end)) && !is_word(byte_at(bytes, end + 1));
    closed.then_some(Finding { kind: Sensitive::NationalId, bytes: at..end + 1 })
}

/// Countries of the IBAN registry (SWIFT, ISO 13616) and the lengths of their numbers.
const IBAN_LENGTHS: &[(&[u8; 2], usize)] = &[
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NL", 18),
    (b"NO", 15),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"SA", 24),
    (b"SC", 31),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"ST", 25),
    (b"SV", 28),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"VG", 24),
    (b"XK", 20),
];

fn iban(bytes: &[u8], at: usize) -> Option<Finding> {
    if !byte_at(bytes, at + 2).is_ascii_digit() || !byte_at(bytes, at + 3).is_ascii_digit() {
        return None;
    }
    let country = &bytes[at..at + 2];
    let (_, length) = IBAN_LENGTHS.iter().find(|(code, _)| *code == country)?;
    let spaced = byte_at(bytes, at + 4) == b' ';
    let mut characters = [0_u8; 34];
    let (mut count, mut end) = (0, at);
    while count < *length {
        let byte = byte_at(bytes, end);
        if spaced && count > 0 && count % 4 == 0 && byte == b' ' && before(bytes, end) != b' ' {
            end += 1;
            continue;
        }
        if !byte.is_ascii_uppercase() && !byte.is_ascii_digit() {
            return None;
        }
        characters[count] = byte;
        count += 1;
        end += 1;
    }
    if is_word(byte_at(bytes, end)) {
        return None;
    }
    let value =
        |byte: u8| u32::from(if byte.is_ascii_digit() { byte - b'0' } else { byte - b'A' + 10 });
    let rest = characters[4..count].iter().chain(&characters[..4]).fold(0, |rest, byte| {
        let value = value(*byte);
        (rest * if value > 9 { 100 } else { 10 } + value) % 97
    });
    (rest == 1).then_some(Finding { kind: Sensitive::Iban, bytes: at..end })
}

/// Words before a number that say that it is a telephone's.
const CALLS: &[&str] = &["phone", "tel", "mobile", "fax", "whatsapp", "sms", "call", "cell"];
/// Bytes before a number in which such a word is looked for.
const BEFORE_PHONE: usize = 16;

/// Reads a telephone number: with a plus and a country, in the groups of a national plan, or behind a word that says so.
fn phone(text: &str, group: &Group) -> Option<Finding> {
    let bytes = text.as_bytes();
    if !(7..=15).contains(&group.count) || group.parts().len() > 6 {
        return None;
    }
    let previous = before(bytes, group.start);
    let mut start = group.start;
    let international = previous == b'+' && !is_word(before(bytes, group.start - 1)) && {
        start -= 1;
        let first = start == 0 || bytes[start - 1] == b'\n';
        // An added line of a diff that holds a number also begins with a plus: of these a time in milliseconds has 13 digits.
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
    let european = group.digits()[0] == 0
        && (group.parts() == [2, 2, 2, 2, 2]
            || group.parts() == [5, 6]
            || group.parts() == [3, 4, 4])
        && group.digits()[1] != 0
        && group.all_by(b' ');
    (international || american || european || named())
        .then_some(Finding { kind: Sensitive::Phone, bytes: start..group.end })
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

/// The part behind a bracketed area code: `234-5678` of `(555) 234-5678`.
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

fn after_escape(bytes: &[u8], at: usize) -> bool {
    at >= 2 && b"nrt".contains(&bytes[at - 1]) && bytes[at - 2] == b'\\'
}
