//! Selection by keywords, recency and callouts, without any model.

use crate::card::task_keywords;

use super::{CardCandidate, Pool, Selection, SelectionConfig, Strategy, sort_by_score, whole};
use crate::choose::{Candidate, Room, pack};

/// Minutes after which a message is no longer recent, and the factors of a score's parts: the figures of
/// `_heuristic_selection`.
const RECENT_MINUTES: f64 = 100.0;
const KEYWORD_FACTOR: f64 = 10.0;
const RECENCY_FACTOR: f64 = 50.0;
const CALLOUT_FACTOR: f64 = 100.0;

/// Chooses the candidates of the highest scores that fit; one that does not fit is passed over for the next.
///
/// Shape: equal scores in the order of their times, the newest first, then by hash; the order of the input has no influence.
pub fn heuristic(pool: &Pool) -> Selection {
    let mut selection = pool.begin(Strategy::Heuristic);
    pool.choose(&mut selection, ranked(pool));
    selection
}

/// Returns the candidates that fit within `room` tokens, best first as [`heuristic`] ranks them.
pub(super) fn within(pool: &Pool, room: u64) -> Vec<&CardCandidate> {
    let choice = pack(ranked(pool).into_iter().map(whole), &Room::new(room));
    choice.picks.into_iter().map(|pick| pick.candidate.source.source).collect()
}

fn ranked(pool: &Pool) -> Vec<Candidate<&CardCandidate>> {
    let task = task_keywords(&pool.task);
    let mut ranked: Vec<_> = pool
        .rest
        .iter()
        .map(|candidate| {
            let mut keywords: Vec<&String> =
                candidate.keywords.iter().filter(|word| task.contains(*word)).collect();
            keywords.sort_unstable();
            keywords.dedup();
            let minutes = pool.last.0.saturating_sub(candidate.at.0) as f64 / 60_000.0;
            let (score, why) = score(candidate, keywords.len(), minutes, &pool.config);
            Candidate { source: candidate, score: Some(score), why: why.into() }
        })
        .collect();
    // The pool has the newest first, and the sort keeps that among equals.
    sort_by_score(&mut ranked);
    ranked
}

fn score(
    candidate: &CardCandidate,
    keywords: usize,
    age_minutes: f64,
    config: &SelectionConfig,
) -> (f64, String) {
    let by_keywords = keywords as f64 * config.keyword_weight * KEYWORD_FACTOR;
    let recency = (RECENT_MINUTES - age_minutes).max(0.0) / RECENT_MINUTES;
    let by_recency = recency * config.recency_weight * RECENCY_FACTOR;
    let by_callout =
        if candidate.is_callout { config.callout_weight * CALLOUT_FACTOR } else { 0.0 };
    let why = format!(
        "{keywords} keywords {by_keywords:.1}, recency {by_recency:.1}, callout {by_callout:.1}"
    );
    (by_keywords + by_recency + by_callout, why)
}
