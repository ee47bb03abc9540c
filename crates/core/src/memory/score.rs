//! The worth of a record for a question: the composite score of `memory-context.md`, step 4.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::MillisSinceEpoch;
use crate::choose::Reason;
use crate::memory::layers::Priorities;
use crate::memory::lifecycle::{DAY, Severity};
use crate::memory::{MemoryKind, MemoryState, Outcome};

/// Shares of the six terms in the score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Weights {
    /// The weight of the similarity to the question.
    pub similarity: f64,
    /// The weight of the frame's priority for the kind of record.
    pub kind: f64,
    /// The weight of how recent the record is.
    pub recency: f64,
    /// The weight of the outcome of a decision.
    pub outcome: f64,
    /// The weight of how often the record was used.
    pub usage: f64,
    /// The weight of the record's confidence.
    pub confidence: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            similarity: 0.50,
            kind: 0.15,
            recency: 0.15,
            outcome: 0.10,
            usage: 0.05,
            confidence: 0.05,
        }
    }
}

/// The value of each outcome of a decision in the score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutcomeBoosts {
    /// For decisions that succeeded.
    pub success: f64,
    /// For decisions that succeeded in part.
    pub partial: f64,
    /// For decisions that failed.
    pub failure: f64,
    /// For decisions without a review.
    pub pending: f64,
    /// For records that have no outcome.
    pub none: f64,
}

impl Default for OutcomeBoosts {
    fn default() -> Self {
        Self { success: 1.2, partial: 1.0, failure: 0.8, pending: 0.9, none: 1.0 }
    }
}

/// Factors of the whole score by the state of the record.
///
/// Source: the lifecycles say that core facts and effective procedures come first and superseded ones last, without
/// numbers; these are chosen. States that are not named count 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateFactors {
    /// For core facts.
    pub core: f64,
    /// For effective procedures.
    pub effective: f64,
    /// For ineffective procedures.
    pub ineffective: f64,
    /// For records that a newer one supersedes.
    pub superseded: f64,
    /// For episodes that are archived.
    pub archived: f64,
}

impl Default for StateFactors {
    fn default() -> Self {
        Self { core: 1.1, effective: 1.1, ineffective: 0.8, superseded: 0.5, archived: 0.9 }
    }
}

impl StateFactors {
    /// Returns the factor of a state.
    pub fn of(&self, state: MemoryState) -> f64 {
        match state {
            MemoryState::Core => self.core,
            MemoryState::Effective => self.effective,
            MemoryState::Ineffective => self.ineffective,
            MemoryState::Superseded => self.superseded,
            MemoryState::Archived => self.archived,
            _ => 1.0,
        }
    }
}

/// Settings of scoring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scoring {
    pub weights: Weights,
    /// Days in which recency halves.
    pub half_life_days: f64,
    pub outcomes: OutcomeBoosts,
    /// The gain for ten times as many uses.
    pub usage_step: f64,
    /// The most that uses count.
    pub usage_most: f64,
    pub states: StateFactors,
    /// Records less similar to the question than this are never included.
    pub least_similarity: f64,
    /// A score that falls by more than this from one record to the next is a cliff; records behind it are not included.
    pub cliff: f64,
}

impl Default for Scoring {
    fn default() -> Self {
        Self {
            weights: Weights::default(),
            half_life_days: 30.0,
            outcomes: OutcomeBoosts::default(),
            usage_step: 0.1,
            usage_most: 1.5,
            states: StateFactors::default(),
            // Chosen: the document names neither. Unrelated texts are commonly at 0.0 to 0.2 of cosine, and a fall of 0.15
            // is one of 0.3 in similarity, or all that recency can do.
            least_similarity: 0.2,
            cliff: 0.15,
        }
    }
}

