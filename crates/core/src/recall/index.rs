//! The index: messages with their words, speakers, days and neighbours.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::date::Day;
use super::postings::{PartId, Postings};
use super::settings::RecallSettings;
use super::vectors::{MessageVectors, WordSpace, WordVectors};
use crate::message::{MillisSinceEpoch, Role};
use crate::text::parts;

/// A message, by its number in the index.
pub(super) type MessageId = u32;

/// A message to be indexed.
#[derive(Debug, Clone, Copy)]
pub struct IndexedMessage<'a> {
    pub session: &'a str,
    pub role: Role,
    /// The name of the speaker, if there is one; a role is no name.
    pub speaker: Option<&'a str>,
    pub time: Option<MillisSinceEpoch>,
    pub text: &'a str,
}

/// An index of messages in memory, which only grows.
#[derive(Debug)]
pub struct RecallIndex {
    pub(super) settings: RecallSettings,
    pub(super) postings: Postings,
    pub(super) entries: Vec<IndexEntry>,
    pub(super) speakers: Vec<Speaker>,
    pub(super) passages: usize,
    /// Whether an assistant speaks: only then do a user's words differ from the others'.
    pub(super) has_roles: bool,
    pub(super) space: Option<WordSpace>,
    pub(super) vectors: MessageVectors,
    by_name: HashMap<String, u32>,
    ends: HashMap<String, End>,
}

/// The facts about a message beside its words.
#[derive(Debug)]
pub(super) struct IndexEntry {
    /// Its parts: one, or several of a long message.
    pub(super) parts: Range<PartId>,
    /// Characters.
    pub(super) size: u32,
    pub(super) role: Role,
    pub(super) before: Option<MessageId>,
    pub(super) behind: Option<MessageId>,
    pub(super) passage: u32,
    pub(super) speaker: Option<u32>,
    pub(super) day: Option<Day>,
    /// Whether it ends as a question.
    pub(super) asks: bool,
}

/// A person who speaks in the messages.
#[derive(Debug)]
pub(super) struct Speaker {
    /// The first word of the name in lower case, by which others call this person.
    pub(super) called: String,
}

/// The end of a session.
#[derive(Debug)]
struct End {
    last: MessageId,
    time: Option<MillisSinceEpoch>,
    /// Messages of the passage that it ends with.
    of_passage: u32,
}

impl RecallIndex {
    /// Makes an empty index; without word vectors it finds messages by words only.
    pub fn new(settings: RecallSettings, words: Option<Arc<dyn WordVectors>>) -> Self {
        Self {
            settings,
            postings: Postings::default(),
            entries: Vec::new(),
            speakers: Vec::new(),
            passages: 0,
            has_roles: false,
            space: words.map(WordSpace::new),
            vectors: MessageVectors::default(),
            by_name: HashMap::new(),
            ends: HashMap::new(),
        }
    }

    /// Adds messages and numbers them in their order, from 0.
    ///
    /// The messages of a session come in its order; sessions may alternate. Until [`Self::embed`] they are found by words only.
    pub fn add<'a>(&mut self, messages: impl IntoIterator<Item = IndexedMessage<'a>>) {
        for message in messages {
            self.push(&message);
        }
    }

    /// Makes the vectors of the added messages.
    ///
    /// Later searches depend on the messages and their order, not on how many calls added them.
    pub fn embed(&mut self) {
        if let Some(space) = &mut self.space {
            self.vectors.grow(&self.postings, space);
        }
    }

    /// Returns how many messages are in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether it has no message.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn push(&mut self, message: &IndexedMessage<'_>) {
        let id = self.entries.len() as MessageId;
        let parts = self.add_parts(message.text);
        let size = u32::try_from(message.text.chars().count()).unwrap_or(u32::MAX);
        let speaker = message.speaker.and_then(|name| self.speaker(name));
        let before = self.ends.get(message.session).map(|end| end.last);
        if let Some(before) = before {
            self.entries[before as usize].behind = Some(id);
        }
        let of_passage = match self.ends.get(message.session) {
            Some(end) if !self.breaks(end, message) => end.of_passage + 1,
            _ => 1,
        };
        let passage = match before {
            Some(before) if of_passage > 1 => self.entries[before as usize].passage,
            _ => {
                self.passages += 1;
                self.passages as u32 - 1
            }
        };
        let asks = message.text.trim_end().ends_with(['?', '？', '؟']);
        let day = message.time.map(Day::of);
        self.has_roles |= message.role == Role::Assistant;
        let role = message.role;
        self.entries.push(IndexEntry {
            parts,
            size,
            role,
            before,
            behind: None,
            passage,
            speaker,
            day,
            asks,
        });
        let end = End { last: id, time: message.time, of_passage };
        if let Some(known) = self.ends.get_mut(message.session) {
            *known = end;
        } else {
            self.ends.insert(message.session.to_owned(), end);
        }
    }

    /// Indexes the parts of a text, up to the words that are looked at.
    fn add_parts(&mut self, text: &str) -> Range<PartId> {
        let first = self.postings.parts() as PartId;
        let mut unread = self.settings.words;
        for part in parts(text, self.settings.part) {
            if unread == 0 && self.postings.parts() as PartId > first {
                break;
            }
            unread = unread.saturating_sub(self.postings.add(part, unread));
        }
        first..self.postings.parts() as PartId
    }

    /// Returns whether a message begins a new passage.
    fn breaks(&self, end: &End, message: &IndexedMessage<'_>) -> bool {
        let silence = i64::from(self.settings.passage_break) * 60_000;
        let silent = match (end.time, message.time) {
            (Some(before), Some(now)) => now.0.saturating_sub(before.0) > silence,
            _ => false,
        };
        silent || end.of_passage >= self.settings.passage_messages
    }

    fn speaker(&mut self, name: &str) -> Option<u32> {
        if let Some(known) = self.by_name.get(name) {
            return Some(*known);
        }
        let called = crate::words(name).next()?;
        let id = self.speakers.len() as u32;
        self.speakers.push(Speaker { called });
        self.by_name.insert(name.to_owned(), id);
        Some(id)
    }
}
