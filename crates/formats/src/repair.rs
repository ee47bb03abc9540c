//! Repair: puts recorded messages into an order that model interfaces accept.
//!
//! Afterwards the results of every call stand directly behind its message; only calls at the very end may be open. No
//! message is lost.

use std::collections::HashSet;
use std::sync::Arc;

use plimsoll_core::render::NO_RESULT;
use plimsoll_core::{Block, Message, Role, ToolResult};

use crate::draft::RecordedMessage;
use crate::note::{NoteKind, RecordPlace, SessionNote};
use crate::session::Origin;

/// The messages after the repair, and what it changed.
#[derive(Debug)]
pub(crate) struct RepairResult {
    pub(crate) messages: Vec<RecordedMessage>,
    pub(crate) notes: Vec<SessionNote>,
    /// The new index of each message, by its old index.
    moved: Vec<usize>,
}

impl RepairResult {
    /// Returns the new index of the message that stood at `index`; the end stays the end.
    pub(crate) fn moved_to(&self, index: usize) -> usize {
        self.moved.get(index).copied().unwrap_or(self.messages.len())
    }
}

/// Repairs messages in the order in which they were recorded.
pub(crate) fn repair(
    recorded: Vec<RecordedMessage>,
    place: fn(u32) -> RecordPlace,
) -> RepairResult {
    let mut state = RepairState {
        out: Vec::with_capacity(recorded.len()),
        moved: vec![0; recorded.len()],
        notes: Vec::new(),
        place,
        open: Vec::new(),
        caller: None,
        known: HashSet::new(),
        waiting: Vec::new(),
    };
    for (index, recorded) in recorded.into_iter().enumerate() {
        match recorded.message.role {
            Role::Assistant => state.assistant(index, recorded),
            Role::Tool => state.result(index, recorded),
            Role::User | Role::System => state.other(index, recorded),
        }
    }
    // Calls at the very end may still be running; a later message shows that no result will come.
    if !state.waiting.is_empty() {
        state.close();
    }
    RepairResult { messages: state.out, notes: state.notes, moved: state.moved }
}

struct RepairState {
    out: Vec<RecordedMessage>,
    moved: Vec<usize>,
    notes: Vec<SessionNote>,
    place: fn(u32) -> RecordPlace,
    /// Calls of the last assistant message that have no result yet.
    open: Vec<Arc<str>>,
    /// The record of the last assistant message.
    caller: Option<u32>,
    /// The ids of all calls so far.
    known: HashSet<Arc<str>>,
    /// Messages that came while calls were open.
    waiting: Vec<(usize, RecordedMessage)>,
}

impl RepairState {
    fn note(&mut self, record: Option<u32>, kind: NoteKind) {
        self.notes.push(SessionNote { place: (self.place)(record.unwrap_or(0)), kind });
    }

    fn put(&mut self, index: usize, recorded: RecordedMessage) {
        self.moved[index] = self.out.len();
        self.out.push(recorded);
    }

    fn assistant(&mut self, index: usize, recorded: RecordedMessage) {
        self.close();
        for call in recorded.message.calls() {
            self.known.insert(call.id.clone());
            if !self.open.contains(&call.id) {
                self.open.push(call.id.clone());
            }
        }
        self.caller = recorded.message.source;
        self.put(index, recorded);
    }

    fn result(&mut self, index: usize, mut recorded: RecordedMessage) {
        let answered = match &recorded.message.blocks[..] {
            [Block::ToolResult(result)] => self.open.iter().position(|id| *id == result.call_id),
            _ => None,
        };
        let Some(position) = answered else {
            self.orphan(&mut recorded);
            return self.other(index, recorded);
        };
        self.open.remove(position);
        for waiting in 0..self.waiting.len() {
            let (_, waiting) = &mut self.waiting[waiting];
            if !std::mem::replace(&mut waiting.origin.repaired, true) {
                let record = waiting.message.source;
                self.note(record, NoteKind::MovedBehindResult);
            }
        }
        self.put(index, recorded);
        if self.open.is_empty() {
            self.flush();
        }
    }

    fn other(&mut self, index: usize, recorded: RecordedMessage) {
        if self.open.is_empty() {
            self.put(index, recorded);
        } else {
            self.waiting.push((index, recorded));
        }
    }

