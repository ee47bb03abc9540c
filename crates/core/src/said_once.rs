//! Said once: on arrival, lines that stand in the context already are left out, with a pointer to where they stand.
//!
//! Nothing is hidden: a pointer names the tool and its argument, or the model's own call, and the lines there. A message gets its
//! form when it is first sent and keeps it, so no cached prefix breaks and no thinking loses what it is bound to. What is
//! pointed to must stay as it is for as long as the pointer does, or both change in one step ([`SaidOnce::changed`]).

mod label;
mod lines;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::message::{Block, Message, Role, ToolResult};
use crate::names::Key;
use crate::transcript::{Entry, Position};

use label::label;
use lines::{Indent, LineText, indent_between, is_weak, line_texts};

/// Earlier places of a line that are tried, the newest first.
const CANDIDATES: usize = 12;
/// Bytes that one pointer must stand for, and by how many it must be shorter.
///
/// Chosen; 120 instead of 60 changed the mean work of four agents by at most .006.
const LEAST_POINTED: usize = 60;
const LEAST_SAVED: usize = 20;
/// Bytes by which each piece of a pointer must save more: following it is work for the model, and passages across its
/// ends are cut.
const PRICE_OF_A_PIECE: usize = 40;
/// Bytes of the shortest piece.
const LEAST_PIECE: usize = 64;
/// Pointers that a model may have to follow to reach a line.
const LONGEST_CHAIN: u8 = 2;

/// A line as it stands in the context: shown, or within reach of a pointer there.
#[derive(Debug, Clone)]
struct ContextLine {
    /// The words without indentation and line number; empty in a gap.
    key: Key,
    source: u32,
    /// The number that the tool gave it.
    numbered: Option<u32>,
    /// Its number in its message, from 1.
    number: u32,
    text: LineText,
    /// How many pointers lead to it; [`GAP`] where there is no line.
    depth: u8,
}

const GAP: u8 = u8::MAX;

/// Something that has lines: a result, a text of the model, the arguments of a call.
#[derive(Debug)]
struct LineSource {
    label: Arc<str>,
    text: Arc<str>,
    /// The block of its message that has it.
    block: usize,
}

/// A line of a message; both counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LineAt {
    pub(crate) block: usize,
    pub(crate) line: usize,
}

/// A piece of another message's pointer, where it leads to.
#[derive(Debug, Clone)]
struct PointerTarget {
    from: Position,
    block: usize,
    lines: std::ops::Range<usize>,
    /// Whether some of the lines are only pointed to there.
    further: bool,
}

/// Lines of a new text that stand elsewhere, in a row there too.
#[derive(Debug, Clone, Copy)]
struct RepeatedLines {
    /// The first of them, in the new text.
    from: usize,
    /// The first of them in the context, as an index into [`SaidOnce::lines`].
    at: usize,
    count: usize,
    bytes: usize,
    indent: Option<Indent>,
}

/// A row of lines of a new text: shown, or left out with a pointer.
#[derive(Debug)]
enum Segment {
    Shown(usize),
    Pointed { pointer: String, pieces: Vec<RepeatedLines> },
}

/// All lines of a context, and which message points to which.
#[derive(Debug, Default)]
pub(crate) struct SaidOnce {
    lines: Vec<ContextLine>,
    /// Where a line stands, oldest first.
    places: HashMap<Key, Vec<u32>>,
    sources: Vec<LineSource>,
    /// How many sources have a label, so that each has one of its own.
    labels: HashMap<Arc<str>, u32>,
    /// Labels of calls that wait for their results, by call id.
    calls: HashMap<Arc<str>, Arc<str>>,
    /// For each message, its lines and the messages that it points to.
    messages: Vec<MessageLines>,
}

