//! Attempts: calls that a loop repeats because they failed.

use std::collections::HashMap;

use crate::message::{Role, ToolCall};
use crate::names::{self, Key};
use crate::text::is_error_line;
use crate::transcript::{Position, Transcript};

/// Results, grouped by tool and arguments of the call that they answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts {
    of_call: HashMap<Key, Vec<Position>>,
    /// For each message that is a failed attempt: its call, and the number of the attempt from 1.
    failed: Vec<Option<(Key, u32)>>,
}

impl Attempts {
    /// Reads the messages before `end` that it has not read yet.
    pub(crate) fn read(&mut self, transcript: &Transcript, end: Position) {
        for position in self.failed.len()..end {
            let message = &transcript.entries()[position].message;
            let call = transcript
                .call_answered(position)
                .filter(|call| message.role == Role::Tool && !call.arguments.is_empty());
            let attempt = call.map(|call| {
                let key = key_of(call);
                let results = self.of_call.entry(key).or_default();
                results.push(position);
                (key, results.len() as u32)
            });
            let failed = message
                .results()
                .any(|result| result.is_error || result.text.lines().any(is_error_line));
            self.failed.push(attempt.filter(|_| failed));
        }
    }

    /// Returns the number of the attempt at `position` if it failed and `limit` later results answer the same call.
    pub(crate) fn earlier(&self, position: Position, limit: u32) -> Option<u32> {
        let (key, number) = (*self.failed.get(position)?)?;
        let made = self.of_call.get(&key)?.len() as u32;
        (made - number >= limit.max(1)).then_some(number)
    }
}

fn key_of(call: &ToolCall) -> Key {
    names::key(&call.name).rotate_left(1) ^ names::key(&call.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Block, Message};
    use crate::tokens::Tokenizer;

    #[test]
    fn failed_attempts_are_earlier_once_the_call_was_made_often_enough() {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        for (id, text) in [("1", "error: a"), ("2", "fine"), ("3", "error: b")] {
            let call = ToolCall {
                id: id.into(),
                name: "test".into(),
                arguments: r#"{"all":true}"#.into(),
            };
            transcript.push(Message::new(Role::Assistant, vec![Block::ToolCall(call)]));
            transcript.push(Message::result(id, text));
        }
        let mut attempts = Attempts::default();
        attempts.read(&transcript, 6);
        assert_eq!(attempts.earlier(1, 2), Some(1));
        assert_eq!(attempts.earlier(1, 3), None);
        assert_eq!(attempts.earlier(3, 1), None, "it did not fail");
        assert_eq!(attempts.earlier(5, 1), None, "nothing came after it");
    }
}
