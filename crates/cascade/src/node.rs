//! A document as a tree whose every value knows its place in the text.

use serde_json::Value;

use crate::problem::Place;

/// Levels of lists and maps; deeper ones are refused before anything walks them (chosen: real cascades have at most 12).
pub(crate) const DEEPEST: usize = 64;
/// Values of one document, those behind anchors counted each time (chosen: the largest real cascade has under 3,000).
pub(crate) const MOST_NODES: usize = 100_000;
/// Bytes of one document, those behind anchors counted each time (chosen: the largest real cascade has under 100 kB).
pub(crate) const LONGEST: usize = 4 << 20;

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) kind: NodeKind,
}

#[derive(Debug, Clone)]
pub(crate) enum NodeKind {
    Null,
    Bool(bool, String),
    Integer(i64, String),
    Float(f64, String),
    Text(Text),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) place: Place,
    pub(crate) text: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// The place of its first line, if its lines are those of the file (a literal block of YAML).
    pub(crate) block: Option<Place>,
}

impl Node {
    /// Says what stands here, for a message.
    pub(crate) fn said(&self) -> String {
        match &self.kind {
            NodeKind::Null => "nothing".to_owned(),
            NodeKind::Bool(_, raw) | NodeKind::Integer(_, raw) | NodeKind::Float(_, raw) => {
                format!("`{raw}`")
            }
            NodeKind::Text(text) => {
                let shown = plimsoll_core::text::shortened(&text.text, 40);
                format!("the text \"{}\"", shown.replace(['\n', '\r'], " "))
            }
            NodeKind::List(_) => "a list".to_owned(),
            NodeKind::Map(_) => "a map".to_owned(),
        }
    }

    /// Returns the text of a scalar as it is written.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Bool(_, raw) | NodeKind::Integer(_, raw) | NodeKind::Float(_, raw) => {
                Some(raw)
            }
            NodeKind::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// Returns whether a switch with this value is off: a known key without support is then no news.
    pub(crate) fn is_off(&self) -> bool {
        match &self.kind {
            NodeKind::Null | NodeKind::Bool(false, _) => true,
            NodeKind::List(items) => items.is_empty(),
            NodeKind::Map(entries) => entries.is_empty(),
            _ => false,
        }
    }

    /// Finds a key of a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.kind {
            NodeKind::Map(entries) => {
                entries.iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
            }
            _ => None,
        }
    }

    /// Returns it as plain JSON.
    pub(crate) fn json(&self) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(value, _) => Value::Bool(*value),
            NodeKind::Integer(value, _) => Value::from(*value),
            // A number that JSON does not have stays as it is written.
            NodeKind::Float(value, raw) => serde_json::Number::from_f64(*value)
                .map_or_else(|| Value::String(raw.clone()), Value::Number),
            NodeKind::Text(text) => Value::String(text.text.clone()),
            NodeKind::List(items) => items.iter().map(Self::json).collect(),
            NodeKind::Map(entries) => {
                entries.iter().map(|(key, node)| (key.text.clone(), node.json())).collect()
            }
        }
    }
}