/// A record that may enter a context, as the search found it.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryCandidate {
    pub id: String,
    pub kind: MemoryKind,
    pub state: MemoryState,
    /// The name of a procedure, the pattern of a censor; else empty.
    pub name: String,
    pub micro: String,
    pub summary: Option<String>,
    /// Its author; only records of `operator` stand unquoted.
    pub origin: String,
    /// Similarity to the question, 0 to 1.
    pub similarity: f64,
    /// When it happened.
    pub at: MillisSinceEpoch,
    pub outcome: Option<Outcome>,
    pub activations: u32,
    /// 0 to 1.
    pub confidence: f64,
    /// Censors only.
    pub severity: Severity,
}

impl MemoryCandidate {
    /// Makes a current record of `kind` by the operator, at time 0, fully similar and trusted.
    pub fn new(id: impl Into<String>, kind: MemoryKind, micro: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind,
            state: first_state(kind),
            name: String::new(),
            micro: micro.into(),
            summary: None,
            origin: OPERATOR.to_owned(),
            similarity: 1.0,
            at: MillisSinceEpoch(0),
            outcome: None,
            activations: 0,
            confidence: 1.0,
            severity: Severity::Warn,
        }
    }
}

/// The origin of records that may act as instructions.
pub const OPERATOR: &str = "operator";

/// Returns the state in which a record of `kind` begins.
pub fn first_state(kind: MemoryKind) -> MemoryState {
    match kind {
        MemoryKind::Decision => MemoryState::Recorded,
        MemoryKind::Entity
        | MemoryKind::Task
        | MemoryKind::Metric
        | MemoryKind::Link
        | MemoryKind::Fact => MemoryState::New,
        MemoryKind::Procedure | MemoryKind::Episode => MemoryState::Active,
        MemoryKind::Censor => MemoryState::Created,
    }
}

/// Returns the worth of `candidate` for the question that its similarity is to.
///
/// Units: about 0 to 1.3; a value that is no number counts 0.
pub fn score(
    candidate: &MemoryCandidate,
    priorities: &Priorities,
    now: MillisSinceEpoch,
    scoring: &Scoring,
) -> f64 {
    let weights = &scoring.weights;
    let days = now.0.saturating_sub(candidate.at.0).max(0) as f64 / DAY as f64;
    let recency = (-std::f64::consts::LN_2 * days / scoring.half_life_days).exp();
    let outcomes = &scoring.outcomes;
    let outcome = match candidate.outcome {
        Some(Outcome::Success) => outcomes.success,
        Some(Outcome::Partial) => outcomes.partial,
        Some(Outcome::Failure) => outcomes.failure,
        Some(Outcome::Pending) => outcomes.pending,
        None => outcomes.none,
    };
    let usage = match candidate.activations {
        0 => 1.0,
        uses => f64::from(uses).log10().mul_add(scoring.usage_step, 1.0).min(scoring.usage_most),
    };
    let state = scoring.states.of(candidate.state);
    let sum = unit(candidate.similarity) * weights.similarity
        + priorities.of(candidate.kind) * weights.kind
        + unit(recency) * weights.recency
        + outcome * weights.outcome
        + usage * weights.usage
        + unit(candidate.confidence) * weights.confidence;
    let score = sum * state;
    if score.is_finite() { score } else { 0.0 }
}

/// A candidate with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked<'a> {
    pub candidate: &'a MemoryCandidate,
    pub score: f64,
}

/// Ranks the candidates of one layer and removes irrelevant ones.
///
/// Shape: best first; equal scores by id. The order of `candidates` does not matter.
pub fn rank<'a>(
    candidates: impl IntoIterator<Item = &'a MemoryCandidate>,
    priorities: &Priorities,
    now: MillisSinceEpoch,
    scoring: &Scoring,
) -> (Vec<Ranked<'a>>, Vec<(&'a str, Reason)>) {
    let mut ranked: Vec<Ranked<'_>> = candidates
        .into_iter()
        .map(|candidate| Ranked { candidate, score: score(candidate, priorities, now, scoring) })
        .collect();
    ranked.sort_by(better);
    let mut left_out = Vec::new();
    let mut met = std::collections::BTreeSet::new();
    let mut last: Option<f64> = None;
    let mut behind = false;
    ranked.retain(|Ranked { candidate, score }| {
        let reason = if !met.insert(&*candidate.id) {
            Reason::Twice
        } else if matches!(candidate.state, MemoryState::Inactive | MemoryState::Retired) {
            Reason::NotInUse
        } else if unit(candidate.similarity) < scoring.least_similarity {
            Reason::BelowThreshold
        } else {
            behind = behind || last.is_some_and(|last| last - score > scoring.cliff);
            last = Some(*score);
            if !behind {
                return true;
            }
            Reason::Cliff
        };
        left_out.push((&*candidate.id, reason));
        false
    });
    (ranked, left_out)
}

