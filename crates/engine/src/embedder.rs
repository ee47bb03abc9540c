//! The embedder port: texts in, vectors out.

use async_trait::async_trait;

use crate::model_error::ModelError;
use crate::search::Embedding;

/// Turns texts to vectors whose cosine says how alike their meanings are.
#[async_trait]
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// Returns the name that is kept with every vector; two embedders of one name give the same vectors.
    fn model(&self) -> &str;

    /// Returns how many numbers a vector has.
    fn dimension(&self) -> usize;

    /// Returns a vector of length 1 for each text, in the order of the texts.
    ///
    /// An empty text, or one without any known word, has a vector of zeros: it is like nothing. Any number of texts is taken;
    /// an embedder splits them into the batches that it can do. Errors: all or nothing.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, ModelError>;
}
