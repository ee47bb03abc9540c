//! Filters that real cascades use beside those of the engine, and Jinja's behaviour for values that are not defined.

use std::fmt::Write as _;
use std::sync::Arc;

use minijinja::value::Rest;
use minijinja::{Environment, Error, ErrorKind, State, Value};
use plimsoll_core::{ContentHash, Message, Role};

use super::Allowance;

/// Levels of a value that are written.
const DEEPEST: usize = 40;

pub(super) fn add(environment: &mut Environment<'_>, allowance: &Arc<Allowance>) {
    for name in ["totoon", "toon", "to_toon"] {
        let paid = allowance.clone();
        environment.add_filter(name, move |value: &Value| {
            let text = toon(value)?;
            paid.pay(text.len())?;
            Ok::<_, Error>(text)
        });
    }
    for name in ["to_json", "to_pretty_json", "pprint"] {
        let paid = allowance.clone();
        environment.add_filter(name, move |value: &Value| {
            let value = serde_json::to_value(value).unwrap_or_default();
            let text = match name {
                "to_json" => value.to_string(),
                _ => serde_json::to_string_pretty(&value).unwrap_or_default(),
            };
            paid.pay(text.len())?;
            Ok::<_, Error>(text)
        });
    }
    for name in ["fingerprint", "hash"] {
        let paid = allowance.clone();
        environment.add_filter(name, move |value: &Value| {
            let text = paid.print(value)?;
            Ok::<_, Error>(ContentHash::of(&Message::text(Role::User, text)).short())
        });
    }
    let paid = allowance.clone();
    environment.add_filter("striptags", move |value: &Value| {
        let text = paid.print(value)?;
        let mut plain = String::new();
        let mut is_inside = false;
        for c in text.chars() {
            match c {
                '<' => is_inside = true,
                '>' if is_inside => is_inside = false,
                _ if !is_inside => plain.push(c),
                _ => {}
            }
        }
        Ok::<_, Error>(plain.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    let paid = allowance.clone();
    environment.add_filter("center", move |value: &Value, width: Option<usize>| {
        let (text, width) = (paid.print(value)?, width.unwrap_or(80).min(10_000));
        paid.pay(width)?;
        Ok::<_, Error>(format!("{text:^width$}"))
    });
    let paid = allowance.clone();
    environment.add_filter("wordwrap", move |value: &Value, width: Option<usize>| {
        let text = paid.print(value)?;
        paid.pay(text.len())?;
        Ok::<_, Error>(wrapped(&text, width.unwrap_or(79)))
    });
    environment.add_filter("filesizeformat", |value: &Value| {
        let bytes = f64::try_from(value.clone()).unwrap_or(0.0);
        let units = ["Bytes", "kB", "MB", "GB", "TB"];
        let power = if bytes < 1_000.0 { 0 } else { ((bytes.log10() / 3.0) as u8).min(4) };
        let shown = bytes / 1_000_f64.powi(i32::from(power));
        if power == 0 {
            format!("{shown:.0} Bytes")
        } else {
            format!("{shown:.1} {}", units[usize::from(power)])
        }
    });
    // Chance would make a run that can't be resumed, so the first item is taken.
    environment.add_filter("random", |value: &Value| {
        value.try_iter().ok().and_then(|mut items| items.next()).unwrap_or(Value::UNDEFINED)
    });
    let paid = allowance.clone();
    environment.add_filter(
        "regex_replace",
        move |value: &Value, pattern: &str, by: Option<&str>| {
            let text = paid.print(value)?;
            let pattern = regex(pattern)?;
            let replaced = pattern.replace_all(&text, by.unwrap_or("")).into_owned();
            paid.pay(replaced.len())?;
            Ok::<_, Error>(replaced)
        },
    );
    let paid = allowance.clone();
    environment.add_filter("regex_search", move |value: &Value, pattern: &str| {
        let text = paid.print(value)?;
        let found = regex(pattern)?.find(&text).map(|found| found.as_str().to_owned());
        Ok::<_, Error>(found.map_or_else(|| Value::from(""), Value::from))
    });
    undefined(environment);
}

fn regex(pattern: &str) -> Result<regex::Regex, Error> {
    regex::RegexBuilder::new(pattern).size_limit(1 << 20).build().map_err(|_| {
        Error::new(ErrorKind::InvalidOperation, "the pattern is not a regular expression")
    })
}

/// Gives filters of the engine Jinja's answers for a value that is not defined: no text, no items, no number.
fn undefined(environment: &mut Environment<'_>) {
    use minijinja::filters;
    environment.add_filter("the length", filters::length);
    environment.add_filter("the first", filters::first);
    environment.add_filter("the last", filters::last);
    environment.add_filter("the list", filters::list);
    environment.add_filter("the sort", filters::sort);
    environment.add_filter("the unique", filters::unique);
    environment.add_filter("the reverse", filters::reverse);
    environment.add_filter("the items", filters::items);
    environment.add_filter("the dictsort", filters::dictsort);
    environment.add_filter("the sum", filters::sum);
    environment.add_filter("the min", filters::min);
    environment.add_filter("the max", filters::max);
    environment.add_filter("the map", filters::map);
    environment.add_filter("the select", filters::select);
    environment.add_filter("the reject", filters::reject);
    environment.add_filter("the selectattr", filters::selectattr);
    environment.add_filter("the rejectattr", filters::rejectattr);
    environment.add_filter("the groupby", filters::groupby);
    environment.add_filter("the round", filters::round);
    environment.add_filter("the abs", filters::abs);
    environment.add_filter("the float", filters::float);
    environment.add_filter("the upper", filters::upper);
    environment.add_filter("the lower", filters::lower);
    environment.add_filter("the title", filters::title);
    environment.add_filter("the capitalize", filters::capitalize);
    environment.add_filter("the trim", filters::trim);
    environment.add_filter("the split", filters::split);
    environment.add_filter("the lines", filters::lines);
    for (name, engine, empty) in [
        ("length", "the length", Empty::Zero),
        ("count", "the length", Empty::Zero),
        ("first", "the first", Empty::Undefined),
        ("last", "the last", Empty::Undefined),
        ("list", "the list", Empty::List),
        ("sort", "the sort", Empty::List),
        ("unique", "the unique", Empty::List),
        ("reverse", "the reverse", Empty::List),
        ("items", "the items", Empty::List),
        ("dictsort", "the dictsort", Empty::List),
        ("sum", "the sum", Empty::Zero),
        ("min", "the min", Empty::Undefined),
        ("max", "the max", Empty::Undefined),
        ("map", "the map", Empty::List),
        ("select", "the select", Empty::List),
        ("reject", "the reject", Empty::List),
        ("selectattr", "the selectattr", Empty::List),
        ("rejectattr", "the rejectattr", Empty::List),
        ("groupby", "the groupby", Empty::List),
        ("round", "the round", Empty::Zero),
        ("abs", "the abs", Empty::Zero),
        ("float", "the float", Empty::Zero),
        ("upper", "the upper", Empty::Text),
        ("lower", "the lower", Empty::Text),
        ("title", "the title", Empty::Text),
        ("capitalize", "the capitalize", Empty::Text),
        ("trim", "the trim", Empty::Text),
        ("split", "the split", Empty::List),
        ("lines", "the lines", Empty::List),
    ] {
        environment.add_filter(name, move |state: &mut State, args: Rest<Value>| {
            let is_undefined = args.first().is_none_or(Value::is_undefined);
            if is_undefined {
                return Ok(empty.value());
            }
            // A text that holds no number is 0, as in Jinja.
            if name == "float"
                && args[0].as_str().is_some_and(|text| text.trim().parse::<f64>().is_err())
            {
                return Ok(args.get(1).cloned().unwrap_or_else(|| Value::from(0.0)));
            }
            state.apply_filter(engine, &args)
        });
    }
}

/// The answer for a value that is not defined.
#[derive(Debug, Clone, Copy)]
enum Empty {
    Zero,
    Text,
    List,
    Undefined,
}

impl Empty {
    fn value(self) -> Value {
        match self {
            Self::Zero => Value::from(0),
            Self::Text => Value::from(""),
            Self::List => Value::from(Vec::<Value>::new()),
            Self::Undefined => Value::UNDEFINED,
        }
    }
}

fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let mut used = 0;
        for word in line.split_whitespace() {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > width {
                out.push('\n');
                used = 0;
            }
            if used > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += length;
        }
    }
    out
}

/// Writes a value in TOON: keys with indented values, and lists of like objects as tables.
///
/// Source: the Token-Oriented Object Notation, github.com/toon-format/spec, sections on objects and arrays.
fn toon(value: &Value) -> Result<String, Error> {
    let value = serde_json::to_value(value).unwrap_or_default();
    // A text that holds JSON is a value too: outputs of tools are texts.
    let value = match &value {
        serde_json::Value::String(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| value.clone())
        }
        _ => value,
    };
    let mut out = String::new();
    write_value(&value, None, 0, &mut out)?;
    Ok(out.trim_end().to_owned())
}

