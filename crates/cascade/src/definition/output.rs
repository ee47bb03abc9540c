//! What becomes of a phase's output.

use serde_json::{Value, json};

use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::problem::Kind;

words! {
    /// The form of the extracted text.
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
        pattern: Pattern,
        /// The name in the state.
        store_as: String,
        /// Whether the phase fails where nothing matches.
        required: bool = false,
        /// The form of the text.
        format: ExtractionFormat = ExtractionFormat::Text,
    }
}

/// A regular expression; it was compiled once when the cascade was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Returns it as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compiles it; `.` matches the end of a line too, as in cascades of this kind.
    pub fn regex(&self) -> Result<regex::Regex, regex::Error> {
        regex::RegexBuilder::new(&self.0).dot_matches_new_line(true).size_limit(1 << 20).build()
    }
}

impl Decode for Pattern {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let pattern = Self(String::decode(node, decoder)?);
        match pattern.regex() {
            Ok(_) => Some(pattern),
            Err(error) => {
                let said = error.to_string();
                let said = said.lines().last().unwrap_or_default().trim();
                decoder.error(node, Kind::Shape, format!("invalid regular expression: {said}"));
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        String::schema(definitions)
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

/// Reports the place at which `schema` is not a valid JSON Schema.
pub(super) fn check(node: &Node, schema: &Value, decoder: &mut Decoder) -> Option<()> {
    // Nothing is fetched: a reference to elsewhere is an error here too.
    match jsonschema::validator_for(schema) {
        Ok(_) => Some(()),
        Err(error) => {
            let at = error.instance_path().to_string();
            let at = if at.is_empty() { String::new() } else { format!(" at `{at}`") };
            let said = plimsoll_core::text::line(&error.to_string(), 160);
            decoder.error(node, Kind::Schema, format!("invalid JSON Schema{at}: {said}"));
            None
        }
    }
}
