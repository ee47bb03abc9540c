//! The boundaries of words and numbers.
//!
//! Only ASCII continues a word: every secret is ASCII, so a letter or quote of another script beside it is not a part of it.

/// Returns whether a byte continues a word.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the byte before `at`, or a space at the beginning.
pub(super) fn before(bytes: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(b' ', |at| bytes[at])
}

/// Returns the byte at `at`, or a space at the end.
pub(super) fn byte_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(b' ')
}

/// The most bytes of the parameters of a terminal's sequence that are read (a colour of 24 bits has 16).
const LONGEST_PARAMETERS: usize = 32;

/// Returns whether the letter before `at` ends an escape: a written one such as `\n`, or a colour of a terminal.
pub(super) fn follows_escape(bytes: &[u8], at: usize) -> bool {
    let (Some(letter), true) = (at.checked_sub(1), before(bytes, at).is_ascii_alphabetic()) else {
        return false;
    };
    match before(bytes, letter) {
        b'\\' => return b"nrtbf".contains(&bytes[letter]),
        b'(' | b')' => return before(bytes, letter - 1) == ESCAPE,
        ESCAPE => return true,
        _ => {}
    }
    let parameters = bytes[letter.saturating_sub(LONGEST_PARAMETERS)..letter].iter().rev();
    let length = parameters.take_while(|byte| is_parameter(**byte)).count();
    let Some(open) = (letter - length).checked_sub(1) else { return false };
    // Logs often lose the escape character and keep the rest.
    bytes[open] == b'[' && (before(bytes, open) == ESCAPE || (length > 0 && bytes[letter] == b'm'))
}

/// The character that begins the sequences of a terminal.
const ESCAPE: u8 = 0x1B;

/// Returns the length of the sequence for a terminal that begins `rest`, or zero.
pub(super) fn terminal_sequence(rest: &[u8]) -> usize {
    if rest.first() != Some(&ESCAPE) {
        return 0;
    }
    match byte_at(rest, 1) {
        b'[' => {
            let inside = rest[2..].iter().take(LONGEST_PARAMETERS);
            let length = inside.take_while(|byte| is_parameter(**byte)).count();
            if byte_at(rest, 2 + length).is_ascii_alphabetic() { 3 + length } else { 1 }
        }
        b'(' | b')' if byte_at(rest, 2).is_ascii_alphanumeric() => 3,
        _ => 1,
    }
}

fn is_parameter(byte: u8) -> bool {
    (0x30..=0x3F).contains(&byte)
}
