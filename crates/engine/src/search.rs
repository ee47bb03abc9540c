//! Searching: by text, by vector, and both fused.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

/// A vector with the model that made it; vectors of different models never meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Embedding {
    pub model: String,
    /// Of length 1.
    pub vector: Vec<f32>,
}

/// The query of a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchQuery {
    /// Words, each taken literally; operators of the backend's query language have no meaning here.
    pub text: Option<String>,
    pub embedding: Option<Embedding>,
    /// The most hits to return.
    pub limit: usize,
}

/// A hit, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit<T> {
    pub item: T,
    /// Higher is better; of one search comparable, of two not.
    pub score: f64,
}

/// Reciprocal rank fusion: ranks of several searches to one.
///
/// Each list adds 1 / (60 + rank) to its items. Source: Cormack, Clarke and Büttcher, SIGIR 2009, with their constant.
/// Shape: best first; equal scores in the order of first appearance.
pub fn fuse<T: Clone + Eq + Hash>(lists: &[Vec<T>], limit: usize) -> Vec<Hit<T>> {
    const CONSTANT: f64 = 60.0;
    let mut place: HashMap<T, usize> = HashMap::new();
    let mut hits: Vec<Hit<T>> = Vec::new();
    for list in lists {
        for (rank, item) in list.iter().enumerate() {
            let score = 1.0 / (CONSTANT + rank as f64 + 1.0);
            if let Some(&at) = place.get(item) {
                hits[at].score += score;
            } else {
                place.insert(item.clone(), hits.len());
                hits.push(Hit { item: item.clone(), score });
            }
        }
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits.truncate(limit);
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_searches_find_comes_first() {
        let fused = fuse(&[vec!["a", "b"], vec!["b", "c"]], 2);
        let items: Vec<&str> = fused.iter().map(|hit| hit.item).collect();
        assert_eq!(items, ["b", "a"]);
    }
}
