//! Texts as PostgreSQL can hold them: without U+0000, and short enough for a key.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{SessionId, StoreError};
use sha2::{Digest as _, Sha256};

/// Stands before an escaped character; a noncharacter that no real text has, so nearly every text reads as it is.
const ESCAPE: char = '\u{10FFFF}';

/// Returns `text` without NUL. `BYTEA` would hold it as well, but nobody could read the tables.
pub(super) fn escape(text: &str) -> String {
    if !text.contains(['\0', ESCAPE]) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, ESCAPE]),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns the text that was escaped.
pub(super) fn unescape(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            ESCAPE => plain.push(if rest.next() == Some('0') { '\0' } else { ESCAPE }),
            other => plain.push(other),
        }
    }
    plain
}

/// Escapes a text that may be missing.
pub(super) fn escape_opt(text: Option<&String>) -> Option<String> {
    text.map(|text| escape(text))
}

/// Unescapes a text that may be missing.
pub(super) fn unescape_opt(text: Option<String>) -> Option<String> {
    text.map(unescape)
}

/// Escapes each of several texts.
pub(super) fn escape_all(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| escape(text)).collect()
}

/// Unescapes each of several texts.
pub(super) fn unescape_all(texts: Vec<String>) -> Vec<String> {
    texts.into_iter().map(unescape).collect()
}

/// Returns the SHA-256 that stands for a text of any length in keys, which PostgreSQL limits to 2704 bytes.
pub(super) fn key(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes()).to_vec()
}

/// Reads a session's id.
pub(super) fn session(text: &str) -> Result<SessionId, StoreError> {
    SessionId::new(text).map_err(|_| corrupt("a session's id"))
}

/// Reads a session's id that may be missing.
pub(super) fn session_opt(text: Option<String>) -> Result<Option<SessionId>, StoreError> {
    text.map(|text| session(&text)).transpose()
}

/// Reads a time that may be missing.
pub(super) fn time_opt(time: Option<i64>) -> Option<MillisSinceEpoch> {
    time.map(MillisSinceEpoch)
}

/// Reads a count, which was written from one.
pub(super) fn count(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns a limit as SQL takes it.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Returns the error of a value that is not as it was written.
pub(super) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        for text in ["", "plain \\0 text", "\0", "a\0b\u{10FFFF}0\u{10FFFF}\u{10FFFF}\0"] {
            let escaped = escape(text);
            assert!(!escaped.contains('\0'));
            assert_eq!(unescape(escaped), text);
        }
        assert_eq!(escape("C:\\path"), "C:\\path");
    }
}
