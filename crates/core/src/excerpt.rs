//! Excerpts: exact lines of a message, counts of what was left out, and the names that occur in it.
//!
//! Two forms: one leaves out only lines that other messages in the context show word for word; the other keeps a
//! skeleton by kind of content, with the first and last lines that report errors.

mod kind;
mod worth;

use crate::error_lines::is_error_line;
use crate::hash::Ref;
use crate::message::{Block, Message, Role, ToolCall, ToolResult};
use crate::reading::{Line, REPEATED, Reading, looks_like_json, source};
use crate::render::plural;
use crate::visible::Visible;

pub use kind::{Kind, kind_of};
pub(crate) use worth::{Worth, reads_content};

/// The most error lines that an excerpt keeps from each end of a result.
const ERRORS_FROM_EACH_END: usize = 5;
/// Bytes of a call's arguments that stay at the beginning of each.
const ARGUMENTS_KEPT: usize = 150;

/// Returns for each line whether it can be left out because other messages show every run of its words.
///
/// A run that stands twice in the message counts as shown the second time. Lines without words go with both neighbours.
pub(crate) fn shown_elsewhere(reading: &Reading, visible: &Visible) -> Vec<bool> {
    // How many of the first n runs are shown by this message alone.
    let mut alone = Vec::with_capacity(reading.runs.len() + 1);
    let mut count = 0_u32;
    alone.push(count);
    for &run in &reading.runs {
        count += u32::from(run != REPEATED && visible.shows_run(run) <= 1);
        alone.push(count);
    }
    let mut dropped: Vec<bool> = reading
        .lines
        .iter()
        .map(|line| {
            line.removable
                && !line.runs.is_empty()
                && alone[line.runs.end] == alone[line.runs.start]
        })
        .collect();
    for at in 0..dropped.len() {
        if !reading.lines[at].has_words && reading.lines[at].removable && at > 0 && dropped[at - 1]
        {
            let block = reading.lines[at].block;
            let next = (at + 1..dropped.len()).find(|&next| reading.lines[next].has_words);
            dropped[at] = reading.lines[at - 1].block == block
                && next.is_some_and(|next| dropped[next] && reading.lines[next].block == block);
        }
    }
    dropped
}

/// What is found of a message once and does not depend on what others show.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// For each line, whether the skeleton leaves it out.
    pub(crate) outside: Vec<bool>,
    /// Whether a result in it is a list of names.
    pub(crate) listing: bool,
}

/// Tells the lines of the skeleton by the kinds of content.
pub(crate) fn outline(
    message: &Message,
    reading: &Reading,
    call: Option<&ToolCall>,
    errors: bool,
) -> Outline {
    let mut keep = vec![false; reading.lines.len()];
    let mut listing = false;
    let mut at = 0;
    while at < reading.lines.len() {
        let block = reading.lines[at].block;
        let end = (at..reading.lines.len())
            .find(|&next| reading.lines[next].block != block)
            .unwrap_or(reading.lines.len());
        let lines = &reading.lines[at..end];
        let keep = &mut keep[at..end];
        match &message.blocks[block] {
            Block::ToolResult(result) => {
                let kind = kind_of(&result.text, call);
                listing |= kind == Kind::Listing;
                keep_of_result(kind, result, lines, errors, keep);
            }
            Block::Text(text) => keep_of_text(text, lines, message.role, keep),
            Block::ToolCall(call) => keep_of_arguments(call, lines, keep),
            _ => keep.fill(true),
        }
        at = end;
    }
    Outline { outside: keep.iter().map(|keep| !keep).collect(), listing }
}

fn keep_of_result(
    kind: Kind,
    result: &ToolResult,
    lines: &[Line],
    errors: bool,
    keep: &mut [bool],
) {
    let text = |line: &Line| &result.text[line.bytes.clone()];
    kind::keep_skeleton(kind, lines.len(), |at| text(&lines[at]), keep);
    if errors {
        let reports: Vec<usize> =
            (0..lines.len()).filter(|&at| is_error_line(text(&lines[at]).trim_end())).collect();
        let from_end = reports.len().saturating_sub(ERRORS_FROM_EACH_END);
        for (order, &at) in reports.iter().enumerate() {
            if order < ERRORS_FROM_EACH_END || order >= from_end {
                keep[at] = true;
            }
        }
    }
}

fn keep_of_text(text: &str, lines: &[Line], role: Role, keep: &mut [bool]) {
    if role != Role::Assistant {
        keep.fill(true);
        return;
    }
    // What the message was about, and the command that it ran where that stands in a fence: the first line of each.
    if let Some(first) = lines.iter().position(|line| line.has_words) {
        keep[first] = true;
    }
    let trimmed = |at: usize| text[lines[at].bytes.clone()].trim();
    for (at, keep) in keep.iter_mut().enumerate().skip(1) {
        let opens = trimmed(at - 1).starts_with("```") && trimmed(at - 1).len() > 3;
        *keep |= opens && !trimmed(at).starts_with("```");
    }
}

