//! The transcript: an append-only list of messages, each hashed and counted once.
//!
//! A call and all its results are one [`Exchange`]; a turn is one assistant message and every message until the next one.

use std::collections::HashMap;
use std::sync::Arc;

use crate::hash::ContentHash;
use crate::message::{Message, MillisSinceEpoch, Role, ToolCall};
use crate::tokens::{MESSAGE_OVERHEAD, Tokenizer};

/// The place of a message in a transcript, counted from 0.
pub type Position = usize;

/// A message with its hash, size and place, computed when it was appended.
#[derive(Debug, Clone)]
pub struct Entry {
    pub message: Arc<Message>,
    pub hash: ContentHash,
    /// Tokens that a model reads of it, overhead included.
    pub tokens: u32,
    /// Turns that have begun, this message included: 0 before the first assistant message.
    pub turn: u32,
    /// The exchange it belongs to, as an index into [`Transcript::exchanges`].
    pub exchange: Option<usize>,
    /// The tokens of all messages up to this one, itself included: a request's size is read, not added up anew.
    tokens_to: u64,
    /// The time of the newest message up to this one that has one.
    newest_time: Option<MillisSinceEpoch>,
}

/// An assistant message that calls tools, with the messages that answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    pub call: Position,
    /// In the order of the transcript; each stands behind `call`.
    pub results: Vec<Position>,
    /// Call ids not yet answered.
    pub open: Vec<Arc<str>>,
}

/// An append-only list of messages.
#[derive(Debug, Clone)]
pub struct Transcript {
    entries: Vec<Entry>,
    exchanges: Vec<Exchange>,
    tokenizer: Tokenizer,
    /// The exchange of each call, by call id; of two calls with one id, the newer.
    called: HashMap<Arc<str>, usize>,
    tokens: u64,
    /// The system messages, and the first message of the user.
    system: Vec<Position>,
    task: Option<Position>,
}

