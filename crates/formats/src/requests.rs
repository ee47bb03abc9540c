//! Requests: every request that a session reports, with the characters that were added since the one before it.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use plimsoll_core::bill::{AddedContent, Request};
use plimsoll_core::{Block, Message, Role};

use crate::draft::{BranchRequest, RecordedRequest, SessionDraft};

/// The least length of a repeated run in lines and in characters, and the length of the pointer in its place.
const RUN: usize = 3;
const LONG_RUN: usize = 8;
const RUN_CHARACTERS: u64 = 120;
const POINTER_CHARACTERS: u64 = 60;

/// Returns the requests of the main conversation: those that the file reports, else those whose responses have a usage.
pub(crate) fn of_main(
    messages: &[Arc<Message>],
    reported: &[RecordedRequest],
    compacted: &[usize],
) -> Vec<Request> {
    let mut requests = Vec::new();
    if reported.is_empty() {
        let own: Vec<RecordedRequest> =
            messages.iter().enumerate().filter_map(of_message).collect();
        of_thread(messages, &own, compacted, 0, &mut requests);
    } else {
        of_thread(messages, reported, compacted, 0, &mut requests);
    }
    for request in &mut requests {
        let answer = request.message.and_then(|index| messages.get(index));
        if answer.is_none_or(|answer| answer.role != Role::Assistant) {
            request.message = None;
        }
    }
    requests
}

/// Returns the requests whose responses have a usage, from messages alone.
pub fn requests_of(messages: &[Arc<Message>]) -> Vec<Request> {
    of_main(messages, &[], &[])
}

/// Appends the requests of a sub-agent's conversation.
pub(crate) fn push_thread(draft: &SessionDraft, thread: u32, requests: &mut Vec<Request>) {
    let messages: Vec<&Message> = draft.messages.iter().map(|recorded| &recorded.message).collect();
    let compacted: Vec<usize> = draft.compactions.iter().map(|seen| seen.before).collect();
    let from = requests.len();
    of_thread(&messages, &draft.requests, &compacted, thread, requests);
    for request in &mut requests[from..] {
        request.message = None;
    }
}

/// Appends the requests of branches that the user left.
pub(crate) fn push_branches(branches: Vec<BranchRequest>, requests: &mut Vec<Request>) {
    let mut by_line: HashMap<u32, usize> =
        requests.iter().enumerate().map(|(index, request)| (request.source, index)).collect();
    for branch in branches {
        let reported = branch.request;
        by_line.insert(reported.source, requests.len());
        requests.push(Request {
            id: reported.id,
            source: reported.source,
            sent: reported.time,
            model: reported.model,
            usage: reported.usage,
            thinking_tokens: reported.thinking_tokens,
            thread: 1,
            after_user: branch.after_user,
            continues: branch.continues.and_then(|line| by_line.get(&line).copied()),
            compacted: branch.compacted,
            told: reported.told,
            added: branch.said,
            answered: 0,
            message: None,
        });
    }
}

fn of_message((index, message): (usize, &Arc<Message>)) -> Option<RecordedRequest> {
    Some(RecordedRequest {
        before: index,
        source: message.source.unwrap_or(0),
        id: message.id.clone(),
        time: message.time,
        model: message.model.clone(),
        usage: message.usage?,
        ..RecordedRequest::default()
    })
}

fn of_thread<M: Borrow<Message>>(
    messages: &[M],
    reported: &[RecordedRequest],
    compacted: &[usize],
    thread: u32,
    requests: &mut Vec<Request>,
) {
    let mut seen = ShownLines::default();
    let (mut from, mut continues) = (0, None);
    for reported in reported {
        let end = reported.before.min(messages.len()).max(from);
        let is_compacted = compacted.iter().any(|at| (from + 1..=end).contains(at))
            || (from == 0 && continues.is_some() && compacted.contains(&0));
        if is_compacted {
            seen = ShownLines::default();
        }
        let mut said = AddedContent::default();
        let (mut sent, mut after_user) = (None, false);
        for message in &messages[from..end] {
            let message = message.borrow();
            said.add(&seen.read(message));
            sent = message.time.or(sent);
            after_user = message.role == Role::User;
        }
        let answer = messages.get(end).map(Borrow::borrow);
        let answer = answer.filter(|answer| answer.role == Role::Assistant);
        requests.push(Request {
            id: reported.id.clone(),
            source: reported.source,
            sent: sent.or(reported.time),
            model: reported.model.clone(),
            usage: reported.usage,
            thinking_tokens: reported.thinking_tokens,
            thread,
            continues,
            after_user,
            compacted: is_compacted,
            told: reported.told,
            added: said,
            answered: answer.map_or(0, |answer| characters_by_kind(answer).visible()),
            message: Some(end),
        });
        continues = Some(requests.len() - 1);
        from = end;
    }
}

