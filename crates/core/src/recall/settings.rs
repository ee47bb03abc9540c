//! Settings of recall.

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
    /// The weight of a word of like meaning beside the word itself; 0 searches for the words themselves alone.
    pub likeness: f32,
    /// The cosine of two words' vectors from which they are alike.
    pub like_from: f32,
    /// The weight of the cosine between the question's vector and the message's; 0 leaves vectors out.
    pub vector: f32,
    /// The share of the score of the message before or behind that a message gets; the better one counts.
    pub neighbour: f32,
    /// The share of the score of the message two places before or behind that a message gets.
    pub second_neighbour: f32,
    /// The share of the best score in its passage that a message gets; a passage is messages without a long break between
    /// them.
    pub passage: f32,
    /// Minutes of silence that end a passage.
    pub passage_break: u32,
    /// The most messages of a passage.
    pub passage_messages: u32,
    /// The weight of a message that was said on a day which the question names, or soon after.
    pub date: f32,
    /// Days after which a date that has passed counts for the e-th part.
    pub date_days: f32,
    /// The share by which a message counts more whose speaker the question names.
    pub speaker: f32,
    /// The share by which a message counts less that ends as a question, since it does not answer one.
    pub question: f32,
    /// Characters of a part of a long message; each part has a score of its own, and the best one counts.
    pub part: usize,
    /// How much less a message counts for the room that it takes, from 0 to 1: the exponent of its size.
    pub size: f32,
    /// Characters up to which the size of a message hardly counts.
    pub size_from: f32,
    /// The share by which the user's messages count more where the question speaks in the first person.
    pub asker: f32,
    /// The share by which the assistant's messages count more where the question asks what the assistant said.
    pub answerer: f32,
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
            part: 1200,
            size: 0.4,
            size_from: 400.0,
            asker: 0.4,
            answerer: 0.2,
            // Chosen: 20 pages; longer output of a tool is found by its beginning.
            words: 10_000,
            limit: 1000,
        }
    }
}
