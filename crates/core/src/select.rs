//! Selection: which messages of earlier phases, or of a session, a next step is given.
//!
//! Decided by cards; the originals are fetched by whoever asked. Anchors are always in, the rest is chosen by a strategy
//! within what the budget leaves. Source: `auto-context.md`, Inter-Phase Context Builder.

mod anchors;
mod config;
mod heuristic;
mod menu;
mod semantic;

use serde::Serialize;

use crate::message::{MillisSinceEpoch, Role};

pub use anchors::mark_anchors;
pub use config::{
    AnchorConfig, AnchorKind, InterPhaseContextConfig, SELECTOR_MODEL, SelectionConfig, Strategy,
};
pub use heuristic::heuristic;
pub use menu::{Menu, Unusable, answer_schema, hybrid_menu, llm, menu};
pub use semantic::semantic;

/// A message that may be chosen: its card, and what is known of it beside.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The first 16 hex digits of the content hash.
    pub hash: String,
    pub summary: String,
    pub keywords: Vec<String>,
    /// Of the original, which is what is sent.
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
pub struct Chosen {
    pub hash: String,
    pub tokens: u32,
    pub reason: String,
    /// Of the strategy that chose it; none for anchors and for a model's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// A message that is not included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Passed {
    pub hash: String,
    pub tokens: u32,
    pub reason: PassedBecause,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// Why a message is not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PassedBecause {
    OverBudget,
    OverMaxMessages,
    BelowThreshold,
    /// There is no vector of the present model.
    NoVector,
    /// The model did not name it.
    NotNamed,
    /// The menu was full, or the first choice at twice the budget did not have it.
    NotOnMenu,
}

/// What a selection came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selection {
    pub asked: Strategy,
    pub used: Strategy,
    /// Why another strategy than the one asked for was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Anchors, in the order of their times.
    pub anchors: Vec<Chosen>,
    /// In the order in which the strategy chose.
    pub chosen: Vec<Chosen>,
    pub left_out: Vec<Passed>,
    /// The ceiling, and what anchors and chosen messages take of it.
    pub budget: u64,
    pub tokens: u64,
    /// What the anchors alone have beyond the ceiling; then nothing else is chosen.
    pub over_budget: u64,
    /// What the model named that is on no card.
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

/// Candidates parted into anchors and the rest, the newest first; what the strategies choose from.
#[derive(Debug, Clone)]
pub struct Pool {
    anchors: Vec<Candidate>,
    rest: Vec<Candidate>,
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
        candidates: Vec<Candidate>,
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
    pub fn candidates(&self) -> &[Candidate] {
        &self.rest
    }

    /// Returns what the anchors leave of the budget.
    pub fn room(&self) -> u64 {
        self.config.max_tokens.saturating_sub(tokens(&self.anchors))
    }

    /// Begins the account of a selection: the anchors are in.
    fn begin(&self, used: Strategy) -> Selection {
        let anchors: Vec<Chosen> =
            self.anchors.iter().map(|it| chosen(it, "anchor", None)).collect();
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

    /// Takes `candidate` in if budget and number leave room for it, and tells the reason either way.
    fn take(
        &self,
        selection: &mut Selection,
        candidate: &Candidate,
        why: &str,
        score: Option<f64>,
    ) {
        let fits = selection.tokens + u64::from(candidate.tokens) <= self.config.max_tokens;
        if selection.chosen.len() >= self.config.max_messages {
            selection.left_out.push(passed(candidate, PassedBecause::OverMaxMessages, score));
        } else if fits {
            selection.tokens += u64::from(candidate.tokens);
            selection.chosen.push(chosen(candidate, why, score));
        } else {
            selection.left_out.push(passed(candidate, PassedBecause::OverBudget, score));
        }
    }
}

fn tokens(candidates: &[Candidate]) -> u64 {
    candidates.iter().map(|candidate| u64::from(candidate.tokens)).sum()
}

fn chosen(candidate: &Candidate, reason: &str, score: Option<f64>) -> Chosen {
    Chosen {
        hash: candidate.hash.clone(),
        tokens: candidate.tokens,
        reason: reason.to_owned(),
        score,
    }
}

fn passed(candidate: &Candidate, reason: PassedBecause, score: Option<f64>) -> Passed {
    Passed { hash: candidate.hash.clone(), tokens: candidate.tokens, reason, score }
}

#[cfg(test)]
mod tests;
