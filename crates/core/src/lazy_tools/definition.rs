//! A tool's definition, with its hash and size.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hash::ContentHash;
use crate::tokens::Tokenizer;

/// A tool as it is described to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub schema: String,
}

/// An error: the text is no schema of a tool's arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema of `{name}` is no JSON object")]
pub struct NoSchema {
    pub name: String,
}

impl ToolDefinition {
    /// Returns the SHA-256 of name, description and schema, 64 hex digits; the order of keys and spaces make no difference.
    pub fn hash(&self) -> Result<String, NoSchema> {
        let parts = [&*self.name, &*self.description, &*self.canonical_schema()?];
        Ok(ContentHash::of_texts(&parts).full())
    }

    /// Returns the schema with its keys sorted and without spaces.
    pub fn canonical_schema(&self) -> Result<String, NoSchema> {
        match serde_json::from_str(&self.schema) {
            Ok(schema @ Value::Object(_)) => {
                let mut out = String::new();
                write_sorted(&mut out, &schema);
                Ok(out)
            }
            _ => Err(NoSchema { name: self.name.clone() }),
        }
    }

    /// Counts name, description and schema; the text that a provider writes around them is unknown.
    pub fn tokens(&self, tokenizer: Tokenizer) -> u32 {
        [&self.name, &self.description, &self.schema]
            .into_iter()
            .map(|text| tokenizer.count(text))
            .sum()
    }

    /// Returns whether arguments are an object with all fields that the schema requires, of the types that it names.
    ///
    /// The check is shallow: it decides whether a call may be tried before the model has read the schema.
    pub fn takes(&self, arguments: &str) -> bool {
        let Ok(Value::Object(given)) = serde_json::from_str(arguments) else { return false };
        let Ok(Value::Object(schema)) = serde_json::from_str(&self.schema) else { return false };
        let required = schema.get("required").and_then(Value::as_array);
        let is_given = |key: &Value| key.as_str().is_some_and(|key| given.contains_key(key));
        let properties = schema.get("properties").and_then(Value::as_object);
        let fits =
            |(key, value): (&String, &Value)| match properties.and_then(|known| known.get(key)) {
                Some(property) => is_of(value, property.get("type")),
                None => match schema.get("additionalProperties") {
                    Some(more) => *more != Value::Bool(false),
                    None => properties.is_none(),
                },
            };
        required.is_none_or(|required| required.iter().all(is_given)) && given.iter().all(fits)
    }
}

/// Returns whether a value is of a type of JSON Schema, or of one of several.
fn is_of(value: &Value, kind: Option<&Value>) -> bool {
    match kind {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| is_of(value, Some(kind))),
        Some(Value::String(kind)) => match &**kind {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            _ => true,
        },
        _ => true,
    }
}

fn write_sorted(out: &mut String, value: &Value) {
    // Writing to a string does not fail.
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                let _ = write!(out, "{comma}{}:", Value::from(&**key));
                write_sorted(out, value);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_sorted(out, item);
            }
            out.push(']');
        }
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}
