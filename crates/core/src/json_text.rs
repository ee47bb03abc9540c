//! JSON as text: its white space and escapes, and the strings of a value.
//!
//! Text that is not read into values keeps long numbers, repeated keys and their order.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

/// Calls `found` with every text in `value`, in order; keys of objects are not among them.
pub(crate) fn each_text(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| each_text(field, found)),
        _ => {}
    }
}

/// As [`each_text`], with texts that `found` may change.
pub(crate) fn each_text_mut(value: &mut Value, found: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text_mut(item, found)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text_mut(field, found)),
        _ => {}
    }
}

/// Returns the bytes of each string in JSON text, between its quotes; keys are among them.
pub(crate) fn strings(raw: &str) -> Vec<Range<usize>> {
    let bytes = raw.as_bytes();
    let mut found = Vec::new();
    let mut open = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if open.is_some() => at += 1,
            b'"' => match open.take() {
                Some(from) => found.push(from..at),
                None => open = Some(at + 1),
            },
            _ => {}
        }
        at += 1;
    }
    found
}

/// Splits the inside of a JSON string at its escaped line breaks.
pub(crate) fn escaped_lines(inside: &str) -> Vec<&str> {
    let bytes = inside.as_bytes();
    let mut lines = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] == b'\\' {
            if bytes.get(at + 1) == Some(&b'n') {
                lines.push(&inside[start..at]);
                start = at + 2;
            }
            at += 1;
        }
        at += 1;
    }
    lines.push(&inside[start..]);
    lines
}

/// Returns valid JSON without white space outside of strings, `\uXXXX` written as the character where JSON allows it.
pub fn compact(raw: &str) -> Arc<str> {
    let bytes = raw.as_bytes();
    let mut out = String::with_capacity(raw.len());
    let mut in_string = false;
    let mut start = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                in_string = !in_string;
                at += 1;
            }
            b'\\' if in_string => match unescaped(&raw[at..]) {
                Some((character, length)) => {
                    out.push_str(&raw[start..at]);
                    out.push(character);
                    at += length;
                    start = at;
                }
                // In valid JSON an ASCII character follows the backslash; the bound guards invalid input.
                None => at = (at + 2).min(bytes.len()),
            },
            b' ' | b'\n' | b'\r' | b'\t' if !in_string => {
                out.push_str(&raw[start..at]);
                at += 1;
                start = at;
            }
            _ => at += 1,
        }
    }
    out.push_str(raw.get(start..).unwrap_or_default());
    Arc::from(out)
}

/// Returns the character that a `\u` escape at the start of `text` stands for, unless JSON must escape it.
fn unescaped(text: &str) -> Option<(char, usize)> {
    let first = code_unit(text)?;
    let (code, length) = match (first, text.get(6..).and_then(code_unit)) {
        (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) => {
            (0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
        }
        _ => (first, 6),
    };
    let character = char::from_u32(code)?;
    (character > '\u{1f}' && character != '"' && character != '\\').then_some((character, length))
}

/// Returns the code unit of a `\uXXXX` escape at the start of `text`.
pub fn code_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, expected: &str) {
        assert_eq!(&*compact(raw), expected);
        let left: serde_json::Value = serde_json::from_str(raw).expect("JSON");
        let right: serde_json::Value = serde_json::from_str(expected).expect("JSON");
        assert_eq!(left, right);
    }

    #[test]
    fn white_space_between_tokens_goes() {
        check("{ \"a b\" :\n [1, 2] }", "{\"a b\":[1,2]}");
    }

    #[test]
    fn escapes_become_characters_where_json_allows() {
        check(r#"{"a":"it\u2019s \ud83d\ude00"}"#, "{\"a\":\"it’s 😀\"}");
        check(r#"["\u0022\u005c\u000a\n\"\\"]"#, r#"["\u0022\u005c\u000a\n\"\\"]"#);
    }

    #[test]
    fn a_code_unit_has_four_digits() {
        assert_eq!(code_unit("\\u00e9 rest"), Some(0xe9));
        assert_eq!(code_unit("\\u+0e9"), None);
        assert_eq!(code_unit("\\u00"), None);
    }

    #[test]
    fn numbers_keep_their_digits() {
        check("[123456789012345678901234567890.10]", "[123456789012345678901234567890.10]");
    }
}
