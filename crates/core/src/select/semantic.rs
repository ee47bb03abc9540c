//! Selection by likeness of meaning.

use std::collections::BTreeMap;

use super::{Pool, Selection, Strategy, sort_by_score, unselected};
use crate::choose::{Candidate, Reason};

/// Chooses the nearest `max_messages` candidates that reach the threshold and fit.
///
/// `similarities` has the cosine of each candidate that has a vector of the present model, by hash.
pub fn semantic(pool: &Pool, similarities: &BTreeMap<String, f64>) -> Selection {
    let mut selection = pool.begin(Strategy::Semantic);
    let mut ranked = Vec::new();
    for candidate in &pool.rest {
        match similarities.get(&candidate.hash).filter(|similarity| !similarity.is_nan()) {
            Some(similarity) => ranked.push(Candidate {
                source: candidate,
                score: Some(*similarity),
                why: "alike in meaning".into(),
            }),
            None => selection.left_out.push(unselected(candidate, Reason::NoVector, None)),
        }
    }
    sort_by_score(&mut ranked);
    // The nearest are looked at, whether or not they fit.
    let further = ranked.split_off(ranked.len().min(pool.config.max_messages));
    let is_far = |one: &Candidate<_>| one.score < Some(pool.config.similarity_threshold);
    let near = ranked.partition_point(|one| !is_far(one));
    let far = ranked.split_off(near);
    pool.choose(&mut selection, ranked);
    let others = [(far, Reason::BelowThreshold), (further, Reason::OverMaxMessages)];
    for (candidates, reason) in others {
        selection
            .left_out
            .extend(candidates.into_iter().map(|one| unselected(one.source, reason, one.score)));
    }
    selection
}
