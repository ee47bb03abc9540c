//! Notes: the records of a file that a reader skipped or repaired.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A place in a session file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordPlace {
    /// A line of a JSON Lines file.
    Line(u32),
    /// An element of a JSON document's list of messages.
    Element(u32),
}

impl RecordPlace {
    /// Returns the number alone.
    pub fn number(self) -> u32 {
        match self {
            Self::Line(number) | Self::Element(number) => number,
        }
    }
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Element(number) => write!(f, "message {number}"),
        }
    }
}

/// A record that was skipped or repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionNote {
    pub place: RecordPlace,
    pub kind: NoteKind,
}

/// The reason for a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteKind {
    /// The record could not be read and was skipped.
    Skipped { why: String },
    /// The record repeats the id of an earlier one and was skipped.
    Duplicate { id: String },
    /// A result of an unknown call became a user message.
    OrphanResult { call_id: Arc<str> },
    /// A second or late result of a call became a user message.
    LateResult { call_id: Arc<str> },
    /// A call has no result; a result that says so was put behind it.
    UnansweredCall { call_id: Arc<str> },
    /// A message between a call and its result was moved behind the result.
    MovedBehindResult,
    /// The file lacks the parent of the entry; the context begins with the entry.
    MissingParent { id: String },
    /// The entry is its own ancestor; the context begins with the entry.
    Cycle { id: String },
    /// The file holds further sessions; [`crate::ReadOptions::part`] reads them.
    FurtherSessions { count: usize },
}

impl NoteKind {
    /// Returns the name under which notes of this kind are counted.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Skipped { .. } => "skipped records",
            Self::Duplicate { .. } => "repeated records",
            Self::OrphanResult { .. } => "results without a call",
            Self::LateResult { .. } => "results of an answered call",
            Self::UnansweredCall { .. } => "calls without a result",
            Self::MovedBehindResult => "messages moved behind a result",
            Self::MissingParent { .. } => "missing parents",
            Self::Cycle { .. } => "cycles",
            Self::FurtherSessions { .. } => "further sessions",
        }
    }
}

impl SessionNote {
    /// Counts notes by the name of their kind.
    pub fn count(notes: &[Self]) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for note in notes {
            *counts.entry(note.kind.name()).or_default() += 1;
        }
        counts
    }
}

impl fmt::Display for SessionNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        match &self.kind {
            NoteKind::Skipped { why } => write!(f, "skipped, {why}"),
            NoteKind::Duplicate { id } => write!(f, "skipped, repeats the record {id}"),
            NoteKind::OrphanResult { call_id } => {
                write!(f, "result of the unknown call {call_id}, kept as a user message")
            }
            NoteKind::LateResult { call_id } => {
                write!(f, "another result of the call {call_id}, kept as a user message")
            }
            NoteKind::UnansweredCall { call_id } => {
                write!(f, "call {call_id} has no result, put one that says so")
            }
            NoteKind::MovedBehindResult => f.write_str("moved behind the result that follows it"),
            NoteKind::MissingParent { id } => {
                write!(f, "its parent {id} is missing, the context begins here")
            }
            NoteKind::Cycle { id } => {
                write!(f, "entry {id} is its own ancestor, the context begins here")
            }
            NoteKind::FurtherSessions { count } => {
                write!(
                    f,
                    "one session is read, {count} more are in the file: `FILE#1`, `FILE#2`, …"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_one_line_and_counted_by_kind() {
        let skipped = |line| SessionNote {
            place: RecordPlace::Line(line),
            kind: NoteKind::Skipped { why: "not UTF-8".to_owned() },
        };
        let notes = [
            skipped(3),
            skipped(9),
            SessionNote { place: RecordPlace::Element(2), kind: NoteKind::MovedBehindResult },
        ];
        assert_eq!(notes[0].to_string(), "line 3: skipped, not UTF-8");
        assert_eq!(SessionNote::count(&notes)["skipped records"], 2);
    }
}
