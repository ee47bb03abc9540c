//! Words and the parts of messages that hold them.

use foldhash::HashMap;

use super::stem::stem;
use super::stop_words::is_stop_word;
use crate::text::each_word;

/// A word, by its number in [`Postings`].
pub(super) type WordId = u32;

/// A part of a message, by its number in the index.
pub(super) type PartId = u32;

/// A part that holds a word, and how often.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) part: PartId,
    pub(super) count: u32,
}

/// A word, its stem and its parts.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) text: Box<str>,
    pub(super) stem: u32,
    /// In the order of parts.
    pub(super) postings: Vec<Posting>,
}

/// A stem, its words and how many parts hold them.
#[derive(Debug, Default)]
pub(super) struct Stem {
    pub(super) words: Vec<WordId>,
    /// Parts that hold any of its words.
    pub(super) parts: u32,
    last: Option<PartId>,
}

/// The words of all messages.
#[derive(Debug, Default)]
pub(super) struct Postings {
    /// Stop words have no number.
    by_text: HashMap<Box<str>, Option<WordId>>,
    by_stem: HashMap<String, u32>,
    pub(super) words: Vec<Word>,
    pub(super) stems: Vec<Stem>,
    /// For each part, where its words end in `counts`.
    ends: Vec<usize>,
    /// Words and counts, part by part.
    counts: Vec<(WordId, u32)>,
    /// For each part, how many words it has without stop words.
    pub(super) lengths: Vec<u32>,
    total: u64,
}

impl Postings {
    /// Adds the next part, with its first `most` words; returns how many words were read.
    pub(super) fn add(&mut self, text: &str, most: usize) -> usize {
        let part = self.lengths.len() as PartId;
        let begin = self.counts.len();
        let (mut read, mut length) = (0, 0);
        // The text behind the last indexed word is cut off, so that a giant text is not read whole.
        let text = &text[..text.floor_char_boundary(most.saturating_mul(BYTES_A_WORD))];
        each_word(text, |word| {
            read += 1;
            if read > most {
                return;
            }
            if let Some(id) = self.intern(word) {
                length += 1;
                self.counts.push((id, 1));
            }
        });
        let of_part = &mut self.counts[begin..];
        of_part.sort_unstable_by_key(|(id, _)| *id);
        let mut end = begin;
        for at in begin..self.counts.len() {
            if end > begin && self.counts[end - 1].0 == self.counts[at].0 {
                self.counts[end - 1].1 += 1;
            } else {
                self.counts[end] = self.counts[at];
                end += 1;
            }
        }
        self.counts.truncate(end);
        for &(id, count) in &self.counts[begin..] {
            let word = &mut self.words[id as usize];
            word.postings.push(Posting { part, count });
            let stem = &mut self.stems[word.stem as usize];
            if stem.last.replace(part) != Some(part) {
                stem.parts += 1;
            }
        }
        self.ends.push(end);
        self.lengths.push(length);
        self.total += u64::from(length);
        read
    }

    fn intern(&mut self, text: &str) -> Option<WordId> {
        if let Some(known) = self.by_text.get(text) {
            return *known;
        }
        let id = (!is_stop_word(text)).then(|| {
            let id = self.words.len() as WordId;
            let next = self.stems.len() as u32;
            let stem = *self.by_stem.entry(stem(text)).or_insert(next);
            if stem == next {
                self.stems.push(Stem::default());
            }
            self.stems[stem as usize].words.push(id);
            self.words.push(Word { text: text.into(), stem, postings: Vec::new() });
            id
        });
        self.by_text.insert(text.into(), id);
        id
    }

    /// Returns the number of a word, if any part holds it.
    pub(super) fn word(&self, text: &str) -> Option<WordId> {
        self.by_text.get(text).copied().flatten()
    }

    /// Returns the number of the stem of a word, if any part holds a word of it.
    pub(super) fn stem(&self, text: &str) -> Option<u32> {
        self.by_stem.get(&stem(text)).copied()
    }

    pub(super) fn parts(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the words of a part, each once, and how often each occurs.
    pub(super) fn counts(&self, part: usize) -> &[(WordId, u32)] {
        let begin = if part == 0 { 0 } else { self.ends[part - 1] };
        &self.counts[begin..self.ends[part]]
    }

    /// Returns the mean length of a part, at least 1.
    pub(super) fn mean_length(&self) -> f32 {
        (self.total as f64 / self.lengths.len().max(1) as f64).max(1.0) as f32
    }

    /// Returns the rarity of a word that `holding` parts hold: the inverse document frequency of BM25.
    pub(super) fn rarity(&self, holding: usize) -> f32 {
        rarity(self.parts(), holding)
    }
}

/// Bytes of text that are read for each indexed word (chosen: words with their separators are shorter).
const BYTES_A_WORD: usize = 16;

/// The inverse document frequency of BM25, always above 0.
pub(super) fn rarity(messages: usize, holding: usize) -> f32 {
    let (messages, holding) = (messages as f64, holding as f64);
    (1.0 + (messages - holding + 0.5).max(0.5) / (holding + 0.5)).ln() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_by_message_and_stem() {
        let mut postings = Postings::default();
        postings.add("The boats, the boat and a BOAT", 100);
        postings.add("boating in winter", 100);
        let stem = &postings.stems[postings.stem("boats").expect("known") as usize];
        assert_eq!((stem.parts, stem.words.len()), (2, 3));
        let boat = &postings.words[postings.word("boat").expect("known") as usize];
        assert_eq!(boat.postings.iter().map(|p| (p.part, p.count)).collect::<Vec<_>>(), [(0, 2)]);
        assert_eq!(postings.lengths, [3, 2]);
        assert_eq!((postings.word("the"), postings.word("ship")), (None, None));
    }

    #[test]
    fn a_long_message_is_read_up_to_its_limit() {
        let mut postings = Postings::default();
        postings.add("one two three", 2);
        assert!(postings.word("two").is_some() && postings.word("three").is_none());
        postings.add(&"四".repeat(100), 3);
        assert_eq!(postings.lengths, [2, 3]);
    }
}
