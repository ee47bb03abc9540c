//! Likeness of a record to a question: by words in common, and by meaning.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::recall::{is_stop_word, stem};
use crate::text::each_word;

/// Settings of likeness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LikenessSettings {
    /// The weight of words in common, beside a cosine of 0 to 1; 0 leaves words out.
    ///
    /// The document has the cosine alone. Chosen: a name in common says as much as a near meaning, for what vectors of
    /// sentences blur first is names.
    pub words: f64,
    /// The weight of words in common with the full record, beside those with its shown level.
    ///
    /// Chosen: a long text has some of the words of many questions.
    pub full: f64,
}

impl Default for LikenessSettings {
    fn default() -> Self {
        Self { words: 1.0, full: 0.6 }
    }
}

/// The stems of records, each record in a slot.
///
/// A slot can be replaced, so that a copy of a changing memory is updated and not made again.
#[derive(Debug, Clone, Default)]
pub struct WordSlots {
    /// By word: its stem, none for stop words. Each word is stemmed once.
    words: HashMap<String, Option<u32>>,
    stems: HashMap<String, u32>,
    /// By stem: the slots that have it, each once, in no order.
    postings: Vec<Vec<u32>>,
    /// By slot: its stems.
    slots: Vec<Vec<u32>>,
}

impl WordSlots {
    /// Replaces the content of `slot` by `texts`.
    pub fn set<'a>(&mut self, slot: usize, texts: impl IntoIterator<Item = &'a str>) {
        self.clear(slot);
        let mut own: Vec<u32> = Vec::new();
        for text in texts {
            each_word(text, |word| match self.words.get(word) {
                Some(known) => own.extend(known),
                None => own.extend(self.learn(word)),
            });
        }
        own.sort_unstable();
        own.dedup();
        for id in &own {
            self.postings[*id as usize].push(slot as u32);
        }
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, Vec::new);
        }
        self.slots[slot] = own;
    }

    /// Stems a new word.
    fn learn(&mut self, word: &str) -> Option<u32> {
        let id = (!is_stop_word(word)).then(|| {
            let next = self.postings.len() as u32;
            let id = *self.stems.entry(stem(word)).or_insert(next);
            if id == next {
                self.postings.push(Vec::new());
            }
            id
        });
        self.words.insert(word.to_owned(), id);
        id
    }

    /// Empties `slot`.
    pub fn clear(&mut self, slot: usize) {
        let own = self.slots.get_mut(slot).map(std::mem::take).unwrap_or_default();
        for id in own {
            let postings = &mut self.postings[id as usize];
            if let Some(at) = postings.iter().position(|other| *other as usize == slot) {
                postings.swap_remove(at);
            }
        }
    }

    /// Returns for each slot the share of the words of `question` that it has, 0 to 1; there is none for slots that were never set.
    ///
    /// A word of n slots weighs 1 / (1 + ln(1 + n)), a word of no slot ½. Chosen over the usual weight of a word, which depends on
    /// the number of slots: in a small memory about one subject, the subject's name would weigh nothing, and words of a question
    /// that no record uses would weigh most.
    pub fn shares(&self, question: &str) -> Vec<f64> {
        // Sorted by stem, so that the sum does not depend on the order of the records.
        let mut asked: BTreeMap<String, Option<u32>> = BTreeMap::new();
        each_word(question, |word| {
            if !is_stop_word(word) {
                let stem = stem(word);
                let known = self.stems.get(&stem).copied();
                asked.insert(stem, known);
            }
        });
        let weight =
            |slots: usize| if slots == 0 { 0.5 } else { 1.0 / (1.0 + (slots as f64).ln_1p()) };
        let mut total = 0.0;
        let mut shares = vec![0.0; self.slots.len()];
        for known in asked.into_values() {
            let slots = known.map_or(&[][..], |stem| &self.postings[stem as usize]);
            let weight = weight(slots.len());
            total += weight;
            for slot in slots {
                shares[*slot as usize] += weight;
            }
        }
        if total > 0.0 {
            for share in &mut shares {
                *share = f64::min(*share / total, 1.0);
            }
        }
        shares
    }
}

