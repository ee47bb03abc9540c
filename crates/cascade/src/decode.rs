//! From nodes to typed values: each type says what it accepts, as code and as JSON Schema.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use plimsoll_core::nearest;
use serde_json::{Value, json};

use crate::node::{Key, Node, NodeKind};
use crate::problem::{Kind, Place, Problem, Severity};
use crate::unsupported;

/// A type that a node can be read as.
pub(crate) trait Decode: Sized {
    /// Reads `node`; `None` after telling `decoder` why not.
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self>;

    /// Says as JSON Schema what `decode` accepts; a record puts itself among the definitions and is referred to.
    fn schema(definitions: &mut Definitions) -> Value;
}

/// Definitions of a JSON Schema by name.
pub(crate) type Definitions = BTreeMap<&'static str, Value>;

/// Collects problems, and knows the way to the value that is read.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    problems: Vec<Problem>,
    path: Vec<Step>,
    inputs: Vec<UsedInput>,
    /// Keys without effect that were told already: once a file is enough.
    unsupported: BTreeSet<(&'static str, String)>,
}

/// `input.NAME` in a template.
#[derive(Debug)]
pub(crate) struct UsedInput {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) path: String,
}

#[derive(Debug)]
enum Step {
    Key(String),
    Index(usize),
}

/// A key of a record: its name, its other names.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) key: &'static str,
    pub(crate) aliases: &'static [&'static str],
}

impl Decoder {
    pub(crate) fn finish(self) -> Vec<Problem> {
        self.problems
    }

    pub(crate) fn error(&mut self, node: &Node, kind: Kind, message: impl Into<String>) {
        self.error_at(node.place, kind, message);
    }

    pub(crate) fn warn(&mut self, node: &Node, kind: Kind, message: impl Into<String>) {
        self.warn_at(node.place, kind, message);
    }

    pub(crate) fn error_at(&mut self, place: Place, kind: Kind, message: impl Into<String>) {
        self.tell(Severity::Error, place, kind, message.into(), None);
    }

    pub(crate) fn warn_at(&mut self, place: Place, kind: Kind, message: impl Into<String>) {
        self.tell(Severity::Warning, place, kind, message.into(), None);
    }

    pub(crate) fn tell(
        &mut self,
        severity: Severity,
        place: Place,
        kind: Kind,
        message: String,
        hint: Option<String>,
    ) {
        let path = self.path();
        self.problems.push(Problem { severity, kind, place, path, message, hint });
    }

    /// Notes that a template asks for an input.
    pub(crate) fn uses_input(&mut self, name: String, place: Place) {
        let path = self.path();
        self.inputs.push(UsedInput { name, place, path });
    }

    /// Returns the inputs that templates ask for.
    pub(crate) fn take_inputs(&mut self) -> Vec<UsedInput> {
        std::mem::take(&mut self.inputs)
    }

    /// Forgets the inputs that are asked for in `read`: there `input` is something else.
    pub(crate) fn apart<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let kept = self.inputs.len();
        let read = read(self);
        self.inputs.truncate(kept);
        read
    }

    /// Adds problems that were found apart.
    pub(crate) fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Reports a key that stands twice in one map.
    pub(crate) fn twice(&mut self, key: &Key) {
        self.error_at(key.place, Kind::Syntax, format!("the key `{}` stands here twice", key.text));
    }

    /// Reports the kind of value that was expected instead of `node`.
    pub(crate) fn expected<T>(&mut self, node: &Node, what: &str) -> Option<T> {
        self.error(node, Kind::Shape, format!("expected {what}, found {}", node.said()));
        None
    }

    /// Reports the words that were expected instead of `node`, and the one that is probably meant.
    pub(crate) fn expected_word<T>(&mut self, node: &Node, words: &[&str]) -> Option<T> {
        let hint = node.scalar().and_then(|word| {
            let near = nearest(word, words.iter().copied())?;
            is_near(word, near).then(|| format!("did you mean `{near}`?"))
        });
        let listed: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let listed = match listed.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => listed.concat(),
        };
        let said = format!("expected {listed}, found {}", node.said());
        self.tell(Severity::Error, node.place, Kind::Shape, said, hint);
        None
    }

    /// Returns the way to the value that is read.
    pub(crate) fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => {
                    path.push('.');
                    path.push_str(key);
                }
                Step::Index(index) => {
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }

    /// Reads what stands behind a key.
    pub(crate) fn under<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(Step::Key(key.to_owned()));
        let read = read(self);
        self.path.pop();
        read
    }

    /// Reads what stands at a place of a list.
    pub(crate) fn at<T>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(Step::Index(index));
        let read = read(self);
        self.path.pop();
        read
    }

    /// Checks the keys of a record and returns the node of each of `names`, in their order.
    pub(crate) fn fields<'n>(
        &mut self,
        node: &'n Node,
        record: &'static str,
        names: &[Names],
    ) -> Option<Vec<Option<(&'n str, &'n Node)>>> {
        let NodeKind::Map(entries) = &node.kind else {
            return self.expected(node, "a map");
        };
        let mut found: Vec<Option<(&str, &Node)>> = vec![None; names.len()];
        for (key, value) in entries {
            let text = key.text.as_str();
            let known =
                names.iter().position(|names| names.key == text || names.aliases.contains(&text));
            match known {
                Some(index) => match found[index] {
                    Some((first, _)) => {
                        let said = format!("`{text}` repeats `{first}`");
                        self.error_at(key.place, Kind::Shape, said);
                    }
                    None => found[index] = Some((text, value)),
                },
                None => self.unknown(key, value, record, names),
            }
        }
        // Nothing is what is not there.
        for slot in &mut found {
            if slot.is_some_and(|(_, node)| matches!(node.kind, NodeKind::Null)) {
                *slot = None;
            }
        }
        Some(found)
    }

    fn unknown(&mut self, key: &Key, value: &Node, record: &'static str, names: &[Names]) {
        let text = key.text.as_str();
        // Notes for readers, as in every format of this kind.
        if text.starts_with('_') || text.starts_with("x-") || text == "$schema" {
            return;
        }
        if unsupported::is_harmless(record, text) {
            return;
        }
        if let Some(why) = unsupported::why(record, text) {
            if !value.is_off() && self.unsupported.insert((record, text.to_owned())) {
                let said = format!("`{text}` is known but not supported: {why}");
                self.warn_at(key.place, Kind::Unsupported, said);
            }
            return;
        }
        let known = names
            .iter()
            .flat_map(|names| std::iter::once(names.key).chain(names.aliases.iter().copied()));
        let hint = nearest(text, known)
            .filter(|near| is_near(text, near))
            .map(|near| format!("did you mean `{near}`?"));
        let said = format!("`{text}` is not a key of {}", spoken(record));
        self.tell(Severity::Warning, key.place, Kind::UnknownKey, said, hint);
    }
}

