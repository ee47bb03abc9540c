//! The account of an excerpt: which lines of a result it keeps, and why.

use std::fmt;

use serde::Serialize;

use super::ContentKind;
use super::select::{AFTER_ERROR, BEFORE_ERROR};
use crate::message::{Message, ToolCall};
use crate::text::is_error_line;
use crate::transcript::{Position, Transcript};

/// Lines of a shortened message that are sent, by the first reason that holds: start, end, error, structure, names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct KeptLines {
    /// Lines of the original.
    pub lines: usize,
    /// Lines of it that are sent exactly.
    pub kept: usize,
    /// Of them, the lines up to the first gap.
    pub start: usize,
    /// The lines behind the last gap.
    pub end: usize,
    /// Lines that report an error, with those around them.
    pub errors: usize,
    /// Lines that show the structure of what the content is.
    pub structure: usize,
    /// The others, which hold names that stand nowhere else in the context, or to which later messages point.
    pub names: usize,
}

impl KeptLines {
    /// Compares a message as it is sent with its original.
    ///
    /// `None` where the message has no results, or none of their lines was left out.
    pub fn of(transcript: &Transcript, position: Position, sent: &Message) -> Option<Self> {
        let original = &transcript.entries()[position].message;
        Self::compared(original, sent, |id| transcript.call_of(position, id))
    }

    /// `calls` finds the call of a result by its id.
    fn compared<'a>(
        original: &'a Message,
        sent: &Message,
        calls: impl Fn(&str) -> Option<&'a ToolCall>,
    ) -> Option<Self> {
        let mut all = Self::default();
        let mut sent = sent.results();
        for result in original.results() {
            let text = sent.next().map_or("", |sent| &sent.text);
            all.add(ContentKind::of(calls(&result.call_id), &result.text), &result.text, text);
        }
        (all.kept < all.lines).then_some(all)
    }

    fn add(&mut self, content: ContentKind, original: &str, sent: &str) {
        let lines: Vec<&str> = original.lines().collect();
        let mut kept = vec![false; lines.len()];
        // Lines are sent in their order, so each is looked for behind the last one that was found.
        let mut from = 0;
        for line in sent.lines() {
            if let Some(at) = lines[from..].iter().position(|one| *one == line) {
                kept[from + at] = true;
                from += at + 1;
            }
        }
        self.lines += lines.len();
        let start = kept.iter().take_while(|kept| **kept).count();
        let end = kept[start..].iter().rev().take_while(|kept| **kept).count();
        let mut is_near_error = vec![false; lines.len()];
        for at in (0..lines.len()).filter(|at| kept[*at] && is_error_line(lines[*at].trim_end())) {
            let last = (at + AFTER_ERROR).min(lines.len() - 1);
            is_near_error[at.saturating_sub(BEFORE_ERROR)..=last].fill(true);
        }
        let mut is_structure = vec![false; lines.len()];
        for at in content.structure(&lines) {
            is_structure[at] = true;
        }
        for at in (0..lines.len()).filter(|at| kept[*at]) {
            self.kept += 1;
            *match at {
                _ if at < start => &mut self.start,
                _ if at >= lines.len() - end => &mut self.end,
                _ if is_near_error[at] => &mut self.errors,
                _ if is_structure[at] => &mut self.structure,
                _ => &mut self.names,
            } += 1;
        }
    }
}

impl fmt::Display for KeptLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} lines", self.kept, self.lines)?;
        let parts = [
            ("start", self.start),
            ("end", self.end),
            ("errors", self.errors),
            ("structure", self.structure),
            ("names", self.names),
        ];
        let mut before = ": ";
        for (name, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, "{before}{name} {count}")?;
            before = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kept_line_has_one_reason() {
        let mut lines: Vec<String> = (0..60).map(|at| format!("step {at} is done")).collect();
        lines[30] = "ERROR: the quay is closed".to_owned();
        lines[50] = "fn harbour() {}".to_owned();
        let original = Message::result("1", lines.join("\n"));
        let sent: Vec<&str> = [0, 1, 2, 29, 30, 31, 50, 55, 58, 59].map(|at| &*lines[at]).into();
        let sent = Message::result("1", sent.join("\n"));
        let kept = KeptLines::compared(&original, &sent, |_| None).expect("lines are left out");
        assert_eq!(kept.to_string(), "10 of 60 lines: start 3, end 2, errors 3, names 2");
        assert_eq!(KeptLines::compared(&original, &original, |_| None), None);
        let stub = KeptLines::compared(&original, &Message::result("1", "[60 lines]"), |_| None);
        assert_eq!(stub.expect("a stub keeps none").to_string(), "0 of 60 lines");
    }
}
