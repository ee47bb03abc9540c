//! Shares a model's context window among its contents, by the settings of `context.json`.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::spelling::nearest;

/// One value for each thing that a context window holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PerSource<T> {
    /// The system prompt.
    pub system_prompt: T,
    /// Skills.
    pub skills: T,
    /// The knowledge base.
    pub knowledge_base: T,
    /// Content of other issues.
    pub cross_issue: T,
    /// Summary of the older turns of a session.
    pub session_summary: T,
    /// Turns of a session that are kept whole.
    pub session_recent: T,
    /// The prompt that is answered.
    pub current_prompt: T,
    /// The answer.
    pub reserved_for_response: T,
}

/// Percentages of the window.
pub type Allocations = PerSource<f64>;

/// Tokens of the window.
pub type Budgets = PerSource<u64>;

/// The settings of `context.json`, checked.
///
/// Fields that the file leaves out have the document's defaults. Values made in code go through [`ContextBudget::checked`].
/// Source: `context-window.md`, steps 2 and 8.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RawContextBudget")]
pub struct ContextBudget {
    /// The model's context window in tokens.
    pub total_tokens: u64,
    pub allocations: Allocations,
    /// The part of the window, 0 to 1, from which on a session over its budget is trimmed.
    ///
    /// [`ContextBudget::trimming_due`] compares it.
    pub compression_threshold: f64,
    /// The part of the window, 0 to 1, from which on the pressure is shown.
    pub show_pressure_above: f64,
    /// Whether a model may write the summary of older turns.
    #[serde(rename = "useLLMSummarization")]
    pub use_llm_summarization: bool,
}

