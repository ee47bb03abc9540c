//! Reading foreign JSON: lines and elements one by one, fields that tolerate another type, and mending.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::json_text::code_unit;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::draft::Draft;
use crate::time;

/// The longest line that is read, in bytes (chosen: far above any recorded, and an eighth of a small machine's memory).
pub(crate) const LONGEST_LINE: usize = 64 << 20;

/// Returns the bytes behind a byte order mark.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Returns the document's text, with invalid UTF-8 replaced: one bad byte in a tool's output must not cost the session.
pub(crate) fn utf8_document(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Returns every line that is not blank, with its number from 1, white space cut off.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    (1..).zip(bytes.split(|byte| *byte == b'\n')).filter_map(|(number, line)| {
        let line = line.trim_ascii();
        (!line.is_empty()).then_some((number, line))
    })
}

/// Hands each line's text to `take`; what `take` refuses is mended, tried again, and else skipped with a note.
///
/// `take` must not have changed anything when it returns an error.
pub(crate) fn each_line(
    bytes: &[u8],
    draft: &mut Draft,
    mut take: impl FnMut(&mut Draft, u32, &str) -> Result<(), serde_json::Error>,
) {
    for (number, line) in lines(bytes) {
        if line.len() > LONGEST_LINE {
            draft.skip(number, format!("longer than {} MiB", LONGEST_LINE >> 20));
        } else if let Ok(text) = str::from_utf8(line) {
            each_record(number, text, draft, &mut take);
        } else {
            draft.skip(number, "not UTF-8");
        }
    }
}

/// Hands each element's text to `take`, as [`each_line`] does.
pub(crate) fn each_element(
    elements: &[&RawValue],
    draft: &mut Draft,
    mut take: impl FnMut(&mut Draft, u32, &str) -> Result<(), serde_json::Error>,
) {
    for (number, element) in (1..).zip(elements) {
        each_record(number, element.get(), draft, &mut take);
    }
}

fn each_record(
    number: u32,
    text: &str,
    draft: &mut Draft,
    take: &mut impl FnMut(&mut Draft, u32, &str) -> Result<(), serde_json::Error>,
) {
    if !text.starts_with('{') {
        draft.skip(number, "not a JSON object");
        return;
    }
    let Err(error) = take(draft, number, text) else { return };
    let mut mended = mended_text(text);
    // The first mending replaces what no parser reads, the second repeated keys.
    for _ in 0..2 {
        let Some(text) = &mended else { break };
        if take(draft, number, text).is_ok() {
            return;
        }
        mended = mended_text(text);
    }
    draft.skip(number, why(&error));
}

fn mended_text(text: &str) -> Option<String> {
    String::from_utf8(mended(text.as_bytes())?).ok()
}

fn why(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Eof => "the JSON ends too early",
        serde_json::error::Category::Data => "not of the expected shape",
        _ => "not JSON",
    };
    // The record is a line of its own: only the column means anything to the reader.
    format!("{kind}: {}", error.to_string().replace(" at line 1 column ", " at column "))
}

/// Returns JSON text that strict parsers read, made of such as JavaScript and Python write and read.
///
/// Lone surrogate escapes become the replacement character, `NaN` and infinities `null`; where neither occurs, repeated
/// keys are reduced to the last. Errors: `None` if that does not make it JSON.
pub(crate) fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = str::from_utf8(bytes).ok()?;
    let replaced = replace_bare_words(&replace_lone_surrogates(text));
    if replaced != text {
        serde_json::from_str::<IgnoredAny>(&replaced).ok()?;
        return Some(replaced.into_bytes());
    }
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    serde_json::to_vec(&value).ok()
}

fn replace_bare_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\', 'N', 'I', '-']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let word = ["NaN", "-Infinity", "Infinity"].iter().find(|word| rest.starts_with(**word));
        let length = match (rest.as_bytes()[0], word) {
            (_, Some(word)) if !in_string => {
                out.push_str("null");
                rest = &rest[word.len()..];
                continue;
            }
            (b'\\', _) => rest.char_indices().nth(2).map_or(rest.len(), |(index, _)| index),
            (b'"', _) => {
                in_string = !in_string;
                1
            }
            _ => 1,
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

fn replace_lone_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (code_unit(rest), rest.get(6..).and_then(code_unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => rest.char_indices().nth(2).map_or(rest.len(), |(index, _)| index),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// A string that is borrowed where it has no escapes; another type in its place reads as its JSON or as nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::from(&*self.0)
    }
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text)))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(value.to_string())))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(value.to_string())))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(value.to_string())))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(value.to_string())))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }
}

/// A whole number of something; floats are cut, other types read as zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let number = raw.parse().unwrap_or_else(|_| raw.parse::<f64>().unwrap_or(0.0) as u64);
        // A sum of a few of these must not overflow, whatever the file says.
        Ok(Self(number.min(u64::from(u32::MAX))))
    }
}

/// Whether a field is literally `true`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(<&RawValue>::deserialize(deserializer)?.get() == "true"))
    }
}

/// A part that is nothing where it is not of the expected shape, so that it does not cost its record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lenient<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(serde_json::from_str(<&'de RawValue>::deserialize(deserializer)?.get()).ok()))
    }
}

/// A time, or nothing where it cannot be read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stamp(pub(crate) Option<MillisSinceEpoch>);

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        Ok(Self(match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(text) => time::from_text(text),
            None => raw.parse().ok().and_then(time::from_number),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        assert_eq!(
            replace_lone_surrogates(r"a\ud800b\ud83d\ude00\\ud800"),
            r"a\ufffdb\ud83d\ude00\\ud800"
        );
        assert_eq!(mended(br#"{"a":"x","a":1}"#).unwrap(), br#"{"a":1}"#);
        assert_eq!(
            mended(br#"{"a":NaN,"b":[-Infinity,-1],"NaN":"\" NaN"}"#).unwrap(),
            br#"{"a":null,"b":[null,-1],"NaN":"\" NaN"}"#
        );
        assert_eq!(mended(br#"{"a""#), None);
    }

    #[test]
    fn fields_tolerate_other_types() {
        let read = |text| serde_json::from_str::<Text<'_>>(text).unwrap().0.into_owned();
        assert_eq!(read(r#""x""#), "x");
        assert_eq!(read("12"), "12");
        assert_eq!(read(r#"{"a":[1]}"#), "");
        assert_eq!(read("null"), "");
        assert_eq!(serde_json::from_str::<Count>("1e99").unwrap().0, u64::from(u32::MAX));
        assert_eq!(serde_json::from_str::<Count>("-3").unwrap().0, 0);
        assert_eq!(serde_json::from_str::<Count>("\"7\"").unwrap().0, 0);
    }
}
