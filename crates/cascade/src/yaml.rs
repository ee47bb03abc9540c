//! YAML to nodes, with the scalars of YAML 1.1: `yes`, `no`, `on` and `off` are switches.
//!
//! Read from events with a stack of our own, so that neither nesting nor aliases can run away.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use crate::decode::Decoder;
use crate::node::{DEEPEST, Key, LONGEST, MOST_NODES, Node, NodeKind, Text};
use crate::problem::{Kind, Place};

/// Reads the first document of `text`; `None` if it is no YAML, which is told to `decoder`.
pub(crate) fn read(text: &str, decoder: &mut Decoder) -> Option<Node> {
    let mut reader =
        Reader { decoder, open: Vec::new(), anchors: HashMap::new(), spent: Size::default() };
    let mut document = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let said = format!("invalid YAML: {}", error.info());
                reader.decoder.error_at(place(error.marker()), Kind::Syntax, said);
                return None;
            }
        };
        if document.is_some() {
            if matches!(event, Event::DocumentStart(_)) {
                let said = "only the first document of the file is read";
                reader.decoder.warn_at(place(&span.start), Kind::Syntax, said);
                break;
            }
            continue;
        }
        document = reader.take(event, span).ok()?;
    }
    if document.is_none() {
        decoder.error_at(Place::START, Kind::Syntax, "the file is empty");
    }
    document
}

/// Told to the decoder already.
struct Refused;

/// The cost of a value when it is repeated by an alias.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

impl Size {
    fn add(&mut self, inner: Self) {
        self.nodes += inner.nodes;
        self.bytes += inner.bytes;
        self.depth = self.depth.max(inner.depth + 1);
    }
}

struct Reader<'d> {
    decoder: &'d mut Decoder,
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, Size)>,
    spent: Size,
}

/// A list or map whose end is not reached.
struct Open {
    place: Place,
    anchor: usize,
    size: Size,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map { entries: Vec<(Key, Node)>, seen: HashSet<String>, key: Option<Key> },
}