/// Returns the likeness of a record to a question: the greater of the likeness by vectors and by words.
///
/// Units: 0 to 1. `cosine` is `None` if one of them has no vector; the shares are those of the shown and of the full text.
pub fn likeness(cosine: Option<f64>, share: f64, full: f64, settings: &LikenessSettings) -> f64 {
    let words = (share * settings.words).max(full * settings.full);
    let likeness = cosine.unwrap_or_default().max(words);
    if likeness.is_nan() { 0.0 } else { likeness.clamp(0.0, 1.0) }
}

/// Returns whether `answer` refers to `shown`: it has half of its words or more, or three of many.
///
/// The document asks for the share of shown records "that the LLM actually references", without a rule for it. This one is
/// chosen, since a model seldom names its sources.
pub fn is_referenced(shown: &str, answer: &str) -> bool {
    let stems = |text: &str| {
        let mut stems = BTreeSet::new();
        each_word(text, |word| {
            if !is_stop_word(word) {
                stems.insert(stem(word));
            }
        });
        stems
    };
    let (shown, answer) = (stems(shown), stems(answer));
    let both = shown.intersection(&answer).count();
    both > 0 && (both * 2 >= shown.len() || both >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(texts: &[&str]) -> WordSlots {
        let mut slots = WordSlots::default();
        for (slot, text) in texts.iter().enumerate() {
            slots.set(slot, [*text]);
        }
        slots
    }

    #[test]
    fn the_rarer_the_word_the_greater_its_share() {
        let known = slots(&["Redis caches pages", "pages of a book", "pages and pages", "nothing"]);
        let shares = known.shares("cached pages in Redis");
        assert!(shares[0] > 0.99, "all of it: {shares:?}");
        assert!(shares[1] < 0.4 && shares[1] > 0.0);
        assert!(shares[3] <= 0.0);
        let half = known.shares("Redis or Memcached")[0];
        assert!((0.2..0.6).contains(&half), "an unknown word is part of the question: {half}");
        assert_eq!(known.shares(""), [0.0; 4]);
    }

    #[test]
    fn a_slot_is_written_anew_and_emptied() {
        let mut known = slots(&["apple", "pear"]);
        known.set(0, ["plum", "plums"]);
        assert_eq!(known.shares("apple"), [0.0; 2]);
        assert!(known.shares("plums")[0] > 0.9);
        known.clear(0);
        known.clear(7);
        assert_eq!(known.shares("plum"), [0.0; 2]);
        // The same as if the others had never been.
        let fresh = slots(&["", "pear"]);
        assert_eq!(known.shares("pear or fig"), fresh.shares("pear or fig"));
    }

    #[test]
    fn an_answer_takes_up_what_it_repeats() {
        let fact = "Redis adds a separate service to manage, monitor and backup";
        assert!(is_referenced(fact, "We would have to monitor Redis as a service of its own."));
        assert!(is_referenced("Tim prefers Celsius", "It is 20 degrees Celsius, as Tim likes it"));
        assert!(!is_referenced(fact, "PostgreSQL is enough."));
        assert!(!is_referenced("", "anything"));
    }

    #[test]
    fn the_greater_of_meaning_and_words_counts_and_the_setting_does() {
        let base = LikenessSettings::default();
        for (cosine, share, expected) in [
            (Some(0.4), 0.3, 0.4),
            (Some(0.1), 0.3, 0.3),
            (None, 0.3, 0.3),
            (Some(-0.5), 0.0, 0.0),
            (Some(f64::NAN), 0.2, 0.2),
            (Some(2.0), 0.2, 1.0),
        ] {
            assert!((likeness(cosine, share, 0.0, &base) - expected).abs() < 1e-12);
        }
        let none = LikenessSettings { words: 0.0, ..base.clone() };
        assert!(likeness(Some(0.1), 0.9, 0.0, &none) < 0.2);
        assert!(likeness(None, 0.1, 0.9, &base) > 0.5);
        assert!(likeness(None, 0.1, 0.9, &LikenessSettings { full: 0.0, ..base }) < 0.2);
    }
}
