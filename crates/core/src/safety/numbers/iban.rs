//! Account numbers: the country's length, and modulo 97.

use super::super::{Finding, SensitiveKind, before, byte_at};

/// Countries of the IBAN registry (SWIFT, ISO 13616) and the lengths of their numbers.
#[rustfmt::skip]
const IBAN_LENGTHS: &[(&[u8; 2], usize)] = &[
    (b"AD", 24), (b"AE", 23), (b"AL", 28), (b"AT", 20), (b"AZ", 28), (b"BA", 20), (b"BE", 16),
    (b"BG", 22), (b"BH", 22), (b"BR", 29), (b"BY", 28), (b"CH", 21), (b"CR", 22), (b"CY", 28),
    (b"CZ", 24), (b"DE", 22), (b"DK", 18), (b"DO", 28), (b"EE", 20), (b"EG", 29), (b"ES", 24),
    (b"FI", 18), (b"FO", 18), (b"FR", 27), (b"GB", 22), (b"GE", 22), (b"GI", 23), (b"GL", 18),
    (b"GR", 27), (b"GT", 28), (b"HR", 21), (b"HU", 28), (b"IE", 22), (b"IL", 23), (b"IQ", 23),
    (b"IS", 26), (b"IT", 27), (b"JO", 30), (b"KW", 30), (b"KZ", 20), (b"LB", 28), (b"LC", 32),
    (b"LI", 21), (b"LT", 20), (b"LU", 20), (b"LV", 21), (b"MC", 27), (b"MD", 24), (b"ME", 22),
    (b"MK", 19), (b"MR", 27), (b"MT", 31), (b"MU", 30), (b"NL", 18), (b"NO", 15), (b"PK", 24),
    (b"PL", 28), (b"PS", 29), (b"PT", 25), (b"QA", 29), (b"RO", 24), (b"RS", 22), (b"SA", 24),
    (b"SC", 31), (b"SE", 24), (b"SI", 19), (b"SK", 24), (b"SM", 27), (b"ST", 25), (b"SV", 28),
    (b"TL", 23), (b"TN", 24), (b"TR", 26), (b"UA", 29), (b"VA", 22), (b"VG", 24), (b"XK", 20),
];

pub(super) fn iban(bytes: &[u8], at: usize) -> Option<Finding> {
    if !byte_at(bytes, at + 2).is_ascii_digit() || !byte_at(bytes, at + 3).is_ascii_digit() {
        return None;
    }
    let country = &bytes[at..at + 2];
    let (_, length) = IBAN_LENGTHS.iter().find(|(code, _)| *code == country)?;
    // The checksum makes a number in groups certain, whatever stands between them.
    let separator = Some(byte_at(bytes, at + 4)).filter(|byte| b" \t-._".contains(byte));
    let mut characters = [0_u8; 34];
    let (mut count, mut end) = (0, at);
    while count < *length {
        let byte = *bytes.get(end)?;
        let between = count > 0 && count % 4 == 0 && separator == Some(byte);
        if between && before(bytes, end) != byte {
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
    if byte_at(bytes, end).is_ascii_alphanumeric() {
        return None;
    }
    let value =
        |byte: u8| u32::from(if byte.is_ascii_digit() { byte - b'0' } else { byte - b'A' + 10 });
    let rest = characters[4..count].iter().chain(&characters[..4]).fold(0, |rest, byte| {
        let value = value(*byte);
        (rest * if value > 9 { 100 } else { 10 } + value) % 97
    });
    (rest == 1).then_some(Finding { kind: SensitiveKind::Iban, bytes: at..end })
}
