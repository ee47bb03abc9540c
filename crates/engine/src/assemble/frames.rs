//! Frames with the vectors of their examples.

use std::collections::BTreeMap;

use plimsoll_core::memory::frame::{Frame, FrameSelection, Frames, SelectedFrame};

use crate::embedder::Embedder;
use crate::model_error::ModelError;
use crate::search::Embedding;

/// Frames to choose from, by their triggers and by what their examples mean.
#[derive(Debug, Clone)]
pub struct FrameBook {
    frames: Frames,
    examples: BTreeMap<String, Vec<Embedding>>,
}

impl FrameBook {
    /// Embeds the examples of `frames`; without an embedder only triggers speak for a frame.
    pub async fn new(frames: Frames, embedder: Option<&dyn Embedder>) -> Result<Self, ModelError> {
        let mut examples: BTreeMap<String, Vec<Embedding>> = BTreeMap::new();
        if let Some(embedder) = embedder {
            let texts: Vec<(&str, &str)> = frames
                .iter()
                .flat_map(|frame| frame.examples.iter().map(|text| (&*frame.name, &**text)))
                .collect();
            let only: Vec<&str> = texts.iter().map(|(_, text)| *text).collect();
            for ((name, _), vector) in texts.iter().zip(embedder.embed(&only).await?) {
                examples.entry((*name).to_owned()).or_default().push(vector);
            }
        }
        Ok(Self { frames, examples })
    }

    /// Returns the frame called `name`.
    pub fn get(&self, name: &str) -> Option<&Frame> {
        self.frames.get(name)
    }

    /// Returns the frames in order.
    pub fn iter(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }

    /// Chooses the frame that most speaks for, by the words of `input` and by its vector.
    pub fn select(
        &self,
        input: &str,
        vector: Option<&Embedding>,
        selection: &FrameSelection,
    ) -> Option<SelectedFrame<'_>> {
        let mut similarities = BTreeMap::new();
        if let Some(vector) = vector {
            for (name, examples) in &self.examples {
                let best = examples.iter().filter_map(|one| vector.cosine(one)).fold(0.0, f64::max);
                similarities.insert(name.clone(), best);
            }
        }
        self.frames.select(input, &similarities, selection)
    }
}
