//! Lines, compared without the numbers that a tool writes before them and without indentation.

use std::fmt;
use std::ops::Range;

use crate::names::{self, Key};

/// A line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineText {
    /// The whole line, without the line break.
    pub(super) whole: Range<usize>,
    /// The line without number and indentation.
    pub(super) words: Range<usize>,
    /// The number that stands before it, as in `12→text`.
    pub(super) numbered: Option<u32>,
}

/// Shorter lines, in bytes, are too common to be looked for by themselves.
const WEAK: usize = 8;

pub(super) fn is_weak(words: &str) -> bool {
    words.len() < WEAK
}

impl LineText {
    pub(super) fn words<'t>(&self, text: &'t str) -> &'t str {
        &text[self.words.clone()]
    }

    /// Returns the text between the number and the words.
    pub(super) fn indent<'t>(&self, text: &'t str) -> &'t str {
        let before = &text[self.whole.start..self.words.start];
        match self.numbered {
            Some(_) => {
                let digits = before.find(|letter: char| letter.is_ascii_digit()).unwrap_or(0);
                let rest =
                    before[digits..].trim_start_matches(|letter: char| letter.is_ascii_digit());
                let mut letters = rest.chars();
                letters.next();
                letters.as_str()
            }
            None => before,
        }
    }

    pub(super) fn key(&self, text: &str) -> Key {
        names::key(self.words(text))
    }
}

/// Returns the lines of a text; the last one may be empty.
pub(super) fn line_texts(text: &str) -> impl Iterator<Item = LineText> + '_ {
    // Numbers that repeat, as those of hits in several files, are no line numbers.
    let numbers = text.split('\n').filter_map(number_before).map(|(number, _)| number);
    let is_numbered = numbers.is_sorted_by(|one, next| one < next);
    let mut start = 0;
    text.split('\n').map(move |line| {
        let whole = start..start + line.len();
        start = whole.end + 1;
        let (numbered, rest) = match number_before(line).filter(|_| is_numbered) {
            Some((number, end)) => (Some(number), end),
            None => (None, 0),
        };
        // Blanks at the end stay: a pointer stands for exactly what it leaves out.
        let words = whole.end - line[rest..].trim_start().len()..whole.end;
        LineText { whole, words, numbered }
    })
}

/// Reads `  12→`, `12|`, `12:` or `12` and a tab; returns the number and where the line goes on.
fn number_before(line: &str) -> Option<(u32, usize)> {
    let start = line.len() - line.trim_start().len();
    let digits = line[start..].bytes().take_while(u8::is_ascii_digit).count();
    let number = line.get(start..start + digits)?.parse().ok()?;
    let mark = line[start + digits..].chars().next()?;
    matches!(mark, '→' | '|' | ':' | '\t').then(|| (number, start + digits + mark.len_utf8()))
}

/// How much further in, or out, the lines of a text are than the lines that they are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Indent {
    Same,
    In(u16, u8),
    Out(u16, u8),
}

/// Returns the difference of two indentations; `None` unless it is one run of the same blank at the beginning.
pub(super) fn indent_between(new: &str, old: &str) -> Option<Indent> {
    let run = |more: &str| {
        let blank = more.bytes().next()?;
        let alike = more.bytes().all(|byte| byte == blank) && (blank == b' ' || blank == b'\t');
        alike.then(|| Some((u16::try_from(more.len()).ok()?, blank))).flatten()
    };
    if new == old {
        return Some(Indent::Same);
    }
    if let Some(more) = new.strip_suffix(old) {
        return run(more).map(|(count, blank)| Indent::In(count, blank));
    }
    let less = old.strip_suffix(new)?;
    run(less).map(|(count, blank)| Indent::Out(count, blank))
}

impl fmt::Display for Indent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, count, blank) = match self {
            Self::Same => return Ok(()),
            Self::In(count, blank) => ('+', count, blank),
            Self::Out(count, blank) => ('-', count, blank),
        };
        let blank = match (*blank == b'\t', *count) {
            (true, 1) => "tab",
            (true, _) => "tabs",
            (false, 1) => "space",
            (false, _) => "spaces",
        };
        write!(f, " indented {sign}{count} {blank}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_its_words_behind_number_and_indentation() {
        for (line, number, indent, words) in [
            ("    12→  let x = 1; ", Some(12), "  ", "let x = 1; "),
            ("7\tfn main() {", Some(7), "", "fn main() {"),
            ("  plain text", None, "  ", "plain text"),
            ("12 apples", None, "", "12 apples"),
            ("   ", None, "", ""),
            ("3→", Some(3), "", ""),
        ] {
            let found = line_texts(line).next().expect("one line");
            assert_eq!((found.numbered, found.words(line)), (number, words), "{line:?}");
            if !words.is_empty() {
                assert_eq!(found.indent(line), indent, "{line:?}");
            }
        }
        assert_eq!(line_texts("a\nb\n").count(), 3);
    }

    #[test]
    fn indentations_differ_by_one_run_of_blanks() {
        assert_eq!(indent_between("    ", "  "), Some(Indent::In(2, b' ')));
        assert_eq!(indent_between("", "\t"), Some(Indent::Out(1, b'\t')));
        assert_eq!(indent_between("\t", "  "), None);
        assert_eq!(indent_between("x", "x"), Some(Indent::Same));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_its_lines_back(text in "[ \t→|:0-9a-zä\n]{0,60}") {
            let lines: Vec<&str> = line_texts(&text).map(|line| &text[line.whole]).collect();
            proptest::prop_assert_eq!(lines.join("\n"), text.clone());
            for line in line_texts(&text) {
                proptest::prop_assert!(line.whole.start <= line.words.start && line.words.end <= line.whole.end);
                let _ = line.indent(&text);
            }
        }
    }
}
