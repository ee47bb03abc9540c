//! Extraction: finds what a session says and shows that is worth remembering, without a model.
//!
//! The rules prefer precision: the caller can add a record that they miss, but a wrong one is repeated for ever. Statements
//! come from their author's own words, never from what was pasted or wrapped; facts about the workspace come from outcomes of
//! tools. Every record names the message that it comes from.

mod episode;
pub mod model_facts;
mod own_words;
mod pattern;
mod run;
mod sentence;
mod statement;
mod workspace;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::memory::MemoryKind;
use crate::message::{Block, Message, Role};
use own_words::own_words;
use run::Runs;
use sentence::sentences;

/// Origins of extracted records.
const USER: &str = "user";
const ASSISTANT: &str = "assistant";
const TOOL: &str = "tool";
const SESSION: &str = "session";

/// Settings of extraction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Extraction {
    /// Characters of the longest statement; a longer sentence is left alone, for half a statement may say its opposite.
    pub longest: usize,
    /// The most records of one kind that one message gives.
    pub most_of_a_kind: usize,
    /// Bytes of a text that are read; the rest of a giant message is passed over.
    pub most_bytes: usize,
}

impl Default for Extraction {
    fn default() -> Self {
        Self {
            // Source: `context-strategy.md` 3.1, `facts_text_limit`.
            longest: 500,
            // Chosen: a text with more of a kind is a listing, and a listing is stored as an artefact.
            most_of_a_kind: 8,
            // Chosen: the reading stays within milliseconds.
            most_bytes: 262_144,
        }
    }
}

/// A record found in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractedRecord {
    pub kind: MemoryKind,
    /// On one line: the exact sentence of a statement, else what the outcomes show.
    pub text: String,
    /// The name of a procedure, the pattern of a censor.
    pub name: String,
    /// The reasons of a decision, the steps of a procedure.
    pub points: Vec<String>,
    pub summary: Option<String>,
    /// Such as `preference`, `command`, `issue:12`; sorted.
    pub tags: Vec<String>,
    /// Its author: `user`, `assistant`, `tool`, or `session` for what was put together.
    pub origin: String,
    /// The place of the message that it comes from.
    pub message: usize,
}

impl ExtractedRecord {
    fn new(kind: MemoryKind, text: String, message: usize, origin: &str) -> Self {
        Self {
            kind,
            text,
            name: String::new(),
            points: Vec::new(),
            summary: None,
            tags: Vec::new(),
            origin: origin.to_owned(),
            message,
        }
    }

    /// Returns the identity of a record: kind and text without case, punctuation and spacing.
    pub fn key(&self) -> (MemoryKind, String) {
        (self.kind, normalised(&self.text))
    }
}

/// Returns the records in the messages of a session that are worth remembering.
///
/// Shape: statements in the order of the text, then what tools showed, open tasks and the episode; none twice. System
/// messages are the operator's own prompt, which the model reads anyway. Each record has the tag `workspace:NAME` if the session
/// shows where it works.
pub fn extract(messages: &[&Message], settings: &Extraction) -> Vec<ExtractedRecord> {
    let mut found: Vec<ExtractedRecord> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let mut counts: BTreeMap<MemoryKind, usize> = BTreeMap::new();
        for record in statements(message, at, settings) {
            let count = counts.entry(record.kind).or_default();
            *count += 1;
            if *count <= settings.most_of_a_kind {
                found.push(record);
            }
        }
    }
    let runs = Runs::read(messages);
    found.extend(runs.records());
    found.extend(episode::open_tasks(messages));
    found.extend(episode::episode(messages, &runs));
    let mut met = BTreeSet::new();
    let is_short = |record: &ExtractedRecord| {
        record.kind == MemoryKind::Episode || record.text.chars().nth(settings.longest).is_none()
    };
    found.retain(|one| is_short(one) && !one.text.is_empty() && met.insert(one.key()));
    if let Some(name) = workspace::workspace(messages, runs.origin()) {
        for one in &mut found {
            one.tags.push(format!("workspace:{name}"));
            one.tags.sort();
        }
    }
    found
}

/// Returns the statements of a message in its author's own words.
fn statements(message: &Message, at: usize, settings: &Extraction) -> Vec<ExtractedRecord> {
    let origin = match message.role {
        Role::User => USER,
        Role::Assistant => ASSISTANT,
        Role::Tool | Role::System => return Vec::new(),
    };
    let mut found = Vec::new();
    for block in &message.blocks {
        let Block::Text(text) = block else { continue };
        for range in own_words(text) {
            if range.end > settings.most_bytes {
                break;
            }
            let sentences = sentences(&text[range], usize::MAX);
            for (number, sentence) in sentences.iter().enumerate() {
                let said = sentence.text;
                if pattern::CODE.is_match(said) || pattern::is_secret(said) {
                    continue;
                }
                let text = super::quote::line(pattern::unmarked(said));
                let (kind, tag) = if message.role == Role::User && pattern::TASK.is_match(said) {
                    (MemoryKind::Task, "state:open")
                } else if let Some(found) = statement::statement(&text, message.role) {
                    found
                } else {
                    continue;
                };
                let mut tags = pattern::entities(&text);
                tags.extend(pattern::hosts(&text));
                tags.push(tag.to_owned());
                tags.sort();
                tags.dedup();
                // A reason often stands in the next sentence.
                let reason = sentences.get(number + 1).filter(|_| kind == MemoryKind::Decision);
                let reason = reason.map(|next| next.text).filter(|next| pattern::is_reason(next));
                let points = reason.map(super::quote::line).into_iter().collect();
                found.push(ExtractedRecord {
                    points,
                    tags,
                    ..ExtractedRecord::new(kind, text, at, origin)
                });
            }
        }
    }
    found
}

/// Returns `text` in lower case, its letters and digits only, with single spaces between.
///
/// Signs inside a word stay: `a/b`, `3.5` and `c++` are not `a b`, `35` and `c`.
pub fn normalised(text: &str) -> String {
    let edge = |c: char| !c.is_alphanumeric() && !matches!(c, '+' | '%' | '#' | '/' | '-' | '$');
    let words = text.split_whitespace().map(|word| word.trim_matches(edge));
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests;