/// Counts the characters of a message by kind, without looking for repeated lines.
pub(crate) fn characters_by_kind(message: &Message) -> AddedContent {
    let mut said = AddedContent { blocks: message.blocks.len() as u32, ..AddedContent::default() };
    for block in &message.blocks {
        match block {
            Block::Text(text) if message.role == Role::System => said.system += characters(text),
            Block::Text(text) => said.text += characters(text),
            Block::ToolCall(call) => {
                said.calls += characters(&call.name) + characters(&call.arguments);
            }
            Block::ToolResult(result) => said.results += characters(&result.text),
            Block::Image(_) | Block::Thinking(_) | Block::Opaque(_) => {}
        }
    }
    said
}

fn characters(text: &str) -> u64 {
    (if text.is_ascii() { text.len() } else { text.chars().count() }) as u64
}

/// Digests of the lines that a conversation has shown.
#[derive(Debug, Default)]
struct ShownLines(HashSet<u64>);

impl ShownLines {
    fn read(&mut self, message: &Message) -> AddedContent {
        let mut said = characters_by_kind(message);
        for result in message.results() {
            self.repeated(&result.text, &mut said);
        }
        let texts = message.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text),
            _ => None,
        });
        self.0.extend(texts.flat_map(|text| text.lines()).filter_map(line_key));
        said
    }

    /// Adds the characters of repeated runs in a result to `said`, and keeps the digests of its other lines.
    fn repeated(&mut self, text: &str, said: &mut AddedContent) {
        let (mut lines, mut length) = (0, 0);
        let mut end = |lines: &mut usize, length: &mut u64| {
            let saved = length.saturating_sub(POINTER_CHARACTERS);
            if *lines >= RUN && *length >= RUN_CHARACTERS {
                said.repeated += saved;
                said.repeated_long += if *lines >= LONG_RUN { saved } else { 0 };
            }
            (*lines, *length) = (0, 0);
        };
        let mut new = Vec::new();
        for line in text.lines() {
            match line_key(line) {
                Some(key) if self.0.contains(&key) => {
                    lines += 1;
                    length += characters(line) + 1;
                }
                Some(key) => {
                    end(&mut lines, &mut length);
                    new.push(key);
                }
                // Blank lines and single brackets neither end a run nor begin one.
                None => length += characters(line) + 1,
            }
        }
        end(&mut lines, &mut length);
        self.0.extend(new);
    }
}

/// Returns a digest of a line without indentation and line number; `None` for a line of fewer than four bytes.
fn line_key(line: &str) -> Option<u64> {
    let line = line.trim();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let line = match rest.strip_prefix(['→', '\t', ':', '|']) {
        Some(behind) if rest.len() < line.len() => behind.trim_start(),
        _ => line,
    };
    if line.len() < 4 {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_runs_are_counted_once_they_are_long_enough() {
        let lines = |from: u32, to: u32| {
            let line = |n| format!("{n}→the {n}th line of a file with words\n");
            (from..to).map(line).collect::<Vec<_>>().concat()
        };
        let mut seen = ShownLines::default();
        let first = seen.read(&Message::result("a", lines(0, 10)));
        assert_eq!((first.repeated, first.repeated_long), (0, 0));
        let again = seen.read(&Message::result("b", lines(0, 5) + &lines(20, 22)));
        assert!(again.repeated > 60 && again.repeated_long == 0, "{again:?}");
        let long = seen.read(&Message::result("c", lines(0, 9)));
        assert_eq!(long.repeated, long.repeated_long);
    }
}
