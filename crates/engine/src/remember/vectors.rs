//! Vectors of records, made from the words that say what a record is about.

use super::{Details, MemoryError, Remember};
use crate::memory::MemoryRecord;
use crate::search::Embedding;

impl Remember<'_> {
    /// Gives vectors to records that have none of the present model.
    pub(super) async fn embed(&self, records: &mut [MemoryRecord]) -> Result<(), MemoryError> {
        let Some(embedder) = self.embedder else { return Ok(()) };
        let lacks = |record: &MemoryRecord| {
            record.embedding.as_ref().is_none_or(|vector| vector.model != embedder.model())
        };
        let places: Vec<usize> = (0..records.len()).filter(|at| lacks(&records[*at])).collect();
        if places.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = places.iter().map(|at| embedded_text(&records[*at])).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = embedder.embed(&texts).await?;
        for (at, vector) in places.into_iter().zip(vectors) {
            // A vector of zeros is like nothing; no store keeps it.
            records[at].embedding = Some(vector).filter(|vector| Embedding::check(vector).is_ok());
        }
        Ok(())
    }
}

/// Returns the words of a record that say what it is about.
fn embedded_text(record: &MemoryRecord) -> String {
    let details = Details::of(record);
    let own = record.summary.as_deref().filter(|_| details.own_summary);
    let mut text = details.name.clone();
    for part in [Some(&*details.text), own].into_iter().flatten() {
        text.push(' ');
        text.push_str(part);
    }
    for point in &details.points {
        text.push(' ');
        text.push_str(point);
    }
    text
}
