//! JSON objects as ordered fields of raw text: one field is replaced, all others keep their bytes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of a JSON object in their order, values as recorded.
#[derive(Debug, Clone)]
pub(crate) struct Object<'a>(Vec<(String, Cow<'a, str>)>);

impl<'a> Object<'a> {
    /// Reads an object. Errors: `None` if it is not one.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str::<Fields<'a>>(text).ok().map(|fields| Self(fields.0))
    }

    /// Returns the raw value of a field.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// Returns the value of a string field.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.get(key)?).ok()
    }

    /// Replaces the value of a field in its place, or appends it.
    pub(crate) fn set(&mut self, key: &str, raw: impl Into<String>) {
        let raw = Cow::Owned(raw.into());
        match self.0.iter_mut().rev().find(|(name, _)| name == key) {
            Some((_, value)) => *value = raw,
            None => self.0.push((key.to_owned(), raw)),
        }
    }

    /// Removes a field.
    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| name != key);
    }
}

impl fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (key, value)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}:{value}", quoted(key))?;
        }
        f.write_str("}")
    }
}

/// Returns a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a JSON list of raw elements.
pub(crate) fn list<'a>(elements: impl IntoIterator<Item = Cow<'a, str>>) -> String {
    let elements: Vec<Cow<'a, str>> = elements.into_iter().collect();
    format!("[{}]", elements.join(","))
}

struct Fields<'a>(Vec<(String, Cow<'a, str>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Vec<(String, Cow<'de, str>)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    fields.push((key, Cow::Borrowed(value.get())));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor).map(Self)
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
}
