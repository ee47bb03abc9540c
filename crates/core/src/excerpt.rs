//! Excerpts: exact lines of a result, with counts of the lines between them.
//!
//! An excerpt keeps the first and last lines, lines that report errors, and the other lines with most names for their length.

use crate::hash::Ref;
use crate::message::{Block, Message, ToolResult};
use crate::names::{self, KeySet};
use crate::said_once::LineAt;
use crate::text::{is_error_line, left_out};

/// Lines kept at each end (chosen).
const AT_EACH_END: usize = 3;
/// The most error lines that an excerpt keeps from each end of a result.
const ERRORS_FROM_EACH_END: usize = 5;
/// Bytes of a line above which it is data (a minified file, base64) and no excerpt holds it.
const LONGEST_LINE: usize = 300;
/// The cost of a line beside its bytes, when lines are compared by the names that they hold.
const PRICE_OF_A_LINE: f64 = 12.0;

/// Returns `message` with its results cut to about `share` of their length; `None` if every line stays.
///
/// `must` returns whether a line has to stay or to go, where that is decided already: lines that other messages point to stay,
/// and lines that a pointer replaced are gone.
pub(crate) fn excerpt(
    message: &Message,
    share: f64,
    errors: bool,
    original: Option<Ref>,
    must: impl Fn(LineAt) -> Option<bool>,
) -> Option<Message> {
    let mut original = original;
    message.with_blocks(|block, content| {
        let Block::ToolResult(result) = content else { return None };
        let lines: Vec<&str> = result.text.split('\n').collect();
        let kept = selected(&lines, share, errors, |line| must(LineAt { block, line }));
        if kept.iter().all(|kept| *kept) {
            return None;
        }
        // One ref gives back the whole message.
        let text = write(&lines, &kept, original.take()).into();
        Some(Block::ToolResult(ToolResult { text, images: Vec::new(), ..result.clone() }))
    })
}

/// Decides for each line whether the excerpt keeps it.
fn selected(
    lines: &[&str],
    share: f64,
    errors: bool,
    must: impl Fn(usize) -> Option<bool>,
) -> Vec<bool> {
    let mut kept = vec![false; lines.len()];
    // A text that ends with a line break has an empty last line, which is not worth keeping.
    let end = lines.len() - usize::from(lines.last().is_some_and(|line| line.is_empty()));
    let fits = |at: usize| lines[at].len() <= LONGEST_LINE && must(at) != Some(false);
    for at in (0..end.min(AT_EACH_END)).chain(end.saturating_sub(AT_EACH_END)..end) {
        kept[at] = fits(at);
    }
    for (at, kept) in kept.iter_mut().enumerate() {
        *kept |= must(at) == Some(true);
    }
    if errors {
        let reports: Vec<usize> =
            (0..end).filter(|&at| fits(at) && is_error_line(lines[at].trim_end())).collect();
        let from_end = reports.len().saturating_sub(ERRORS_FROM_EACH_END);
        for (order, &at) in reports.iter().enumerate() {
            kept[at] |= order < ERRORS_FROM_EACH_END || order >= from_end;
        }
    }
    let whole: usize = lines.iter().map(|line| line.len() + 1).sum();
    let mut room = whole as f64 * share;
    let mut named: Vec<(f64, usize, KeySet)> = (0..end)
        .filter(|&at| fits(at) && !kept[at])
        .filter_map(|at| {
            let names = names::names(lines[at]);
            let worth = names.len() as f64 / (lines[at].len() as f64 + PRICE_OF_A_LINE);
            (!names.is_empty()).then_some((worth, at, names))
        })
        .collect();
    named.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut shown = KeySet::default();
    for (_, at, names) in named {
        let bytes = lines[at].len() as f64 + 1.0;
        if bytes <= room && names.iter().any(|name| !shown.contains(name)) {
            kept[at] = true;
            room -= bytes;
            shown.extend(names);
        }
    }
    kept
}

fn write(lines: &[&str], kept: &[bool], original: Option<Ref>) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut widest = (0, 0);
    let mut at = 0;
    while at < lines.len() {
        if kept[at] {
            out.push(lines[at].to_owned());
            at += 1;
            continue;
        }
        let count = kept[at..].iter().take_while(|kept| !**kept).count();
        if count > widest.0 {
            widest = (count, out.len());
        }
        at += count;
        out.push(left_out(count, "line", None));
    }
    if let Some(marked) = out.get_mut(widest.1) {
        let way = original.as_ref().map(|original| original as &dyn std::fmt::Display);
        *marked = left_out(widest.0, "line", way);
    }
    out.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::ContentHash;
    use insta::assert_snapshot;

    fn check(text: &str, share: f64) -> String {
        let message = Message::result("1", text);
        let original = Some(Ref::message(ContentHash([0xab; 32])));
        let made = excerpt(&message, share, true, original, |_| None);
        made.map_or_else(String::new, |made| made.results().next().expect("one").text.to_string())
    }

    #[test]
    fn ends_errors_and_names_stay() {
        let mut lines: Vec<String> = (0..40).map(|at| format!("nothing here, {at}")).collect();
        lines[20] = "error: it broke".to_owned();
        lines[30] = "see src/core/plan.rs and reduce_by_half".to_owned();
        assert_snapshot!(check(&lines.join("\n"), 0.1), @r"
        nothing here, 0
        nothing here, 1
        nothing here, 2
        [… 17 lines; ref:message:abababababababab]
        error: it broke
        [… 9 lines]
        see src/core/plan.rs and reduce_by_half
        [… 6 lines]
        nothing here, 37
        nothing here, 38
        nothing here, 39
        ");
        assert_eq!(check("a\nb\nc", 0.1), "");
    }

    #[test]
    fn long_lines_are_no_excerpt() {
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat(1000));
        assert_snapshot!(check(&text, 0.1), @"[… 1 line; ref:message:abababababababab]");
    }
}
