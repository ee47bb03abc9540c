//! Ranks documents by words, by vector, or by both.

use std::collections::{HashMap, HashSet};

use plimsoll_engine::{Embedding, Hit, SearchQuery, fuse, words};

/// A record with the words and the vector by which a search finds it.
pub(super) struct SearchDocument<'a, T> {
    pub(super) record: &'a T,
    pub(super) words: Vec<String>,
    pub(super) embedding: Option<&'a Embedding>,
}

/// Returns the records that fit the query, best first.
pub(super) fn rank<T: Clone>(
    documents: &[SearchDocument<'_, T>],
    query: &SearchQuery,
) -> Vec<Hit<T>> {
    let by_text = query.text.as_ref().map(|text| by_words(documents, text));
    let by_vector = query
        .embedding
        .as_ref()
        .map(|asked| sorted(documents.iter().map(|document| cosine(asked, document.embedding?))));
    let mut hits = match (by_text, by_vector) {
        (Some(text), Some(vector)) => {
            let order = |hits: Vec<Hit<usize>>| hits.into_iter().map(|hit| hit.item).collect();
            fuse(&[order(text), order(vector)], query.limit)
        }
        (hits, None) | (None, hits) => hits.unwrap_or_default(),
    };
    hits.truncate(query.limit);
    let record =
        |hit: Hit<usize>| Hit { item: documents[hit.item].record.clone(), score: hit.score };
    hits.into_iter().map(record).collect()
}

fn by_words<T>(documents: &[SearchDocument<'_, T>], text: &str) -> Vec<Hit<usize>> {
    let asked: HashSet<String> = words(text).collect();
    let frequency = |word: &String| documents.iter().filter(|it| it.words.contains(word)).count();
    let frequencies: HashMap<_, _> = asked.iter().map(|word| (word, frequency(word))).collect();
    sorted(documents.iter().map(|document| {
        let score = frequencies.iter().map(|(word, frequency)| {
            let count = document.words.iter().filter(|other| other == word).count() as f64;
            let rarity = (1.0 + documents.len() as f64 / (1.0 + *frequency as f64)).ln();
            rarity * count / (count + 0.5 + document.words.len() as f64 / 50.0)
        });
        Some(score.sum::<f64>()).filter(|score| *score > 0.0)
    }))
}

fn sorted(scores: impl Iterator<Item = Option<f64>>) -> Vec<Hit<usize>> {
    let hits = scores.enumerate().filter_map(|(item, score)| Some(Hit { item, score: score? }));
    let mut hits: Vec<_> = hits.collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits
}

/// Returns the cosine of two unit vectors; `None` if they are of different models or lengths.
pub(super) fn cosine(a: &Embedding, b: &Embedding) -> Option<f64> {
    let alike = a.model == b.model && a.vector.len() == b.vector.len();
    alike.then(|| a.vector.iter().zip(&b.vector).map(|(a, b)| f64::from(a * b)).sum())
}