/// Why a `context.json` is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ContextBudgetError {
    #[error("context budget is not valid JSON of the expected shape")]
    Json(#[from] serde_json::Error),
    #[error("unknown key `{key}`, nearest known key is `{nearest}`")]
    UnknownKey { key: String, nearest: String },
    #[error("`{key}` is {value}, expected {expected}")]
    Value { key: String, value: f64, expected: &'static str },
    #[error("allocations add up to {sum} %, which is more than 100 %")]
    Sum { sum: f64 },
}

/// Returns the tokens that each share of `budget` stands for, rounded down.
///
/// Source: `context-window.md`, step 2.
pub fn calculate_budgets(budget: &ContextBudget) -> Budgets {
    let total = budget.total_tokens as f64;
    // A cast of a float saturates, so even unchecked shares give a number.
    budget.allocations.map(|percent| (total * percent / 100.0).floor() as u64)
}

impl ContextBudget {
    /// Reads the text of a `context.json`.
    ///
    /// Errors: an unknown key, naming the nearest known one; a share that is negative or no number, or shares of more than 100
    /// in all; a threshold outside 0 to 1; an empty window.
    pub fn parse(json: &str) -> Result<Self, ContextBudgetError> {
        serde_json::from_str::<RawContextBudget>(json)?.try_into()
    }

    /// Returns itself if every value is allowed in the file.
    pub fn checked(self) -> Result<Self, ContextBudgetError> {
        let wrong = |key: &str, value, expected| {
            Err(ContextBudgetError::Value { key: key.to_owned(), value, expected })
        };
        if self.total_tokens == 0 {
            return wrong("totalTokens", 0.0, "at least 1");
        }
        for (name, percent) in self.allocations.named() {
            if !(percent.is_finite() && percent >= 0.0) {
                return wrong(
                    &format!("allocations.{name}"),
                    percent,
                    "a percentage from 0 to 100",
                );
            }
        }
        let sum: f64 = self.allocations.named().iter().map(|(_, percent)| percent).sum();
        // Shares such as 33.3 may add up to a hair more than 100 in binary.
        if sum > 100.0 + 1e-9 {
            return Err(ContextBudgetError::Sum { sum });
        }
        for (name, part) in [
            ("compressionThreshold", self.compression_threshold),
            ("showPressureAbove", self.show_pressure_above),
        ] {
            if !(0.0..=1.0).contains(&part) {
                return wrong(name, part, "a part of the window from 0 to 1");
            }
        }
        Ok(self)
    }

    /// Returns whether a session of `session_tokens` is to be trimmed before the next call.
    ///
    /// Step 7 trims a session above its own budget (recent and summary: 40 % by default), step 8 adds a threshold (60 %), and
    /// step 6 tells the user that turns are being summarised above 60 %. All three hold if a session must pass both its
    /// budget and the threshold: below the budget there is nothing to gain, and the room from 40 to 60 % lets a session
    /// grow for a while after a trim, where trimming at the budget would rewrite the provider's cached prefix at each turn.
    /// A threshold at or below the share of the session is the literal rule of step 7.
    pub fn trimming_due(&self, session_tokens: u64) -> bool {
        let usage = session_tokens as f64 / self.total_tokens as f64;
        session_tokens > self.session_budget() && usage >= self.compression_threshold
    }

    /// Returns the tokens that a trimmed session may have: recent turns and summary.
    pub fn session_budget(&self) -> u64 {
        let budgets = calculate_budgets(self);
        budgets.session_recent.saturating_add(budgets.session_summary)
    }
}

impl Default for ContextBudget {
    fn default() -> Self {
        Self {
            total_tokens: 200_000,
            allocations: PerSource {
                system_prompt: 5.0,
                skills: 3.0,
                knowledge_base: 3.0,
                cross_issue: 2.0,
                session_summary: 10.0,
                session_recent: 30.0,
                current_prompt: 2.0,
                reserved_for_response: 45.0,
            },
            compression_threshold: 0.6,
            show_pressure_above: 0.3,
            use_llm_summarization: false,
        }
    }
}

impl<T: Copy> PerSource<T> {
    /// Returns each value with its name in `context.json`, in the order of the document.
    pub fn named(&self) -> [(&'static str, T); 8] {
        [
            ("systemPrompt", self.system_prompt),
            ("skills", self.skills),
            ("knowledgeBase", self.knowledge_base),
            ("crossIssue", self.cross_issue),
            ("sessionSummary", self.session_summary),
            ("sessionRecent", self.session_recent),
            ("currentPrompt", self.current_prompt),
            ("reservedForResponse", self.reserved_for_response),
        ]
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        Some(match name {
            "systemPrompt" => &mut self.system_prompt,
            "skills" => &mut self.skills,
            "knowledgeBase" => &mut self.knowledge_base,
            "crossIssue" => &mut self.cross_issue,
            "sessionSummary" => &mut self.session_summary,
            "sessionRecent" => &mut self.session_recent,
            "currentPrompt" => &mut self.current_prompt,
            "reservedForResponse" => &mut self.reserved_for_response,
            _ => return None,
        })
    }

    fn map<U>(self, value: impl Fn(T) -> U) -> PerSource<U> {
        PerSource {
            system_prompt: value(self.system_prompt),
            skills: value(self.skills),
            knowledge_base: value(self.knowledge_base),
            cross_issue: value(self.cross_issue),
            session_summary: value(self.session_summary),
            session_recent: value(self.session_recent),
            current_prompt: value(self.current_prompt),
            reserved_for_response: value(self.reserved_for_response),
        }
    }
}

/// `context.json` as written: every field may be missing, and unknown keys are collected for the error.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawContextBudget {
    total_tokens: Option<u64>,
    #[serde(default)]
    allocations: BTreeMap<String, f64>,
    compression_threshold: Option<f64>,
    show_pressure_above: Option<f64>,
    #[serde(rename = "useLLMSummarization")]
    use_llm_summarization: Option<bool>,
    #[expect(clippy::zero_sized_map_values, reason = "serde flattens into maps only")]
    #[serde(flatten)]
    unknown: BTreeMap<String, IgnoredAny>,
}

impl TryFrom<RawContextBudget> for ContextBudget {
    type Error = ContextBudgetError;

    fn try_from(raw: RawContextBudget) -> Result<Self, Self::Error> {
        if let Some(key) = raw.unknown.keys().next() {
            return Err(unknown_key(key, ""));
        }
        let default = Self::default();
        let mut allocations = default.allocations;
        for (key, percent) in &raw.allocations {
            *allocations.get_mut(key).ok_or_else(|| unknown_key(key, "allocations."))? = *percent;
        }
        Self {
            total_tokens: raw.total_tokens.unwrap_or(default.total_tokens),
            allocations,
            compression_threshold: raw
                .compression_threshold
                .unwrap_or(default.compression_threshold),
            show_pressure_above: raw.show_pressure_above.unwrap_or(default.show_pressure_above),
            use_llm_summarization: raw
                .use_llm_summarization
                .unwrap_or(default.use_llm_summarization),
        }
        .checked()
    }
}

/// Names the nearest key of either level, the level of the mistake first, so that a share beside `allocations` is found too.
fn unknown_key(key: &str, level: &str) -> ContextBudgetError {
    const TOP: [&str; 5] = [
        "totalTokens",
        "allocations",
        "compressionThreshold",
        "showPressureAbove",
        "useLLMSummarization",
    ];
    let shares = ContextBudget::default().allocations.named().map(|(name, _)| name);
    let known: Vec<&str> = if level.is_empty() {
        TOP.into_iter().chain(shares).collect()
    } else {
        shares.into_iter().chain(TOP).collect()
    };
    let found = nearest(key, known).unwrap_or_default();
    let place = if TOP.contains(&found) { "" } else { "allocations." };
    ContextBudgetError::UnknownKey {
        key: format!("{level}{key}"),
        nearest: format!("{place}{found}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file of step 8, as printed there.
    const DOCUMENT: &str = r#"{
  "totalTokens": 200000,
  "allocations": {
    "systemPrompt": 5,
    "skills": 3,
    "knowledgeBase": 3,
    "crossIssue": 2,
    "sessionSummary": 10,
    "sessionRecent": 30,
    "currentPrompt": 2,
    "reservedForResponse": 45
  },
  "compressionThreshold": 0.6,
  "showPressureAbove": 0.3,
  "useLLMSummarization": false
}"#;

    fn check(json: &str, expected: &str) {
        let found = match ContextBudget::parse(json) {
            Ok(budget) => {
                let budgets = calculate_budgets(&budget).named();
                budgets.map(|(_, tokens)| tokens.to_string()).join(" ")
            }
            Err(ContextBudgetError::Json(cause)) => cause.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{json}");
    }

    #[test]
    fn the_documents_file_is_the_default_and_is_written_back_alike() {
        let read = ContextBudget::parse(DOCUMENT).expect("the document's own file");
        assert_eq!(read, ContextBudget::default());
        let written = serde_json::to_value(read).expect("plain data");
        let again: ContextBudget = serde_json::from_value(written).expect("what was written");
        assert_eq!(again, read);
    }

    #[test]
    fn shares_become_tokens_rounded_down() {
        let default = "10000 6000 6000 4000 20000 60000 4000 90000";
        check(DOCUMENT, default);
        check("{}", default);
        check(r#"{"totalTokens": 999}"#, "49 29 29 19 99 299 19 449");
        check(r#"{"allocations": {"skills": 2.5}}"#, "10000 5000 6000 4000 20000 60000 4000 90000");
    }

    #[test]
    fn unknown_keys_are_named_with_the_nearest_known_one() {
        check(
            r#"{"total_tokens": 5}"#,
            "unknown key `total_tokens`, nearest known key is `totalTokens`",
        );
        check(
            r#"{"allocations": {"sessionRecnt": 5}}"#,
            "unknown key `allocations.sessionRecnt`, nearest known key is `allocations.sessionRecent`",
        );
        check(
            r#"{"sessionRecent": 5}"#,
            "unknown key `sessionRecent`, nearest known key is `allocations.sessionRecent`",
        );
        check(
            r#"{"allocations": {"showPressureAbove": 0.5}}"#,
            "unknown key `allocations.showPressureAbove`, nearest known key is `showPressureAbove`",
        );
    }

    #[test]
    fn impossible_values_are_one_clear_error() {
        check(
            r#"{"allocations": {"sessionRecent": 31}}"#,
            "allocations add up to 101 %, which is more than 100 %",
        );
        check(
            r#"{"allocations": {"skills": -1}}"#,
            "`allocations.skills` is -1, expected a percentage from 0 to 100",
        );
        check(r#"{"totalTokens": 0}"#, "`totalTokens` is 0, expected at least 1");
        check(
            r#"{"compressionThreshold": 60}"#,
            "`compressionThreshold` is 60, expected a part of the window from 0 to 1",
        );
        check(
            r#"{"totalTokens": "many"}"#,
            "invalid type: string \"many\", expected u64 at line 1 column 22",
        );
        let mut budget = ContextBudget::default();
        budget.allocations.skills = f64::NAN;
        assert_eq!(
            budget.checked().expect_err("no number").to_string(),
            "`allocations.skills` is NaN, expected a percentage from 0 to 100"
        );
    }

    #[test]
    fn trimming_is_due_past_the_budget_and_the_threshold() {
        let mut budget = ContextBudget::default();
        assert!(!budget.trimming_due(119_999));
        assert!(budget.trimming_due(120_000));
        budget.compression_threshold = 0.0;
        assert!(!budget.trimming_due(80_000), "step 7: above the budget, not at it");
        assert!(budget.trimming_due(80_001));
        budget.allocations.session_recent = 20.0;
        assert!(budget.trimming_due(60_001));
        budget.allocations.session_summary = 0.0;
        assert!(budget.trimming_due(40_001));
        budget.total_tokens = 100_000;
        assert!(budget.trimming_due(20_001));
    }
}