/// Returns whether `near` is likely meant by `word`: more than half of its letters stand in the same order.
pub(crate) fn is_near(word: &str, near: &str) -> bool {
    let mut letters = near.chars().flat_map(char::to_lowercase);
    let kept = word
        .chars()
        .flat_map(char::to_lowercase)
        .filter(|letter| {
            letters.clone().any(|other| other == *letter) && letters.any(|other| other == *letter)
        })
        .count();
    kept * 3 >= near.chars().count().max(word.chars().count()) * 2
}

/// Returns the name of a record as messages say it: `a sub cascade`.
pub(crate) fn spoken(record: &str) -> String {
    let mut words = String::new();
    for letter in record.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    if words.ends_with('s') {
        return words;
    }
    let article = if words.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {words}")
}

impl Decode for String {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match (&node.kind, node.scalar()) {
            (NodeKind::Text(text), _) => Some(text.text.clone()),
            (_, Some(raw)) => Some(raw.to_owned()),
            _ => decoder.expected(node, "a text"),
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": ["string", "number", "boolean"]})
    }
}

impl Decode for bool {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.kind {
            NodeKind::Bool(value, _) => Some(*value),
            NodeKind::Text(text) => match text.text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Some(true),
                "false" | "no" | "off" => Some(false),
                _ => decoder.expected(node, "true or false"),
            },
            _ => decoder.expected(node, "true or false"),
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": "boolean"}, {"enum": ["true", "false", "yes", "no", "on", "off"]}]})
    }
}

impl Decode for u32 {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let value = match &node.kind {
            NodeKind::Integer(value, _) => Some(*value),
            NodeKind::Float(value, _) if value.fract() == 0.0 => Some(*value as i64),
            NodeKind::Text(text) => text.text.trim().parse().ok(),
            _ => None,
        };
        match value.map(Self::try_from) {
            Some(Ok(value)) => Some(value),
            Some(Err(_)) => {
                let said =
                    format!("expected a whole number of 0 to {}, found {}", Self::MAX, node.said());
                decoder.error(node, Kind::Bounds, said);
                None
            }
            None => decoder.expected(node, "a whole number"),
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": "integer", "minimum": 0, "maximum": Self::MAX}, {"type": "string", "pattern": "^[0-9]+$"}]})
    }
}

impl Decode for f64 {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let value = match &node.kind {
            NodeKind::Integer(value, _) => Some(*value as Self),
            NodeKind::Float(value, _) => Some(*value),
            NodeKind::Text(text) => text.text.trim().parse().ok(),
            _ => None,
        };
        match value.filter(|value| value.is_finite()) {
            Some(value) => Some(value),
            None => decoder.expected(node, "a number"),
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": ["number", "string"]})
    }
}

impl Decode for Value {
    fn decode(node: &Node, _: &mut Decoder) -> Option<Self> {
        Some(node.json())
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({})
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match node.kind {
            NodeKind::Null => Some(None),
            _ => T::decode(node, decoder).map(Some),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        T::schema(definitions)
    }
}

impl<T: Decode> Decode for Box<T> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        T::decode(node, decoder).map(Self::new)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        T::schema(definitions)
    }
}

/// A list; one value alone is a list of one.
impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.kind {
            NodeKind::List(items) => {
                // Every item is read, so that each one's problems are told.
                let read: Vec<Option<T>> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| decoder.at(index, |decoder| T::decode(item, decoder)))
                    .collect();
                read.into_iter().collect()
            }
            NodeKind::Null => Some(Self::new()),
            _ => T::decode(node, decoder).map(|item| vec![item]),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let item = T::schema(definitions);
        json!({"anyOf": [{"type": "array", "items": item}, item]})
    }
}

/// A map whose keys are names, in the order of the file.
impl<T: Decode> Decode for Vec<(String, T)> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let NodeKind::Map(entries) = &node.kind else {
            return decoder.expected(node, "a map");
        };
        let read: Vec<Option<(String, T)>> = entries
            .iter()
            .map(|(key, value)| {
                let value = decoder.under(&key.text, |decoder| T::decode(value, decoder));
                Some((key.text.clone(), value?))
            })
            .collect();
        read.into_iter().collect()
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"type": "object", "additionalProperties": T::schema(definitions)})
    }
}
