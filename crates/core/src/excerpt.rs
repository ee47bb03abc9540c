//! Excerpts: exact lines of a message, counts of what was left out, and the names that occur in it.
//!
//! Two forms: one leaves out only lines that other messages in the context show word for word; the other keeps a
//! skeleton by kind of content, with every line that reports an error.

mod kind;
mod worth;

use std::fmt::Write as _;

use crate::error_lines::is_error_line;
use crate::hash::Ref;
use crate::message::{Block, Message, Role, ToolCall, ToolResult};
use crate::names::KeySet;
use crate::reading::{Line, Reading};
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
    let mut own = KeySet::default();
    // How many of the first n runs are shown by this message alone.
    let mut alone = Vec::with_capacity(reading.runs.len() + 1);
    alone.push(0_u32);
    for &run in &reading.runs {
        let elsewhere = visible.run(run) > 1 || !own.insert(run);
        alone.push(alone.last().copied().unwrap_or(0) + u32::from(!elsewhere));
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

/// Returns for each line whether the skeleton leaves it out.
pub(crate) fn outside_skeleton(
    message: &Message,
    reading: &Reading,
    call: Option<&ToolCall>,
    errors: bool,
) -> Vec<bool> {
    let mut keep = vec![false; reading.lines.len()];
    let mut at = 0;
    while at < reading.lines.len() {
        let block = reading.lines[at].block;
        let end = (at..reading.lines.len())
            .find(|&next| reading.lines[next].block != block)
            .unwrap_or(reading.lines.len());
        let lines = &reading.lines[at..end];
        let keep = &mut keep[at..end];
        match &message.blocks[block] {
            Block::ToolResult(result) => keep_of_result(result, lines, call, errors, keep),
            Block::Text(text) => keep_of_text(text, lines, message.role, keep),
            Block::ToolCall(call) => keep_of_arguments(call, lines, keep),
            _ => keep.fill(true),
        }
        at = end;
    }
    keep.iter().map(|keep| !keep).collect()
}

fn keep_of_result(
    result: &ToolResult,
    lines: &[Line],
    call: Option<&ToolCall>,
    errors: bool,
    keep: &mut [bool],
) {
    let text = |line: &Line| &result.text[line.bytes.clone()];
    let kind = kind_of(&result.text, call);
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
    // What the message was about, and what it ran where the command stands in the text.
    if let Some(first) = lines.iter().position(|line| line.has_words) {
        keep[first] = true;
    }
    let _ = text;
}

fn keep_of_arguments(call: &ToolCall, lines: &[Line], keep: &mut [bool]) {
    let mut used = 0;
    for (line, keep) in lines.iter().zip(keep) {
        used += line.bytes.len();
        *keep = !line.removable
            || (used <= ARGUMENTS_KEPT && !call.arguments[line.bytes.clone()].is_empty());
    }
}

/// Writes `message` without the lines that `dropped` marks; `None` where nothing is marked.
///
/// Each gap says how many lines are missing. What was left out and no other message shows is listed by name, with the
/// ref of the original, behind the text, or behind the arguments where there is no text.
pub(crate) fn write(
    message: &Message,
    reading: &Reading,
    dropped: &[bool],
    visible: &Visible,
    worth: &Worth,
    original: Ref,
) -> Option<Message> {
    if !dropped.contains(&true) {
        return None;
    }
    let mut blocks = message.blocks.clone();
    let mut left_out = String::new();
    let mut at = 0;
    while at < reading.lines.len() {
        let block = reading.lines[at].block;
        let mut out = String::new();
        let source: &str = match &message.blocks[block] {
            Block::Text(text) => text,
            Block::ToolResult(result) => &result.text,
            Block::ToolCall(call) => &call.arguments,
            _ => "",
        };
        let is_json = matches!(&message.blocks[block], Block::ToolCall(_))
            && source.trim_start().starts_with(['{', '[']);
        let mut gap = 0;
        let mut changed = false;
        while at < reading.lines.len() && reading.lines[at].block == block {
            let text = &source[reading.lines[at].bytes.clone()];
            if dropped[at] {
                gap += 1;
                left_out.push_str(text);
                if is_json {
                    left_out.push('\n');
                }
                changed = true;
            } else {
                close_gap(&mut out, &mut gap, is_json);
                out.push_str(text);
            }
            at += 1;
        }
        close_gap(&mut out, &mut gap, is_json);
        if !changed {
            continue;
        }
        let text = out.trim_end_matches('\n');
        match &mut blocks[block] {
            Block::Text(target) => *target = text.into(),
            Block::ToolResult(result) => {
                result.text = text.into();
                result.images.clear();
            }
            Block::ToolCall(call) => call.arguments = out.as_str().into(),
            _ => {}
        }
    }
    let mut result = Message { blocks, ..message.clone() };
    let listed = worth.names(&left_out, &result, visible);
    append(&mut result, &note(&listed, original));
    Some(result)
}

fn close_gap(out: &mut String, gap: &mut usize, is_json: bool) {
    if *gap > 0 {
        let _ = write!(out, "[… {gap}]{}", if is_json { "\\n" } else { "\n" });
        *gap = 0;
    }
}

fn note(names: &[&str], original: Ref) -> String {
    if names.is_empty() {
        format!("[{original}]")
    } else {
        format!("[{original} names: {}]", names.join(" "))
    }
}

/// Puts a note behind the last text or result of a message, or makes a text block of it.
fn append(message: &mut Message, note: &str) {
    for block in message.blocks.iter_mut().rev() {
        match block {
            Block::Text(text) => {
                *text = format!("{text}\n{note}").into();
                return;
            }
            Block::ToolResult(result) => {
                result.text = format!("{}\n{note}", result.text).into();
                return;
            }
            _ => {}
        }
    }
    let first_call = message.blocks.iter().position(|block| matches!(block, Block::ToolCall(_)));
    let at = first_call.unwrap_or(message.blocks.len());
    message.blocks.insert(at, Block::Text(note.into()));
}
