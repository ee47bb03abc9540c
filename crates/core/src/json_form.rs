//! Answers in JSON: asks a model for them, finds them in its text and checks them.

use serde_json::{Map, Value};

/// Returns the text that asks for JSON where the provider's API has no parameter for it.
pub fn instruction(schema: &str) -> String {
    format!(
        "Answer with one JSON value and nothing else: no introduction, no code fence. It must be valid against this JSON \
         schema:\n{schema}"
    )
}

/// Returns the text that asks once more, after an answer with this problem.
pub fn repair(problem: &str) -> String {
    format!(
        "That answer cannot be used: {problem}. Answer again with the corrected JSON value only."
    )
}

/// Returns the JSON text in `answer`, as the model wrote it, if `schema` allows its value.
///
/// The answer may be the value or hold it in a code fence; words around it are ignored if the value is unambiguous.
/// Errors name the place and the problem in words that a model understands.
pub fn fit<'a>(answer: &'a str, schema: &str) -> Result<&'a str, String> {
    let schema: Value =
        serde_json::from_str(schema).map_err(|error| format!("the schema is no JSON: {error}"))?;
    let (text, value) = find(answer)?;
    check(&value, &schema, &schema, "$", 0)?;
    Ok(text)
}

/// Returns the smallest value that a schema allows, as a model without a mind of its own would give it: the first word of a
/// list, true, one, and as few items as there may be.
pub fn smallest(schema: &Value) -> Value {
    smallest_of(schema, schema, 0)
}

fn smallest_of(schema: &Value, root: &Value, depth: usize) -> Value {
    let again = |schema: &Value| smallest_of(schema, root, depth + 1);
    let Value::Object(schema) = schema else { return Value::Bool(true) };
    let number = |key: &str| schema.get(key).and_then(Value::as_u64).unwrap_or(0) as usize;
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or(Value::Null, again);
    }
    if let Some(value) = schema.get("const").or_else(|| list(schema, "enum").first()) {
        return value.clone();
    }
    let branch = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| list(schema, key).first());
    if let Some(branch) = branch {
        return again(branch);
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("null"),
        _ if schema.get("properties").is_some() || schema.get("required").is_some() => "object",
        _ => "string",
    };
    match kind {
        "object" => {
            let known = schema.get("properties").and_then(Value::as_object);
            let mut fields = Map::new();
            for (name, field) in known.into_iter().flatten() {
                fields.insert(name.clone(), again(field));
            }
            for name in list(schema, "required").iter().filter_map(Value::as_str) {
                fields.entry(name).or_insert_with(|| Value::String("ok".to_owned()));
            }
            Value::Object(fields)
        }
        "array" => {
            let item = schema.get("items").map_or(Value::String("ok".to_owned()), again);
            Value::Array(vec![item; number("minItems").max(1)])
        }
        "boolean" => Value::Bool(true),
        "integer" | "number" => {
            let least = schema.get("minimum").cloned();
            least.unwrap_or_else(|| Value::from(u64::from(schema.get("maximum").is_none())))
        }
        "null" => Value::Null,
        _ => Value::String(
            "ok ".repeat(number("minLength").div_ceil(3).max(1)).trim_end().to_owned(),
        ),
    }
}

fn find(answer: &str) -> Result<(&str, Value), String> {
    let whole = answer.trim();
    let problem = match serde_json::from_str(whole) {
        Ok(value) => return Ok((whole, value)),
        Err(error) => error,
    };
    let fenced = whole.split_once("```").and_then(|(_, rest)| {
        let inside = rest.split_once('\n')?.1;
        Some(inside.split_once("```").map_or(inside, |(inside, _)| inside).trim())
    });
    // Between words, only an object or a list can be told from the words.
    let bare = whole.find(['{', '[']).zip(whole.rfind(['}', ']']));
    let bare = bare.filter(|(from, to)| from < to).map(|(from, to)| &whole[from..=to]);
    for text in [fenced, bare].into_iter().flatten() {
        if let Ok(value) = serde_json::from_str(text) {
            return Ok((text, value));
        }
    }
    Err(format!("it is not JSON ({problem})"))
}

/// Deeper schemas refer to themselves; `serde_json` does not read answers of that depth either.
const DEEPEST: usize = 128;

