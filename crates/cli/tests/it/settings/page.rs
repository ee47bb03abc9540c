//! Writes the page of settings: each key with its type, its default and the first sentence of its doc comment.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::source::{Body, Item, Source};

/// One key.
#[derive(Debug)]
pub(crate) struct Row {
    /// With its tables, as in `plimsoll config show --all --json`.
    pub(crate) path: Vec<String>,
    kind: String,
    default: String,
    pub(crate) about: String,
}

/// A table of keys, under its heading.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) rows: Vec<Row>,
}

/// Walks the types from `root` on; `values` holds the defaults, and an instance of each table that has a name.
pub(crate) fn tables(source: &Source, root: &str, values: &Value) -> Vec<Table> {
    let root = source.find(root, None).expect("the type of the whole file");
    let mut tables = Vec::new();
    walk(source, root, &mut Vec::new(), Some(values), &root.docs, &mut tables);
    tables
}

fn walk(
    source: &Source,
    item: &Item,
    path: &mut Vec<String>,
    values: Option<&Value>,
    about: &str,
    tables: &mut Vec<Table>,
) {
    let Body::Fields(fields) = &item.body else { panic!("{} has no fields", item.name) };
    let at = tables.len();
    tables.push(Table { name: path.join("."), about: about.to_owned(), rows: Vec::new() });
    for field in fields {
        let (shape, inner) = shape(&field.kind);
        let found = source.find(inner, Some(item));
        let value = values.and_then(|values| values.get(&field.key));
        path.push(field.key.clone());
        match found {
            Some(inner) if matches!(inner.body, Body::Fields(_)) => {
                let about = if field.docs.is_empty() { &inner.docs } else { &field.docs };
                let (value, named) = match shape {
                    Shape::Named => (value.and_then(|value| value.get(NAME)), Some(NAME)),
                    Shape::List => (value.and_then(|value| value.get(0)), Some("[]")),
                    Shape::Plain | Shape::Optional => (value, None),
                };
                path.extend(named.map(str::to_owned));
                walk(source, inner, path, value, about, tables);
                path.truncate(path.len() - named.iter().len());
            }
            found => {
                let kind = kind(&shape, inner, found);
                let default = match value {
                    _ if !field.is_optional => "required".to_owned(),
                    None | Some(Value::Null) => "not set".to_owned(),
                    Some(value) => format!("`{}`", toml_value(value)),
                };
                let docs = match found {
                    Some(item) if field.docs.is_empty() => &item.docs,
                    _ => &field.docs,
                };
                let row = Row { path: path.clone(), kind, default, about: docs.clone() };
                tables[at].rows.push(row);
            }
        }
        path.pop();
    }
}

/// The name of a table that the reader names.
pub(crate) const NAME: &str = "NAME";

#[derive(Debug, PartialEq)]
enum Shape {
    Plain,
    Optional,
    List,
    Named,
}

fn shape(kind: &str) -> (Shape, &str) {
    let inside = |name: &str| kind.strip_prefix(name)?.strip_suffix('>');
    for (name, shape) in
        [("Option<", Shape::Optional), ("Vec<", Shape::List), ("BTreeMap<String, ", Shape::Named)]
    {
        if let Some(inner) = inside(name) {
            return (shape, inner);
        }
    }
    (Shape::Plain, kind)
}

fn kind(shape: &Shape, name: &str, found: Option<&Item>) -> String {
    let plain = match found.map(|item| &item.body) {
        Some(Body::Words(words)) => {
            words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
        }
        Some(Body::Told(told)) => told.clone(),
        Some(Body::Transparent(inner)) => simple(inner).to_owned(),
        _ => simple(name).to_owned(),
    };
    match shape {
        Shape::Plain | Shape::Optional => plain,
        Shape::List => format!("list of {plain}"),
        Shape::Named => format!("table of {plain}"),
    }
}

fn simple(name: &str) -> &str {
    match name {
        "bool" => "true or false",
        "u32" | "u64" | "usize" => "whole number",
        // The one type that has a parameter is that of shares of a window.
        "f32" | "f64" | "T" => "number",
        "String" => "text",
        "PathBuf" => "path",
        "SocketAddr" => "address",
        "Secret" | "SecretValue" => "secret",
        "serde_json::Value" => "table",
        other => panic!("the page has no word for the type {other}"),
    }
}

fn toml_value(value: &Value) -> String {
    toml::Value::try_from(value).expect("a value of TOML").to_string()
}