    /// Puts a result for each open call, and then the messages that waited for it.
    fn close(&mut self) {
        for call_id in std::mem::take(&mut self.open) {
            let mut message = Message::result(call_id.clone(), NO_RESULT);
            message.source = self.caller;
            message.time = self.out.last().and_then(|last| last.message.time);
            self.note(self.caller, NoteKind::UnansweredCall { call_id });
            let origin = Origin { pieces: Vec::new(), repaired: true };
            self.out.push(RecordedMessage { message, origin });
        }
        self.flush();
    }

    fn flush(&mut self) {
        for (index, recorded) in std::mem::take(&mut self.waiting) {
            self.put(index, recorded);
        }
    }

    /// Turns a result without an open call into a user message.
    fn orphan(&mut self, recorded: &mut RecordedMessage) {
        let record = recorded.message.source;
        for block in &mut recorded.message.blocks {
            let Block::ToolResult(ToolResult { call_id, text, .. }) = block else { continue };
            let (kind, what) = if self.known.contains(call_id) {
                let kind = NoteKind::LateResult { call_id: call_id.clone() };
                (kind, "another result of the tool call")
            } else {
                let kind = NoteKind::OrphanResult { call_id: call_id.clone() };
                (kind, "the result of an unknown tool call")
            };
            let text = format!("[{what} {call_id}]\n{text}");
            self.notes.push(SessionNote { place: (self.place)(record.unwrap_or(0)), kind });
            *block = Block::Text(Arc::from(text));
        }
        recorded.message.role = Role::User;
        recorded.origin.repaired = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::ToolCall;

    /// Reads `u` user, `s` system, `a12` assistant that calls 1 and 2, `1` result of 1.
    fn script(script: &str) -> Vec<RecordedMessage> {
        (1..)
            .zip(script.split(' '))
            .map(|(line, word)| {
                let call = |id: char| {
                    let id = Arc::from(id.to_string());
                    Block::ToolCall(ToolCall { id, name: "t".into(), arguments: "{}".into() })
                };
                let mut message = match word.chars().next().unwrap() {
                    'u' => Message::text(Role::User, word),
                    's' => Message::text(Role::System, word),
                    'a' => Message::new(Role::Assistant, word.chars().skip(1).map(call).collect()),
                    _ => Message::result(word, "done"),
                };
                message.source = Some(line);
                RecordedMessage { message, origin: Origin::default() }
            })
            .collect()
    }

    fn check(input: &str, expected: &str, notes: &[&str]) {
        let repaired = repair(script(input), RecordPlace::Line);
        let words: Vec<String> = repaired
            .messages
            .iter()
            .map(|recorded| match recorded.message.role {
                Role::Assistant => {
                    let ids: String = recorded.message.calls().map(|call| &*call.id).collect();
                    format!("a{ids}")
                }
                Role::Tool => {
                    let result = recorded.message.results().next().unwrap();
                    let made = if &*result.text == NO_RESULT { "!" } else { "" };
                    format!("{}{made}", result.call_id)
                }
                _ => recorded.message.shown().split('\n').next().unwrap().replace(' ', "_"),
            })
            .collect();
        assert_eq!(words.join(" "), expected);
        let found: Vec<&str> = repaired.notes.iter().map(|note| note.kind.name()).collect();
        assert_eq!(found, notes);
    }

    #[test]
    fn sound_sessions_stay() {
        check("s u a12 2 1 u a3 3 a", "s u a12 2 1 u a3 3 a", &[]);
        check("u a1", "u a1", &[]);
    }

    #[test]
    fn unanswered_calls_get_a_result() {
        check("u a12 1 a", "u a12 1 2! a", &["calls without a result"]);
        check("u a1 u", "u a1 1! u", &["calls without a result"]);
    }

    #[test]
    fn results_without_a_call_become_user_messages() {
        check("u 9 a", "u [the_result_of_an_unknown_tool_call_9] a", &["results without a call"]);
        check(
            "a1 1 1",
            "a1 1 [another_result_of_the_tool_call_1]",
            &["results of an answered call"],
        );
        check(
            "a1 a 1",
            "a1 1! a [another_result_of_the_tool_call_1]",
            &["calls without a result", "results of an answered call"],
        );
    }

    #[test]
    fn words_between_a_call_and_its_result_wait() {
        check(
            "a12 1 u s 2 a",
            "a12 1 2 u s a",
            &["messages moved behind a result", "messages moved behind a result"],
        );
    }
}
