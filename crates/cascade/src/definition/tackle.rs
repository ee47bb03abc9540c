//! The tools of a phase.

use serde_json::{Value, json};

use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};

/// The tools that a model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tackle {
    Names(Vec<String>),
    /// The model picks from the directory first.
    Manifest,
}

impl Decode for Tackle {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.kind {
            NodeKind::Text(text) if text.text == "manifest" => Some(Self::Manifest),
            _ => Vec::<String>::decode(node, decoder).map(|names| match names.as_slice() {
                [name] if name == "manifest" => Self::Manifest,
                _ => Self::Names(names),
            }),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"const": "manifest"}, Vec::<String>::schema(definitions)]})
    }
}
