//! Excerpts of the model's own long writing: texts in the arguments of its calls, and blocks of code.

use std::ops::Range;

use crate::hash::Ref;
use crate::json_text;

use super::{ContentKind, Cut, selected, write};

/// Bytes of a text in a call's arguments, or of a block of code, below which it stays whole (chosen: some 150 tokens).
const LEAST: usize = 600;

/// Returns the arguments of a call with their long texts cut; `None` if there is none.
pub(super) fn cut_arguments(
    arguments: &str,
    cut: impl Fn(usize) -> Cut,
    original: &mut Option<Ref>,
) -> Option<String> {
    let is_json = arguments.trim_start().starts_with(['{', '[']);
    let line_break = if is_json { "\\n" } else { "\n" };
    cut_parts(arguments, long_texts(arguments, is_json), |text| {
        let lines =
            if is_json { json_text::escaped_lines(text) } else { text.split('\n').collect() };
        // The middle of an escaped line cannot be cut: half an escape is no JSON.
        let longest_line = usize::MAX;
        let cut = Cut { longest_line, ..cut(text.len()) };
        let kept = selected(&lines, &cut, ContentKind::Source, |_| None, &|_| false);
        write(
            &lines,
            &kept,
            &cut,
            line_break,
            |_| original.take().map(|one| one.to_string()),
            &|_| true,
        )
    })
}

/// Returns a text of the model with its long blocks of code cut; `None` if there is none.
pub(super) fn cut_code(
    text: &str,
    cut: impl Fn(usize) -> Cut,
    original: &mut Option<Ref>,
) -> Option<String> {
    cut_parts(text, code_blocks(text), |code| {
        let lines: Vec<&str> = code.split('\n').collect();
        let cut = cut(code.len());
        let kept = selected(&lines, &cut, ContentKind::Source, |_| None, &|_| false);
        write(&lines, &kept, &cut, "\n", |_| original.take().map(|one| one.to_string()), &|_| false)
    })
}

/// Returns the bytes of the long texts in the arguments of a call.
///
/// In JSON they are those between the quotes, with their escapes; arguments that are no JSON are one text.
fn long_texts(arguments: &str, is_json: bool) -> impl Iterator<Item = Range<usize>> {
    let texts = if is_json {
        json_text::strings(arguments)
    } else {
        std::iter::once(0..arguments.len()).collect()
    };
    texts.into_iter().filter(|text| text.len() >= LEAST)
}

/// Returns the bytes of the long blocks of code in a text, without their fences.
fn code_blocks(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut open = None;
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        if !line.trim_start().starts_with("```") {
            return None;
        }
        let from: usize = open.take().or_else(|| {
            open = Some(at);
            None
        })?;
        (start.saturating_sub(from) >= LEAST).then(|| from..start - 1)
    })
}

/// Returns `text` with those of its parts replaced for which `cut` returns a shorter one; `None` if it returns none.
fn cut_parts(
    text: &str,
    parts: impl Iterator<Item = Range<usize>>,
    mut cut: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
    let (mut out, mut done) = (String::new(), 0);
    for part in parts {
        let whole = &text[part.clone()];
        if let Some(short) = cut(whole).filter(|short| short.len() < whole.len()) {
            out.push_str(&text[done..part.start]);
            out.push_str(&short);
            done = part.end;
        }
    }
    (done > 0).then(|| out + &text[done..])
}
