//! Said once: a new result loses the lines that the context already shows, and gets a pointer to where they stand.
//!
//! Nothing is hidden: a pointer names the tool and its argument, or the model's own call, and the lines there. A message gets its
//! form when it is first sent and keeps it, so no cached prefix breaks and no thinking loses the messages that it is bound to. The
//! lines that a pointer names must stay as long as the pointer does, or both change in one step ([`SaidOnce::changed`]).

mod index;
mod label;
mod lines;
mod pointer;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::message::{Block, Message, Role, ToolResult};
use crate::names::Key;
use crate::transcript::{Entry, Position};

use index::{GAP, LineIndex, RepeatedLines};
use label::label;
use lines::{LineText, line_texts};
use pointer::{LEAST_POINTED, LEAST_SAVED, Segment, write};

/// Pointers that a model may have to follow to reach a line.
const LONGEST_CHAIN: u8 = 2;

/// A line of a message; both counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LineAt {
    pub(crate) block: usize,
    pub(crate) line: usize,
}

/// Lines of a message that another message's pointer names.
#[derive(Debug, Clone)]
struct PointerTarget {
    from: Position,
    block: usize,
    lines: Range<usize>,
    /// Whether some of the lines are only pointed to there.
    further: bool,
}

/// All lines of a context, and which message points to which.
#[derive(Debug, Clone, Default)]
pub(crate) struct SaidOnce {
    index: LineIndex,
    /// Labels of calls that wait for their results, by call id.
    calls: HashMap<Arc<str>, Arc<str>>,
    messages: Vec<MessageLines>,
}

/// The lines of a message, its pointers, and the pointers to it.
#[derive(Debug, Clone, Default)]
struct MessageLines {
    lines: Range<usize>,
    points_to: BTreeSet<Position>,
    /// Its lines that are left out with a pointer, by block.
    pointed: Vec<(usize, Range<usize>)>,
    /// Its lines that others point to.
    pointed_at: Vec<PointerTarget>,
}

impl SaidOnce {
    /// Returns how many messages were read.
    pub(crate) fn seen(&self) -> usize {
        self.messages.len()
    }

    /// Returns the lines of the message at `position` that others point to, ascending; only those others for which `stands`.
    ///
    /// `None` where one of them leads further through a pointer of this message, which then must stay as it is.
    pub(crate) fn pointed_at(
        &self,
        position: Position,
        stands: impl Fn(Position) -> bool,
    ) -> Option<Vec<LineAt>> {
        let mut lines = Vec::new();
        for target in &self.messages.get(position)?.pointed_at {
            if !stands(target.from) {
                continue;
            }
            if target.further {
                return None;
            }
            let block = target.block;
            lines.extend(target.lines.clone().map(|line| LineAt { block, line }));
        }
        lines.sort_unstable();
        lines.dedup();
        Some(lines)
    }

