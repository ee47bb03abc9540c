//! Excerpts: exact lines of a result, with counts of the lines between them.
//!
//! An excerpt keeps both ends, lines that report errors with their surroundings, the lines that show the structure of what the
//! result is ([`ContentKind`]), and of the others those with most names for their length.

mod content;
mod kept;
mod select;
mod writing;

use std::borrow::Cow;
use std::fmt::Display;

use crate::hash::Ref;
use crate::message::{Block, Message, Role, ToolCall, ToolResult};
use crate::names::Key;
use crate::said_once::LineAt;
use crate::text::{Limit, head, left_out, tail};

pub(crate) use content::ContentKind;
pub use kept::KeptLines;
pub(crate) use select::Cut;

use select::selected;

/// Bytes of a line above which it is data (a minified file, base64) and only its ends are shown.
const LONGEST_LINE: usize = 300;
/// Bytes of error lines with their surroundings: 1,000 tokens.
const ERRORS: usize = 4000;
/// Parts of the limit of a new result that its beginning, its end, its structure and one line of it may take (chosen: a model
/// that asked for a file or a page begins at its head).
const HEAD_OF_NEW: f64 = 0.3;
const TAIL_OF_NEW: f64 = 0.15;
const STRUCTURE_OF_NEW: f64 = 0.1;
const LINE_OF_NEW: f64 = 0.08;

patterns! {
    /// A call that says itself how much it wants to see.
    ASKS_FOR_SIZE r#""(?:max_[a-z_]+|[a-z_]*limit)\\?"\s*:\s*\d|\|\s*(?:head|tail)\b"#;
}

/// Returns whether a call says itself how much of its result it wants to see.
pub(crate) fn asks_for_size(call: &ToolCall) -> bool {
    ASKS_FOR_SIZE.is_match(&call.arguments)
}

impl Cut {
    /// Keeps every line.
    pub(crate) const WHOLE: Self =
        Self { room: 0.0, head: usize::MAX, tail: 0, errors: 0, longest_line: usize::MAX };

    /// Returns the cut of an old result of `bytes` to about `share` of them.
    pub(crate) fn old(bytes: usize, share: f64, errors: bool) -> Self {
        Self {
            room: bytes as f64 * share,
            head: 0,
            tail: 0,
            errors: if errors { ERRORS } else { 0 },
            longest_line: LONGEST_LINE,
        }
    }

    /// Returns the cut of a new result that is longer than `most` characters: some two thirds of them at most.
    pub(crate) fn new(most: usize, errors: bool) -> Self {
        Self {
            room: most as f64 * STRUCTURE_OF_NEW,
            head: (most as f64 * HEAD_OF_NEW) as usize,
            tail: (most as f64 * TAIL_OF_NEW) as usize,
            errors: if errors { ERRORS } else { 0 },
            longest_line: ((most as f64 * LINE_OF_NEW) as usize).max(LONGEST_LINE),
        }
    }
}

/// The source of an excerpt, and what is decided about its lines already.
pub(crate) struct ExcerptSource<'a> {
    pub(crate) message: &'a Message,
    /// What its result shows.
    pub(crate) content: ContentKind,
    /// The ref by which the model finds the original; `None` where it cannot look it up.
    pub(crate) original: Option<Ref>,
    /// Whether a line has to stay or to go: lines that other messages point to stay, lines that a pointer replaced are gone.
    pub(crate) must: &'a dyn Fn(LineAt) -> Option<bool>,
    /// Whether a name stands elsewhere in the context, so that it is no reason to keep a line.
    pub(crate) stands: &'a dyn Fn(Key) -> bool,
    /// Whether the tool can be asked for the lines from a number on.
    pub(crate) reads_on: bool,
}

