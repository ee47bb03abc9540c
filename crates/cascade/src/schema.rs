//! The published JSON Schema, made of the same tables that read cascades.

use serde_json::{Map, Value, json};

use crate::decode::{Decode as _, Definitions};
use crate::definition::Cascade;
use crate::unsupported;

/// A key of a record.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) about: &'static str,
    pub(crate) schema: Value,
    pub(crate) is_required: bool,
}

/// Returns the JSON Schema (draft 2020-12) of a cascade.
///
/// It accepts what the parser accepts; unknown keys are not refused, since they are warnings.
pub fn json_schema() -> Value {
    let mut definitions = Definitions::new();
    let root = Cascade::schema(&mut definitions);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cascade",
    });
    if let (Some(schema), Value::Object(root)) = (schema.as_object_mut(), root) {
        schema.extend(root);
        schema.insert("$defs".to_owned(), definitions.into_iter().collect());
    }
    schema
}

/// Makes the schema of a record.
pub(crate) fn record(name: &'static str, about: &str, fields: Vec<Field>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        if field.is_required {
            let names = std::iter::once(field.key).chain(field.aliases.iter().copied());
            required.push(
                json!({"anyOf": names.map(|name| json!({"required": [name]})).collect::<Vec<_>>()}),
            );
        }
        for alias in field.aliases {
            let mut schema = field.schema.clone();
            describe(&mut schema, &format!("The same as `{}`.", field.key));
            properties.insert((*alias).to_owned(), nullable(schema, field.is_required));
        }
        let mut schema = field.schema;
        describe(&mut schema, field.about.trim());
        properties.insert(field.key.to_owned(), nullable(schema, field.is_required));
    }
    for (key, why) in unsupported::keys_of(name) {
        properties.insert(key.to_owned(), json!({"description": format!("Not supported: {why}.")}));
    }
    let mut schema =
        json!({"type": "object", "description": about.trim(), "properties": properties});
    if !required.is_empty() {
        schema["allOf"] = Value::Array(required);
    }
    schema
}

fn describe(schema: &mut Value, about: &str) {
    if let Some(schema) = schema.as_object_mut().filter(|_| !about.is_empty()) {
        schema.insert("description".to_owned(), Value::from(about));
    }
}

/// Nothing is what is not there; a required key is there.
fn nullable(schema: Value, is_required: bool) -> Value {
    if is_required { schema } else { json!({"anyOf": [schema, {"type": "null"}]}) }
}