fn write_value(
    value: &serde_json::Value,
    key: Option<&str>,
    depth: usize,
    out: &mut String,
) -> Result<(), Error> {
    use serde_json::Value as Json;
    if depth > DEEPEST {
        return Err(Error::new(ErrorKind::InvalidOperation, "a value has too many levels"));
    }
    let indent = "  ".repeat(depth);
    match value {
        Json::Object(map) => {
            let inner = match key {
                Some(key) => {
                    let _ = writeln!(out, "{indent}{}:", name(key));
                    depth + 1
                }
                None => depth,
            };
            for (key, value) in map {
                write_value(value, Some(key), inner, out)?;
            }
        }
        Json::Array(items) => {
            let head = format!("{indent}{}[{}]", key.map(name).unwrap_or_default(), items.len());
            let is_plain = |item: &Json| !matches!(item, Json::Object(_) | Json::Array(_));
            if items.iter().all(is_plain) {
                let cells: Vec<String> = items.iter().map(cell).collect();
                let _ = writeln!(out, "{head}: {}", cells.join(","));
            } else if let Some(columns) = columns(items) {
                let names: Vec<String> = columns.iter().map(|column| name(column)).collect();
                let _ = writeln!(out, "{head}{{{}}}:", names.join(","));
                for item in items {
                    let cells: Vec<String> =
                        columns.iter().map(|column| cell(&item[column.as_str()])).collect();
                    let _ = writeln!(out, "{indent}  {}", cells.join(","));
                }
            } else {
                let _ = writeln!(out, "{head}:");
                for item in items {
                    if is_plain(item) {
                        let _ = writeln!(out, "{indent}  - {}", cell(item));
                    } else {
                        let mut inner = String::new();
                        write_value(item, None, depth + 2, &mut inner)?;
                        let begin = format!("{indent}  - ");
                        out.push_str(&begin);
                        out.push_str(inner.trim_start());
                    }
                }
            }
        }
        plain => {
            let key = key.map(|key| format!("{}: ", name(key))).unwrap_or_default();
            let _ = writeln!(out, "{indent}{key}{}", cell(plain));
        }
    }
    Ok(())
}

