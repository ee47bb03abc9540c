//! The lines that a context shows, and where the same lines stand as in a new text.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;

use crate::names::{Key, KeyMap};

use super::lines::{Indent, LineText, indent_between, is_weak, line_texts};

/// Earlier places of a line that are tried, the newest first.
const CANDIDATES: usize = 12;
/// The `depth` of a place without a line.
pub(super) const GAP: u8 = u8::MAX;

/// A line of the context: shown there, or within reach of a pointer there.
#[derive(Debug, Clone)]
pub(super) struct ContextLine {
    /// The words without indentation and line number; empty in a gap.
    pub(super) key: Key,
    pub(super) source: u32,
    /// The number that the tool gave it.
    pub(super) numbered: Option<u32>,
    /// Its number in its source, from 1.
    pub(super) number: u32,
    text: LineText,
    /// The place before, if there is one, at which the same line stands.
    earlier: Option<NonZero<u32>>,
    /// How many pointers lead to it; [`GAP`] where there is no line.
    pub(super) depth: u8,
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
    places: KeyMap<NonZero<u32>>,
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
        for (at, line) in line_texts(&text).enumerate() {
            self.add(source, &text, line, at, 0);
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
                self.add(source, &text, line.clone(), at, 0);
            }
        }
        self.add_gap();
    }

    pub(super) fn add(&mut self, source: u32, text: &str, line: LineText, at: usize, depth: u8) {
        let key = line.key(text);
        let mut earlier = None;
        if depth != GAP
            && !is_weak(line.words(text))
            && let Some(place) = NonZero::new(self.lines.len() as u32 + 1)
        {
            earlier = self.places.insert(key, place);
        }
        let (numbered, number) = (line.numbered, at as u32 + 1);
        self.lines.push(ContextLine { key, source, numbered, number, text: line, earlier, depth });
    }

    /// Ends a row: lines before and behind it do not follow each other.
    pub(super) fn add_gap(&mut self) {
        let text = LineText { whole: 0..0, words: 0..0, numbered: None };
        let source = u32::MAX;
        self.lines.push(ContextLine {
            key: 0,
            source,
            numbered: None,
            number: 0,
            text,
            earlier: None,
            depth: GAP,
        });
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
        let newest = self.places.get(&keys[from]).copied();
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
                && old.numbered.is_some() == self.lines[at].numbered.is_some()
                && old.text.words(old_text) == line.words(text);
            if !alike {
                break;
            }
            // The tool's numbers must be those of the original or count on, so that the pointer tells them.
            match (line.numbered, new[from].numbered) {
                (Some(number), Some(first)) => {
                    same_numbers &= old.numbered == Some(number);
                    in_order &= number == first.wrapping_add(row.count as u32);
                    if !same_numbers && !in_order {
                        break;
                    }
                }
                (None, None) => {}
                _ => break,
            }
            if !line.words(text).is_empty() {
                let now = indent_between(line.indent(text), old.text.indent(old_text));
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
