//! Keys of upstreams and of clients, which are never printed.

use std::fmt;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use memchr::memmem;

/// A key that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret, without the white space around it that files and shells add.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// Returns `prefix` and the secret as a header's value; `None` where it holds what no header may.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("{prefix}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns `bytes` with a mark in each place of the secret, in whatever encoding an error page repeats it.
    pub(crate) fn removed_from(&self, bytes: Bytes) -> Bytes {
        let places = self.places(&bytes, &self.encoded());
        if places.is_empty() {
            return bytes;
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut end = 0;
        for place in places {
            if place.start >= end {
                out.extend_from_slice(&bytes[end..place.start]);
                out.extend_from_slice(b"[redacted]");
            }
            end = end.max(place.end);
        }
        out.extend_from_slice(&bytes[end..]);
        Bytes::from(out)
    }

    /// Removes the headers that show the secret.
    pub(crate) fn removed_from_headers(&self, headers: &mut HeaderMap) {
        let encoded = self.encoded();
        let shows = |value: &HeaderValue| !self.places(value.as_bytes(), &encoded).is_empty();
        let shown = headers.iter().filter(|(_, value)| shows(value));
        let shown: Vec<_> = shown.map(|(name, _)| name.clone()).collect();
        for name in shown {
            headers.remove(name);
        }
    }

    /// Returns the secret in encodings of whole groups of bytes.
    fn encoded(&self) -> EncodedSecret {
        let key = self.0.as_bytes();
        let hex = key.iter().map(|byte| format!("{byte:02x}")).collect();
        // Text before the key moves the groups of three bytes, so that one of three beginnings fits.
        let groups =
            (0..3.min(key.len())).map(|first| &key[first..][..(key.len() - first) / 3 * 3]);
        // Fewer characters would stand in other words too.
        let groups = groups.filter(|groups| groups.len() >= LEAST_ENCODED);
        let engines = [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD];
        let base64 = groups.flat_map(|groups| engines.map(|engine| engine.encode(groups)));
        EncodedSecret { hex, base64: base64.collect() }
    }

    /// Returns where the secret stands in a text, in ascending order.
    fn places(&self, text: &[u8], encoded: &EncodedSecret) -> Vec<Range<usize>> {
        let key = self.0.as_bytes();
        if key.is_empty() {
            return Vec::new();
        }
        let characters = (0..text.len()).filter_map(|at| Some(at..spelled(text, at, key)?));
        let mut places: Vec<Range<usize>> = characters.collect();
        let is_hex = |byte: u8| byte.is_ascii_hexdigit();
        places.extend(runs(&text.to_ascii_lowercase(), encoded.hex.as_bytes(), is_hex));
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte);
        for wanted in &encoded.base64 {
            places.extend(runs(text, wanted.as_bytes(), is_base64));
        }
        places.sort_by_key(|place| (place.start, place.end));
        places
    }
}

/// A secret as hexadecimal digits, and in base64 at each of the places that it can have in a longer text.
struct EncodedSecret {
    hex: String,
    base64: Vec<String>,
}

/// The fewest bytes of a secret that are looked for in base64 (chosen: eight characters of it).
const LEAST_ENCODED: usize = 6;

/// Returns where `key` ends if it begins at `at`, each character by itself, escaped for JSON, a URL or HTML, in any case.
fn spelled(text: &[u8], at: usize, key: &[u8]) -> Option<usize> {
    key.iter().try_fold(at, |at, wanted| {
        let rest = text.get(at..)?;
        let (byte, length) = match rest {
            [b'%', high, low, ..] => (byte_of(&[*high, *low], 16), 3),
            [b'\\', b'u', digits @ ..] => (digits.get(..4).and_then(|four| byte_of(four, 16)), 6),
            [b'\\', byte, ..] => (Some(*byte), 2),
            [b'&', b'#', digits @ ..] => entity(digits),
            _ => (None, 0),
        };
        match byte {
            Some(byte) if byte.eq_ignore_ascii_case(wanted) => Some(at + length),
            _ => rest.first()?.eq_ignore_ascii_case(wanted).then_some(at + 1),
        }
    })
}

/// Reads a numeric entity behind its `&#`: the byte, and the length of all of it.
fn entity(digits: &[u8]) -> (Option<u8>, usize) {
    let (digits, radix, before) = match digits {
        [b'x' | b'X', hex @ ..] => (hex, 16, 3),
        _ => (digits, 10, 2),
    };
    let end = digits.iter().position(|byte| !char::from(*byte).is_digit(radix));
    let end = end.unwrap_or(digits.len());
    let semicolon = usize::from(digits.get(end) == Some(&b';'));
    (byte_of(&digits[..end], radix), before + end + semicolon)
}

fn byte_of(digits: &[u8], radix: u32) -> Option<u8> {
    let number = u32::from_str_radix(str::from_utf8(digits).ok()?, radix).ok()?;
    u8::try_from(number).ok()
}

/// Returns where `wanted` stands, with the characters of its alphabet around it.
fn runs(text: &[u8], wanted: &[u8], is_part: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let found = memmem::find_iter(text, wanted);
    found
        .map(|at| {
            let before = text[..at].iter().rev().take_while(|byte| is_part(**byte)).count();
            let behind = text[at..].iter().take_while(|byte| is_part(**byte)).count();
            at - before..at + behind
        })
        .collect()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_removed_in_every_encoding_of_an_error_page() {
        let key = r#"sk-svc/Zq7"Ww\Q9xTt55aaBB_kk"#;
        let secret = Secret::new(key);
        let each = |write: fn(u8) -> String| key.bytes().map(write).collect::<String>();
        let json = serde_json::to_string(key).expect("a string");
        for shown in [
            key.to_owned(),
            json.trim_matches('"').to_owned(),
            json.trim_matches('"').replace('/', r"\/"),
            key.to_uppercase(),
            each(|byte| format!("%{byte:02X}")),
            each(|byte| format!("%{byte:02x}")),
            each(|byte| format!("\\u{byte:04x}")),
            each(|byte| format!("&#{byte};")),
            each(|byte| format!("&#x{byte:X};")),
            each(|byte| format!("{byte:02x}")),
            STANDARD_NO_PAD.encode(key),
            URL_SAFE_NO_PAD.encode(key),
            STANDARD_NO_PAD.encode(format!("u:{key}")),
            STANDARD_NO_PAD.encode(format!("Bearer {key}!")),
        ] {
            let page = format!("the key <{shown}> may not, <{shown}>");
            let cleaned = secret.removed_from(Bytes::from(page));
            assert_eq!(cleaned, "the key <[redacted]> may not, <[redacted]>", "{shown}");
        }
        let page = Bytes::from_static(b"100% of \\ &# nothing &#x; sk-svc %");
        assert_eq!(secret.removed_from(page.clone()), page);
        assert_eq!(Secret::new("").removed_from(page.clone()), page);
    }
}
