//! The built-in embedder: a static table inside the binary, no network, no download, no warming up.
//!
//! A text's vector is the mean of its tokens' vectors. That knows nothing of word order, and it costs microseconds.

mod table;
mod tokenizer;

use async_trait::async_trait;
use plimsoll_core::recall::WordVectors;
use plimsoll_engine::{Embedder, Embedding, ModelError};

/// The name that is kept with every vector.
const MODEL: &str = "built-in/wordllama-l2-128-int4";

/// The static table of wordllama 0.4 (MIT), cut to 128 dimensions and 4 bits; `scripts/make-embedder.py` makes it.
///
/// Source: the STS mean of such a table was measured as .696, of the whole one of 16 MB as .700.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltInEmbedder;

impl BuiltInEmbedder {
    /// Numbers of a vector.
    pub const DIMENSION: usize = table::DIMENSIONS;

    /// Returns the vector of one text, of length 1; zeros for a text without a token.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; Self::DIMENSION];
        tokenizer::each_token(text, |token| table::add(token, &mut vector));
        let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
        if length > 0.0 {
            for part in &mut vector {
                *part /= length;
            }
        }
        vector
    }

    /// Returns the ids of a text's tokens, as the table's own tokenizer counts them.
    ///
    /// A run of more than 256 characters without a space is cut there, which the original does not do.
    pub fn tokens(&self, text: &str) -> Vec<u16> {
        let mut tokens = Vec::new();
        tokenizer::each_token(text, |token| tokens.push(token));
        tokens
    }
}

impl WordVectors for BuiltInEmbedder {
    fn dimension(&self) -> usize {
        Self::DIMENSION
    }

    fn word(&self, word: &str, into: &mut [f32]) {
        let mut tokens = 0_u16;
        into.fill(0.0);
        tokenizer::each_token(word, |token| {
            table::add(token, into);
            tokens += 1;
        });
        if tokens > 1 {
            for part in into {
                *part /= f32::from(tokens);
            }
        }
    }
}

#[async_trait]
impl Embedder for BuiltInEmbedder {
    fn model(&self) -> &str {
        MODEL
    }

    fn dimension(&self) -> usize {
        Self::DIMENSION
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, ModelError> {
        let embedding =
            |text: &&str| Embedding { model: MODEL.to_owned(), vector: self.vector(text) };
        Ok(texts.iter().map(embedding).collect())
    }
}
