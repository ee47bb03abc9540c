//! Policies: every setting that decides what a model sees within a phase.

use serde::{Deserialize, Serialize};

/// When old messages change their form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cadence {
    /// At every turn, as the window slides: the letter of the specification.
    EveryTurn,
    /// Only when the change pays under prompt caching.
    #[default]
    CacheAware,
}

/// What is done for errors in old messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PreserveErrors {
    /// Nothing.
    Off,
    /// Their lines are kept, whatever else is left out.
    #[default]
    Lines,
    /// A message that holds the word `error`, `exception` or `failed` is kept whole.
    Keyword,
}

impl Serialize for PreserveErrors {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::Lines => serializer.serialize_bool(true),
            Self::Keyword => serializer.serialize_str("keyword"),
        }
    }
}

impl<'de> Deserialize<'de> for PreserveErrors {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Switch(bool),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Switch(true) => Ok(Self::Lines),
            Written::Switch(false) => Ok(Self::Off),
            Written::Word(word) if word == "keyword" => Ok(Self::Keyword),
            Written::Word(word) => Err(serde::de::Error::custom(format!(
                "`preserve_errors` is true, false or \"keyword\", not \"{word}\""
            ))),
        }
    }
}

/// Settings within a phase; names and defaults are those of `auto-context.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IntraPhase {
    /// Off means that everything is sent.
    pub enabled: bool,
    /// The last turns whose calls and reasoning stay whole.
    pub window: u32,
    /// Turns after which the result of a tool is masked, also inside the window.
    pub mask_observations_after: u32,
    /// Whether a retry of a loop gets the short context of its attempts.
    pub compress_loops: bool,
    /// The most attempts that a retry is told of.
    pub loop_history_limit: u32,
    /// Whether old reasoning without tool calls is kept up to 2,000 characters; else it becomes a stub.
    pub preserve_reasoning: bool,
    pub preserve_errors: PreserveErrors,
    pub cadence: Cadence,
}

impl Default for IntraPhase {
    fn default() -> Self {
        Self {
            enabled: true,
            window: 5,
            mask_observations_after: 3,
            compress_loops: true,
            loop_history_limit: 3,
            preserve_reasoning: true,
            preserve_errors: PreserveErrors::Lines,
            cadence: Cadence::CacheAware,
        }
    }
}