/// Returns the message with its results cut; `None` if every line stays.
pub(crate) fn excerpt(source: &ExcerptSource<'_>, cut: impl Fn(usize) -> Cut) -> Option<Message> {
    let mut original = source.original;
    source.message.with_blocks(|block, content| {
        let Block::ToolResult(result) = content else { return None };
        let lines: Vec<&str> = result.text.split('\n').collect();
        let must = |line| (source.must)(LineAt { block, line });
        let cut = cut(result.text.len());
        let kept = selected(&lines, &cut, source.content, must, source.stands);
        let whole = |line| must(line) == Some(true);
        // One ref gives back the whole message.
        let written = write(
            &lines,
            &kept,
            &cut,
            "\n",
            |gap| {
                let line = source.reads_on.then(|| number_of(&lines, gap)).flatten();
                way(line, original.take())
            },
            &whole,
        )?;
        let text = written.into();
        Some(Block::ToolResult(ToolResult { text, images: Vec::new(), ..result.clone() }))
    })
}

/// Returns a message of the model with its long arguments and blocks of code cut; `None` if it has none.
pub(crate) fn excerpt_writing(
    message: &Message,
    share: f64,
    original: Option<Ref>,
) -> Option<Message> {
    let mut original = original;
    let cut = |bytes| Cut::old(bytes, share, false);
    message.with_blocks(|_, block| match block {
        Block::ToolCall(call) => {
            let arguments = writing::cut_arguments(&call.arguments, cut, &mut original)?.into();
            Some(Block::ToolCall(ToolCall { arguments, ..call.clone() }))
        }
        Block::Text(text) if message.role == Role::Assistant => {
            Some(Block::Text(writing::cut_code(text, cut, &mut original)?.into()))
        }
        _ => None,
    })
}

/// Joins the lines that are kept, with counts of the others; the longest gap tells the way to its lines.
///
/// `way` is asked once, with the first line of that gap; `whole` returns whether a long line has to stay whole. `None` if
/// nothing is left out.
fn write(
    lines: &[&str],
    kept: &[bool],
    cut: &Cut,
    line_break: &str,
    way: impl FnOnce(usize) -> Option<String>,
    whole: &dyn Fn(usize) -> bool,
) -> Option<String> {
    let mut out: Vec<Cow<'_, str>> = Vec::new();
    // Lines of the widest gap, its first line, and its place in `out`.
    let mut widest = (0, 0, 0);
    // The first line that is cut in its middle, and its place in `out`.
    let mut cut_line = None;
    let mut at = 0;
    while at < lines.len() {
        if kept[at] {
            let line = lines[at];
            let is_long = line.len() > cut.longest_line && !whole(at);
            if is_long && cut_line.is_none() {
                cut_line = Some((at, out.len()));
            }
            out.push(if is_long {
                ends_of(line, cut.longest_line, None).into()
            } else {
                line.into()
            });
            at += 1;
            continue;
        }
        let count = kept[at..].iter().take_while(|kept| !**kept).count();
        let mark = left_out(count, "line", None);
        let gap = &lines[at..at + count];
        if gap.iter().map(|line| line.len() + 1).sum::<usize>() <= mark.len() + 1 {
            out.extend(gap.iter().map(|line| Cow::from(*line)));
        } else {
            if count > widest.0 {
                widest = (count, at, out.len());
            }
            out.push(mark.into());
        }
        at += count;
    }
    match (widest, cut_line) {
        ((0, ..), None) => return None,
        ((0, ..), Some((line, place))) => {
            let way = way(line);
            let way = way.as_ref().map(|way| way as &dyn Display);
            out[place] = ends_of(lines[line], cut.longest_line, way).into();
        }
        ((count, first, place), _) => {
            let way = way(first);
            let way = way.as_ref().map(|way| way as &dyn Display);
            out[place] = left_out(count, "line", way).into();
        }
    }
    Some(out.join(line_break))
}

