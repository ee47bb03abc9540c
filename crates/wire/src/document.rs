//! JSON as it was sent: one walk over the bytes finds the span of every value, and nothing is copied.
//!
//! Depth is counted on the bytes while they are walked, so a value that nobody looks into counts too. A tree of borrowed
//! values would do as well; spans are needed anyway, because what does not change must keep its bytes.

mod scan;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;
use plimsoll_core::json_text::code_unit;

pub(crate) use self::scan::{NodeId, ScanError};

use self::scan::{Node, Scanner, ValueKind};

/// A JSON text with the spans of its values.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    text: Arc<str>,
    /// In the order of the text; in an object, keys and values by turns.
    nodes: Vec<Node>,
}

impl Document {
    /// Walks over `text`, which may nest `depth` lists and objects.
    pub(crate) fn scan(text: Arc<str>, depth: usize) -> Result<Self, ScanError> {
        let nodes = Scanner::new(text.as_bytes(), depth)?.run()?;
        Ok(Self { text, nodes })
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    pub(crate) fn root(&self) -> Value<'_> {
        Value { document: self, id: 0 }
    }

    pub(crate) fn value(&self, id: NodeId) -> Value<'_> {
        Value { document: self, id }
    }

    fn node(&self, id: NodeId) -> Node {
        const NOWHERE: Node = Node { start: 0, end: 0, next: NodeId::MAX, kind: ValueKind::Null };
        self.nodes.get(id as usize).copied().unwrap_or(NOWHERE)
    }
}

/// The depth that a request may have where nothing else is set: Rust's `serde_json` reads no more, and no client comes near.
pub const DEFAULT_DEPTH: usize = 128;

/// The depth of what a provider sends and we wrote: more than any event nests, and little for a walk (chosen).
pub(crate) const MOST_DEPTH: usize = 1024;

/// Scans a JSON object; `None` for any other text.
pub(crate) fn scanned(text: &str) -> Option<Document> {
    Document::scan(Arc::from(text), MOST_DEPTH).ok().filter(|document| document.root().is_object())
}

/// A value in a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a> {
    document: &'a Document,
    id: NodeId,
}

impl<'a> Value<'a> {
    pub(crate) fn id(self) -> NodeId {
        self.id
    }

    pub(crate) fn document(self) -> &'a Document {
        self.document
    }

    fn node_kind(self) -> ValueKind {
        self.document.node(self.id).kind
    }

    pub(crate) fn is_object(self) -> bool {
        self.node_kind() == ValueKind::Object
    }

    pub(crate) fn is_list(self) -> bool {
        self.node_kind() == ValueKind::List
    }

    pub(crate) fn is_text(self) -> bool {
        matches!(self.node_kind(), ValueKind::Plain | ValueKind::Escaped)
    }

    pub(crate) fn is_null(self) -> bool {
        self.node_kind() == ValueKind::Null
    }

    pub(crate) fn is_true(self) -> bool {
        self.node_kind() == ValueKind::True
    }

    pub(crate) fn span(self) -> Range<usize> {
        let node = self.document.node(self.id);
        node.start as usize..node.end as usize
    }

    pub(crate) fn raw(self) -> &'a str {
        self.document.text.get(self.span()).unwrap_or_default()
    }

    /// Returns what the string says. Errors: `None` if it is none; a lone surrogate is the replacement character.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        if !self.is_text() {
            return None;
        }
        let raw = self.raw();
        let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
        Some(match self.node_kind() {
            ValueKind::Plain => Cow::Borrowed(inner),
            _ => Cow::Owned(unescaped(inner)),
        })
    }

    /// Returns what the string says, shared.
    pub(crate) fn shared(self) -> Option<Arc<str>> {
        self.text().map(Arc::from)
    }

    /// Returns whether it is this string.
    pub(crate) fn says(self, text: &str) -> bool {
        self.text().as_deref() == Some(text)
    }

    pub(crate) fn number(self) -> Option<u64> {
        (self.node_kind() == ValueKind::Number).then(|| self.raw().parse().ok())?
    }

    /// Returns the elements of a list; nothing else has any.
    pub(crate) fn elements(self) -> Children<'a> {
        self.children(ValueKind::List)
    }

    /// Returns keys and values of an object in their order; nothing else has any.
    pub(crate) fn fields(self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
        let mut children = self.children(ValueKind::Object);
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    fn children(self, kind: ValueKind) -> Children<'a> {
        let node = self.document.node(self.id);
        let end = if node.kind == kind { node.next } else { self.id + 1 };
        Children { document: self.document, at: self.id + 1, end }
    }

    /// Returns the value of a field; of repeated keys the last, as the parsers of this world do.
    pub(crate) fn get(self, key: &str) -> Option<Self> {
        self.fields().filter(|(name, _)| name.says(key)).last().map(|(_, value)| value)
    }

    /// Returns the value of the field under the first of `keys` that is there and not null.
    pub(crate) fn any(self, keys: &[&str]) -> Option<Self> {
        keys.iter().find_map(|key| self.get(key).filter(|value| !value.is_null()))
    }

    /// Returns a string field, shared, or an empty one.
    pub(crate) fn shared_at(self, key: &str) -> Arc<str> {
        self.get(key).and_then(Value::shared).unwrap_or_else(|| Arc::from(""))
    }

    /// Returns the string under the first of `keys` that is there and not null, shared, or an empty one.
    pub(crate) fn shared_any(self, keys: &[&str]) -> Arc<str> {
        self.any(keys).and_then(Value::shared).unwrap_or_else(|| Arc::from(""))
    }

    /// Returns a string field, or an empty one.
    pub(crate) fn text_at(self, key: &str) -> Cow<'a, str> {
        self.get(key).and_then(Value::text).unwrap_or_default()
    }

    /// Returns the field `type`, or an empty text.
    pub(crate) fn kind(self) -> Cow<'a, str> {
        self.text_at("type")
    }

    /// Returns a field that is a list.
    pub(crate) fn list_at(self, key: &str) -> Option<Self> {
        self.get(key).filter(|value| value.is_list())
    }

    /// Returns a field that is an object.
    pub(crate) fn object_at(self, key: &str) -> Option<Self> {
        self.get(key).filter(|value| value.is_object())
    }

    /// Returns the elements of a field that is a list; any other field has none.
    pub(crate) fn elements_at(self, key: &str) -> impl Iterator<Item = Value<'a>> + use<'a> {
        self.get(key).into_iter().flat_map(Value::elements)
    }

    /// Returns the first element of a field that is a list.
    pub(crate) fn first_at(self, key: &str) -> Option<Self> {
        self.elements_at(key).next()
    }

    /// Returns whether a field is true.
    pub(crate) fn is_true_at(self, key: &str) -> bool {
        self.get(key).is_some_and(Value::is_true)
    }

    /// Returns whether a field is this string.
    pub(crate) fn has(self, key: &str, text: &str) -> bool {
        self.get(key).is_some_and(|value| value.says(text))
    }
}

