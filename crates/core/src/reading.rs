//! Reading: a message's names, runs of words and lines, found once when it is first looked at.

use std::ops::Range;

use crate::message::{Block, Message};
use crate::names;
use crate::visible::{Slot, Visible};

/// A line of a message: of its text, or of a string in a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Bytes within its part, line break included.
    pub(crate) bytes: Range<usize>,
    /// The block that holds it, by index.
    pub(crate) block: usize,
    /// The runs that touch its words, as indices into [`Reading::runs`]; empty where it has no word or the message is too
    /// short for a run.
    pub(crate) runs: Range<usize>,
    /// Whether it can be left out and what remains is still of the same form: a line of JSON arguments with a quote in it
    /// cannot.
    pub(crate) removable: bool,
    pub(crate) has_words: bool,
}

/// A name where it stands in a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named {
    /// As an index into [`Reading::lines`].
    pub(crate) line: u32,
    /// Bytes within the line's part.
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// As an index into [`Reading::names`].
    pub(crate) name: u32,
}

/// What was read of a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    /// Each name once.
    pub(crate) names: Vec<Slot>,
    /// Each run in the order of the text; [`REPEATED`] where it stood before.
    pub(crate) runs: Vec<Slot>,
    pub(crate) lines: Vec<Line>,
    /// Every name in the order of the text; `None` where there are calls, whose arguments have other names when cut.
    pub(crate) named: Option<Vec<Named>>,
}

/// Stands for a run that the same message has before.
pub(crate) const REPEATED: Slot = Slot::MAX;

impl Reading {
    /// Reads all that a model reads of `message`, and makes `visible` know of it.
    pub(crate) fn of(message: &Message, visible: &mut Visible) -> Self {
        let shown = message.shown();
        let mut reading = Self::default();
        visible.begin();
        // Where the last word of each run ends, in bytes of the shown text, to find the runs of a line.
        let mut words: Vec<usize> = Vec::new();
        names::each_word_and_run(
            &shown,
            |end| words.push(end),
            |key, _, _| {
                let (slot, first) = visible.run(key);
                reading.runs.push(if first { slot } else { REPEATED });
            },
        );
        let mut first_word = 0;
        let mut line = |part_start: usize, bytes: Range<usize>, block: usize, removable: bool| {
            let end = part_start + bytes.end;
            let words_before = first_word;
            while first_word < words.len() && words[first_word] <= end {
                first_word += 1;
            }
            let has_words = first_word > words_before;
            // Word w is in the runs w − 7 to w.
            let runs = if has_words {
                let from = (words_before + 1).saturating_sub(names::RUN_WORDS);
                from.min(reading.runs.len())..first_word.min(reading.runs.len())
            } else {
                0..0
            };
            reading.lines.push(Line { bytes, block, runs, removable, has_words });
        };
        for part in parts(message) {
            let mut start = 0;
            for end in breaks(part.text, part.is_json) {
                let removable = !part.is_json || !has_quote(&part.text[start..end]);
                line(part.start, start..end, part.block, removable);
                start = end;
            }
        }
        reading.find_names(message, &shown, visible);
        reading
    }

    fn find_names(&mut self, message: &Message, shown: &str, visible: &mut Visible) {
        if message.calls().next().is_some() {
            names::each_name(shown, |name| {
                let found = visible.name(names::key(name));
                if found.first {
                    self.names.push(found.slot);
                }
            });
            return;
        }
        // No name contains a line break, and one stands between parts, so each line can be read by itself.
        let mut named = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let text = &source(message, line.block)[line.bytes.clone()];
            names::each_name_at(text, |offset, name| {
                let found = visible.name(names::key(name));
                if found.first {
                    self.names.push(found.slot);
                }
                let start = (line.bytes.start + offset) as u32;
                let end = start + name.len() as u32;
                named.push(Named { line: at as u32, start, end, name: found.order });
            });
        }
        self.named = Some(named);
    }

    /// Returns each run once, in ascending order of its place.
    pub(crate) fn run_set(&self) -> Vec<Slot> {
        let mut runs: Vec<Slot> =
            self.runs.iter().copied().filter(|&run| run != REPEATED).collect();
        runs.sort_unstable();
        runs
    }
}