/// Returns the beginning and the end of a long line, `most` bytes of it, with a count of its other characters.
fn ends_of(line: &str, most: usize, way: Option<&dyn Display>) -> String {
    let (first, last) = (head(line, Limit::Bytes(most / 2)), tail(line, Limit::Bytes(most / 3)));
    let hidden = line[first.len()..line.len() - last.len()].chars().count();
    format!("{first} {} {last}", left_out(hidden, "character", way))
}

/// Returns the words that tell how to get the lines from `line` on: the tool's own way first, the ref second.
fn way(line: Option<u64>, original: Option<Ref>) -> Option<String> {
    match (line, original) {
        (Some(line), Some(original)) => Some(format!("read on from line {line}, or {original}")),
        (Some(line), None) => Some(format!("read on from line {line}")),
        (None, Some(original)) => Some(original.to_string()),
        (None, None) => None,
    }
}

/// Returns the number that the tool wrote before a line, else the line's place counted from 1.
fn number_of(lines: &[&str], at: usize) -> Option<u64> {
    let numbered = |line: &str| {
        let line = line.trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let is_numbered = line[digits..].starts_with(['→', '|', ':', '\t']);
        is_numbered.then(|| line[..digits].parse().ok()).flatten()
    };
    numbered(lines[at]).or_else(|| Some(at as u64 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::ContentHash;
    use insta::assert_snapshot;
    use proptest::prelude::*;

    fn source(message: &Message) -> ExcerptSource<'_> {
        ExcerptSource {
            message,
            content: ContentKind::Log,
            original: Some(Ref::message(ContentHash([0xab; 32]))),
            must: &|_| None,
            stands: &|_| false,
            reads_on: false,
        }
    }

    fn check(text: &str, share: f64) -> String {
        check_with(text, Cut::old(text.len(), share, true))
    }

    fn check_with(text: &str, cut: Cut) -> String {
        let message = Message::result("1", text);
        let made = excerpt(&source(&message), |_| cut);
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
        [… 15 lines; ref:message:abababababababab]
        nothing here, 18
        nothing here, 19
        error: it broke
        nothing here, 21
        nothing here, 22
        nothing here, 23
        nothing here, 24
        [… 5 lines]
        see src/core/plan.rs and reduce_by_half
        [… 6 lines]
        nothing here, 37
        nothing here, 38
        nothing here, 39
        ");
        assert_eq!(check("a\nb\nc", 0.1), "");
    }

    #[test]
    fn a_long_line_shows_its_ends() {
        let text = format!("{{\"first\": 1, \"a\": \"{}\", \"last\": 2}}", "x".repeat(1000));
        let shown = check(&text, 0.1);
        assert!(shown.starts_with("{\"first\": 1,") && shown.ends_with("\"last\": 2}"), "{shown}");
        assert!(shown.len() <= 310 && shown.contains("characters"), "{shown}");
    }

    #[test]
    fn the_only_error_of_a_long_log_stays_with_what_surrounds_it() {
        let mut lines: Vec<String> =
            (0..2000).map(|at| format!("step {at} of the build")).collect();
        lines[700] = "ERROR: cannot link".to_owned();
        lines[701] = "  undefined symbol: berth_of".to_owned();
        for cut in [Cut::old(40_000, 0.01, true), Cut::new(25_000, true)] {
            let shown = check_with(&lines.join("\n"), cut);
            assert!(
                shown.contains("step 699 of the build\nERROR: cannot link\n  undefined symbol")
            );
        }
    }

    #[test]
    fn a_sequence_of_numbers_is_no_list_of_names() {
        let numbers: Vec<String> = (1..=18_000).map(|n| n.to_string()).collect();
        let shown = check(&numbers.join("\n"), 0.1);
        assert_snapshot!(shown, @"
        1
        2
        3
        [… 17994 lines; ref:message:abababababababab]
        17998
        17999
        18000
        ");
    }

    #[test]
    fn a_new_file_says_how_to_read_on() {
        let lines: Vec<String> =
            (1..=3000).map(|n| format!("{n:6}→let value_{n} = read({n});")).collect();
        let message = Message::result("1", lines.join("\n"));
        let source = ExcerptSource { reads_on: true, ..source(&message) };
        let made = excerpt(&source, |_| Cut::new(25_000, true)).expect("long");
        let shown = made.results().next().expect("one").text.to_string();
        assert!(shown.len() < 20_000, "{}", shown.len());
        assert!(shown.contains("; read on from line "), "{shown}");
    }

    #[test]
    fn a_mark_is_no_longer_than_the_lines_for_which_it_stands() {
        let lines: Vec<String> = (0..30).map(|n| format!("a_name_{n} b_name_{n}\n}}")).collect();
        let shown = check(&lines.join("\n"), 0.5);
        assert!(!shown.contains("[… 1 line]"), "{shown}");
    }

    #[test]
    fn long_writing_of_the_model_is_cut_inside_its_arguments() {
        let code: Vec<String> = (0..60).map(|n| format!("let \\\"v{n}\\\" = {n};")).collect();
        let arguments = format!(r#"{{"path":"a.rs","content":"{}","n":1}}"#, code.join("\\n"));
        let call = ToolCall { id: "1".into(), name: "write".into(), arguments: arguments.into() };
        let text = format!("as follows\n```\n{}\n```\nand done", "x = 1\n".repeat(200));
        let message =
            Message::new(Role::Assistant, vec![Block::Text(text.into()), Block::ToolCall(call)]);
        let made = excerpt_writing(&message, 0.1, None).expect("long");
        let arguments = &made.calls().next().expect("one").arguments;
        let value: serde_json::Value = serde_json::from_str(arguments).expect("still JSON");
        let content = value["content"].as_str().expect("a text");
        assert!(
            content.starts_with("let \"v0\" = 0;\n") && content.contains("lines]"),
            "{content}"
        );
        assert!(value["path"] == "a.rs" && value["n"] == 1);
        let shown = made.shown();
        assert!(shown.starts_with("as follows\n```\nx = 1\n") && shown.contains("```\nand done"));
        assert!(excerpt_writing(&Message::text(Role::User, "x"), 0.1, None).is_none());
    }

    fn lines() -> impl Strategy<Value = Vec<String>> {
        let line = prop_oneof![
            4 => "[a-z_ ./0-9]{0,60}",
            1 => "[a-z]{300,700}",
            1 => Just("error: it broke".to_owned()),
            1 => Just("}".to_owned()),
            1 => "\\PC{0,40}",
        ];
        proptest::collection::vec(line, 1..120)
    }

    proptest! {
        #[test]
        fn an_excerpt_has_exact_lines_counts_and_every_error(
            lines in lines(), share in 0.0..0.6_f64, is_new: bool,
        ) {
            let text = lines.join("\n");
            let cut = if is_new { Cut::new(2000, true) } else { Cut::old(text.len(), share, true) };
            let shown = check_with(&text, cut);
            if shown.is_empty() {
                return Ok(());
            }
            prop_assert!(shown.len() <= text.len() + "; ref:message:abababababababab".len());
            let originals: std::collections::HashSet<&str> = text.split('\n').collect();
            let (mut shown_lines, mut hidden) = (0, 0);
            for line in shown.split('\n') {
                let count = line.strip_prefix("[… ").and_then(|rest| rest.split_once(" line"));
                if let Some((count, _)) = count {
                    hidden += count.parse::<usize>().expect("a count");
                } else {
                    shown_lines += 1;
                    prop_assert!(originals.contains(line) || line.contains(" characters"), "{}", line);
                }
            }
            prop_assert_eq!(shown_lines + hidden, text.split('\n').count());
            let errors = text.split('\n').filter(|line| *line == "error: it broke").count();
            let kept = shown.split('\n').filter(|line| *line == "error: it broke").count();
            prop_assert!(kept >= errors.min(10));
        }
    }
}
