//! Settings of selection between phases; names and defaults are those of `auto-context.md`.

use serde::{Deserialize, Serialize};

/// How messages are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Keywords, recency and callouts.
    #[default]
    Heuristic,
    /// Likeness of meaning, by vectors.
    Semantic,
    /// A model reads the summaries and names messages.
    Llm,
    /// A model reads the summaries that the heuristic chooses at twice the budget.
    Hybrid,
}

impl Strategy {
    /// Returns the name as settings and receipts have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Heuristic => "heuristic",
            Self::Semantic => "semantic",
            Self::Llm => "llm",
            Self::Hybrid => "hybrid",
        }
    }
}

/// The kinds of messages that are always included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnchorKind {
    /// The last answer of a phase.
    Output,
    /// Messages marked as important.
    Callouts,
    /// The first thing the user said.
    Input,
    /// Messages that report errors.
    Errors,
}

/// Settings of anchors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnchorConfig {
    /// The last turns of the present phase.
    pub window: u32,
    /// Phases whose output counts: names, `previous`, `first` or `all`.
    pub from_phases: Vec<String>,
    pub include: Vec<AnchorKind>,
}

impl Default for AnchorConfig {
    fn default() -> Self {
        Self {
            window: 3,
            from_phases: vec!["previous".to_owned()],
            include: vec![AnchorKind::Output, AnchorKind::Callouts, AnchorKind::Input],
        }
    }
}

/// The model that selects where none is named.
pub const SELECTOR_MODEL: &str = "google/gemini-2.5-flash-lite";

/// Settings of the choice among the other messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectionConfig {
    /// The strategy; by default that of the settings around it, else `heuristic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// The most tokens of anchors and chosen messages together.
    pub max_tokens: u64,
    /// The most messages beside the anchors; for the semantic strategy, the most neighbours that are looked at.
    pub max_messages: usize,
    /// The model that selects; by default that of the settings around it, else `google/gemini-2.5-flash-lite`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector_model: Option<String>,
    /// The weight of a message's age in the heuristic score.
    pub recency_weight: f64,
    /// The weight of words in common with the task in the heuristic score.
    pub keyword_weight: f64,
    /// The weight of a callout in the heuristic score.
    pub callout_weight: f64,
    /// The least cosine that counts as alike.
    pub similarity_threshold: f64,
}

impl Default for SelectionConfig {
    fn default() -> Self {
        Self {
            strategy: None,
            max_tokens: 30_000,
            max_messages: 50,
            selector_model: None,
            recency_weight: 0.3,
            keyword_weight: 0.4,
            callout_weight: 0.3,
            similarity_threshold: 0.7,
        }
    }
}

impl SelectionConfig {
    /// Returns the strategy that is meant.
    pub fn strategy(&self) -> Strategy {
        self.strategy.unwrap_or_default()
    }

    /// Returns the model that is meant.
    pub fn selector_model(&self) -> &str {
        self.selector_model.as_deref().unwrap_or(SELECTOR_MODEL)
    }
}

/// Settings of the context between phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InterPhaseContextConfig {
    /// Off means that nothing of earlier phases is included.
    pub enabled: bool,
    pub strategy: Strategy,
    pub selector_model: String,
    pub anchors: AnchorConfig,
    pub selection: SelectionConfig,
}

impl Default for InterPhaseContextConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            strategy: Strategy::Hybrid,
            selector_model: SELECTOR_MODEL.to_owned(),
            anchors: AnchorConfig::default(),
            selection: SelectionConfig::default(),
        }
    }
}

impl InterPhaseContextConfig {
    /// Returns the selection's settings, with missing ones taken from here.
    pub fn resolved(&self) -> SelectionConfig {
        let selection = self.selection.clone();
        SelectionConfig {
            strategy: Some(selection.strategy.unwrap_or(self.strategy)),
            selector_model: Some(
                selection.selector_model.unwrap_or_else(|| self.selector_model.clone()),
            ),
            ..self.selection.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_strategy_goes_before_the_outer() {
        let read = |text: &str| serde_json::from_str::<InterPhaseContextConfig>(text);
        let plain = read("{}").expect("defaults").resolved();
        assert_eq!((plain.strategy(), plain.selector_model()), (Strategy::Hybrid, SELECTOR_MODEL));
        let both = read(
            r#"{"strategy": "llm", "selector_model": "a/b", "selection": {"strategy": "semantic"}}"#,
        );
        let both = both.expect("valid").resolved();
        assert_eq!((both.strategy(), both.selector_model()), (Strategy::Semantic, "a/b"));
        assert_eq!(SelectionConfig::default().strategy(), Strategy::Heuristic);
    }

    #[test]
    fn unknown_keys_are_refused() {
        for text in
            [r#"{"stratgy": "llm"}"#, r#"{"anchors": {"windw": 1}}"#, r#"{"selection": {"x": 1}}"#]
        {
            assert!(serde_json::from_str::<InterPhaseContextConfig>(text).is_err(), "{text}");
        }
    }
}