impl Reader<'_> {
    /// Takes one event; returns the document when it is whole.
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<Option<Node>, Refused> {
        let at = place(&span.start);
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let size = Size { nodes: 1, bytes: value.len(), depth: 0 };
                let kind = self.scalar(value, style, tag.as_deref(), at);
                let node = Node { place: at, kind };
                self.keep(anchor, &node, size);
                self.value(node, size)
            }
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor) else {
                    return self.refuse(at, "this alias stands inside its own anchor");
                };
                let (mut node, size) = (node.clone(), *size);
                // A mistake inside is told where it is written; the value itself stands here.
                if node.scalar().is_some() {
                    node.place = at;
                }
                self.value(node, size)
            }
            Event::SequenceStart(anchor, tag) => {
                self.tag(tag.as_deref(), at);
                self.begin(at, anchor, Content::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                self.tag(tag.as_deref(), at);
                let content = Content::Map { entries: Vec::new(), seen: HashSet::new(), key: None };
                self.begin(at, anchor, content)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(None) };
                let kind = match open.content {
                    Content::List(items) => NodeKind::List(items),
                    Content::Map { entries, .. } => NodeKind::Map(self.merged(entries)),
                };
                let node = Node { place: open.place, kind };
                self.keep(open.anchor, &node, open.size);
                self.value(node, open.size)
            }
            _ => Ok(None),
        }
    }

    fn begin(
        &mut self,
        at: Place,
        anchor: usize,
        content: Content,
    ) -> Result<Option<Node>, Refused> {
        if self.open.len() > DEEPEST {
            return self.refuse(at, format!("more than {DEEPEST} levels"));
        }
        let size = Size { nodes: 1, bytes: 0, depth: 0 };
        self.open.push(Open { place: at, anchor, size, content });
        Ok(None)
    }

    /// Puts a value where it belongs.
    fn value(&mut self, node: Node, size: Size) -> Result<Option<Node>, Refused> {
        let at = node.place;
        if self.open.len() + size.depth > DEEPEST {
            return self.refuse(at, format!("more than {DEEPEST} levels"));
        }
        // Containers have paid for what is in them.
        if node.scalar().is_some() || size.nodes > 1 {
            self.spent.nodes += size.nodes;
            self.spent.bytes += size.bytes;
        }
        if self.spent.nodes > MOST_NODES * DEEPEST || self.spent.bytes > LONGEST * DEEPEST {
            return self.refuse(at, "the aliases of this file expand to too much");
        }
        let Some(open) = self.open.last_mut() else {
            return self.whole(node, size);
        };
        open.size.add(size);
        if open.size.nodes > MOST_NODES || open.size.bytes > LONGEST {
            let said =
                format!("more than {MOST_NODES} values or {LONGEST} bytes, with aliases expanded");
            return self.refuse(at, said);
        }
        match &mut open.content {
            Content::List(items) => items.push(node),
            Content::Map { entries, seen, key } => {
                if let Some(key) = key.take() {
                    entries.push((key, node));
                } else {
                    let Some(text) = node
                        .scalar()
                        .map(str::to_owned)
                        .or_else(|| matches!(node.kind, NodeKind::Null).then(|| "null".to_owned()))
                    else {
                        return self.refuse(at, "a key is a text, not a list or a map");
                    };
                    let name = Key { place: at, text };
                    // Several `<<` are one list of maps for many writers.
                    if !seen.insert(name.text.clone()) && name.text != "<<" {
                        self.decoder.twice(&name);
                    }
                    *key = Some(name);
                }
            }
        }
        Ok(None)
    }

    fn whole(&mut self, node: Node, size: Size) -> Result<Option<Node>, Refused> {
        if size.bytes > LONGEST {
            return self.refuse(node.place, format!("more than {LONGEST} bytes"));
        }
        Ok(Some(node))
    }

    fn keep(&mut self, anchor: usize, node: &Node, size: Size) {
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
    }

    /// Puts what `<<` names behind the map's own keys, which win.
    fn merged(&mut self, entries: Vec<(Key, Node)>) -> Vec<(Key, Node)> {
        if !entries.iter().any(|(key, _)| key.text == "<<") {
            return entries;
        }
        let (merges, mut own): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(key, _)| key.text == "<<");
        let mut seen: HashSet<String> = own.iter().map(|(key, _)| key.text.clone()).collect();
        let mut sources: Vec<Node> = Vec::new();
        for (_, node) in merges {
            match node.kind {
                NodeKind::List(items) => sources.extend(items),
                _ => sources.push(node),
            }
        }
        for source in sources {
            let NodeKind::Map(inherited) = source.kind else {
                let said = "`<<` takes a map or a list of maps, by alias";
                self.decoder.error_at(source.place, Kind::Syntax, said);
                continue;
            };
            own.extend(inherited.into_iter().filter(|(key, _)| seen.insert(key.text.clone())));
        }
        own
    }

    fn scalar(
        &mut self,
        value: Cow<'_, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        at: Place,
    ) -> NodeKind {
        if tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str") {
            return NodeKind::Text(Text { text: value.into_owned(), block: None });
        }
        self.tag(tag, at);
        match style {
            ScalarStyle::Plain => resolve(value.into_owned()),
            ScalarStyle::Literal => {
                // The place is that of its first line with text; empty ones may stand before.
                let empty = value.bytes().take_while(|byte| *byte == b'\n').count() as u32;
                let block = Some(Place { line: at.line.saturating_sub(empty), ..at });
                NodeKind::Text(Text { text: value.into_owned(), block })
            }
            _ => NodeKind::Text(Text { text: value.into_owned(), block: None }),
        }
    }

    fn tag(&mut self, tag: Option<&Tag>, at: Place) {
        if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
            let said = format!("the tag {}{} is passed over", tag.handle, tag.suffix);
            self.decoder.warn_at(at, Kind::Syntax, said);
        }
    }

    fn refuse<T>(&mut self, at: Place, said: impl Into<String>) -> Result<T, Refused> {
        self.decoder.error_at(at, Kind::Syntax, said);
        Err(Refused)
    }
}