/// Orders by score, then by id and text, so that the order of the input never shows.
fn better(a: &Ranked<'_>, b: &Ranked<'_>) -> Ordering {
    let text = |ranked: &Ranked<'_>| {
        let MemoryCandidate { id, micro, summary, origin, name, .. } = ranked.candidate;
        (id.clone(), micro.clone(), summary.clone(), origin.clone(), name.clone())
    };
    b.score
        .total_cmp(&a.score)
        .then_with(|| a.candidate.id.cmp(&b.candidate.id))
        .then_with(|| text(a).cmp(&text(b)))
}

/// Returns `value` within 0 to 1, and 0 for a value that is no number.
fn unit(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemoryState::{Archived, Core, Effective, Ineffective, Superseded};
    use Reason::{BelowThreshold, Cliff, NotInUse, Twice};

    const NOW: MillisSinceEpoch = MillisSinceEpoch(100 * DAY);

    fn decision() -> MemoryCandidate {
        MemoryCandidate {
            similarity: 0.8,
            at: MillisSinceEpoch(70 * DAY),
            outcome: Some(Outcome::Success),
            activations: 100,
            confidence: 0.5,
            ..MemoryCandidate::new("d", MemoryKind::Decision, "chose one")
        }
    }

    fn scored(candidate: &MemoryCandidate, scoring: &Scoring) -> f64 {
        score(candidate, &Priorities::default(), NOW, scoring)
    }

    #[test]
    fn the_score_is_the_documents_sum() {
        // 0.8·0.50 + 0.5·0.15 + 0.5·0.15 + 1.2·0.10 + 1.2·0.05 + 0.5·0.05
        let expected = 0.4 + 0.075 + 0.075 + 0.12 + 0.06 + 0.025;
        assert!((scored(&decision(), &Scoring::default()) - expected).abs() < 1e-9);
        let much_used = MemoryCandidate { activations: u32::MAX, ..decision() };
        let most = Scoring { usage_most: 1.1, ..Scoring::default() };
        assert!(scored(&much_used, &most) < scored(&much_used, &Scoring::default()));
    }

    #[test]
    fn every_setting_of_the_score_changes_it() {
        let base = Scoring::default();
        let weights = |weights| Scoring { weights, ..Scoring::default() };
        let outcomes = |outcomes| Scoring { outcomes, ..Scoring::default() };
        let states = |states| Scoring { states, ..Scoring::default() };
        let (w, o, s) = (Weights::default(), OutcomeBoosts::default(), StateFactors::default());
        let of = |outcome| MemoryCandidate { outcome, ..decision() };
        let in_state = |state| MemoryCandidate { state, ..decision() };
        let cases = [
            (decision(), weights(Weights { similarity: 0.6, ..w.clone() })),
            (decision(), weights(Weights { kind: 0.6, ..w.clone() })),
            (decision(), weights(Weights { recency: 0.6, ..w.clone() })),
            (decision(), weights(Weights { outcome: 0.6, ..w.clone() })),
            (decision(), weights(Weights { usage: 0.6, ..w.clone() })),
            (decision(), weights(Weights { confidence: 0.6, ..w })),
            (decision(), Scoring { half_life_days: 7.0, ..base.clone() }),
            (decision(), Scoring { usage_step: 0.2, ..base.clone() }),
            (decision(), Scoring { usage_most: 1.1, ..base.clone() }),
            (of(Some(Outcome::Success)), outcomes(OutcomeBoosts { success: 2.0, ..o.clone() })),
            (of(Some(Outcome::Partial)), outcomes(OutcomeBoosts { partial: 2.0, ..o.clone() })),
            (of(Some(Outcome::Failure)), outcomes(OutcomeBoosts { failure: 2.0, ..o.clone() })),
            (of(Some(Outcome::Pending)), outcomes(OutcomeBoosts { pending: 2.0, ..o.clone() })),
            (of(None), outcomes(OutcomeBoosts { none: 2.0, ..o })),
            (in_state(Core), states(StateFactors { core: 2.0, ..s.clone() })),
            (in_state(Effective), states(StateFactors { effective: 2.0, ..s.clone() })),
            (in_state(Ineffective), states(StateFactors { ineffective: 2.0, ..s.clone() })),
            (in_state(Superseded), states(StateFactors { superseded: 2.0, ..s.clone() })),
            (in_state(Archived), states(StateFactors { archived: 2.0, ..s })),
        ];
        for (number, (candidate, changed)) in cases.iter().enumerate() {
            let (before, after) = (scored(candidate, &base), scored(candidate, changed));
            assert!((before - after).abs() > 1e-6, "case {number} changes nothing");
        }
    }

    fn ranked(similarities: &[f64], scoring: &Scoring) -> (usize, Vec<Reason>) {
        let candidates: Vec<MemoryCandidate> = similarities
            .iter()
            .enumerate()
            .map(|(n, &similarity)| MemoryCandidate {
                similarity,
                ..MemoryCandidate::new(n.to_string(), MemoryKind::Fact, "known")
            })
            .collect();
        let (kept, left_out) = rank(&candidates, &Priorities::default(), NOW, scoring);
        (kept.len(), left_out.into_iter().map(|(_, why)| why).collect())
    }

    #[test]
    fn the_floor_and_the_cliff_cut() {
        let base = Scoring::default();
        assert_eq!(ranked(&[0.9, 0.7, 0.5, 0.3, 0.1], &base), (4, vec![BelowThreshold]));
        assert_eq!(ranked(&[0.9, 0.8, 0.4, 0.3], &base), (2, vec![Cliff, Cliff]));
        let lower = Scoring { least_similarity: 0.05, ..base.clone() };
        assert_eq!(ranked(&[0.9, 0.7, 0.5, 0.3, 0.1], &lower), (5, vec![]));
        let steep = Scoring { cliff: 0.5, ..base };
        assert_eq!(ranked(&[0.9, 0.8, 0.4, 0.3], &steep), (4, vec![]));
    }

    #[test]
    fn what_is_wrong_or_out_of_use_never_ranks_and_what_is_superseded_ranks_lower() {
        let with = |id: &str, state| MemoryCandidate {
            state,
            ..MemoryCandidate::new(id, MemoryKind::Fact, "known")
        };
        let candidates = [
            with("a", MemoryState::Superseded),
            with("b", MemoryState::New),
            with("b", MemoryState::New),
            with("c", MemoryState::Inactive),
            with("d", MemoryState::Retired),
            with("e", MemoryState::Core),
        ];
        let scoring = Scoring { cliff: 1.0, ..Scoring::default() };
        let (kept, left_out) = rank(&candidates, &Priorities::default(), NOW, &scoring);
        let ids: Vec<&str> = kept.iter().map(|ranked| &*ranked.candidate.id).collect();
        assert_eq!(ids, ["e", "b", "a"]);
        assert_eq!(left_out, [("b", Twice), ("c", NotInUse), ("d", NotInUse)]);
    }

    #[test]
    fn what_is_no_number_counts_nothing() {
        let broken =
            MemoryCandidate { similarity: f64::NAN, confidence: f64::INFINITY, ..decision() };
        assert!(scored(&broken, &Scoring::default()).is_finite());
        let scoring = Scoring { half_life_days: 0.0, ..Scoring::default() };
        assert!(scored(&MemoryCandidate { at: NOW, ..decision() }, &scoring).is_finite());
        assert_eq!(serde_json::from_str::<Scoring>("{}").expect("defaults"), Scoring::default());
        assert!(serde_json::from_str::<Scoring>(r#"{"weights": {"size": 1}}"#).is_err());
    }
}
