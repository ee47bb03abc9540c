//! JSON Lines output: records copied, replaced, left out or put in, line by line, in a tree of ids.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::json;

/// A line of the original.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) number: u32,
    /// With its line break, if it has one.
    pub(crate) raw: &'a [u8],
}

impl<'a> Line<'a> {
    /// Returns the line's JSON; mended, where it had to be mended to be read.
    pub(crate) fn text(&self) -> Option<Cow<'a, str>> {
        let text = str::from_utf8(json::without_mark(self.raw).trim_ascii()).ok()?;
        if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
            return Some(Cow::Borrowed(text));
        }
        json::mended(text).map(Cow::Owned)
    }
}

/// Returns all lines of a file, blank ones too.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    (1..)
        .zip(bytes.split_inclusive(|byte| *byte == b'\n'))
        .map(|(number, raw)| Line { number, raw })
}

/// Lines as they are put out.
#[derive(Debug, Default)]
pub(crate) struct Output(Vec<u8>);

impl Output {
    /// Copies a line.
    pub(crate) fn copy(&mut self, line: &Line<'_>) {
        self.finish_line();
        self.0.extend_from_slice(line.raw);
    }

    /// Puts text in the place of a line, or where there was none.
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

/// Which record hangs on which, and what is left out.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    parents: HashMap<String, Option<String>>,
    dropped: HashSet<String>,
}

impl Tree {
    pub(crate) fn add(&mut self, id: String, parent: Option<String>, dropped: bool) {
        if dropped {
            self.dropped.insert(id.clone());
        }
        self.parents.entry(id).or_insert(parent);
    }

    /// Returns the kept record next to `first`, on the way from it down to `last`.
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

    /// Returns the nearest ancestor that is kept, beginning with `id` itself.
    pub(crate) fn kept(&self, id: Option<&str>) -> Option<String> {
        let mut at = id;
        // A cycle of dropped records ends after as many steps as there are records.
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
