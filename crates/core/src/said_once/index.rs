//! The lines that a context shows, and where the same lines stand as in a new text.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::names::Key;

use super::lines::{Indent, LineText, indent_between, is_weak, line_texts};

/// Earlier places of a line that are tried, the newest first.
const CANDIDATES: usize = 12;
/// The `depth` of a place without a line.
pub(super) const GAP: u8 = u8::MAX;

/// A line of the context: shown there, or within reach of a pointer there.
///
/// There are as many as the session has lines, so all places in it take four bytes.
#[derive(Debug, Clone)]
pub(super) struct ContextLine {
    /// The words without indentation and line number; empty in a gap.
    pub(super) key: Key,
    pub(super) source: u32,
    /// Its number in its source, from 1.
    pub(super) number: u32,
    /// The bytes of its source at which the line begins, its words begin, and both end.
    start: u32,
    words: u32,
    end: u32,
    /// The number that the tool gave it, and one.
    numbered: Option<NonZero<u32>>,
    /// The place before, if there is one, at which the same line stands.
    earlier: Option<NonZero<u32>>,
    /// How many pointers lead to it; [`GAP`] where there is no line.
    pub(super) depth: u8,
}

impl ContextLine {
    /// A place without a line.
    const NONE: Self = Self {
        key: 0,
        source: u32::MAX,
        number: 0,
        start: 0,
        words: 0,
        end: 0,
        numbered: None,
        earlier: None,
        depth: GAP,
    };

    /// Returns a line; `None` if a place in it takes more than four bytes.
    fn new(source: u32, text: &LineText, key: Key, at: usize, depth: u8) -> Option<Self> {
        let small = |place: usize| u32::try_from(place).ok();
        let numbered = match text.numbered {
            Some(number) => Some(NonZero::new(number.checked_add(1)?)?),
            None => None,
        };
        Some(Self {
            key,
            source,
            number: small(at)?.checked_add(1)?,
            start: small(text.whole.start)?,
            words: small(text.words.start)?,
            end: small(text.whole.end)?,
            numbered,
            earlier: None,
            depth,
        })
    }

    /// Returns the number that the tool gave it.
    pub(super) fn numbered(&self) -> Option<u32> {
        self.numbered.map(|number| number.get() - 1)
    }

    fn text(&self) -> LineText {
        let [start, words, end] = [self.start, self.words, self.end].map(|place| place as usize);
        LineText { whole: start..end, words: words..end, numbered: self.numbered() }
    }
}

/// A text with lines: a result, a text of the model, an argument of a call.
#[derive(Debug, Clone)]
pub(super) struct LineSource {
    pub(super) label: Arc<str>,
    pub(super) text: Arc<str>,
    /// The block of its message that holds it.
    pub(super) block: usize,
}

/// Returns the index of a place in [`LineIndex::lines`].
fn index(place: NonZero<u32>) -> usize {
    place.get() as usize - 1
}

/// Lines of a new text that stand in the context in the same order.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepeatedLines {
    /// The first of them, in the new text.
    pub(super) from: usize,
    /// The first of them in the context, as an index into [`LineIndex::lines`].
    pub(super) at: usize,
    pub(super) count: usize,
    pub(super) bytes: usize,
    pub(super) indent: Option<Indent>,
}

/// All lines of a context, and where each stands.
#[derive(Debug, Clone, Default)]
pub(super) struct LineIndex {
    pub(super) lines: Vec<ContextLine>,
    /// The newest place of a line, counted from 1; its line knows the place before.
    places: HashTable<NonZero<u32>>,
    pub(super) sources: Vec<LineSource>,
    /// How many sources have a label, so that each gets one of its own.
    labels: HashMap<Arc<str>, u32>,
}

impl LineIndex {
    /// Adds a source under a label that no other source has.
    pub(super) fn add_source(&mut self, label: Arc<str>, text: Arc<str>, block: usize) -> u32 {
        let count = self.labels.entry(label.clone()).or_default();
        *count += 1;
        let label = if *count == 1 { label } else { format!("{label} #{count}").into() };
        self.sources.push(LineSource { label, text, block });
        (self.sources.len() - 1) as u32
    }

    /// Adds all lines of a source.
    pub(super) fn add_all(&mut self, source: u32) {
        let text = self.sources[source as usize].text.clone();
        let lines = line_texts(&text).map(|line| {
            let key = line.key(&text);
            (line, key)
        });
        self.add_lines(source, &text, lines);
    }

    /// Adds the lines of a source, each with its key.
    pub(super) fn add_lines(
        &mut self,
        source: u32,
        text: &str,
        lines: impl IntoIterator<Item = (LineText, Key)>,
    ) {
        for (at, (line, key)) in lines.into_iter().enumerate() {
            self.add(source, text, &line, key, at, 0);
        }
        self.add_gap();
    }