/// Returns the text of a block that has lines.
pub(crate) fn source(message: &Message, block: usize) -> &str {
    match &message.blocks[block] {
        Block::Text(text) => text,
        Block::ToolResult(result) => &result.text,
        Block::ToolCall(call) => &call.arguments,
        _ => "",
    }
}

/// A part of the shown text: a text block, a result, or a call's arguments.
struct Part<'m> {
    /// Where it begins in the shown text.
    start: usize,
    text: &'m str,
    block: usize,
    is_json: bool,
}

/// Follows [`Message::shown`]: texts first, a line break between them, then a line for each call.
fn parts(message: &Message) -> Vec<Part<'_>> {
    const IMAGE: usize = "[image]".len();
    let mut parts = Vec::new();
    let mut at = 0;
    let mut texts = 0;
    let mut advance = |at: &mut usize, length: usize| {
        let start = *at + usize::from(texts > 0);
        texts += 1;
        *at = start + length;
        start
    };
    for (block, content) in message.blocks.iter().enumerate() {
        match content {
            Block::Text(text) => {
                let start = advance(&mut at, text.len());
                parts.push(Part { start, text, block, is_json: false });
            }
            Block::ToolResult(result) => {
                let start = advance(&mut at, result.text.len());
                parts.push(Part { start, text: &result.text, block, is_json: false });
                for _ in &result.images {
                    advance(&mut at, IMAGE);
                }
            }
            Block::Image(_) => {
                advance(&mut at, IMAGE);
            }
            _ => {}
        }
    }
    for (block, content) in message.blocks.iter().enumerate() {
        if let Block::ToolCall(call) = content {
            let start = at + 1 + call.name.len() + 1;
            let is_json = looks_like_json(&call.arguments);
            parts.push(Part { start, text: &call.arguments, block, is_json });
            at = start + call.arguments.len();
        }
    }
    parts
}

/// Tells whether arguments are JSON, by how they begin; what a model wrote may be cut short.
pub(crate) fn looks_like_json(arguments: &str) -> bool {
    arguments.trim_start().starts_with(['{', '['])
}

/// Returns where the lines of a part end; in JSON a line ends behind an escaped line break.
fn breaks(text: &str, is_json: bool) -> Vec<usize> {
    let mut ends = Vec::new();
    if is_json {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at + 1 < bytes.len() {
            if bytes[at] == b'\\' {
                at += 2;
                if bytes[at - 1] == b'n' {
                    ends.push(at);
                }
            } else {
                at += 1;
            }
        }
    } else {
        ends.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    }
    if ends.last() != Some(&text.len()) && !text.is_empty() {
        ends.push(text.len());
    }
    ends
}

/// Tells whether a stretch of JSON has a quote that begins or ends a string.
fn has_quote(json: &str) -> bool {
    let mut escaped = false;
    json.bytes().any(|byte| {
        let quote = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        quote
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Role, ToolCall};

    #[test]
    fn lines_know_the_runs_that_touch_them() {
        let message = Message::result("1", "a b c d\ne f g h\n\ni j k l\n");
        let reading = Reading::of(&message, &mut Visible::default());
        assert_eq!(reading.runs.len(), 5);
        let runs: Vec<_> = reading.lines.iter().map(|line| line.runs.clone()).collect();
        assert_eq!(runs, [0..4, 0..5, 0..0, 1..5]);
    }

    #[test]
    fn arguments_are_cut_at_escaped_line_breaks_without_quotes() {
        let call = ToolCall {
            id: "1".into(),
            name: "write".into(),
            arguments: r#"{"path":"a","content":"one\ntwo\\nthree\nfour"}"#.into(),
        };
        let message =
            Message::new(Role::Assistant, vec![Block::Text("hi".into()), Block::ToolCall(call)]);
        let reading = Reading::of(&message, &mut Visible::default());
        let removable: Vec<bool> = reading.lines.iter().map(|line| line.removable).collect();
        assert_eq!(removable, [true, false, true, false]);
        let Block::ToolCall(call) = &message.blocks[1] else { panic!("a call") };
        assert_eq!(&call.arguments[reading.lines[2].bytes.clone()], r"two\\nthree\n");
    }
}
