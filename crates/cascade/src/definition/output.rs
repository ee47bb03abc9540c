//! What becomes of a phase's output.

use serde_json::{Value, json};

use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::problem::Kind;

words! {
    /// What the extracted text is read as.
    pub enum ExtractionFormat {
        Text "text",
        Json "json",
        Code "code",
    }
}

record! {
    /// A part of the output that goes into the state.
    pub struct OutputExtraction {
        /// A regular expression; its first group is taken, or all of it where it has none.
        pattern: String,
        /// The name in the state.
        store_as: String,
        /// Whether the phase fails where nothing matches.
        required: bool = false,
        /// What the text is read as.
        format: ExtractionFormat = ExtractionFormat::Text,
    }
}

/// The JSON Schema of an output; it was checked when the cascade was read.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSchema(pub Value);

impl Decode for OutputSchema {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if !matches!(node.kind, NodeKind::Map(_) | NodeKind::Bool(..)) {
            return decoder.expected(node, "a JSON Schema");
        }
        let schema = node.json();
        check(node, &schema, decoder)?;
        Some(Self(schema))
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": ["object", "boolean"]})
    }
}

/// Tells where `schema` is no JSON Schema.
pub(super) fn check(node: &Node, schema: &Value, decoder: &mut Decoder) -> Option<()> {
    // Nothing is fetched: a reference to elsewhere is an error here too.
    match jsonschema::validator_for(schema) {
        Ok(_) => Some(()),
        Err(error) => {
            let at = error.instance_path().to_string();
            let at = if at.is_empty() { String::new() } else { format!(" at `{at}`") };
            let said: String = error.to_string().chars().take(160).collect();
            decoder.error(node, Kind::Schema, format!("this is no JSON Schema{at}: {said}"));
            None
        }
    }
}
