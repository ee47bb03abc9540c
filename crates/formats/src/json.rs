//! JSON text of other programs: the lines of a file, and mending of text that strict parsers refuse.

use plimsoll_core::text::{Limit, head};
use std::borrow::Cow;

use plimsoll_core::json_text::code_unit;
use serde::de::IgnoredAny;

/// The most bytes of a line that is read (chosen: far above any recorded line, an eighth of 512 MiB).
pub(crate) const LONGEST_LINE: usize = 64 << 20;

/// Returns the bytes behind a byte order mark.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Returns the document's text. Invalid UTF-8 is replaced, so that one bad byte in a tool's output does not cost the session.
pub(crate) fn utf8_document(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Returns the lines that are not blank, trimmed, with their numbers from 1.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    (1..).zip(bytes.split(|byte| *byte == b'\n')).filter_map(|(number, line)| {
        let line = line.trim_ascii();
        (!line.is_empty()).then_some((number, line))
    })
}

/// Returns the text of a valid JSON string. A lone surrogate becomes the replacement character.
pub(crate) fn unquoted(raw: &str) -> Cow<'_, str> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let text = serde_json::from_str(raw);
    let text = text.or_else(|_| serde_json::from_str(&replaced(raw)));
    Cow::Owned(text.unwrap_or_default())
}

/// Mends JSON that JavaScript and Python write and strict parsers refuse.
///
/// Lone surrogate escapes become the replacement character; `NaN` and infinities become `null`. Errors: `None` if the text
/// has neither, or is still not JSON afterwards.
pub(crate) fn mended(text: &str) -> Option<String> {
    let replaced = replaced(text);
    let is_mended = replaced != text && serde_json::from_str::<IgnoredAny>(&replaced).is_ok();
    is_mended.then_some(replaced)
}

fn replaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\', 'N', 'I', '-']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let word = ["NaN", "-Infinity", "Infinity"].iter().find(|word| found.starts_with(**word));
        let units = (code_unit(found), found.get(6..).and_then(code_unit));
        let (length, replacement) = match (word.filter(|_| !in_string), units) {
            (Some(word), _) => (word.len(), Some("null")),
            (None, (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff))) => (12, None),
            (None, (Some(0xd800..=0xdfff), _)) => (6, Some("\\ufffd")),
            (None, (Some(_), _)) => (6, None),
            (None, (None, _)) if found.starts_with('\\') => {
                (head(found, Limit::Characters(2)).len(), None)
            }
            _ => {
                in_string ^= found.starts_with('"');
                (1, None)
            }
        };
        out.push_str(replacement.unwrap_or(&found[..length]));
        rest = &found[length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        assert_eq!(replaced(r"a\ud800b\ud83d\ude00\\ud800"), r"a\ufffdb\ud83d\ude00\\ud800");
        assert_eq!(
            mended(r#"{"a":NaN,"b":[-Infinity,-1],"NaN":"\" NaN"}"#).unwrap(),
            r#"{"a":null,"b":[null,-1],"NaN":"\" NaN"}"#
        );
        assert_eq!(mended(r#"{"a""#), None);
    }
}
