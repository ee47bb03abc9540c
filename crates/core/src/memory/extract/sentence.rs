//! Sentences of a text with their places; a line that is not prose is one sentence.

use std::ops::Range;

/// A sentence or a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence<'a> {
    /// Without white space around it; never empty.
    pub(super) text: &'a str,
    pub(super) bytes: Range<usize>,
    /// Whether it stands in a fence or is indented as code is.
    pub(super) in_code: bool,
}

/// Returns the sentences within the first `most` bytes of `text`, in order; a line that is cut there is left out.
pub(super) fn sentences(text: &str, most: usize) -> Vec<Sentence<'_>> {
    let mut sentences = Vec::new();
    let mut fenced = false;
    let mut start = 0;
    for line in text.split('\n') {
        let end = start + line.len();
        if end > most {
            break;
        }
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else {
            let in_code = fenced || line.starts_with("    ") || line.starts_with('\t');
            each_sentence(line, |from, to| {
                let sentence = &line[from..to];
                let text = sentence.trim();
                if !text.is_empty() {
                    let from = start + from + (sentence.len() - sentence.trim_start().len());
                    sentences.push(Sentence { text, bytes: from..from + text.len(), in_code });
                }
            });
        }
        start = end + 1;
    }
    sentences
}

/// Calls `found` with the bytes of each sentence: up to `.`, `!` or `?` before a space and a letter that is not small.
fn each_sentence(line: &str, mut found: impl FnMut(usize, usize)) {
    let mut start = 0;
    // Whoever begins a line with a small letter begins sentences with one.
    let is_small = line.trim_start().starts_with(char::is_lowercase);
    for (at, letter) in line.char_indices() {
        if !matches!(letter, '.' | '!' | '?') {
            continue;
        }
        let after = &line[at + letter.len_utf8()..];
        let next = after.trim_start().chars().next();
        let ends = after.starts_with(char::is_whitespace)
            && next
                .is_some_and(|next| (is_small || !next.is_lowercase()) && !next.is_ascii_digit())
            && !is_abbreviation(&line[start..at]);
        if ends {
            found(start, at + letter.len_utf8());
            start = at + letter.len_utf8();
        }
    }
    found(start, line.len());
}

/// Returns whether the stop behind `before` ends an abbreviation such as `e.g`, or a number of a list.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    matches!(word, "e.g" | "i.e" | "etc" | "vs" | "cf" | "approx" | "No" | "Mr" | "Ms" | "Dr")
        || (!word.is_empty() && word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_lines_are_passages() {
        let text =
            "One. Two, e.g. Three! Four 1. Five\n\n  five v1.2 six.\n```\ncode. Code\n```\n    x";
        let found: Vec<(&str, bool)> = sentences(text, 1000)
            .iter()
            .map(|sentence| (sentence.text, sentence.in_code))
            .collect();
        assert_eq!(
            found,
            [
                ("One.", false),
                ("Two, e.g. Three!", false),
                ("Four 1. Five", false),
                ("five v1.2 six.", false),
                ("code.", true),
                ("Code", true),
                ("x", true),
            ]
        );
        for sentence in sentences(text, 1000) {
            assert_eq!(&text[sentence.bytes], sentence.text);
        }
        assert_eq!(sentences(text, 40).len(), 3);
    }
}
