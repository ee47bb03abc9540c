//! Selection: which messages of earlier phases, or of a session, a next step is given.
//!
//! Decided by cards; the originals are fetched by whoever asked. Anchors are always in, the rest is chosen by a strategy
//! within the rest of the budget. Source: `auto-context.md`, Inter-Phase Context Builder.

mod anchors;
mod config;
mod heuristic;
mod menu;
mod semantic;

use serde::Serialize;

use crate::choose::{Candidate, Reason, Room, Whole, pack};
use crate::message::{MillisSinceEpoch, Role};

pub use anchors::mark_anchors;
pub use config::{
    AnchorConfig, AnchorKind, InterPhaseContextConfig, SELECTOR_MODEL, SelectionConfig, Strategy,
};
pub use heuristic::heuristic;
pub use menu::{Menu, Unusable, answer_schema, hybrid_menu, llm, menu};
pub use semantic::semantic;

/// A message that may be chosen, as its card describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct CardCandidate {
    /// The first 16 hex digits of the content hash.
    pub hash: String,
    pub summary: String,
    pub keywords: Vec<String>,
    /// Tokens of the original, which is the form that is sent.
    pub tokens: u32,
    pub role: Role,
    pub phase: Option<String>,
    pub turn: Option<u32>,
    pub at: MillisSinceEpoch,
    pub is_anchor: bool,
    pub is_callout: bool,
    /// Whether it reports an error.
    pub is_error: bool,
}

/// A message that is included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelectedMessage {
    pub hash: String,
    pub tokens: u32,
    pub reason: String,
    /// Of the strategy that chose it; none for anchors and for a model's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// A message that is not included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnselectedMessage {
    pub hash: String,
    pub tokens: u32,
    pub reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// The result of a selection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selection {
    pub asked: Strategy,
    pub used: Strategy,
    /// Why another strategy than the one asked for was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Anchors, in the order of their times.
    pub anchors: Vec<SelectedMessage>,
    /// In the order in which the strategy chose.
    pub chosen: Vec<SelectedMessage>,
    pub left_out: Vec<UnselectedMessage>,
    /// The ceiling, and the tokens of anchors and chosen messages.
    pub budget: u64,
    pub tokens: u64,
    /// Tokens by which the anchors alone exceed the ceiling; then nothing else is chosen.
    pub over_budget: u64,
    /// Hashes that the model named and that no card has.
    pub unknown_hashes: u32,
    /// The model's reason, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

impl Selection {
    /// Returns the hashes of all that is included, anchors first.
    pub fn hashes(&self) -> impl Iterator<Item = &str> {
        self.anchors.iter().chain(&self.chosen).map(|chosen| chosen.hash.as_str())
    }
}

/// The candidates of all strategies: anchors, and the rest, the newest first.
#[derive(Debug, Clone)]
pub struct Pool {
    anchors: Vec<CardCandidate>,
    rest: Vec<CardCandidate>,
    config: SelectionConfig,
    /// The time by which ages count: that of the transcript's last message.
    last: MillisSinceEpoch,
    task: String,
}

impl Pool {
    /// Makes the pool of a task. `last` is the time of the transcript's last message, so that a replay chooses alike.
    ///
    /// Shape: of candidates with one hash the first stays; the order of the others has no influence.
    pub fn new(
        candidates: Vec<CardCandidate>,
        task: &str,
        last: MillisSinceEpoch,
        config: &SelectionConfig,
    ) -> Self {
        let mut seen = std::collections::HashSet::new();
        let (mut anchors, mut rest): (Vec<_>, Vec<_>) = candidates
            .into_iter()
            .filter(|candidate| seen.insert(candidate.hash.clone()))
            .partition(|candidate| candidate.is_anchor);
        anchors.sort_by(|a, b| (a.at, &a.hash).cmp(&(b.at, &b.hash)));
        rest.sort_by(|a, b| (b.at, &a.hash).cmp(&(a.at, &b.hash)));
        Self { anchors, rest, config: config.clone(), last, task: task.to_owned() }
    }

    /// Returns the candidates that a strategy chooses among, the newest first.
    pub fn candidates(&self) -> &[CardCandidate] {
        &self.rest
    }

    /// Returns the budget without the anchors.
    pub fn room(&self) -> u64 {
        self.config.max_tokens.saturating_sub(tokens(&self.anchors))
    }

    /// Begins the account of a selection: the anchors are in.
    fn begin(&self, used: Strategy) -> Selection {
        let anchors = self.anchors.iter().map(|it| selected(it, "anchor", None)).collect();
        let taken = tokens(&self.anchors);
        Selection {
            asked: self.config.strategy(),
            used,
            fallback: None,
            anchors,
            chosen: Vec::new(),
            left_out: Vec::new(),
            budget: self.config.max_tokens,
            tokens: taken,
            over_budget: taken.saturating_sub(self.config.max_tokens),
            unknown_hashes: 0,
            reasoning: None,
        }
    }

    /// Packs candidates, best first, into the rest of the budget and of the number of messages.
    fn choose<'a>(
        &self,
        selection: &mut Selection,
        ranked: impl IntoIterator<Item = Candidate<&'a CardCandidate>>,
    ) {
        let room = Room { most: self.config.max_messages, ..Room::new(self.room()) };
        let choice = pack(ranked.into_iter().map(whole), &room);
        selection.tokens += choice.tokens;
        selection.chosen.extend(choice.picks.into_iter().map(|pick| {
            let Candidate { source, score, why } = pick.candidate;
            selected(source.source, &why, score)
        }));
        let left_out = choice.left_out.into_iter();
        selection
            .left_out
            .extend(left_out.map(|(one, reason)| unselected(one.source.source, reason, one.score)));
    }
}

/// Makes a candidate of a message that stands in the context whole or not at all.
fn whole(candidate: Candidate<&CardCandidate>) -> Candidate<Whole<&CardCandidate>> {
    let Candidate { source, score, why } = candidate;
    Candidate { source: Whole { source, tokens: u64::from(source.tokens) }, score, why }
}

/// Puts the best first; equals keep their order.
fn sort_by_score(candidates: &mut [Candidate<&CardCandidate>]) {
    candidates.sort_by(|a, b| b.score.unwrap_or(0.0).total_cmp(&a.score.unwrap_or(0.0)));
}

fn tokens(candidates: &[CardCandidate]) -> u64 {
    candidates.iter().map(|candidate| u64::from(candidate.tokens)).sum()
}

fn selected(candidate: &CardCandidate, reason: &str, score: Option<f64>) -> SelectedMessage {
    let CardCandidate { hash, tokens, .. } = candidate;
    SelectedMessage { hash: hash.clone(), tokens: *tokens, reason: reason.to_owned(), score }
}

fn unselected(candidate: &CardCandidate, reason: Reason, score: Option<f64>) -> UnselectedMessage {
    let CardCandidate { hash, tokens, .. } = candidate;
    UnselectedMessage { hash: hash.clone(), tokens: *tokens, reason, score }
}

#[cfg(test)]
mod tests;
