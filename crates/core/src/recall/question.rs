//! The question: its words, and the speakers and dates that it names.

use super::date::{Period, periods};
use super::index::RecallIndex;
use super::postings::WordId;
use super::stop_words::is_stop_word;
use crate::message::Role;

/// The most words of a question that are searched, the rarest first (chosen: more than a question has, and few enough that a
/// whole page as a question takes no longer).
const MOST_TERMS: usize = 64;

/// A word of a question.
#[derive(Debug)]
pub(super) struct Term {
    /// In lower case.
    pub(super) text: String,
    pub(super) word: Option<WordId>,
    pub(super) stem: Option<u32>,
}

/// A question as the index reads it.
#[derive(Debug)]
pub(super) struct Question {
    /// Each stem once, at most [`MOST_TERMS`].
    pub(super) terms: Vec<Term>,
    /// The name of the speakers that the question names, if it is one name.
    called: Option<String>,
    pub(super) periods: Vec<Period>,
    pub(super) asks_about: Option<Role>,
}

impl Question {
    /// Reads a question.
    ///
    /// The names of speakers are no terms: people seldom name themselves in their messages.
    pub(super) fn read(text: &str, index: &RecallIndex) -> Self {
        let mut called: Vec<String> = Vec::new();
        let mut words: Vec<String> = Vec::new();
        for (at, (written, word)) in written(text).enumerate() {
            let capital = at > 0 && written.starts_with(char::is_uppercase);
            let names = (capital || !is_stop_word(&word))
                && index.speakers.iter().any(|speaker| speaker.called == word);
            let list = if names { &mut called } else { &mut words };
            if !list.contains(&word) {
                list.push(word);
            }
        }
        words.retain(|word| !is_stop_word(word));
        if words.is_empty() {
            // A question of a name alone searches for the name as a word too.
            words.clone_from(&called);
        }
        let mut terms: Vec<Term> = Vec::new();
        for text in words {
            let (word, stem) = (index.postings.word(&text), index.postings.stem(&text));
            if stem.is_none() || terms.iter().all(|term| term.stem != stem) {
                terms.push(Term { text, word, stem });
            }
        }
        if terms.len() > MOST_TERMS {
            let parts = |stem: u32| index.postings.stems[stem as usize].parts;
            terms.sort_by_key(|term| term.stem.map_or(u32::MAX, parts));
            terms.truncate(MOST_TERMS);
        }
        let called = called.pop().filter(|_| called.is_empty());
        Self { terms, called, periods: periods(text), asks_about: asks_about(text) }
    }

    /// Returns for each speaker whether the question names them, if it names one.
    pub(super) fn named(&self, index: &RecallIndex) -> Option<Vec<bool>> {
        let called = self.called.as_ref()?;
        Some(index.speakers.iter().map(|speaker| speaker.called == *called).collect())
    }
}

/// Words of the first person.
const OWN: &[&str] = &["i", "my", "me", "mine", "we", "our", "us"];
/// What an assistant does in an answer, beside verbs in the past tense.
const ANSWERS: &[&str] = &[
    "said",
    "told",
    "gave",
    "wrote",
    "advice",
    "answer",
    "answers",
    "recommendation",
    "recommendations",
    "suggestion",
    "suggestions",
    "explanation",
    "proposal",
];

/// Returns whose words a question asks for: the assistant's (`did you recommend`, `your advice`), or the user's own.
fn asks_about(text: &str) -> Option<Role> {
    let words: Vec<String> = crate::words(text).collect();
    let of_assistant = words.windows(3).any(|three| match [&*three[0], &*three[1], &*three[2]] {
        ["did" | "have", "you", _] => true,
        [_, "you", verb] => verb.ends_with("ed") || ANSWERS.contains(&verb),
        [_, "your", noun] => ANSWERS.contains(&noun),
        _ => false,
    });
    if of_assistant {
        return Some(Role::Assistant);
    }
    words.iter().any(|word| OWN.contains(&&**word)).then_some(Role::User)
}

/// Returns the words of a text, as written and in lower case.
fn written(text: &str) -> impl Iterator<Item = (&str, String)> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.flat_map(|part| crate::words(part).map(move |word| (part, word)))
}
