//! Exact changes between two states of a page, by field of JSON or by line of text.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

/// A field or line that was added, removed or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageChange {
    /// The path of a field, `a.b[id=7].c`, or the number of a line from 1: in the new state, or for a removed line in the old
    /// state.
    pub at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// The changes between two states of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Delta {
    pub added: Vec<PageChange>,
    pub removed: Vec<PageChange>,
    pub changed: Vec<PageChange>,
    /// How many fields or lines did not change.
    pub same: u64,
}

impl Delta {
    /// Returns whether both states are equal.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl std::fmt::Display for Delta {
    /// Writes one line of counts, then a line for each change, `+`, `-` or `~`, with exact values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { added, removed, changed, same } = self;
        write!(
            f,
            "{} added, {} removed, {} changed, {same} as before",
            added.len(),
            removed.len(),
            changed.len()
        )?;
        let value = |value: &Option<String>| value.clone().unwrap_or_default();
        for change in added {
            write!(f, "\n+ {}: {}", change.at, value(&change.new))?;
        }
        for change in removed {
            write!(f, "\n- {}: {}", change.at, value(&change.old))?;
        }
        for change in changed {
            write!(f, "\n~ {}: {} -> {}", change.at, value(&change.old), value(&change.new))?;
        }
        Ok(())
    }
}

/// Returns the changes from `old` to `new`.
///
/// Shape: by fields if both are JSON, else by lines; in the order of the new state, removed ones in the order of the old state.
/// Items of a list with ids are compared by id, so an item that only moved did not change. Values are never cut.
pub fn delta(old: &str, new: &str) -> Delta {
    match (super::parse(old), super::parse(new)) {
        (Some(old), Some(new)) => by_field(&old, &new),
        _ => by_line(old, new),
    }
}

fn by_field(old: &Value, new: &Value) -> Delta {
    let (old, new) = (fields(old), fields(new));
    let before: HashMap<&str, &str> = old.iter().map(|(at, value)| (&**at, &**value)).collect();
    let after: BTreeSet<&str> = new.iter().map(|(at, _)| &**at).collect();
    let mut delta = Delta::default();
    for (at, value) in &new {
        let change = |old: Option<&str>| PageChange {
            at: at.clone(),
            old: old.map(str::to_owned),
            new: Some(value.clone()),
        };
        match before.get(&**at) {
            Some(known) if known == value => delta.same += 1,
            Some(known) => delta.changed.push(change(Some(known))),
            None => delta.added.push(change(None)),
        }
    }
    for (at, value) in &old {
        if !after.contains(&**at) {
            delta.removed.push(PageChange { at: at.clone(), old: Some(value.clone()), new: None });
        }
    }
    delta
}

/// Returns all values of a document that have no parts, with their paths; a repeated path gets a number.
fn fields(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(value, &mut String::new(), &mut found);
    let mut seen: HashMap<String, u32> = HashMap::new();
    for (at, _) in &mut found {
        let times = seen.entry(at.clone()).or_default();
        *times += 1;
        if *times > 1 {
            let _ = write!(at, "#{times}");
        }
    }
    found
}

fn walk(value: &Value, path: &mut String, found: &mut Vec<(String, String)>) {
    let end = path.len();
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                walk(field, path, found);
                path.truncate(end);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                let _ = match id(item) {
                    Some((key, id)) => write!(path, "[{key}={id}]"),
                    None => write!(path, "[{at}]"),
                };
                walk(item, path, found);
                path.truncate(end);
            }
        }
        other => found.push((path.clone(), other.to_string())),
    }
}

fn id(item: &Value) -> Option<(&'static str, String)> {
    ["id", "number", "full_name", "html_url", "url", "name"].into_iter().find_map(|key| {
        let id = item.get(key)?;
        let written = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        (id.is_string() || id.is_number()).then_some((key, written))
    })
}

/// The most pairs of lines for which the longest common subsequence is computed: 16 MB of table (chosen).
/// Above it, lines are matched by text alone, wherever they stand.
const MOST_PAIRS: usize = 4_000_000;

fn by_line(old: &str, new: &str) -> Delta {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let (keep_old, keep_new) =
        if a.len() * b.len() <= MOST_PAIRS { common(a, b) } else { common_anywhere(a, b) };
    let mut delta = Delta { same: (head + tail) as u64, ..Delta::default() };
    delta.same += keep_new.iter().filter(|keep| **keep).count() as u64;
    let change = |at: usize| PageChange { at: (head + at + 1).to_string(), old: None, new: None };
    for (at, line) in b.iter().enumerate().filter(|(at, _)| !keep_new[*at]) {
        delta.added.push(PageChange { new: Some((*line).to_owned()), ..change(at) });
    }
    for (at, line) in a.iter().enumerate().filter(|(at, _)| !keep_old[*at]) {
        delta.removed.push(PageChange { old: Some((*line).to_owned()), ..change(at) });
    }
    delta
}

/// Marks the lines of the longest common subsequence.
fn common(a: &[&str], b: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let width = b.len() + 1;
    let mut longest = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut in_a, mut in_b) = (vec![false; a.len()], vec![false; b.len()]);
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            (in_a[i], in_b[j]) = (true, true);
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    (in_a, in_b)
}

/// Marks lines that both sides hold, as often as the side with fewer of them.
fn common_anywhere(a: &[&str], b: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let mark = |these: &[&str], others: &[&str]| {
        let mut left: HashMap<&str, u32> = HashMap::new();
        for line in others {
            *left.entry(line).or_default() += 1;
        }
        let mut take = |line: &&str| match left.get_mut(*line) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        };
        these.iter().map(&mut take).collect()
    };
    (mark(a, b), mark(b, a))
}
