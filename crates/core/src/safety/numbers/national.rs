//! National ids, recognised by their checksums, else by the rules of their issuers.

use super::super::{Finding, SensitiveKind, byte_at, is_word};
use super::Group;

/// United States, Social Security Number, without areas, groups and serials that are never issued.
pub(super) fn is_social_security(group: &Group) -> bool {
    if group.parts() != [3, 2, 4] || !group.all_by(b'-') {
        return false;
    }
    let area = group.number(0, 3);
    !matches!(area, 0 | 666 | 900..) && group.number(3, 2) != 0 && group.number(5, 4) != 0
}

/// Brazil, CPF, as it is printed: `000.000.000-00`, with two check digits.
pub(super) fn is_cpf(group: &Group) -> bool {
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
pub(super) fn is_nir(group: &Group) -> bool {
    let grouped = matches!(group.parts(), [15] | [1, 2, 2, 2, 3, 3, 2] | [13, 2]);
    if group.count != 15 || !grouped || !matches!(group.digits()[0], 1 | 2) {
        return false;
    }
    let month = group.number(3, 2);
    let number = group.digits()[..13].iter().fold(0_u64, |n, digit| n * 10 + u64::from(*digit));
    (1..=12).contains(&month) && 97 - number % 97 == u64::from(group.number(13, 2))
}

/// China, resident identity number (GB 11643): a date inside, and a check digit.
pub(super) fn is_chinese(group: &Group) -> bool {
    group.count == 18 && group.is_plain() && chinese_check(group) == Some(group.digits()[17])
}

pub(super) fn chinese_check(group: &Group) -> Option<u8> {
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

/// Spain, DNI: eight digits and their letter; a date before the letter is a timestamp.
pub(super) fn is_dni(group: &Group, letter: u8) -> bool {
    letter == spanish_letter(group.number(0, 8))
        && !is_date(group.number(0, 4), group.number(4, 2), group.number(6, 2))
}

/// Spain, NIE: X, Y or Z in the place of the first digit.
pub(super) fn nie(bytes: &[u8], at: usize) -> Option<Finding> {
    let first = u32::from(bytes[at].checked_sub(b'X').filter(|first| *first < 3)?);
    let digits = bytes.get(at + 1..at + 8)?;
    if !digits.iter().all(u8::is_ascii_digit) || is_word(byte_at(bytes, at + 9)) {
        return None;
    }
    let number = digits.iter().fold(first, |number, digit| number * 10 + u32::from(digit - b'0'));
    (byte_at(bytes, at + 8) == spanish_letter(number))
        .then_some(Finding { kind: SensitiveKind::NationalId, bytes: at..at + 9 })
}

/// United Kingdom, National Insurance number: a prefix that HMRC issues, and a last letter of A to D.
pub(super) fn nino(bytes: &[u8], at: usize) -> Option<Finding> {
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
    closed.then_some(Finding { kind: SensitiveKind::NationalId, bytes: at..end + 1 })
}
