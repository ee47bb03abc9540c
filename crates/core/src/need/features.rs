//! The keys of a text: its names, passages and lines, in the judge's reading.

use std::ops::Range;

use crate::names::{self, Key};
use crate::text::{Limit, head};

/// Characters of a long line that stand for all of it.
const BEGINNING: usize = 60;
/// A line of at most this many words is little more than the name that it holds.
const FEW_WORDS: usize = 2;
/// Characters from which a name of hexadecimal digits is a hash.
const SHORTEST_HASH: usize = 7;

/// A line without its number, white space joined.
#[derive(Debug, Clone)]
pub(super) struct PlainLine {
    pub(super) key: Key,
    /// The key of its beginning, where it is long.
    pub(super) beginning: Option<Key>,
    pub(super) characters: usize,
    names: Range<usize>,
}

/// The keys of a text.
#[derive(Debug, Clone)]
pub(super) struct Features {
    pub(super) text: Key,
    pub(super) lines: Vec<PlainLine>,
    /// Names of all lines in their order, to which lines point.
    names_in_order: Vec<Key>,
    /// Sorted, each once.
    pub(super) names: Vec<Key>,
    /// Those names that stand in lines of originals; `None` for all.
    pub(super) exact: Option<Vec<Key>>,
    /// Those names that count wherever they stand: they have a line to themselves, or tell all.
    pub(super) anywhere: Vec<Key>,
    pub(super) passages: Vec<Key>,
    pub(super) line_keys: Vec<Key>,
}

impl Features {
    pub(super) fn of(text: &str) -> Self {
        let mut lines = Vec::new();
        let (mut names_in_order, mut anywhere) = (Vec::new(), Vec::new());
        for line in plain_lines(text) {
            let start = names_in_order.len();
            let is_bare = !line.contains(' ') || has_few_words(&line);
            names::each_name(&line, |name| {
                let key = names::key(name);
                names_in_order.push(key);
                if is_bare || tells_all(name) {
                    anywhere.push(key);
                }
            });
            let characters = line.chars().count();
            let beginning = (characters > BEGINNING)
                .then(|| names::key(head(&line, Limit::Characters(BEGINNING))));
            lines.push(PlainLine {
                key: names::key(&line),
                beginning,
                characters,
                names: start..names_in_order.len(),
            });
        }
        Self {
            text: names::key(text),
            names: sorted(names_in_order.iter().copied()),
            exact: None,
            anywhere: sorted(anywhere.into_iter()),
            passages: sorted(names::runs(text).into_iter()),
            line_keys: sorted(lines.iter().map(|line| line.key)),
            names_in_order,
            lines,
        }
    }

    /// Counts as exact only names in lines of originals, whose keys `is_original` knows.
    pub(super) fn keep_originals(&mut self, is_original: impl Fn(Key) -> bool) {
        let exact = self
            .lines
            .iter()
            .filter(|line| is_original(line.key) || line.beginning.is_some_and(&is_original));
        self.exact = Some(sorted(exact.flat_map(|line| self.names_of(line))));
    }

    pub(super) fn names_of(&self, line: &PlainLine) -> impl Iterator<Item = Key> + use<'_> {
        self.names_in_order[line.names.clone()].iter().copied()
    }

    pub(super) fn has_name(&self, key: Key) -> bool {
        self.names.binary_search(&key).is_ok()
    }

    pub(super) fn has_passage(&self, key: Key) -> bool {
        self.passages.binary_search(&key).is_ok()
    }

    pub(super) fn has_line(&self, key: Key) -> bool {
        self.line_keys.binary_search(&key).is_ok()
    }
}

fn sorted(keys: impl Iterator<Item = Key>) -> Vec<Key> {
    let mut keys: Vec<Key> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn has_few_words(line: &str) -> bool {
    let words = line
        .split(|character: char| !(character.is_alphanumeric() || character == '_'))
        .filter(|word| !word.is_empty());
    words.take(FEW_WORDS + 1).count() <= FEW_WORDS
}

/// Returns whether a name tells all by itself: a path, a URL or a hash.
fn tells_all(name: &str) -> bool {
    let is_hash = || {
        name.len() >= SHORTEST_HASH
            && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && name.bytes().any(|byte| byte.is_ascii_digit())
            && name.bytes().any(|byte| byte.is_ascii_lowercase())
    };
    name.contains('/') || is_hash()
}

/// Returns the lines of a text that have words, without their numbers and with single blanks; escapes of JSON are read.
pub(crate) fn plain_lines(text: &str) -> impl Iterator<Item = String> + use<> {
    let read = text.replace("\\n", "\n").replace("\\t", " ").replace("\\\"", "\"");
    let lines: Vec<String> = read
        .split('\n')
        .map(|line| {
            let words: Vec<&str> = without_number(line).split_whitespace().collect();
            words.join(" ")
        })
        .filter(|line| !line.is_empty())
        .collect();
    lines.into_iter()
}

/// Returns a line without the number that tools write before it.
fn without_number(line: &str) -> &str {
    let trimmed = line.trim_start();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &trimmed[digits..];
    match rest.chars().next() {
        Some(mark @ ('→' | '|' | ':' | '\t')) if digits > 0 => &rest[mark.len_utf8()..],
        _ => line,
    }
}

patterns! {
    /// A replaced text in the arguments of an edit.
    REPLACED r#""(?:old_string|old_str|oldText|old_text|search)"\s*:\s*"((?:[^"\\]|\\.)*)""#;
}

/// Returns the texts that a call replaces in a file, with JSON's escapes as they are written.
pub(crate) fn edited_texts(arguments: &str) -> impl Iterator<Item = &str> {
    REPLACED.captures_iter(arguments).filter_map(|found| Some(found.get(1)?.as_str()))
}
