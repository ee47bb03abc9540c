//! What a run is given.

use serde_json::{Map, Value, json};

use super::Cascade;
use super::output::check;
use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};

/// The inputs of a cascade: names with descriptions, or a whole JSON Schema.
#[derive(Debug, Clone, PartialEq)]
pub struct InputsSchema {
    pub inputs: Vec<Input>,
    /// The JSON Schema that an input must fulfil, if the cascade has written one.
    pub schema: Option<Value>,
    /// Whether the inputs listed are all there are.
    pub is_closed: bool,
}

/// One input.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    pub name: String,
    pub description: Option<String>,
    /// The value where a run gives none.
    pub default: Option<Value>,
    pub is_required: bool,
}

impl Decode for InputsSchema {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let NodeKind::Map(entries) = &node.kind else {
            return decoder.expected(node, "a map of inputs, or a JSON Schema");
        };
        let properties = node
            .get("properties")
            .filter(|_| node.get("type").is_none_or(|kind| kind.scalar() == Some("object")));
        let Some(NodeKind::Map(properties)) = properties.map(|node| &node.kind) else {
            let inputs = entries
                .iter()
                .map(|(key, value)| {
                    decoder.under(&key.text, |decoder| input(&key.text, value, decoder))
                })
                .collect::<Option<Vec<_>>>()?;
            return Some(Self { inputs, schema: None, is_closed: true });
        };
        let schema = node.json();
        check(node, &schema, decoder)?;
        let required: Vec<&str> = match node.get("required").map(|node| &node.kind) {
            Some(NodeKind::List(names)) => names.iter().filter_map(Node::scalar).collect(),
            _ => Vec::new(),
        };
        let inputs = properties
            .iter()
            .map(|(key, value)| Input {
                name: key.text.clone(),
                description: value.get("description").and_then(Node::scalar).map(str::to_owned),
                default: value.get("default").map(Node::json),
                is_required: required.contains(&key.text.as_str()),
            })
            .collect();
        let is_closed = node.get("additionalProperties").is_none_or(Node::is_off);
        Some(Self { inputs, schema: Some(schema), is_closed })
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "object"})
    }
}

/// Reads one input: a description, or the JSON Schema of its value.
fn input(name: &str, node: &Node, decoder: &mut Decoder) -> Option<Input> {
    let (description, default) = match &node.kind {
        NodeKind::Map(_) => {
            (node.get("description").and_then(Node::scalar), node.get("default").map(Node::json))
        }
        NodeKind::Null => (None, None),
        _ => match node.scalar() {
            Some(text) => (Some(text), None),
            None => return decoder.expected(node, "a description, or a JSON Schema"),
        },
    };
    Some(Input {
        name: name.to_owned(),
        description: description.map(str::to_owned),
        default,
        is_required: false,
    })
}

impl Cascade {
    /// Returns an input with the defaults of what it does not say.
    pub fn with_defaults(&self, input: Map<String, Value>) -> Map<String, Value> {
        let schema = self.inputs_schema.as_ref();
        let mut whole = schema.map(InputsSchema::defaults).unwrap_or_default();
        whole.extend(input);
        whole
    }
}

impl InputsSchema {
    /// Returns the defaults of the inputs that have one.
    pub fn defaults(&self) -> Map<String, Value> {
        let with_default = |input: &Input| Some((input.name.clone(), input.default.clone()?));
        self.inputs.iter().filter_map(with_default).collect()
    }
}
