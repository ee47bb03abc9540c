//! What recall is tuned by.

use serde::{Deserialize, Serialize};

/// Weights and limits of recall.
///
/// Weights of words, vectors and dates are in the unit of an inverse document frequency: the natural logarithm of how many
/// messages there are for one that holds a word. The values stand on plateaus measured on recorded dialogues, each dialogue
/// checked with what was chosen on the others (`docs/recall.md`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecallSettings {
    /// How slowly the second and third occurrence of a word add less than the first: `k1` of BM25.
    pub saturation: f32,
    /// How much a long message's words count less, from 0 to 1: `b` of BM25.
    pub length: f32,
    /// What a word of like meaning counts beside the word itself; 0 asks for the words themselves alone.
    pub likeness: f32,
    /// The cosine of two words' vectors from which they are alike.
    pub like_from: f32,
    /// What the cosine of the question's vector and the message's counts; 0 leaves it out.
    pub vector: f32,
    /// What a message gets of the score of the one before or behind it, the better one.
    pub neighbour: f32,
    /// The same of the one but next.
    pub second_neighbour: f32,
    /// What a message gets of the best score of its passage: the messages said without a long break between them.
    pub passage: f32,
    /// Minutes of silence that end a passage.
    pub passage_break: u32,
    /// Messages of the longest passage.
    pub passage_messages: u32,
    /// What a message counts more that was said on a day which the question names.
    pub date: f32,
    /// Days after which a date that has passed counts for the e-th part.
    pub date_days: f32,
    /// By which part more a message counts whose speaker the question names, if it names one.
    pub speaker: f32,
    /// By which part less a message counts that ends as a question: it asks for what is sought.
    pub question: f32,
    /// Words of a message that are looked at; the rest of a longer one is not found.
    pub words: usize,
    /// The most messages that are ranked.
    pub limit: usize,
}

impl Default for RecallSettings {
    fn default() -> Self {
        Self {
            saturation: 2.0,
            length: 0.75,
            likeness: 1.0,
            like_from: 0.3,
            vector: 3.3,
            neighbour: 0.55,
            second_neighbour: 0.45,
            passage: 0.3,
            // Chosen: between the minutes of one talk and the hours until the next.
            passage_break: 60,
            passage_messages: 50,
            date: 2.7,
            date_days: 7.0,
            speaker: 1.0,
            question: 0.15,
            // Chosen: 20 pages; what a tool printed beyond it is found by its beginning.
            words: 10_000,
            limit: 1000,
        }
    }
}
