//! Texts with `{{ values }}`, as they stand in a cascade.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::problem::Place;

/// A Jinja template; its syntax was checked when the cascade was read.
#[derive(Debug, Clone)]
pub struct Template {
    source: Arc<str>,
    place: Place,
}

/// Templates are the same if they say the same.
impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Template {
    pub(crate) fn new(source: &str, place: Place) -> Self {
        Self { source: source.into(), place }
    }

    /// Returns the text with its braces.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns where it stands in its file.
    pub fn place(&self) -> Place {
        self.place
    }
}

impl Decode for Template {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let source = String::decode(node, decoder)?;
        Some(Self { source: source.into(), place: node.place })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        String::schema(definitions)
    }
}

/// A value whose texts are templates: what a tool is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Templated {
    Text(Template),
    List(Vec<Templated>),
    Map(Vec<(String, Templated)>),
    /// A number, a switch or nothing.
    Plain(Value),
}

impl Decode for Templated {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.kind {
            NodeKind::Text(_) => Template::decode(node, decoder).map(Self::Text),
            NodeKind::List(_) => Vec::decode(node, decoder).map(Self::List),
            NodeKind::Map(_) => Vec::<(String, Self)>::decode(node, decoder).map(Self::Map),
            _ => Some(Self::Plain(node.json())),
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({})
    }
}
