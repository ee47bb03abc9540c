//! JSON to nodes; comments and trailing commas are read with a warning.

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use crate::decode::Decoder;
use crate::node::{DEEPEST, Key, Node, NodeKind, Text};
use crate::problem::{Kind, Place};

/// The options of plain JSON.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};
const LENIENT: ParseOptions =
    ParseOptions { allow_comments: true, allow_trailing_commas: true, ..STRICT };

/// Reads `text`; `None` if it is no JSON, which is told to `decoder`.
pub(crate) fn read(text: &str, decoder: &mut Decoder) -> Option<Node> {
    let collect = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: false };
    let parsed = match parse_to_ast(text, &collect, &STRICT) {
        Ok(parsed) => parsed,
        Err(strict) => {
            let place = Place {
                line: strict.line_display() as u32,
                column: strict.column_display() as u32,
            };
            match parse_to_ast(text, &collect, &LENIENT) {
                Ok(parsed) => {
                    let message =
                        "JSON has no comments and no trailing commas; they are passed over";
                    decoder.warn_at(place, Kind::Syntax, message);
                    parsed
                }
                Err(error) => {
                    let place = Place {
                        line: error.line_display() as u32,
                        column: error.column_display() as u32,
                    };
                    let said = error.kind().to_string();
                    let said = format!("invalid JSON: {}", first_lower(&said));
                    decoder.error_at(place, Kind::Syntax, said);
                    return None;
                }
            }
        }
    };
    let Some(value) = parsed.value else {
        decoder.error_at(Place::START, Kind::Syntax, "the file is empty");
        return None;
    };
    let lines = Lines::of(text);
    node(&value, &lines, 0, decoder)
}

fn node(value: &Value, lines: &Lines, depth: usize, decoder: &mut Decoder) -> Option<Node> {
    let place = lines.place(value.start());
    if depth > DEEPEST {
        decoder.error_at(place, Kind::Syntax, format!("more than {DEEPEST} levels"));
        return None;
    }
    let kind = match value {
        Value::NullKeyword(_) => NodeKind::Null,
        Value::BooleanLit(bool) => NodeKind::Bool(bool.value, bool.value.to_string()),
        Value::NumberLit(number) => {
            let raw = number.value.to_owned();
            match (raw.parse::<i64>(), raw.parse::<f64>()) {
                (Ok(value), _) => NodeKind::Integer(value, raw),
                (_, Ok(value)) if value.is_finite() => NodeKind::Float(value, raw),
                _ => {
                    decoder.error_at(place, Kind::Syntax, format!("the number {raw} is too large"));
                    return None;
                }
            }
        }
        Value::StringLit(text) => {
            NodeKind::Text(Text { text: text.value.to_string(), block: None })
        }
        Value::Array(array) => {
            let mut items = Vec::with_capacity(array.elements.len());
            for element in &array.elements {
                items.push(node(element, lines, depth + 1, decoder)?);
            }
            NodeKind::List(items)
        }
        Value::Object(object) => {
            let mut entries: Vec<(Key, Node)> = Vec::with_capacity(object.properties.len());
            let mut seen = std::collections::HashSet::new();
            for property in &object.properties {
                let text = match &property.name {
                    ObjectPropName::String(name) => name.value.to_string(),
                    ObjectPropName::Word(name) => name.value.to_owned(),
                };
                let key = Key { place: lines.place(property.range.start), text };
                if !seen.insert(key.text.clone()) {
                    decoder.twice(&key);
                }
                entries.push((key, node(&property.value, lines, depth + 1, decoder)?));
            }
            NodeKind::Map(entries)
        }
    };
    Some(Node { place, kind })
}

/// Returns the offset of each line.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(index, _)| index + 1)).collect();
        Self { text, starts }
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let before = self.text.get(self.starts[line - 1]..offset).unwrap_or("");
        Place { line: line as u32, column: before.chars().count() as u32 + 1 }
    }
}

fn first_lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
