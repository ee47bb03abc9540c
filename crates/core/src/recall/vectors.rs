//! Vectors of words, from a table, and vectors of messages' parts, the weighted means of their words' vectors.

use std::fmt::Debug;
use std::sync::Arc;

use super::postings::{Postings, WordId, rarity};

/// A table of word vectors.
pub trait WordVectors: Send + Sync + Debug {
    /// Returns how many numbers a vector has; at least 1.
    fn dimension(&self) -> usize;

    /// Writes the vector of a word in lower case into `into`, of any length; zeros for an unknown word.
    fn word(&self, word: &str, into: &mut [f32]);
}

/// The vectors of the words that messages hold.
#[derive(Debug)]
pub(super) struct WordSpace {
    pub(super) source: Arc<dyn WordVectors>,
    pub(super) dimension: usize,
    vectors: Vec<f32>,
    /// The vectors' lengths; 0 for a word without a vector.
    lengths: Vec<f32>,
}

impl WordSpace {
    pub(super) fn new(source: Arc<dyn WordVectors>) -> Self {
        let dimension = source.dimension().max(1);
        Self { source, dimension, vectors: Vec::new(), lengths: Vec::new() }
    }

    /// Looks up the words that are new.
    fn grow(&mut self, postings: &Postings) {
        let mut vector = vec![0.0; self.dimension];
        for word in &postings.words[self.lengths.len()..] {
            self.look_up(&word.text, &mut vector);
            self.lengths.push(length(&vector));
            self.vectors.extend_from_slice(&vector);
        }
    }

    /// Writes the vector of a word of a text; numbers and names with digits have none, since their parts mean nothing.
    pub(super) fn look_up(&self, word: &str, into: &mut [f32]) {
        if word.chars().all(char::is_alphabetic) {
            self.source.word(word, into);
        } else {
            into.fill(0.0);
        }
    }

    fn vector(&self, word: WordId) -> &[f32] {
        let begin = word as usize * self.dimension;
        &self.vectors[begin..begin + self.dimension]
    }

    /// Returns every word whose vector has a cosine above `from` with `vector`, with the cosine.
    pub(super) fn like(&self, vector: &[f32], from: f32) -> Vec<(WordId, f32)> {
        let own = length(vector);
        if own == 0.0 {
            return Vec::new();
        }
        let vectors = self.vectors.chunks_exact(self.dimension).zip(&self.lengths).enumerate();
        vectors
            .filter(|(_, (_, length))| **length > 0.0)
            .map(|(word, (other, length))| (word as WordId, dot(vector, other) / (own * length)))
            .filter(|(_, cosine)| *cosine > from)
            .collect()
    }
}

/// The vectors of messages: the sum of their words' vectors by rarity, scaled to length 1, less the mean, and scaled again.
///
/// Rarity and mean change with every message. They are computed from the first messages up to a boundary that moves by an
/// eighth at a time. So each vector is computed anew only a few times, and the result depends on the messages and their order
/// alone, not on the time of the request.
#[derive(Debug, Default)]
pub(super) struct MessageVectors {
    boundary: usize,
    /// Rarity by word; later words have the rarity `unseen`.
    weights: Vec<f32>,
    unseen: f32,
    mean: Vec<f32>,
    vectors: Vec<f32>,
}

impl MessageVectors {
    /// Makes the vectors of all messages.
    pub(super) fn grow(&mut self, postings: &Postings, space: &mut WordSpace) {
        space.grow(postings);
        let boundary = boundary(postings.parts());
        if boundary != self.boundary {
            self.boundary = boundary;
            self.unseen = rarity(boundary, 0);
            let before = |posting: &super::postings::Posting| (posting.part as usize) < boundary;
            self.weights = postings
                .words
                .iter()
                .map(|word| rarity(boundary, word.postings.partition_point(before)))
                .collect();
            self.mean = vec![0.0; space.dimension];
            self.vectors.clear();
        }
        let made = self.vectors.len() / space.dimension;
        let mut vectors = std::mem::take(&mut self.vectors);
        vectors.resize(postings.parts() * space.dimension, 0.0);
        let new = || made..postings.parts();
        for (message, vector) in new().zip(vectors.chunks_exact_mut(space.dimension).skip(made)) {
            self.sum(postings, space, message, vector);
            if message < boundary {
                add(&mut self.mean, vector, 1.0 / boundary as f32);
            }
        }
        for vector in vectors.chunks_exact_mut(space.dimension).skip(made) {
            self.centre(vector);
        }
        self.vectors = vectors;
    }

    /// Sums the vectors of a message's words, to length 1.
    fn sum(&self, postings: &Postings, space: &WordSpace, message: usize, into: &mut [f32]) {
        into.fill(0.0);
        for (word, count) in postings.counts(message) {
            add(into, space.vector(*word), self.weight(Some(*word)) * *count as f32);
        }
        normalise(into);
    }

    fn weight(&self, word: Option<WordId>) -> f32 {
        word.and_then(|word| self.weights.get(word as usize)).copied().unwrap_or(self.unseen)
    }

    /// Subtracts the mean; a zero vector stays zero.
    fn centre(&self, vector: &mut [f32]) {
        if vector.iter().any(|part| *part != 0.0) {
            add(vector, &self.mean, -1.0);
            normalise(vector);
        }
    }

    /// Returns the vector of a question's words; zeros if none has one.
    pub(super) fn of_question<'a>(
        &self,
        words: impl Iterator<Item = (&'a str, Option<WordId>)>,
        space: &WordSpace,
    ) -> Vec<f32> {
        let mut question = vec![0.0; space.dimension];
        let mut vector = vec![0.0; space.dimension];
        for (text, word) in words {
            space.look_up(text, &mut vector);
            add(&mut question, &vector, self.weight(word));
        }
        normalise(&mut question);
        self.centre(&mut question);
        question
    }

    /// Returns the cosine of every message's vector with `vector`, in order.
    pub(super) fn cosines<'a>(&'a self, vector: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        self.vectors.chunks_exact(vector.len().max(1)).map(|other| dot(vector, other))
    }
}

/// Returns how many of `messages` determine rarity and mean: all of a few, and at least eight ninths of many.
fn boundary(messages: usize) -> usize {
    let mut boundary = 0;
    loop {
        let next = boundary + 1 + boundary / 8;
        if next > messages {
            return boundary;
        }
        boundary = next;
    }
}

/// Lanes of a sum: enough for the widest registers, with one order of addition on every machine.
const LANES: usize = 16;

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_parts, b_parts) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a_parts.remainder().iter().zip(b_parts.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_parts.zip(b_parts) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f32>() + rest
}

fn add(into: &mut [f32], vector: &[f32], weight: f32) {
    for (into, part) in into.iter_mut().zip(vector) {
        *into += part * weight;
    }
}

fn length(vector: &[f32]) -> f32 {
    dot(vector, vector).sqrt()
}

fn normalise(vector: &mut [f32]) {
    let length = length(vector);
    if length > 0.0 {
        for part in vector {
            *part /= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_follows_the_messages() {
        assert_eq!([0, 1, 7, 8, 9, 10].map(boundary), [0, 1, 7, 8, 8, 10]);
        for messages in [20, 100, 1000, 99_999] {
            assert!(boundary(messages) <= messages && boundary(messages) * 9 >= messages * 8 - 9);
        }
    }

    #[test]
    fn sums_of_any_length_are_right() {
        let numbers: Vec<f32> = (0..35).map(|n| n as f32).collect();
        assert!((dot(&numbers, &numbers) - 13_685.0).abs() < 0.1);
        assert!(dot(&[], &[]).abs() < f32::EPSILON);
    }
}
