//! A transformer on this machine: a model such as `MiniLM` in ONNX, run by the onnxruntime library.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use ort::session::{Session, SessionInputValue};
use ort::value::Tensor;
use plimsoll_engine::{Embedder, Embedding, ModelError};
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

use crate::config::EmbedderConfig;
use crate::vector;

/// The length of text that models of this class are trained on; the rest of a longer text is ignored.
const LONGEST: usize = 256;

/// An open model.
#[derive(Debug)]
pub(crate) struct OnnxEmbedder {
    name: String,
    dimension: usize,
    batch: usize,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    session: Session,
    tokenizer: Tokenizer,
}

impl OnnxEmbedder {
    /// Opens `model.onnx` and `tokenizer.json` in `folder`, and runs the model once to learn its dimension.
    ///
    /// Errors: [`ModelError::Invalid`] if a file, or the library of the configuration, can't be used.
    pub(crate) fn open(
        name: &str,
        folder: &Path,
        config: &EmbedderConfig,
    ) -> Result<Self, ModelError> {
        let library = config.library.as_ref().ok_or_else(|| {
            ModelError::Invalid(format!("the embedder `{name}` is configured without `library`"))
        })?;
        let invalid = |what: &str, error: &dyn std::fmt::Display| {
            ModelError::Invalid(format!(
                "the {what} of the embedder `{name}` can't be used: {error}"
            ))
        };
        let environment =
            ort::init_from(library).map_err(|error| invalid("library", &error))?.build();
        let environment = environment.map_err(|error| invalid("library", &error))?;
        let session = Session::builder(&environment)
            .and_then(|mut builder| builder.commit_from_file(folder.join("model.onnx")))
            .map_err(|error| invalid("model", &error))?;
        let mut tokenizer = Tokenizer::from_file(folder.join("tokenizer.json"))
            .map_err(|error| invalid("tokenizer", &error))?;
        let truncation = TruncationParams { max_length: LONGEST, ..TruncationParams::default() };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(|error| invalid("tokenizer", &error))?
            .with_padding(Some(PaddingParams::default()));
        let mut inner = Inner { session, tokenizer };
        let dimension = inner.embed(&["a".to_owned()])?.first().map_or(0, Vec::len);
        if config.dimension.is_some_and(|configured| configured != dimension) {
            return Err(invalid("dimension", &format!("its vectors have {dimension} numbers")));
        }
        let inner = Arc::new(Mutex::new(inner));
        Ok(Self { name: name.to_owned(), dimension, batch: config.batch.max(1), inner })
    }
}

#[async_trait]
impl Embedder for OnnxEmbedder {
    fn model(&self) -> &str {
        &self.name
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, ModelError> {
        let nothing = || Embedding { model: self.name.clone(), vector: vec![0.0; self.dimension] };
        let mut found: Vec<Embedding> = texts.iter().map(|_| nothing()).collect();
        let mut places: Vec<usize> =
            (0..texts.len()).filter(|place| !texts[*place].trim().is_empty()).collect();
        // Texts of like length share a batch, for each is padded to the longest.
        places.sort_by_key(|place| texts[*place].len());
        for places in places.chunks(self.batch) {
            let batch: Vec<String> = places.iter().map(|place| texts[*place].to_owned()).collect();
            let inner = self.inner.clone();
            let embed = move || inner.lock().unwrap_or_else(PoisonError::into_inner).embed(&batch);
            let vectors = tokio::task::spawn_blocking(embed).await;
            let vectors = vectors.map_err(|error| ModelError::Unusable(error.to_string()))??;
            for (place, vector) in places.iter().zip(vectors) {
                found[*place].vector = vector;
            }
        }
        Ok(found)
    }
}

impl Inner {
    fn embed(&mut self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let unusable = |error: &dyn std::fmt::Display| {
            ModelError::Unusable(format!("the model made no vectors: {error}"))
        };
        let encoded = self.tokenizer.encode_batch(texts.to_vec(), true);
        let encoded = encoded.map_err(|error| unusable(&error))?;
        let width = encoded.first().map_or(0, tokenizers::Encoding::len);
        let shape = [encoded.len(), width];
        let numbers = |part: fn(&tokenizers::Encoding) -> &[u32]| -> Vec<i64> {
            encoded.iter().flat_map(part).map(|number| i64::from(*number)).collect()
        };
        let mask = numbers(tokenizers::Encoding::get_attention_mask);
        let mut inputs: Vec<(String, SessionInputValue<'_>)> = Vec::new();
        for input in self.session.inputs() {
            let values = match input.name() {
                "input_ids" => numbers(tokenizers::Encoding::get_ids),
                "attention_mask" => mask.clone(),
                "token_type_ids" => numbers(tokenizers::Encoding::get_type_ids),
                other => return Err(unusable(&format!("it asks for `{other}`"))),
            };
            let tensor = Tensor::from_array((shape, values)).map_err(|error| unusable(&error))?;
            inputs.push((input.name().to_owned(), tensor.into()));
        }
        let outputs = self.session.run(inputs).map_err(|error| unusable(&error))?;
        let (shape, values) =
            outputs[0].try_extract_tensor::<f32>().map_err(|error| unusable(&error))?;
        let dimension = shape.last().and_then(|last| usize::try_from(*last).ok()).unwrap_or(0);
        if dimension == 0 || !values.len().is_multiple_of(dimension) {
            return Err(unusable(&"they have no dimension"));
        }
        let rows: Vec<&[f32]> = values.chunks_exact(dimension).collect();
        let pooled: Vec<Vec<f32>> = if rows.len() == texts.len() {
            rows.into_iter().map(<[f32]>::to_vec).collect()
        } else if rows.len() == texts.len() * width {
            rows.chunks_exact(width)
                .zip(mask.chunks_exact(width))
                .map(|(rows, mask)| mean(rows, mask))
                .collect()
        } else {
            return Err(unusable(&"they have another number than the texts"));
        };
        let pooled: Option<Vec<Vec<f32>>> = pooled.into_iter().map(vector::normalised).collect();
        pooled.ok_or_else(|| unusable(&"they hold what is no number"))
    }
}

/// The mean of the rows that are no padding; normalising makes the sum do.
fn mean(rows: &[&[f32]], mask: &[i64]) -> Vec<f32> {
    let mut sum = vec![0.0; rows.first().map_or(0, |row| row.len())];
    for (row, _) in rows.iter().zip(mask).filter(|(_, mask)| **mask != 0) {
        for (sum, number) in sum.iter_mut().zip(*row) {
            *sum += number;
        }
    }
    sum
}