/// The values inside of another.
#[derive(Debug, Clone)]
pub(crate) struct Children<'a> {
    document: &'a Document,
    at: NodeId,
    end: NodeId,
}

impl<'a> Iterator for Children<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.at >= self.end {
            return None;
        }
        let value = Value { document: self.document, id: self.at };
        self.at = self.document.node(self.at).next;
        Some(value)
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = match rest.as_bytes().get(1) {
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(b'u') => escaped_unit(rest),
            Some(&byte) => (char::from(byte), 2),
            None => ('\\', 1),
        };
        out.push(character);
        rest = rest.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

fn escaped_unit(text: &str) -> (char, usize) {
    let first = code_unit(text).unwrap_or(0xfffd);
    match (first, text.get(6..).and_then(code_unit)) {
        (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) => {
            let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        _ => (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn push_quoted(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[start..at]);
        start = at + 1;
        if escape.is_empty() {
            out.push_str("\\u00");
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[start..]);
    out.push('"');
}

/// Returns `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16 + 2);
    push_quoted(&mut out, text);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(text: &str) -> Result<Document, ScanError> {
        Document::scan(text.into(), 128)
    }

    #[test]
    fn values_are_found_with_their_bytes() {
        let text = r#" {"a" : [1, -2.50e+3,"x\ny"], "b":{}, "c":[ ], "a":true} "#;
        let document = scan(text).unwrap();
        let root = document.root();
        assert!(root.get("a").unwrap().is_true());
        let first = root.fields().next().unwrap().1;
        let raws: Vec<&str> = first.elements().map(Value::raw).collect();
        assert_eq!(raws, ["1", "-2.50e+3", r#""x\ny""#]);
        assert_eq!(first.elements().last().unwrap().text().unwrap(), "x\ny");
        assert_eq!(root.get("b").unwrap().raw(), "{}");
        assert_eq!(root.get("c").unwrap().elements().count(), 0);
        assert_eq!(root.raw(), text.trim());
    }

    #[test]
    fn depth_counts_on_the_bytes() {
        let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(scan(&deep(128)).is_ok());
        assert_eq!(scan(&deep(129)).unwrap_err(), ScanError::TooDeep);
        assert_eq!(scan(&"{\"a\":".repeat(100_000)).unwrap_err(), ScanError::TooDeep);
    }

    #[test]
    fn escapes_are_read() {
        let said = |raw: &str| scan(raw).unwrap().root().text().unwrap().into_owned();
        assert_eq!(said(r#""\u0041\ud83d\ude00\"\/\\\b\t""#), "A😀\"/\\\u{8}\t");
        assert_eq!(said(r#""\ud800x""#), "\u{fffd}x");
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        use serde_json::Value;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|n| Value::from(f64::from(n) / 4.0)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    fn rebuilt(value: Value<'_>) -> serde_json::Value {
        if value.is_list() {
            value.elements().map(rebuilt).collect()
        } else if value.is_object() {
            let fields = value.fields();
            serde_json::Value::Object(
                fields
                    .map(|(key, value)| (key.text().unwrap().into_owned(), rebuilt(value)))
                    .collect(),
            )
        } else if let Some(text) = value.text() {
            serde_json::Value::from(text)
        } else {
            serde_json::from_str(value.raw()).unwrap()
        }
    }

    proptest! {
        #[test]
        fn what_serde_writes_is_read_alike(value in json()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                prop_assert_eq!(&rebuilt(scan(&text).unwrap().root()), &value);
            }
        }

        #[test]
        fn what_is_no_json_is_none_for_both(text in r#"[ \[\]{}:,"\\0-9a-eE.+\-nultrfs\n]{0,24}"#) {
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(scan(&text).is_ok(), theirs, "{}", text);
        }

        #[test]
        fn quoting_is_read_back(text in any::<String>()) {
            prop_assert_eq!(serde_json::from_str::<String>(&quoted(&text)).unwrap(), text);
        }
    }
}