    /// Returns the messages that the one at `position` points to.
    pub(crate) fn points_to(&self, position: Position) -> impl Iterator<Item = Position> + '_ {
        self.messages
            .get(position)
            .into_iter()
            .flat_map(|message| message.points_to.iter().copied())
    }

    /// Returns whether a line is left out with a pointer.
    pub(crate) fn is_pointed(&self, position: Position, at: LineAt) -> bool {
        self.messages.get(position).is_some_and(|message| {
            let mut pointed = message.pointed.iter();
            pointed.any(|(block, lines)| *block == at.block && lines.contains(&at.line))
        })
    }

    /// Reads the next message; returns the form in which it is sent, where the context already shows lines of it.
    pub(crate) fn read(&mut self, entry: &Entry) -> Option<Message> {
        let start = self.index.lines.len();
        let mut read = MessageLines::default();
        let message = &entry.message;
        let mut form = None;
        match message.role {
            Role::Tool => form = self.read_results(message, &mut read),
            Role::Assistant => self.read_answer(message),
            Role::System | Role::User => {
                for block in &message.blocks {
                    if let Block::Text(text) = block {
                        self.read_whole(message.role.as_str().into(), text);
                    }
                }
            }
        }
        read.lines = start..self.index.lines.len();
        self.messages.push(read);
        form
    }

    /// Notes that the message at `position` is sent in another form: pointers no longer find the lines that it alone showed.
    pub(crate) fn changed(&mut self, position: Position, shown: &str) {
        let left: HashSet<Key> = line_texts(shown).map(|line| line.key(shown)).collect();
        let Some(message) = self.messages.get(position) else { return };
        for line in &mut self.index.lines[message.lines.clone()] {
            if line.depth != 0 || !left.contains(&line.key) {
                line.depth = GAP;
            }
        }
        for message in &self.messages {
            if message.points_to.contains(&position) {
                for line in &mut self.index.lines[message.lines.clone()] {
                    if line.depth != 0 {
                        line.depth = GAP;
                    }
                }
            }
        }
    }

    fn read_whole(&mut self, label: Arc<str>, text: &Arc<str>) {
        let source = self.index.add_source(label, text.clone(), 0);
        self.index.add_all(source);
    }

    /// Reads a message of the model: it points to nothing, and later results may point to it.
    fn read_answer(&mut self, message: &Message) {
        for block in &message.blocks {
            match block {
                Block::Text(text) => self.read_whole("your message".into(), text),
                Block::ToolCall(call) => {
                    let name = label(call, message);
                    self.calls.insert(call.id.clone(), name.clone());
                    let own: Arc<str> = format!("your {name}").into();
                    for text in label::long_arguments(call) {
                        let source = self.index.add_source(own.clone(), text, 0);
                        self.index.add_inner(source);
                    }
                }
                _ => {}
            }
        }
    }

    fn read_results(&mut self, message: &Message, read: &mut MessageLines) -> Option<Message> {
        message.with_blocks(|at, block| {
            let Block::ToolResult(result) = block else { return None };
            let name = self.calls.get(&result.call_id).cloned();
            let name = name.unwrap_or_else(|| "a result".into());
            let source = self.index.add_source(name, result.text.clone(), at);
            let text = self.read_result(source, at, read)?.into();
            Some(Block::ToolResult(ToolResult { text, ..result.clone() }))
        })
    }

    /// Reads a result; returns it with pointers where that is shorter.
    fn read_result(
        &mut self,
        source: u32,
        block: usize,
        read: &mut MessageLines,
    ) -> Option<String> {
        let text = self.index.sources[source as usize].text.clone();
        let new: Vec<LineText> = line_texts(&text).collect();
        let keys: Vec<Key> = new.iter().map(|line| line.key(&text)).collect();
        let is_long = text.len() > LEAST_POINTED;
        let segments = if is_long { self.index.segments(&text, &new, &keys) } else { Vec::new() };
        let points = segments.iter().any(|segment| matches!(segment, Segment::Pointed { .. }));
        let written = points.then(|| write(&text, &new, &segments));
        let Some(written) = written.filter(|written| written.len() + LEAST_SAVED < text.len())
        else {
            self.index.add_lines(source, &text, new.into_iter().zip(keys));
            return None;
        };
        for segment in segments {
            match segment {
                Segment::Shown(at) => self.index.add(source, &text, &new[at], keys[at], at, 0),
                Segment::Pointed { rows, .. } => {
                    for row in rows {
                        read.pointed.push((block, row.from..row.from + row.count));
                        self.add_target(row, read);
                        for step in 0..row.count {
                            let depth = self.index.lines[row.at + step].depth + 1;
                            let at = row.from + step;
                            let depth = if depth > LONGEST_CHAIN { GAP } else { depth };
                            self.index.add(source, &text, &new[at], keys[at], at, depth);
                        }
                    }
                }
            }
        }
        self.index.add_gap();
        Some(written)
    }

    /// Notes which message a row points to, in that message and in the one that is read.
    fn add_target(&mut self, row: RepeatedLines, read: &mut MessageLines) {
        let holder = self.messages.partition_point(|message| message.lines.end <= row.at);
        let from = self.messages.len();
        // Rows of the message that is read itself have no holder yet.
        let Some(message) = self.messages.get_mut(holder) else { return };
        read.points_to.insert(holder);
        let lines = &self.index.lines[row.at..row.at + row.count];
        let first = lines[0].number as usize - 1;
        message.pointed_at.push(PointerTarget {
            from,
            block: self.index.sources[lines[0].source as usize].block,
            lines: first..first + row.count,
            further: lines.iter().any(|line| line.depth > 0),
        });
    }
}

#[cfg(test)]
mod tests;
