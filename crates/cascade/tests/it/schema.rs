//! The published schema is the parser's.

use std::path::Path;

use plimsoll_cascade::json_schema;

#[test]
fn the_published_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/cascade.schema.json");
    let made = serde_json::to_string_pretty(&json_schema()).unwrap() + "\n";
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        published == made,
        "schema/cascade.schema.json is old; `plimsoll validate --schema > schema/cascade.schema.json` writes it"
    );
}

#[test]
fn the_schema_accepts_what_the_parser_accepts() {
    let validator = jsonschema::validator_for(&json_schema()).expect("a JSON Schema");
    for (text, is_valid) in [
        (r#"{"cascade_id": "c", "phases": [{"name": "a", "instructions": "x"}]}"#, true),
        (
            r#"{"cascade_id": "c", "cells": [{"name": "a", "skills": "manifest", "instructions": "x", "takes": {"factor": "{{ input.n }}"}}]}"#,
            true,
        ),
        (
            r#"{"cascade_id": "c", "phases": [{"name": "a", "instructions": "x", "context": {"from": ["all", {"phase": "b", "include": ["state"]}]}}]}"#,
            true,
        ),
        (
            r#"{"cascade_id": "c", "phases": [{"name": "a", "instructions": "x", "rules": null, "wards": ["v"]}]}"#,
            true,
        ),
        (r#"{"phases": []}"#, false),
        (r#"{"cascade_id": "../c", "phases": []}"#, false),
        (r#"{"cascade_id": "c", "phases": [{"name": "a", "instructions": ["x"]}]}"#, false),
        (
            r#"{"cascade_id": "c", "phases": [{"name": "a", "instructions": "x", "context_retention": "none"}]}"#,
            false,
        ),
    ] {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(validator.is_valid(&value), is_valid, "{text}");
    }
}
