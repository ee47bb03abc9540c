//! Selection by likeness of meaning.

use std::collections::BTreeMap;

use super::{PassedBecause, Pool, Selection, Strategy, passed};

/// Chooses the nearest `max_messages` candidates that reach the threshold and fit.
///
/// `similarities` has the cosine of each candidate that has a vector of the present model, by hash.
pub fn semantic(pool: &Pool, similarities: &BTreeMap<String, f64>) -> Selection {
    let mut selection = pool.begin(Strategy::Semantic);
    let mut ranked = Vec::new();
    for candidate in &pool.rest {
        match similarities.get(&candidate.hash).filter(|similarity| !similarity.is_nan()) {
            Some(similarity) => ranked.push((candidate, *similarity)),
            None => selection.left_out.push(passed(candidate, PassedBecause::NoVector, None)),
        }
    }
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (rank, (candidate, similarity)) in ranked.into_iter().enumerate() {
        let score = Some(similarity);
        if rank >= pool.config.max_messages {
            selection.left_out.push(passed(candidate, PassedBecause::OverMaxMessages, score));
        } else if similarity < pool.config.similarity_threshold {
            selection.left_out.push(passed(candidate, PassedBecause::BelowThreshold, score));
        } else {
            pool.take(&mut selection, candidate, "alike in meaning", score);
        }
    }
    selection
}
