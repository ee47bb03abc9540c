//! Cascades inside a phase.

use serde_json::{Value, json};

use super::template::Templated;
use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};

record! {
    /// A cascade that runs inside a phase; a file name alone is its `ref`.
    pub struct SubCascade short {
        /// The file, from the folder of the cascade that names it, or its id.
        reference as "ref" | "path" | "cascade" | "cascade_ref": String,
        /// The inputs, by name.
        input_map | "inputs" | "input": Vec<(String, Templated)> = Vec::new(),
        /// Whether it begins with the state of the cascade that calls it.
        context_in: bool = true,
        /// Whether its state flows back.
        context_out: bool = true,
    }
}

impl Decode for SubCascade {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if matches!(node.kind, NodeKind::Map(_)) {
            return Self::decode_map(node, decoder);
        }
        let reference = String::decode(node, decoder)?;
        Some(Self { reference, input_map: Vec::new(), context_in: true, context_out: true })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": "string"}, Self::schema_map(definitions)]})
    }
}