/// Returns the columns of a list of objects that all have the same keys and plain values.
fn columns(items: &[serde_json::Value]) -> Option<Vec<String>> {
    let first: Vec<String> = items.first()?.as_object()?.keys().cloned().collect();
    let is_like = |item: &serde_json::Value| {
        item.as_object().is_some_and(|map| {
            map.len() == first.len()
                && first.iter().all(|key| {
                    map.get(key).is_some_and(|value| !value.is_object() && !value.is_array())
                })
        })
    };
    items.iter().all(is_like).then_some(first)
}

fn name(key: &str) -> String {
    let is_bare = !key.is_empty()
        && !key.starts_with(|c: char| c.is_ascii_digit())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    if is_bare { key.to_owned() } else { serde_json::Value::from(key).to_string() }
}

fn cell(value: &serde_json::Value) -> String {
    let serde_json::Value::String(text) = value else { return value.to_string() };
    let is_like_other = text.is_empty()
        || text.trim() != text
        || ["true", "false", "null"].contains(&text.as_str())
        || text.parse::<f64>().is_ok()
        || text.starts_with('-')
        || text.contains([',', ':', '"', '\\', '\n', '\r', '\t', '[', ']', '{', '}']);
    if is_like_other { value.to_string() } else { text.clone() }
}
