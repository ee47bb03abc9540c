//! Embeddings over HTTP, as OpenAI and those who follow it speak it: `/embeddings`.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_engine::{ChatUsage, Embedder, Embedding, ModelError};
use plimsoll_wire::Failure;
use serde::{Deserialize, Serialize};

use crate::failure;
use crate::spending::{Ledger, Rates, tokens_of};
use crate::transport::Transport;
use crate::vector;

/// One embedding model of one provider.
#[derive(Debug)]
pub(crate) struct HttpEmbedder {
    pub(crate) model: String,
    /// Its name at the provider.
    pub(crate) own_name: String,
    pub(crate) dimension: usize,
    pub(crate) batch: usize,
    pub(crate) transport: Transport,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) rates: Option<Rates>,
}

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingRow>,
    #[serde(default)]
    usage: EmbeddingUsage,
}

#[derive(Deserialize)]
struct EmbeddingRow {
    index: usize,
    embedding: Vec<f32>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct EmbeddingUsage {
    prompt_tokens: u64,
}

#[async_trait]
impl Embedder for HttpEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, ModelError> {
        // Servers refuse empty texts.
        let (places, asked): (Vec<usize>, Vec<&str>) =
            texts.iter().copied().enumerate().filter(|(_, text)| !text.trim().is_empty()).unzip();
        let nothing = || Embedding { model: self.model.clone(), vector: vec![0.0; self.dimension] };
        let mut found: Vec<Embedding> = texts.iter().map(|_| nothing()).collect();
        let batches = places.chunks(self.batch).zip(asked.chunks(self.batch));
        for (places, asked) in batches {
            for (place, vector) in places.iter().zip(self.batch(asked).await?) {
                found[*place].vector = vector;
            }
        }
        Ok(found)
    }
}

impl HttpEmbedder {
    async fn batch(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError> {
        let bytes = texts.iter().map(|text| text.len() + 1).sum();
        let reservation = self.ledger.reserve(self.rates, tokens_of(bytes), 0.0)?;
        match self.ask(texts).await {
            Ok((vectors, usage)) => {
                reservation.settle(usage);
                Ok(vectors)
            }
            Err(error) => {
                reservation.fail(&error);
                Err(error)
            }
        }
    }

    async fn ask(&self, texts: &[&str]) -> Result<(Vec<Vec<f32>>, ChatUsage), ModelError> {
        let body =
            EmbeddingRequest { model: &self.own_name, input: texts, encoding_format: "float" };
        let body = serde_json::to_vec(&body)
            .map_err(|error| ModelError::Invalid(format!("the texts can't be sent: {error}")))?;
        let provider = &self.transport.provider;
        let answer = self.transport.post("/embeddings", &body).await?.bytes().await?;
        if let Some(told) = Failure::of_body(&answer) {
            return Err(failure::inside(&told, provider));
        }
        let unusable =
            |problem: String| ModelError::Unusable(format!("{}: {problem}", provider.name));
        let answer: EmbeddingResponse = serde_json::from_slice(&answer)
            .map_err(|error| unusable(format!("no embeddings: {error}")))?;
        let mut vectors: Vec<Option<Vec<f32>>> = texts.iter().map(|_| None).collect();
        for row in answer.data {
            if row.embedding.len() != self.dimension {
                let (is, not) = (row.embedding.len(), self.dimension);
                return Err(unusable(format!("a vector has {is} numbers instead of {not}")));
            }
            let place = vectors.get_mut(row.index).filter(|place| place.is_none());
            let place = place.ok_or_else(|| {
                unusable(format!("a vector has the index {}, which is not open", row.index))
            })?;
            let vector = vector::normalised(row.embedding);
            *place =
                Some(vector.ok_or_else(|| unusable("a vector holds what is no number".into()))?);
        }
        let vectors: Option<Vec<Vec<f32>>> = vectors.into_iter().collect();
        let vectors = vectors.ok_or_else(|| unusable("a vector is missing".into()))?;
        Ok((vectors, ChatUsage { input: answer.usage.prompt_tokens, ..ChatUsage::default() }))
    }
}