fn keep_of_arguments(call: &ToolCall, lines: &[Line], keep: &mut [bool]) {
    let mut used = 0;
    for (line, keep) in lines.iter().zip(keep) {
        used += line.bytes.len();
        *keep = !line.removable
            || (used <= ARGUMENTS_KEPT && !call.arguments[line.bytes.clone()].is_empty());
    }
}

/// Writes `message` without the lines that `dropped` marks, and tells how often the names that it lists are needed again;
/// `None` where nothing is marked.
///
/// Each gap says how many lines are missing. The widest one also has the ref of the original and the names that were left
/// out anywhere in the message, that no other message shows, and that are worth listing.
pub(crate) fn write(
    message: &Message,
    reading: &Reading,
    dropped: &[bool],
    visible: &Visible,
    worth: &Worth,
    original: Ref,
) -> Option<(Message, f64)> {
    let gaps = gaps(reading, dropped);
    let widest = gaps.iter().copied().max_by_key(|gap| gap.end - gap.start)?;
    let mut left_out = String::new();
    let mut listed = if let Some(named) = &reading.named {
        let counts: Vec<usize> = gaps.iter().map(|gap| gap.end - gap.start).collect();
        worth.names_known(message, reading, named, dropped, &counts, visible)
    } else {
        for (line, _) in reading.lines.iter().zip(dropped).filter(|(_, dropped)| **dropped) {
            left_out.push_str(&source(message, line.block)[line.bytes.clone()]);
            left_out.push('\n');
        }
        let bare = splice(message, reading, &gaps, |gap| marker(gap, ""));
        worth.names(&left_out, &bare, visible)
    };
    if is_json(message, reading.lines[widest.start].block) {
        // Half of an escape would end the string or break it, and a control character may not stand in one.
        listed.retain(|name| !name.contains(|character| character == '\\' || character < ' '));
    }
    let note = if listed.is_empty() {
        format!("; {original}")
    } else {
        format!("; {original}; names: {}", listed.join(" "))
    };
    let written = splice(message, reading, &gaps, |gap| {
        marker(gap, if gap.start == widest.start { &note } else { "" })
    });
    Some((written, worth.need(&listed)))
}

/// Lines of one block that are left out together, as indices into [`Reading::lines`].
#[derive(Debug, Clone, Copy)]
struct Gap {
    start: usize,
    end: usize,
}

fn gaps(reading: &Reading, dropped: &[bool]) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    for at in (0..dropped.len()).filter(|&at| dropped[at]) {
        match gaps.last_mut() {
            Some(gap)
                if gap.end == at && reading.lines[gap.start].block == reading.lines[at].block =>
            {
                gap.end = at + 1;
            }
            _ => gaps.push(Gap { start: at, end: at + 1 }),
        }
    }
    gaps
}

fn marker(gap: Gap, note: &str) -> String {
    let count = gap.end - gap.start;
    format!("[… {count} {}{note}]", plural(count, "line"))
}

fn is_json(message: &Message, block: usize) -> bool {
    matches!(&message.blocks[block], Block::ToolCall(call) if looks_like_json(&call.arguments))
}

/// Puts a marker in the place of each gap.
fn splice(
    message: &Message,
    reading: &Reading,
    gaps: &[Gap],
    marker: impl Fn(Gap) -> String,
) -> Message {
    let mut blocks = message.blocks.clone();
    let mut gaps = gaps.iter().copied().peekable();
    while let Some(first) = gaps.peek() {
        let block = reading.lines[first.start].block;
        let text = source(message, block);
        let line_break = if is_json(message, block) { "\\n" } else { "\n" };
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        while let Some(gap) = gaps.next_if(|gap| reading.lines[gap.start].block == block) {
            let (from, to) =
                (reading.lines[gap.start].bytes.start, reading.lines[gap.end - 1].bytes.end);
            out.push_str(&text[copied..from]);
            out.push_str(&marker(gap));
            if to < text.len() || text[..to].ends_with(line_break) {
                out.push_str(line_break);
            }
            copied = to;
        }
        out.push_str(&text[copied..]);
        match &mut blocks[block] {
            Block::Text(target) => *target = out.into(),
            Block::ToolResult(result) => {
                result.text = out.into();
                result.images.clear();
            }
            Block::ToolCall(call) => call.arguments = out.into(),
            _ => {}
        }
    }
    Message { blocks, ..message.clone() }
}