impl Transcript {
    /// Makes an empty transcript whose messages are counted by `tokenizer`.
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self {
            entries: Vec::new(),
            exchanges: Vec::new(),
            tokenizer,
            called: HashMap::new(),
            tokens: 0,
            system: Vec::new(),
            task: None,
        }
    }

    /// Appends `message`, and hashes and counts it.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) -> Position {
        let message = message.into();
        let tokens = self.tokenizer.count_message(&message);
        let hash = ContentHash::of(&message);
        self.push_known(message, hash, tokens)
    }

    /// Appends a message whose hash and tokens are on record from an earlier append.
    pub fn push_known(
        &mut self,
        message: Arc<Message>,
        hash: ContentHash,
        tokens: u32,
    ) -> Position {
        let position = self.entries.len();
        let mut turn = self.entries.last().map_or(0, |last| last.turn);
        let mut exchange = None;
        match message.role {
            Role::Assistant => {
                turn += 1;
                let open: Vec<Arc<str>> = message.calls().map(|call| call.id.clone()).collect();
                if !open.is_empty() {
                    exchange = Some(self.exchanges.len());
                    self.called.extend(open.iter().map(|id| (id.clone(), self.exchanges.len())));
                    self.exchanges.push(Exchange { call: position, results: Vec::new(), open });
                }
            }
            _ => {
                for result in message.results() {
                    // A second answer also belongs to its call: no API accepts it without the call.
                    if let Some(&index) = self.called.get(&result.call_id) {
                        let found = &mut self.exchanges[index];
                        found.open.retain(|id| *id != result.call_id);
                        if found.results.last() != Some(&position) {
                            found.results.push(position);
                        }
                        exchange = exchange.or(Some(index));
                    }
                }
            }
        }
        self.tokens += u64::from(tokens);
        match message.role {
            Role::System => self.system.push(position),
            Role::User => self.task = self.task.or(Some(position)),
            Role::Assistant | Role::Tool => {}
        }
        let newest_time =
            message.time.or_else(|| self.entries.last().and_then(|last| last.newest_time));
        let tokens_to = self.tokens;
        self.entries.push(Entry { message, hash, tokens, turn, exchange, tokens_to, newest_time });
        position
    }

    /// Scales the counts of a transcript that was counted by plain o200k; other counts stay.
    ///
    /// No text is read again: a scaled count is the exact one times the factor.
    #[must_use]
    pub fn calibrated(mut self, factor: f32) -> Self {
        let Tokenizer::O200k { factor: before } = self.tokenizer else { return self };
        let scale = f64::from(factor) / f64::from(before);
        self.tokens = 0;
        for entry in &mut self.entries {
            let text = f64::from(entry.tokens - MESSAGE_OVERHEAD) * scale;
            entry.tokens = text.round() as u32 + MESSAGE_OVERHEAD;
            self.tokens += u64::from(entry.tokens);
            entry.tokens_to = self.tokens;
        }
        self.tokenizer = Tokenizer::O200k { factor };
        self
    }

    /// Returns the first `end` messages as a transcript of their own.
    #[must_use]
    pub fn beginning(&self, end: Position) -> Self {
        let mut beginning = Self::new(self.tokenizer());
        for entry in &self.entries[..end.min(self.entries.len())] {
            beginning.push_known(entry.message.clone(), entry.hash, entry.tokens);
        }
        beginning
    }

    /// Returns the counted and the reported tokens of each request with reported usage.
    pub fn reported(&self) -> Vec<(u32, u64)> {
        let mut counted = 0;
        let mut requests = Vec::new();
        for entry in &self.entries {
            if let Some(usage) = entry.message.usage.filter(|usage| usage.prompt_tokens > 0) {
                requests.push((counted, usage.prompt_tokens));
            }
            counted += entry.tokens;
        }
        requests
    }

    /// Returns all messages, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns all exchanges, by the position of their call.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// Returns the call with the id `call_id` that the message at `position` answers.
    pub(crate) fn call_of(&self, position: Position, call_id: &str) -> Option<&ToolCall> {
        let exchange = &self.exchanges[self.entries[position].exchange?];
        self.entries[exchange.call].message.calls().find(|call| *call.id == *call_id)
    }

    /// Returns the call that the first result of the message at `position` answers.
    pub(crate) fn call_answered(&self, position: Position) -> Option<&ToolCall> {
        let result = self.entries[position].message.results().next()?;
        self.call_of(position, &result.call_id)
    }

    /// Returns the tokenizer that counts the messages.
    pub fn tokenizer(&self) -> Tokenizer {
        self.tokenizer
    }

    /// Returns the sum of all messages' tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns how many turns have begun.
    pub fn turns(&self) -> u32 {
        self.entries.last().map_or(0, |last| last.turn)
    }

    /// Returns the time of the newest message that has one, among those before `end`.
    pub fn time_before(&self, end: Position) -> Option<MillisSinceEpoch> {
        self.entries[..end].last()?.newest_time
    }

    /// Returns the system messages before `end`, and the first message of the user.
    pub(crate) fn head(&self, end: Position) -> impl Iterator<Item = Position> + '_ {
        let system = self.system.iter().copied().take_while(move |at| *at < end);
        system.chain(self.task.filter(|task| *task < end))
    }

    /// Returns the sum of the tokens of the messages before `end`.
    pub fn tokens_before(&self, end: Position) -> u64 {
        self.entries[..end].last().map_or(0, |last| last.tokens_to)
    }

    /// Returns the positions of the answers to requests: assistant messages with a message before them.
    pub fn requests(&self) -> impl Iterator<Item = Position> + '_ {
        self.entries
            .iter()
            .enumerate()
            .filter(|(position, entry)| *position > 0 && entry.message.role == Role::Assistant)
            .map(|(position, _)| position)
    }

    /// Finds the original of a ref by a prefix of its hash.
    ///
    /// Errors: `None` if no message or two different ones have this prefix.
    pub fn find(&self, prefix: &str) -> Option<Position> {
        let mut found: Option<Position> = None;
        for (position, entry) in self.entries.iter().enumerate() {
            if entry.hash.full().starts_with(prefix) {
                match found {
                    Some(first) if self.entries[first].hash != entry.hash => return None,
                    Some(_) => {}
                    None => found = Some(position),
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Block, ToolCall};

    fn calls(ids: &[&str]) -> Message {
        let call = |id: &&str| {
            Block::ToolCall(ToolCall { id: (*id).into(), name: "t".into(), arguments: "{}".into() })
        };
        Message::new(Role::Assistant, ids.iter().map(call).collect())
    }

    #[test]
    fn parallel_calls_and_their_results_are_one_exchange() {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(Message::text(Role::User, "go"));
        transcript.push(calls(&["a", "b"]));
        transcript.push(Message::result("b", "two"));
        transcript.push(Message::result("a", "one"));
        transcript.push(calls(&["c"]));
        assert_eq!(transcript.exchanges()[0].results, [2, 3]);
        assert!(transcript.exchanges()[0].open.is_empty());
        assert_eq!(transcript.exchanges()[1].open.len(), 1);
        let turns: Vec<u32> = transcript.entries().iter().map(|entry| entry.turn).collect();
        assert_eq!(turns, [0, 1, 1, 1, 2]);
        assert_eq!(transcript.requests().collect::<Vec<_>>(), [1, 4]);
    }

    #[test]
    fn sums_before_a_message_follow_the_calibration() {
        let check = |transcript: &Transcript| {
            for end in 0..=transcript.entries().len() {
                let tokens = transcript.entries()[..end].iter().map(|one| u64::from(one.tokens));
                assert_eq!(transcript.tokens_before(end), tokens.sum::<u64>());
            }
        };
        let mut transcript = Transcript::new(Tokenizer::O200k { factor: 1.0 });
        for text in ["a task to begin with", "an answer", "one more question of some length"] {
            transcript.push(Message::text(Role::User, text));
        }
        check(&transcript);
        check(&transcript.beginning(2));
        check(&transcript.calibrated(1.7));
    }

    #[test]
    fn counts_add_up() {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(Message::text(Role::User, "12345678"));
        transcript.push(Message::text(Role::Assistant, "1234"));
        assert_eq!(transcript.tokens(), 2 + 4 + 1 + 4);
    }

    #[test]
    fn originals_are_found_by_a_unique_prefix() {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(Message::text(Role::User, "one"));
        transcript.push(Message::text(Role::User, "two"));
        transcript.push(Message::text(Role::User, "one"));
        let hash = transcript.entries()[0].hash.short();
        assert_eq!(transcript.find(&hash[..8]), Some(0));
        assert_eq!(transcript.find(""), None);
    }
}