fn place(marker: &saphyr_parser::Marker) -> Place {
    Place { line: marker.line().max(1) as u32, column: marker.col() as u32 + 1 }
}

/// Says what a plain scalar means.
///
/// Source: yaml.org/type (bool, int, float, null of YAML 1.1), without `y`, `n` and numbers to base 60, which the
/// common readers do not know or which are times in practice; a float needs no point before its exponent (YAML 1.2).
fn resolve(raw: String) -> NodeKind {
    match raw.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => return NodeKind::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            return NodeKind::Bool(true, raw);
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return NodeKind::Bool(false, raw);
        }
        _ => {}
    }
    match number(&raw) {
        Some(Number::Integer(value)) => NodeKind::Integer(value, raw),
        Some(Number::Float(value)) => NodeKind::Float(value, raw),
        None => NodeKind::Text(Text { text: raw, block: None }),
    }
}

enum Number {
    Integer(i64),
    Float(f64),
}

fn number(raw: &str) -> Option<Number> {
    let (negative, digits) = match raw.as_bytes().first()? {
        b'-' => (true, &raw[1..]),
        b'+' => (false, &raw[1..]),
        _ => (false, raw),
    };
    match digits {
        ".inf" | ".Inf" | ".INF" => {
            return Some(Number::Float(if negative { f64::NEG_INFINITY } else { f64::INFINITY }));
        }
        ".nan" | ".NaN" | ".NAN" if digits.len() == raw.len() => {
            return Some(Number::Float(f64::NAN));
        }
        _ => {}
    }
    let first = digits.bytes().next()?;
    if !(first.is_ascii_digit() || first == b'.') {
        return None;
    }
    let plain = digits.replace('_', "");
    let sign = if negative { -1 } else { 1 };
    let radix = |prefix: &str, radix| {
        plain.strip_prefix(prefix).and_then(|rest| {
            rest.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(())?;
            i64::from_str_radix(rest, radix).ok()
        })
    };
    let based = radix("0x", 16).or_else(|| radix("0b", 2)).or_else(|| radix("0o", 8));
    if let Some(value) = based {
        return Some(Number::Integer(sign * value));
    }
    if plain.bytes().all(|byte| byte.is_ascii_digit()) {
        let octal = plain.len() > 1 && plain.starts_with('0');
        let value = if octal { i64::from_str_radix(&plain, 8) } else { plain.parse() };
        return value.ok().map(|value| Number::Integer(sign * value));
    }
    let is_float =
        plain.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let value: f64 = is_float.then(|| plain.parse().ok())??;
    Some(Number::Float(if negative { -value } else { value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_yaml_1_1_says() {
        let said = |raw: &str| match resolve(raw.to_owned()) {
            NodeKind::Null => "null".to_owned(),
            NodeKind::Bool(value, _) => value.to_string(),
            NodeKind::Integer(value, _) => format!("int {value}"),
            NodeKind::Float(value, _) => format!("float {value}"),
            NodeKind::Text(text) => format!("text {}", text.text),
            _ => unreachable!("no scalar"),
        };
        for (raw, expected) in [
            ("yes", "true"),
            ("Off", "false"),
            ("NO", "false"),
            ("y", "text y"),
            ("~", "null"),
            ("12", "int 12"),
            ("-1_000", "int -1000"),
            ("0x1F", "int 31"),
            ("010", "int 8"),
            ("08", "text 08"),
            ("1.5", "float 1.5"),
            ("1e3", "float 1000"),
            (".5", "float 0.5"),
            ("-.inf", "float -inf"),
            ("1:30", "text 1:30"),
            ("1.2.3", "text 1.2.3"),
            ("-", "text -"),
            ("2025-01-01", "text 2025-01-01"),
            ("0x", "text 0x"),
            (".", "text ."),
            ("99999999999999999999", "text 99999999999999999999"),
        ] {
            assert_eq!(said(raw), expected, "{raw}");
        }
    }
}