    /// Adds the inner lines of an argument that stand in its JSON as they are.
    ///
    /// The first and the last share their line with the JSON around them; lines with a backslash are escaped there.
    pub(super) fn add_inner(&mut self, source: u32) {
        let text = self.sources[source as usize].text.clone();
        let lines: Vec<LineText> = line_texts(&text).collect();
        for (at, line) in lines.iter().enumerate().take(lines.len().saturating_sub(1)).skip(1) {
            if text[line.whole.clone()].contains('\\') {
                self.add_gap();
            } else {
                self.add(source, &text, line, line.key(&text), at, 0);
            }
        }
        self.add_gap();
    }

    pub(super) fn add(
        &mut self,
        source: u32,
        text: &str,
        line: &LineText,
        key: Key,
        at: usize,
        depth: u8,
    ) {
        let Some(mut new) = ContextLine::new(source, line, key, at, depth) else {
            return self.add_gap();
        };
        if depth != GAP
            && !is_weak(line.words(text))
            && let Some(place) = NonZero::new(self.lines.len() as u32 + 1)
        {
            new.earlier = self.put(key, place);
        }
        self.lines.push(new);
    }

    /// Notes the newest place of a line; returns the place before.
    fn put(&mut self, key: Key, place: NonZero<u32>) -> Option<NonZero<u32>> {
        let lines = &self.lines;
        let is_same = |known: &NonZero<u32>| lines[index(*known)].key == key;
        match self.places.entry(key, is_same, |known| lines[index(*known)].key) {
            Entry::Occupied(mut known) => Some(std::mem::replace(known.get_mut(), place)),
            Entry::Vacant(new) => {
                new.insert(place);
                None
            }
        }
    }

    /// Ends a row: lines before and behind it do not follow each other.
    pub(super) fn add_gap(&mut self) {
        self.lines.push(ContextLine::NONE);
    }

    /// Finds the longest row of the context that equals the lines of a new text from `from` on.
    pub(super) fn longest(
        &self,
        text: &str,
        new: &[LineText],
        keys: &[Key],
        from: usize,
    ) -> Option<RepeatedLines> {
        let mut best: Option<RepeatedLines> = None;
        let is_same = |place: &NonZero<u32>| self.lines[index(*place)].key == keys[from];
        let newest = self.places.find(keys[from], is_same).copied();
        let places = std::iter::successors(newest, |place| self.lines[index(*place)].earlier);
        for place in places.take(CANDIDATES) {
            let row = self.row(text, new, keys, from, index(place));
            if row.bytes > best.map_or(0, |best| best.bytes) {
                best = Some(row);
            }
        }
        best
    }

    /// Follows a new text from `from` on and the context from `at` on, as far as their lines are equal.
    fn row(
        &self,
        text: &str,
        new: &[LineText],
        keys: &[Key],
        from: usize,
        at: usize,
    ) -> RepeatedLines {
        let mut row = RepeatedLines { from, at, count: 0, bytes: 0, indent: None };
        let source = self.lines[at].source;
        let old_text = &self.sources[source as usize].text;
        let (mut same_numbers, mut in_order) = (true, true);
        for (line, key) in new[from..].iter().zip(&keys[from..]) {
            let Some(old) = self.lines.get(at + row.count) else { break };
            let alike = old.depth != GAP
                && old.source == source
                && old.key == *key
                // A range counts either the tool's numbers or places.
                && old.numbered.is_some() == self.lines[at].numbered.is_some();
            let known = old.text();
            if !alike || known.words(old_text) != line.words(text) {
                break;
            }
            // The tool's numbers must be those of the original or count on, so that the pointer tells them.
            match (line.numbered, new[from].numbered) {
                (Some(number), Some(first)) => {
                    same_numbers &= known.numbered == Some(number);
                    in_order &= number == first.wrapping_add(row.count as u32);
                    if !same_numbers && !in_order {
                        break;
                    }
                }
                (None, None) => {}
                _ => break,
            }
            if !line.words(text).is_empty() {
                let now = indent_between(line.indent(text), known.indent(old_text));
                match (now, row.indent) {
                    (None, _) => break,
                    (Some(now), Some(before)) if now != before => break,
                    (now, _) => row.indent = now,
                }
            }
            row.bytes += line.words(text).len() + line.indent(text).len() + 1;
            row.count += 1;
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_whose_places_do_not_fit_is_a_gap() {
        let line = |text| line_texts(text).next().expect("one line");
        let fits = ContextLine::new(0, &line("4294967294→words of it"), 1, 0, 0);
        assert_eq!(fits.and_then(|line| line.numbered()), Some(u32::MAX - 1));
        assert!(ContextLine::new(0, &line("4294967295→words of it"), 1, 0, 0).is_none());
        assert!(ContextLine::new(0, &line("words of it"), 1, u32::MAX as usize, 0).is_none());
    }
}
