//! JSON Lines output: copies, replaces, omits and inserts lines, whose records form a tree by their ids.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::json;
use crate::object::{Object, quoted_or_null};

/// A line of the original.
#[derive(Debug)]
pub(crate) struct OriginalLine<'a> {
    pub(crate) number: u32,
    /// The bytes, with the line break if there is one.
    pub(crate) raw: &'a [u8],
}

impl<'a> OriginalLine<'a> {
    /// Returns the JSON of the line, mended if necessary.
    pub(crate) fn text(&self) -> Option<Cow<'a, str>> {
        let text = str::from_utf8(json::without_mark(self.raw).trim_ascii()).ok()?;
        if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
            return Some(Cow::Borrowed(text));
        }
        json::mended(text).map(Cow::Owned)
    }
}

/// Returns all lines of a file, including blank ones.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = OriginalLine<'_>> {
    (1..)
        .zip(bytes.split_inclusive(|byte| *byte == b'\n'))
        .map(|(number, raw)| OriginalLine { number, raw })
}

/// The written lines.
#[derive(Debug, Default)]
pub(crate) struct LineOutput(Vec<u8>);

impl LineOutput {
    /// Copies a line.
    pub(crate) fn copy(&mut self, line: &OriginalLine<'_>) {
        self.finish_line();
        self.0.extend_from_slice(line.raw);
    }

    /// Writes a new or changed line.
    pub(crate) fn put(&mut self, text: &str) {
        self.finish_line();
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'\n');
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn finish_line(&mut self) {
        if self.0.last().is_some_and(|last| *last != b'\n') {
            self.0.push(b'\n');
        }
    }
}

/// The parents of all records, and the dropped records.
#[derive(Debug, Default)]
pub(crate) struct RecordTree {
    parents: HashMap<String, Option<String>>,
    dropped: HashSet<String>,
    /// New records, by the line whose parent they are.
    new_parents: HashMap<u32, String>,
}

impl RecordTree {
    pub(crate) fn add(&mut self, id: String, parent: Option<String>, dropped: bool) {
        if dropped {
            self.dropped.insert(id.clone());
        }
        self.parents.entry(id).or_insert(parent);
    }

    /// Makes a new record the parent of a line.
    pub(crate) fn put_before(&mut self, line: u32, id: String) {
        self.new_parents.insert(line, id);
    }

    /// Sets the parent of a line's record to the new record before it, else to the nearest remaining ancestor.
    pub(crate) fn relink(&self, line: u32, record: &mut Object<'_>, key: &str) {
        let parent = record.owned(key);
        let new = self.new_parents.get(&line).cloned();
        let kept = new.or_else(|| self.kept(parent.as_deref()));
        if parent != kept {
            record.set(key, quoted_or_null(kept.as_deref()));
        }
    }

    /// Returns the remaining record nearest to `first` on the path from `last` up to it.
    pub(crate) fn kept_from(&self, first: &str, last: Option<&str>) -> Option<String> {
        let mut found = None;
        let mut at = last;
        for _ in 0..=self.parents.len() {
            let Some(id) = at else { break };
            if !self.is_dropped(id) {
                found = Some(id.to_owned());
            }
            if id == first {
                break;
            }
            at = self.parents.get(id).and_then(Option::as_deref);
        }
        found
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.parents.contains_key(id)
    }

    pub(crate) fn is_dropped(&self, id: &str) -> bool {
        self.dropped.contains(id)
    }

    /// Returns the nearest remaining ancestor, beginning with `id` itself.
    pub(crate) fn kept(&self, id: Option<&str>) -> Option<String> {
        let mut at = id;
        // The bound ends the walk where dropped records form a cycle.
        for _ in 0..=self.dropped.len() {
            match at {
                Some(id) if self.is_dropped(id) => {
                    at = self.parents.get(id).and_then(Option::as_deref);
                }
                _ => return at.map(str::to_owned),
            }
        }
        None
    }
}
