//! Extraction: finds the facts in a message that are worth remembering, without a model.
//!
//! The rules prefer precision: the caller can add a fact that they miss, but a wrong fact is repeated for ever. So each rule asks
//! for words with one meaning, questions and suppositions state nothing, and a tool's output yields only facts of a fixed form.

pub mod model_facts;
mod pattern;
mod sentence;

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::memory::MemoryKind;
use crate::message::{Block, Message, Role};
use sentence::{Sentence, sentences};

/// Settings of extraction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Extraction {
    /// Characters of the longest fact; a longer sentence is left alone, for half a statement may say its opposite.
    pub longest: usize,
    /// The most facts of one kind that one message gives.
    pub most_of_a_kind: usize,
    /// Bytes of a text that are read; the rest of a giant result is passed over.
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

/// A fact found in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractedFact {
    /// Decision, entity, task, metric, link or fact.
    pub kind: MemoryKind,
    /// The exact sentence, on one line.
    pub text: String,
    /// The block of the message that holds it.
    pub block: usize,
    /// Bytes of that block's text.
    pub bytes: Range<usize>,
    /// Such as `issue:12`, `host:github.com`, `unit:ms`; sorted.
    pub tags: Vec<String>,
}

impl ExtractedFact {
    /// Returns the identity of a fact: kind and text without case, punctuation and spacing.
    pub fn key(&self) -> (MemoryKind, String) {
        (self.kind, normalised(&self.text))
    }
}