/// Checks `value` by the keywords that schemas of answers use; other keywords are ignored.
fn check(
    value: &Value,
    schema: &Value,
    root: &Value,
    place: &str,
    depth: usize,
) -> Result<(), String> {
    if depth > DEEPEST {
        return Err(format!("{place} is nested too deeply"));
    }
    let schema = match schema {
        Value::Bool(false) => return Err(format!("{place} must not be there")),
        Value::Object(schema) => schema,
        _ => return Ok(()),
    };
    let again = |value, schema, place: &str| check(value, schema, root, place, depth + 1);
    if let Some(Value::String(reference)) = schema.get("$ref") {
        let pointer = reference.strip_prefix('#');
        let target = pointer.and_then(|pointer| root.pointer(pointer));
        let target = target.ok_or_else(|| format!("the schema has no `{reference}`"))?;
        again(value, target, place)?;
    }
    check_kind(value, schema, place)?;
    check_size(value, schema, place)?;
    for one in list(schema, "allOf") {
        again(value, one, place)?;
    }
    let any: Vec<Result<(), String>> =
        list(schema, "anyOf").iter().map(|one| again(value, one, place)).collect();
    if let Some(Err(first)) = any.first()
        && any.iter().all(Result::is_err)
    {
        return Err(first.clone());
    }
    let one_of = list(schema, "oneOf");
    let fitting = one_of.iter().filter(|one| again(value, one, place).is_ok()).count();
    if !one_of.is_empty() && fitting != 1 {
        return Err(format!(
            "{place} must be of exactly one of the kinds named, and is of {fitting}"
        ));
    }
    match value {
        Value::Object(fields) => {
            for name in list(schema, "required").iter().filter_map(Value::as_str) {
                if !fields.contains_key(name) {
                    return Err(format!("{place} has no `{name}`"));
                }
            }
            let known = schema.get("properties").and_then(Value::as_object);
            for (name, field) in fields {
                let place = format!("{place}.{name}");
                match (known.and_then(|known| known.get(name)), schema.get("additionalProperties"))
                {
                    (Some(schema), _) | (None, Some(schema)) => again(field, schema, &place)?,
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    again(item, schema, &format!("{place}[{index}]"))?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn list<'a>(schema: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn check_kind(value: &Value, schema: &Map<String, Value>, place: &str) -> Result<(), String> {
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |kind: &&str| match *kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if !kinds.is_empty() && !kinds.iter().any(is) {
        return Err(format!("{place} must be of type {}", kinds.join(" or ")));
    }
    let allowed = list(schema, "enum");
    if !allowed.is_empty() && !allowed.contains(value) {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return Err(format!("{place} must be one of {}", allowed.join(", ")));
    }
    match schema.get("const") {
        Some(only) if only != value => Err(format!("{place} must be {only}")),
        _ => Ok(()),
    }
}

fn check_size(value: &Value, schema: &Map<String, Value>, place: &str) -> Result<(), String> {
    let (size, least, most, what) = match value {
        Value::Number(number) => (number.as_f64(), "minimum", "maximum", "be"),
        Value::String(text) => {
            (Some(text.chars().count() as f64), "minLength", "maxLength", "have as many characters")
        }
        Value::Array(items) => {
            (Some(items.len() as f64), "minItems", "maxItems", "have as many items")
        }
        _ => return Ok(()),
    };
    let Some(size) = size else { return Ok(()) };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(least) = bound(least).filter(|least| size < *least) {
        return Err(format!("{place} must {what}: at least {least}"));
    }
    if let Some(most) = bound(most).filter(|most| size > *most) {
        return Err(format!("{place} must {what}: at most {most}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r##"{
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"$ref": "#/$defs/id"}, "maxItems": 2},
            "mood": {"enum": ["calm", "loud"]},
            "share": {"type": "number", "minimum": 0, "maximum": 1},
            "count": {"type": ["integer", "null"]},
            "either": {"anyOf": [{"type": "string"}, {"type": "boolean"}]}
        },
        "required": ["ids"],
        "additionalProperties": false,
        "$defs": {"id": {"type": "string", "minLength": 2}}
    }"##;

    fn problem(answer: &str) -> String {
        fit(answer, SCHEMA).expect_err(answer)
    }

    #[test]
    fn a_value_is_found_in_what_stands_around_it() {
        let value = r#"{"ids": ["ab"]}"#;
        for answer in [
            value.to_owned(),
            format!("\n{value}\n"),
            format!("```json\n{value}\n```"),
            format!("Here it is:\n```\n{value}\n```\nAnything else?"),
            format!("Sure! {value} Done."),
            format!("```json\n{value}"),
        ] {
            assert_eq!(fit(&answer, SCHEMA), Ok(value), "{answer}");
        }
    }

    #[test]
    fn problems_name_their_place() {
        assert!(problem("no").starts_with("it is not JSON"));
        assert!(problem(r#"{"ids": ["ab"]"#).starts_with("it is not JSON"));
        assert_eq!(problem("[]"), "$ must be of type object");
        assert_eq!(problem("{}"), "$ has no `ids`");
        assert_eq!(problem(r#"{"ids": ["ab", 1]}"#), "$.ids[1] must be of type string");
        assert_eq!(
            problem(r#"{"ids": ["a"]}"#),
            "$.ids[0] must have as many characters: at least 2"
        );
        assert_eq!(
            problem(r#"{"ids": ["ab", "ab", "ab"]}"#),
            "$.ids must have as many items: at most 2"
        );
        assert_eq!(
            problem(r#"{"ids": [], "mood": "sad"}"#),
            r#"$.mood must be one of "calm", "loud""#
        );
        assert_eq!(problem(r#"{"ids": [], "share": 2}"#), "$.share must be: at most 1");
        assert_eq!(problem(r#"{"ids": [], "other": 2}"#), "$.other must not be there");
        assert_eq!(
            problem(r#"{"ids": [], "count": 1.5}"#),
            "$.count must be of type integer or null"
        );
        assert_eq!(problem(r#"{"ids": [], "either": 3}"#), "$.either must be of type string");
        assert!(fit(r#"{"ids": [], "either": true, "count": 2.0}"#, SCHEMA).is_ok());
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let endless = r##"{"$ref": "#"}"##;
        assert_eq!(fit("1", endless), Err("$ is nested too deeply".into()));
        assert!(fit("1", r##"{"$ref": "#/nowhere"}"##).is_err());
        assert!(fit("1", "{").is_err());
        let one = r#"{"oneOf": [{"type": "number"}, {"type": "integer"}]}"#;
        assert!(fit("1", one).is_err());
        assert!(fit("1.5", one).is_ok());
    }
}