#[derive(Debug)]
struct MessageLines {
    lines: std::ops::Range<usize>,
    points_to: BTreeSet<Position>,
    /// Its lines that are left out with a pointer, by block.
    pointed: Vec<(usize, std::ops::Range<usize>)>,
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
        for pointed in &self.messages.get(position)?.pointed_at {
            if !stands(pointed.from) {
                continue;
            }
            if pointed.further {
                return None;
            }
            let block = pointed.block;
            lines.extend(pointed.lines.clone().map(|line| LineAt { block, line }));
        }
        lines.sort_unstable();
        lines.dedup();
        Some(lines)
    }

    /// Returns the messages that the one at `position` points to.
    pub(crate) fn points_to(&self, position: Position) -> impl Iterator<Item = Position> + '_ {
        self.messages.get(position).into_iter().flat_map(|seen| seen.points_to.iter().copied())
    }

    /// Tells whether a line is left out with a pointer.
    pub(crate) fn is_pointed(&self, position: Position, at: LineAt) -> bool {
        let seen = self.messages.get(position);
        seen.is_some_and(|seen| {
            seen.pointed.iter().any(|(block, lines)| *block == at.block && lines.contains(&at.line))
        })
    }

    /// Reads the next message; returns the form in which it is sent, where lines of it stand in the context already.
    pub(crate) fn read(&mut self, entry: &Entry) -> Option<Message> {
        let start = self.lines.len();
        let mut points_to = BTreeSet::new();
        let mut pointed = Vec::new();
        let message = &entry.message;
        let form = match message.role {
            Role::Tool => self.read_results(message, &mut points_to, &mut pointed),
            Role::Assistant => {
                self.read_said(message);
                None
            }
            Role::System | Role::User => {
                for block in &message.blocks {
                    if let Block::Text(text) = block {
                        let source = self.source(message.role.as_str().into(), text.clone(), 0);
                        self.add_all(source);
                    }
                }
                None
            }
        };
        self.messages.push(MessageLines {
            lines: start..self.lines.len(),
            points_to,
            pointed,
            pointed_at: Vec::new(),
        });
        form
    }

    /// Takes note that the message at `position` is sent in another form: what it alone showed is pointed to no more.
    pub(crate) fn changed(&mut self, position: Position, shown: &str) {
        let left: std::collections::HashSet<Key> =
            line_texts(shown).map(|line| line.key(shown)).collect();
        let Some(seen) = self.messages.get(position) else { return };
        for line in &mut self.lines[seen.lines.clone()] {
            if line.depth != 0 || !left.contains(&line.key) {
                line.depth = GAP;
            }
        }
        for seen in &self.messages {
            if seen.points_to.contains(&position) {
                for line in &mut self.lines[seen.lines.clone()] {
                    if line.depth != 0 {
                        line.depth = GAP;
                    }
                }
            }
        }
    }

    /// Reads what the model said: it points to nothing, and later results may point to it.
    fn read_said(&mut self, message: &Message) {
        for block in &message.blocks {
            match block {
                Block::Text(text) => {
                    let source = self.source("your message".into(), text.clone(), 0);
                    self.add_all(source);
                }
                Block::ToolCall(call) => {
                    let name = label(call, message);
                    self.calls.insert(call.id.clone(), name.clone());
                    let own: Arc<str> = format!("your {name}").into();
                    for text in label::long_arguments(call) {
                        let source = self.source(own.clone(), text, 0);
                        self.add_inner(source);
                    }
                }
                _ => {}
            }
        }
    }

    fn read_results(
        &mut self,
        message: &Message,
        points_to: &mut BTreeSet<Position>,
        pointed: &mut Vec<(usize, std::ops::Range<usize>)>,
    ) -> Option<Message> {
        let mut changed = false;
        let blocks = message
            .blocks
            .iter()
            .enumerate()
            .map(|(at, block)| {
                let Block::ToolResult(result) = block else { return block.clone() };
                let name = self.calls.get(&result.call_id).cloned();
                let name = name.unwrap_or_else(|| "a result".into());
                let source = self.source(name, result.text.clone(), at);
                match self.read_text(source, points_to, |lines| pointed.push((at, lines))) {
                    Some(text) => {
                        changed = true;
                        Block::ToolResult(ToolResult { text: text.into(), ..result.clone() })
                    }
                    None => block.clone(),
                }
            })
            .collect();
        changed.then(|| Message { blocks, ..message.clone() })
    }

    /// Reads a result; returns it with pointers where that is shorter.
    fn read_text(
        &mut self,
        source: u32,
        points_to: &mut BTreeSet<Position>,
        mut pointed: impl FnMut(std::ops::Range<usize>),
    ) -> Option<String> {
        let text = self.sources[source as usize].text.clone();
        let new: Vec<LineText> = line_texts(&text).collect();
        let keys: Vec<Key> = new.iter().map(|line| line.key(&text)).collect();
        let parts =
            if text.len() > LEAST_POINTED { self.parts(&text, &new, &keys) } else { Vec::new() };
        let points = parts.iter().any(|part| matches!(part, Segment::Pointed { .. }));
        let written = points.then(|| write(&text, &new, &parts));
        let Some(written) = written.filter(|written| written.len() + LEAST_SAVED < text.len())
        else {
            self.add_all(source);
            return None;
        };
        for part in parts {
            match part {
                Segment::Shown(at) => self.add(source, &text, new[at].clone(), at, 0),
                Segment::Pointed { pieces, .. } => {
                    for piece in pieces {
                        pointed(piece.from..piece.from + piece.count);
                        if let Some(holder) = self.message_of(piece.at) {
                            points_to.insert(holder);
                            let lines = &self.lines[piece.at..piece.at + piece.count];
                            let first = lines[0].number as usize - 1;
                            let pointed_at = PointerTarget {
                                from: self.messages.len(),
                                block: self.sources[lines[0].source as usize].block,
                                lines: first..first + piece.count,
                                further: lines.iter().any(|line| line.depth > 0),
                            };
                            self.messages[holder].pointed_at.push(pointed_at);
                        }
                        for step in 0..piece.count {
                            let depth = self.lines[piece.at + step].depth + 1;
                            let at = piece.from + step;
                            let depth = if depth > LONGEST_CHAIN { GAP } else { depth };
                            self.add(source, &text, new[at].clone(), at, depth);
                        }
                    }
                }
            }
        }
        self.gap();
        Some(written)
    }

    /// Cuts a new text into rows that are shown and rows that are pointed to.
    fn parts(&self, text: &str, new: &[LineText], keys: &[Key]) -> Vec<Segment> {
        let mut parts = Vec::new();
        let mut row: Vec<RepeatedLines> = Vec::new();
        let mut at = 0;
        while at < new.len() {
            let found =
                if is_weak(new[at].words(text)) { None } else { self.longest(text, new, keys, at) };
            if let Some(piece) = found.filter(|piece| piece.bytes >= LEAST_PIECE) {
                at += piece.count;
                row.push(piece);
            } else {
                self.end_row(new, &mut row, &mut parts);
                parts.push(Segment::Shown(at));
                at += 1;
            }
        }
        self.end_row(new, &mut row, &mut parts);
        parts
    }

    /// Ends a row of pieces: it becomes a pointer if that saves enough, else its lines are shown.
    fn end_row(&self, new: &[LineText], row: &mut Vec<RepeatedLines>, parts: &mut Vec<Segment>) {
        let pieces = std::mem::take(row);
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return };
        let lines = first.from..last.from + last.count;
        let bytes: usize = new[lines.clone()].iter().map(|line| line.whole.len() + 1).sum();
        let pointer = self.pointer(&pieces, new);
        let price = LEAST_SAVED + PRICE_OF_A_PIECE * pieces.len() + pointer.len() + 1;
        if bytes >= LEAST_POINTED && bytes >= price {
            parts.push(Segment::Pointed { pointer, pieces });
        } else {
            parts.extend(lines.map(Segment::Shown));
        }
    }

    /// Finds the longest row of lines in the context that is the same as that from `from` on.
    fn longest(
        &self,
        text: &str,
        new: &[LineText],
        keys: &[Key],
        from: usize,
    ) -> Option<RepeatedLines> {
        let mut best: Option<RepeatedLines> = None;
        for &at in self.places.get(&keys[from])?.iter().rev().take(CANDIDATES) {
            let piece = self.row(text, new, keys, from, at as usize);
            if piece.bytes > best.map_or(0, |best| best.bytes) {
                best = Some(piece);
            }
        }
        best
    }

    fn row(
        &self,
        text: &str,
        new: &[LineText],
        keys: &[Key],
        from: usize,
        at: usize,
    ) -> RepeatedLines {
        let mut piece = RepeatedLines { from, at, count: 0, bytes: 0, indent: None };
        let source = self.lines[at].source;
        let old_text = &self.sources[source as usize].text;
        let (mut same_numbers, mut in_order) = (true, true);
        for (line, key) in new[from..].iter().zip(&keys[from..]) {
            let Some(old) = self.lines.get(at + piece.count) else { break };
            let alike = old.depth != GAP
                && old.source == source
                && old.key == *key
                // A range is one of numbers that the tool wrote, or one of places.
                && old.numbered.is_some() == self.lines[at].numbered.is_some()
                && old.text.words(old_text) == line.words(text);
            if !alike {
                break;
            }
            // Numbers that a tool wrote must be those of the original or count on, so that they can be told from the pointer.
            match (line.numbered, new[from].numbered) {
                (Some(number), Some(first)) => {
                    same_numbers &= old.numbered == Some(number);
                    in_order &= number == first.wrapping_add(piece.count as u32);
                    if !same_numbers && !in_order {
                        break;
                    }
                }
                (None, None) => {}
                _ => break,
            }
            if !line.words(text).is_empty() {
                let now = indent_between(line.indent(text), old.text.indent(old_text));
                match (now, piece.indent) {
                    (None, _) => break,
                    (Some(now), Some(before)) if now != before => break,
                    (now, _) => piece.indent = now,
                }
            }
            piece.bytes += line.words(text).len() + line.indent(text).len() + 1;
            piece.count += 1;
        }
        piece
    }

    /// Writes the pointer that stands for a row of pieces.
    fn pointer(&self, pieces: &[RepeatedLines], new: &[LineText]) -> String {
        use std::fmt::Write as _;
        let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
        let end = last.from + last.count - 1;
        let mut out = match (new[first.from].numbered, new[end].numbered) {
            (Some(from), Some(to)) => format!("[{from}-{to}: as above in "),
            _ if end == first.from => "[1 line as above in ".to_owned(),
            _ => format!("[{} lines as above in ", end + 1 - first.from),
        };
        let mut before = None;
        for piece in pieces {
            let lines = (&self.lines[piece.at], &self.lines[piece.at + piece.count - 1]);
            let number = |line: &ContextLine| line.numbered.unwrap_or(line.number);
            match before {
                Some(source) if source == lines.0.source => out.push_str(", "),
                Some(_) => {
                    let _ = write!(out, "; {} ", self.sources[lines.0.source as usize].label);
                }
                None => {
                    let _ = write!(out, "{} ", self.sources[lines.0.source as usize].label);
                }
            }
            before = Some(lines.0.source);
            let _ = if piece.count > 1 {
                write!(out, "{}-{}", number(lines.0), number(lines.1))
            } else {
                write!(out, "{}", number(lines.0))
            };
            if let Some(indent) = piece.indent {
                let _ = write!(out, "{indent}");
            }
        }
        out.push(']');
        out
    }

    fn message_of(&self, line: usize) -> Option<Position> {
        let found = self.messages.partition_point(|seen| seen.lines.end <= line);
        (found < self.messages.len()).then_some(found)
    }

    /// Adds a source under a label that no other has.
    fn source(&mut self, label: Arc<str>, text: Arc<str>, block: usize) -> u32 {
        let count = self.labels.entry(label.clone()).or_default();
        *count += 1;
        let label = if *count == 1 { label } else { format!("{label} #{count}").into() };
        self.sources.push(LineSource { label, text, block });
        (self.sources.len() - 1) as u32
    }

    fn add_all(&mut self, source: u32) {
        let text = self.sources[source as usize].text.clone();
        for (at, line) in line_texts(&text).enumerate() {
            self.add(source, &text, line, at, 0);
        }
        self.gap();
    }

    /// Adds the lines of an argument but the first and the last, which share theirs with the JSON around them, and those that
    /// are written there in another way.
    fn add_inner(&mut self, source: u32) {
        let text = self.sources[source as usize].text.clone();
        let lines: Vec<LineText> = line_texts(&text).collect();
        for (at, line) in lines.iter().enumerate().take(lines.len().saturating_sub(1)).skip(1) {
            if text[line.whole.clone()].contains('\\') {
                self.gap();
            } else {
                self.add(source, &text, line.clone(), at, 0);
            }
        }
        self.gap();
    }

    fn add(&mut self, source: u32, text: &str, line: LineText, at: usize, depth: u8) {
        let key = line.key(text);
        if depth != GAP && !is_weak(line.words(text)) {
            self.places.entry(key).or_default().push(self.lines.len() as u32);
        }
        let (numbered, number) = (line.numbered, at as u32 + 1);
        self.lines.push(ContextLine { key, source, numbered, number, text: line, depth });
    }

    fn gap(&mut self) {
        let text = LineText { whole: 0..0, words: 0..0, numbered: None };
        let source = u32::MAX;
        self.lines.push(ContextLine {
            key: 0,
            source,
            numbered: None,
            number: 0,
            text,
            depth: GAP,
        });
    }
}

fn write(text: &str, new: &[LineText], parts: &[Segment]) -> String {
    let lines: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Segment::Shown(at) => &text[new[*at].whole.clone()],
            Segment::Pointed { pointer, .. } => pointer,
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests;