/// Returns the facts in `message` that are worth remembering.
///
/// Shape: in the order of the text, none twice. Tool calls and thinking are not read: a model may ask for or consider things
/// that are not so.
pub fn extract(message: &Message, settings: &Extraction) -> Vec<ExtractedFact> {
    let mut found = Vec::new();
    let mut met = BTreeSet::new();
    for (number, block) in message.blocks.iter().enumerate() {
        let (text, role) = match block {
            Block::Text(text) => (text, message.role),
            Block::ToolResult(result) => (&result.text, Role::Tool),
            _ => continue,
        };
        // System messages are the operator's own prompt, which the model reads anyway.
        if role == Role::System {
            continue;
        }
        extract_text(text, role, settings, |kind, sentence, text, tags| {
            let fact = ExtractedFact { kind, text, block: number, bytes: sentence, tags };
            if met.insert(fact.key()) {
                found.push(fact);
            }
        });
    }
    let mut counts = std::collections::BTreeMap::new();
    found.retain(|fact| {
        let count = counts.entry(fact.kind).or_insert(0_usize);
        *count += 1;
        *count <= settings.most_of_a_kind
    });
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

fn extract_text(
    text: &str,
    role: Role,
    settings: &Extraction,
    mut found: impl FnMut(MemoryKind, Range<usize>, String, Vec<String>),
) {
    for sentence in sentences(text, settings.most_bytes) {
        if sentence.text.chars().nth(settings.longest).is_some()
            || pattern::is_secret(sentence.text)
        {
            continue;
        }
        for (kind, tags) in kinds(&sentence, role) {
            // A link is the address with its title, not the sentence around it.
            let line = if kind == MemoryKind::Link { pattern::link(sentence.text) } else { None };
            let line = line.unwrap_or_else(|| super::quote::line(pattern::unmarked(sentence.text)));
            if line.is_empty() {
                continue;
            }
            found(kind, sentence.bytes.clone(), line, tags);
        }
    }
}

/// Returns the kinds of a sentence, each once; most sentences have none.
fn kinds(sentence: &Sentence<'_>, role: Role) -> Vec<(MemoryKind, Vec<String>)> {
    let text = sentence.text;
    let is_statement = role != Role::Tool && !sentence.in_code;
    let states = is_statement && !pattern::OPEN.is_match(text);
    let mut kinds = Vec::new();
    if states && pattern::DECISION.is_match(text) {
        kinds.push((MemoryKind::Decision, Vec::new()));
    } else if is_statement && pattern::TASK.is_match(text) {
        kinds.push((MemoryKind::Task, Vec::new()));
    } else if states && pattern::is_fact(text, role) {
        kinds.push((MemoryKind::Fact, Vec::new()));
    }
    // Numbers and ids in a statement are its tags, not further facts.
    let entities = pattern::entities(text);
    let units = pattern::metrics(text);
    let hosts = pattern::hosts(text);
    if let Some((_, tags)) = kinds.first_mut() {
        tags.extend(entities.into_iter().chain(units).chain(hosts));
    } else if !sentence.in_code {
        let states = (role == Role::Tool || states) && !pattern::CODE.is_match(text);
        if !entities.is_empty() && states {
            kinds.push((MemoryKind::Entity, entities));
        } else if !units.is_empty() && states {
            kinds.push((MemoryKind::Metric, units));
        }
        if !hosts.is_empty() && (is_statement || pattern::TITLED.is_match(text)) {
            kinds.push((MemoryKind::Link, hosts));
        }
    }
    for (_, tags) in &mut kinds {
        tags.sort();
        tags.dedup();
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemoryKind::{Decision, Entity, Fact, Link, Metric, Task};

    fn check(role: Role, text: &str, expected: &[(MemoryKind, &str)]) {
        let message = match role {
            Role::Tool => Message::result("c", text),
            _ => Message::text(role, text),
        };
        let found = extract(&message, &Extraction::default());
        let found: Vec<(MemoryKind, &str)> =
            found.iter().map(|fact| (fact.kind, &*fact.text)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn decisions_are_those_that_are_stated() {
        for text in [
            "We decided to use Postgres for storage.",
            "I've decided against Redis.",
            "Decision: SQLite first, Postgres later.",
            "We're going with pgvector instead of Qdrant.",
            "We agreed on a monthly release.",
        ] {
            check(Role::User, text, &[(Decision, text)]);
            check(Role::Tool, text, &[]);
        }
        for text in [
            "Have we decided to use Postgres?",
            "If we decided to use Postgres, it would be slower.",
            "We have not decided on a database.",
            "We should decide to use one of them.",
            "```\n# we decided to use this\n```",
        ] {
            check(Role::Assistant, text, &[]);
        }
    }

    #[test]
    fn tasks_are_those_that_are_open() {
        check(
            Role::User,
            "- [ ] write the migration\n- [x] choose a database\nTODO: rotate the key",
            &[(Task, "write the migration"), (Task, "TODO: rotate the key")],
        );
        check(Role::Tool, "fn main() {} // TODO: remove", &[]);
    }

    #[test]
    fn facts_are_what_is_said_of_oneself_and_of_causes() {
        check(
            Role::User,
            "Hello. I prefer Celsius to Fahrenheit. My timezone is Europe/Vienna. What is yours?",
            &[(Fact, "I prefer Celsius to Fahrenheit."), (Fact, "My timezone is Europe/Vienna.")],
        );
        check(
            Role::User,
            "Remember that the demo is on Friday.",
            &[(Fact, "Remember that the demo is on Friday.")],
        );
        let cause = "The root cause is a race between the two writers.";
        check(Role::Assistant, cause, &[(Fact, cause)]);
        check(Role::Assistant, "I prefer the first approach here.", &[]);
    }

    #[test]
    fn entities_have_ids() {
        check(
            Role::Tool,
            "PR #482: add retries to the uploader\ncommit 3f2a9c1d0b7e6a5f4d3c2b1a09f8e7d6c5b4a392\n#482",
            &[
                (Entity, "PR #482: add retries to the uploader"),
                (Entity, "commit 3f2a9c1d0b7e6a5f4d3c2b1a09f8e7d6c5b4a392"),
            ],
        );
        let message = Message::text(Role::User, "The outage is tracked as INC-204 and issue #31.");
        let found = extract(&message, &Extraction::default());
        assert_eq!(found[0].tags, ["issue:31", "key:INC-204"]);
        check(Role::User, "UTF-8 and SHA-256 and GPT-4 are no ids.", &[]);
    }

    #[test]
    fn metrics_have_a_name_a_number_and_a_unit() {
        for text in [
            "Coverage: 85.3%",
            "p90 latency is 17 ms",
            "42 passed, 3 failed",
            "throughput of 1,200 req/s",
        ] {
            check(Role::Tool, text, &[(Metric, text)]);
        }
        check(
            Role::Tool,
            "== 1 failed, 6 passed ==\n12: coverage: 85%\n{\"coverage\": 85%}\nlet coverage = 85%;",
            &[(Metric, "1 failed, 6 passed")],
        );
        for text in ["width: 100%", "sleep 5 s", "it took 3 goes", "latency matters"] {
            check(Role::Tool, text, &[]);
        }
    }

    #[test]
    fn links_are_addresses_with_their_titles() {
        check(
            Role::User,
            "See [the manual](https://docs.example.org/a(b)) and http://localhost:80/x.",
            &[(Link, "the manual: https://docs.example.org/a(b)")],
        );
        check(
            Role::User,
            "Look at https://example.net/a?b=c.",
            &[(Link, "https://example.net/a?b=c")],
        );
        check(Role::Tool, "xmlns=\"http://www.w3.org/2000/svg\" https://example.net/a", &[]);
    }

    #[test]
    fn secrets_are_never_remembered() {
        for text in [
            "Remember that the key is sk-abcdefghijklmnopqrstuvwx",
            "My password is hunter2hunter2",
            "Remember that token=ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "See https://user:word@example.net/a",
        ] {
            check(Role::User, text, &[]);
        }
    }

    #[test]
    fn the_same_is_said_once_and_knows_where_it_stands() {
        let text = "Well. We decided to use  SQLite.\nWE DECIDED to use SQLite!";
        let message = Message::text(Role::User, text);
        let found = extract(&message, &Extraction::default());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "We decided to use SQLite.");
        assert_eq!(&text[found[0].bytes.clone()], "We decided to use  SQLite.");
        assert_ne!(normalised("c++ 3.5 a/b"), normalised("c 35 a b"));
    }

    #[test]
    fn every_setting_changes_what_is_found() {
        let lines = (0..20)
            .map(|n| format!("We decided to use number {n} for that."))
            .collect::<Vec<_>>()
            .join("\n");
        let message = Message::text(Role::User, &*lines);
        let count = |settings: &Extraction| extract(&message, settings).len();
        let base = Extraction::default();
        assert_eq!(count(&base), 8);
        assert_eq!(count(&Extraction { longest: 36, ..base.clone() }), 8);
        assert_eq!(count(&Extraction { longest: 35, ..base.clone() }), 0);
        assert_eq!(count(&Extraction { most_of_a_kind: 20, ..base.clone() }), 20);
        assert_eq!(count(&Extraction { most_bytes: 80, ..base }), 2);
    }
}
