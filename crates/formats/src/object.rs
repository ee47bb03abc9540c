//! JSON objects as ordered fields of raw text.
//!
//! A reader asks for a field in the type that it needs, and a field of another type reads as absent or as zero: agents
//! change their formats, and one odd field must not cost its record. A writer replaces one field and keeps the bytes of
//! all others.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::json_text::compact;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json;
use crate::time;

/// The fields of a JSON object in their order, with their values as raw text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object<'a> {
    raw: &'a str,
    fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    is_changed: bool,
}

impl<'a> Object<'a> {
    /// Reads an object.
    pub(crate) fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        let Fields(fields) = serde_json::from_str(text)?;
        Ok(Self { raw: text, fields, is_changed: false })
    }

    /// Reads an object. Errors: `None` if it is not one.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        Self::read(text).ok()
    }

    /// Returns the text that the object was read from.
    pub(crate) fn raw(&self) -> &'a str {
        self.raw
    }

    /// Returns the raw value of a field; of a repeated field the last.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// Returns the raw value of a field that is not `null`.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.get(key).filter(|raw| *raw != "null")
    }

    /// Returns whether a field is there and not `null`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Returns a field as text. Numbers and booleans keep their spelling; lists and objects are an empty text.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.value(key).map(text_of)
    }

    /// Returns a field as text, unless that is empty.
    pub(crate) fn words(&self, key: &str) -> Option<Cow<'_, str>> {
        self.text(key).filter(|text| !text.is_empty())
    }

    /// Returns a field as an owned text.
    pub(crate) fn owned(&self, key: &str) -> Option<String> {
        self.text(key).map(Cow::into_owned)
    }

    /// Returns a field as a shared text, empty where it is absent.
    pub(crate) fn shared(&self, key: &str) -> Arc<str> {
        self.text(key).unwrap_or_default().into()
    }

    /// Returns a field as a whole number. Fractions are cut off; other types are zero.
    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        let raw = self.value(key)?;
        let number = raw.parse().unwrap_or_else(|_| raw.parse::<f64>().unwrap_or(0.0) as u64);
        // The limit keeps sums of a few counts from overflowing.
        Some(number.min(u64::from(u32::MAX)))
    }

    /// Returns a field as a whole number, zero where it is absent.
    pub(crate) fn tokens(&self, key: &str) -> u64 {
        self.count(key).unwrap_or(0)
    }

    /// Returns a field that is a number.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.parse().ok()
    }

    /// Returns whether a field is literally `true`.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key) == Some("true")
    }

    /// Returns a field as a time.
    pub(crate) fn time(&self, key: &str) -> Option<MillisSinceEpoch> {
        let raw = self.get(key)?;
        match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(text) => time::from_text(text),
            None => raw.parse().ok().and_then(time::from_number),
        }
    }

    /// Returns a recorded field that is an object.
    pub(crate) fn object(&self, key: &str) -> Option<Self> {
        Self::parse(self.recorded(key)?)
    }

    /// Returns the raw elements of a recorded field, empty unless it is a list.
    pub(crate) fn list(&self, key: &str) -> Vec<&'a RawValue> {
        self.recorded(key).and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default()
    }

    /// Returns the elements of a recorded list that are objects.
    pub(crate) fn objects(&self, key: &str) -> Vec<Self> {
        self.list(key).into_iter().filter_map(|raw| Self::parse(raw.get())).collect()
    }

    /// Returns the recorded fields by name.
    pub(crate) fn fields(&self) -> BTreeMap<&str, &'a str> {
        let names = self.fields.iter().map(|(name, _)| &**name);
        names.filter_map(|name| Some((name, self.recorded(name)?))).collect()
    }

    /// Returns the raw value of a field that was not replaced.
    pub(crate) fn recorded(&self, key: &str) -> Option<&'a str> {
        let (_, value) = self.fields.iter().rev().find(|(name, _)| name == key)?;
        match value {
            Cow::Borrowed(raw) => Some(raw),
            Cow::Owned(_) => None,
        }
    }

    /// Returns the arguments of a tool call: the text of a string, anything else as compact JSON.
    pub(crate) fn arguments(&self, key: &str) -> Arc<str> {
        match self.value(key) {
            None => "".into(),
            Some(raw) if raw.starts_with('"') => json::unquoted(raw).into(),
            Some(raw) => compact(raw),
        }
    }

    /// Replaces the value of a field in its place, or appends the field.
    pub(crate) fn set(&mut self, key: &str, raw: impl Into<String>) {
        self.is_changed = true;
        let raw = Cow::Owned(raw.into());
        match self.fields.iter_mut().rev().find(|(name, _)| name == key) {
            Some((_, value)) => *value = raw,
            None => self.fields.push((Cow::Owned(key.to_owned()), raw)),
        }
    }

    /// Returns the new text of the object if a field was replaced, appended or removed.
    pub(crate) fn changed(&self) -> Option<String> {
        self.is_changed.then(|| self.to_string())
    }

    /// Removes a field.
    pub(crate) fn remove(&mut self, key: &str) {
        let before = self.fields.len();
        self.fields.retain(|(name, _)| name != key);
        self.is_changed |= self.fields.len() < before;
    }
}

