//! Numbers that a template may compute.

use serde_json::{Value, json};

use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::template::Template;

/// A whole number, or a template that renders one when the phase begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Count {
    Fixed(u32),
    Template(Template),
}

impl Count {
    /// Returns the number if it is known before a run.
    pub fn fixed(&self) -> Option<u32> {
        match self {
            Self::Fixed(number) => Some(*number),
            Self::Template(_) => None,
        }
    }
}

impl Decode for Count {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.kind {
            NodeKind::Text(text) if text.text.contains("{{") || text.text.contains("{%") => {
                Template::decode(node, decoder).map(Self::Template)
            }
            _ => u32::decode(node, decoder).map(Self::Fixed),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [u32::schema(definitions), {"type": "string", "pattern": "\\{[{%]"}]})
    }
}
