//! Pointers: which rows of a new text become one, and how it reads.

use std::fmt::Write as _;

use crate::names::Key;

use super::index::{ContextLine, LineIndex, RepeatedLines};
use super::lines::{LineText, is_weak};

/// Bytes that one pointer must stand for, and by how many it must be shorter.
///
/// Chosen; 120 instead of 60 changed the mean work of four agents by at most .006.
pub(super) const LEAST_POINTED: usize = 60;
pub(super) const LEAST_SAVED: usize = 20;
/// Bytes by which each part of a pointer must save more: following it is work for the model, and it cuts passages in two.
const PRICE_OF_A_PART: usize = 40;
/// Bytes of the shortest part.
const LEAST_PART: usize = 64;

/// A part of a new text: a line that is shown, or rows of lines that a pointer stands for.
#[derive(Debug)]
pub(super) enum Segment {
    Shown(usize),
    Pointed { pointer: String, rows: Vec<RepeatedLines> },
}

impl LineIndex {
    /// Cuts a new text into lines that are shown and rows that are pointed to.
    pub(super) fn segments(&self, text: &str, new: &[LineText], keys: &[Key]) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut rows: Vec<RepeatedLines> = Vec::new();
        let mut at = 0;
        while at < new.len() {
            let is_weak = is_weak(new[at].words(text));
            let row = if is_weak { None } else { self.longest(text, new, keys, at) };
            if let Some(row) = row.filter(|row| row.bytes >= LEAST_PART) {
                at += row.count;
                rows.push(row);
            } else {
                self.end_rows(new, &mut rows, &mut segments);
                segments.push(Segment::Shown(at));
                at += 1;
            }
        }
        self.end_rows(new, &mut rows, &mut segments);
        segments
    }

    /// Turns adjacent rows into a pointer if that saves enough, else into shown lines.
    fn end_rows(
        &self,
        new: &[LineText],
        rows: &mut Vec<RepeatedLines>,
        segments: &mut Vec<Segment>,
    ) {
        let rows = std::mem::take(rows);
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return };
        let lines = first.from..last.from + last.count;
        let bytes: usize = new[lines.clone()].iter().map(|line| line.whole.len() + 1).sum();
        let pointer = self.pointer(&rows, new);
        let price = LEAST_SAVED + PRICE_OF_A_PART * rows.len() + pointer.len() + 1;
        if bytes >= LEAST_POINTED && bytes >= price {
            segments.push(Segment::Pointed { pointer, rows });
        } else {
            segments.extend(lines.map(Segment::Shown));
        }
    }

    /// Writes the pointer that stands for adjacent rows.
    fn pointer(&self, rows: &[RepeatedLines], new: &[LineText]) -> String {
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        let end = last.from + last.count - 1;
        let mut out = match (new[first.from].numbered, new[end].numbered) {
            (Some(from), Some(to)) => format!("[{from}-{to}: as above in "),
            _ if end == first.from => "[1 line as above in ".to_owned(),
            _ => format!("[{} lines as above in ", end + 1 - first.from),
        };
        let mut before = None;
        for row in rows {
            let (first, last) = (&self.lines[row.at], &self.lines[row.at + row.count - 1]);
            let number = |line: &ContextLine| line.numbered().unwrap_or(line.number);
            if before == Some(first.source) {
                out.push_str(", ");
            } else {
                let between = if before.is_some() { "; " } else { "" };
                let _ = write!(out, "{between}{} ", self.sources[first.source as usize].label);
            }
            before = Some(first.source);
            let _ = write!(out, "{}", number(first));
            if row.count > 1 {
                let _ = write!(out, "-{}", number(last));
            }
            if let Some(indent) = row.indent {
                let _ = write!(out, "{indent}");
            }
        }
        out.push(']');
        out
    }
}

/// Writes a new text with its pointers.
pub(super) fn write(text: &str, new: &[LineText], segments: &[Segment]) -> String {
    let lines: Vec<&str> = segments
        .iter()
        .map(|segment| match segment {
            Segment::Shown(at) => &text[new[*at].whole.clone()],
            Segment::Pointed { pointer, .. } => pointer,
        })
        .collect();
    lines.join("\n")
}