impl fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (key, value)) in self.fields.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}:{value}", quoted(key))?;
        }
        f.write_str("}")
    }
}

/// Reads a document: a list of records, or an object that holds one under `key`.
pub(crate) fn document<'a>(
    text: &'a str,
    key: &str,
) -> Result<(Object<'a>, Vec<&'a RawValue>), serde_json::Error> {
    if text.trim_ascii_start().starts_with('[') {
        return Ok((Object::default(), serde_json::from_str(text)?));
    }
    let document = Object::read(text)?;
    let list = serde_json::from_str(document.recorded(key).unwrap_or("null"))?;
    Ok((document, list))
}

/// Returns a raw value as text. Numbers and booleans keep their spelling; lists and objects are an empty text.
pub(crate) fn text_of(raw: &str) -> Cow<'_, str> {
    match raw.as_bytes().first() {
        Some(b'"') => json::unquoted(raw),
        Some(b'[' | b'{') => Cow::Borrowed(""),
        _ => Cow::Borrowed(raw),
    }
}

/// Returns a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a JSON string, or `null` where there is no text.
pub(crate) fn quoted_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), quoted)
}

/// Returns a JSON list of raw elements.
pub(crate) fn list<'a>(elements: impl IntoIterator<Item = Cow<'a, str>>) -> String {
    let elements: Vec<Cow<'a, str>> = elements.into_iter().collect();
    format!("[{}]", elements.join(","))
}

struct Fields<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

#[derive(Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((FieldName(key), value)) = map.next_entry::<_, &'de RawValue>()? {
                    fields.push((key, Cow::Borrowed(value.get())));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_fields_keep_their_bytes() {
        let text = r#"{"a":1.00,"b":{"c" : "\u00e9"},"d":123456789012345678901234567890}"#;
        let mut object = Object::parse(text).unwrap();
        assert_eq!(object.to_string(), text);
        object.set("a", "2");
        object.remove("d");
        object.set("e", quoted("\"\n"));
        assert_eq!(object.to_string(), r#"{"a":2,"b":{"c" : "\u00e9"},"e":"\"\n"}"#);
        assert!(Object::parse("[1]").is_none());
    }

    #[test]
    fn fields_tolerate_other_types() {
        let text = r#"{"a":"x\ud800\n","b":12,"c":{"a":[1]},"d":null,"e":1e99,"f":-3,"g":"7","a":"y\ud800\n"}"#;
        let object = Object::parse(text).unwrap();
        let texts = ["a", "b", "c", "d", "z"].map(|key| object.text(key).unwrap_or_default());
        assert_eq!(texts, ["y\u{fffd}\n", "12", "", "", ""]);
        assert_eq!(
            ["b", "e", "f", "g", "d"].map(|key| object.count(key)),
            [Some(12), Some(u64::from(u32::MAX)), Some(0), Some(0), None]
        );
    }
}