/// Writes the page; `schema` is that of cascades.
pub(crate) fn page(source: &Source, tables: &[Table], window: &[Table], schema: &Value) -> String {
    let mut out = INTRODUCTION.to_owned();
    write_tables(&mut out, tables, toml_heading);
    out.push_str(WINDOW);
    write_tables(&mut out, window, |name| format!("`{name}`"));
    out.push_str("\n## Environment\n| variable | meaning |\n| --- | --- |\n");
    for variable in &source.variables {
        let _ = writeln!(out, "| `{}` | {} |", variable.name, cell(&capital(&variable.docs)));
    }
    cascades(&mut out, schema);
    out
}

fn toml_heading(name: &str) -> String {
    match name.strip_suffix(".[]") {
        Some(list) => format!("`[[{list}]]`"),
        None => format!("`[{name}]`"),
    }
}

fn write_tables(out: &mut String, tables: &[Table], heading: fn(&str) -> String) {
    for Table { name, about, rows } in tables.iter().filter(|table| !table.rows.is_empty()) {
        let heading = if name.is_empty() { "At the top".to_owned() } else { heading(name) };
        let about = if name.is_empty() { "Keys that stand in no table." } else { about };
        let _ = writeln!(out, "\n### {heading}\n{about}\n");
        out.push_str("| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
        for Row { path, kind, default, about } in rows {
            let key = path.last().expect("a key");
            let _ = writeln!(out, "| `{key}` | {} | {default} | {} |", cell(kind), cell(about));
        }
    }
}

const WINDOW: &str = "
## context.json
The shares of a context window, in the current folder; `pressure` and `trim` read it.
";

const INTRODUCTION: &str = "\
# Settings
All settings, made from their types and doc comments; [CONTRIBUTING.md](../CONTRIBUTING.md) says how. `plimsoll config show` prints the
settings in force and the origin of each, `plimsoll config path` where they are read from, `plimsoll config check` what is wrong with them.

## plimsoll.toml
The project's `plimsoll.toml` is read, else the one in the user's configuration folder. `NAME` stands for a name of your choice.
Prices are data and not in this list: the README says how `pricing.toml` changes them.
";

fn cascades(out: &mut String, schema: &Value) {
    out.push_str(
        "\n## Cascades\nKeys of cascade files. A default stands in brackets behind the meaning. [cascades.md](cascades.md) explains them, and\n`schema/cascade.schema.json` checks them in an editor. Keys that Plimsoll refuses with a reason are left out.\n",
    );
    for (name, record) in schema["$defs"].as_object().expect("records") {
        let Some(properties) = record["properties"].as_object() else { continue };
        let _ = writeln!(out, "\n### {name}\n{}\n", text(record));
        out.push_str("| key | type | meaning |\n| --- | --- | --- |\n");
        for (key, property) in properties {
            let about = text(property);
            if about.starts_with("The same as `") || about.starts_with("Not supported: ") {
                continue;
            }
            let aliases = properties.iter().filter(|(_, property)| {
                text(property).strip_prefix("The same as `") == Some(&format!("{key}`."))
            });
            let names = std::iter::once(key).chain(aliases.map(|(alias, _)| alias));
            let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            let kinds: Vec<String> = kinds(property).into_iter().collect();
            let _ = writeln!(
                out,
                "| {} | {} | {} |",
                names.join(", "),
                cell(&kinds.join(", ")),
                cell(&about)
            );
        }
    }
}

/// Returns the description of a schema, which may stand beside or inside `anyOf`.
pub(crate) fn text(schema: &Value) -> String {
    if let Some(text) = schema["description"].as_str() {
        return text.to_owned();
    }
    let inner = schema["anyOf"].as_array().into_iter().flatten().map(text);
    inner.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// Returns the types that a schema allows, in words.
fn kinds(schema: &Value) -> BTreeSet<String> {
    let word = |kind: &str| match kind {
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "object" => "table".to_owned(),
        "array" => "list".to_owned(),
        other => other.to_owned(),
    };
    if let Some(reference) = schema["$ref"].as_str() {
        return BTreeSet::from([reference.replace("#/$defs/", "")]);
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("`{word}`")).collect();
    }
    let mut found = BTreeSet::new();
    for inner in schema["anyOf"].as_array().into_iter().flatten() {
        found.extend(kinds(inner));
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => {
            let inner: Vec<String> = kinds(&schema["items"]).into_iter().collect();
            found.insert(format!("list of {}", inner.join(" or ")));
        }
        Value::String(kind) => {
            found.insert(word(kind));
        }
        Value::Array(list) => {
            let names = list.iter().filter_map(Value::as_str);
            found.extend(names.map(word));
        }
        _ => {}
    }
    // A whole number may be written as a text of digits, and a text as any scalar: both are the plain type.
    if schema.to_string().contains("^[0-9]+$") && found.contains("whole number") {
        found.remove("text");
    }
    if found.contains("text") {
        found.retain(|kind| kind != "number" && kind != "true or false");
    }
    found.remove("null");
    found
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
