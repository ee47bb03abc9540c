//! A JSON value that borrows its strings.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree<'a> {
    Null,
    Bool(bool),
    Number,
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Vec<(Cow<'a, str>, Self)>),
}

/// The value of a field that is missing.
static NOTHING: Tree<'static> = Tree::Null;

impl Tree<'_> {
    /// Returns a field, or null; of repeated keys the last.
    pub(super) fn at(&self, key: &str) -> &Self {
        let Self::Object(fields) = self else { return nothing() };
        fields.iter().rfind(|(name, _)| name == key).map_or_else(nothing, |(_, value)| value)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        !matches!(self.at(key), Self::Null)
    }

    /// Returns what a string says, else nothing.
    pub(super) fn text(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the elements of a list; nothing else has any.
    pub(super) fn list(&self) -> &[Self] {
        if let Self::List(list) = self { list } else { &[] }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::List(_))
    }

    /// Returns the field `type` as text.
    pub(super) fn kind(&self) -> &str {
        self.at("type").text()
    }
}

fn nothing<'b, 'a>() -> &'b Tree<'a> {
    // A static of a longer life serves for any shorter one.
    &NOTHING
}

impl<'de: 'a, 'a> Deserialize<'de> for Tree<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number)
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some((key, value)) = map.next_entry::<FieldName<'de>, Tree<'de>>()? {
            fields.push((key.0, value));
        }
        Ok(Tree::Object(fields))
    }
}
