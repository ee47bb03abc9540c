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

/// Settings of the three states: whole while fresh, then settled, seldom stubbed (`DESIGN` 3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settle {
    /// Messages of fewer tokens than this are left alone.
    pub least: u32,
    /// Tokens that a change must save at least; four times as many where it hides something.
    pub least_saved: u32,
    /// Fresh results of more tokens than this are excerpted at once.
    pub giant: u32,
    /// Further calls that are expected to read a result; for what the model said as many as there were are expected,
    /// within three and six fifths of this.
    pub calls_expected: u32,
    /// By what share the rewriting of a broken prefix is priced higher than it is.
    pub caution: f64,
    /// How often 300 hidden runs of a result are needed again, for each e-fold of the time since they were last used.
    pub need_of_result: f64,
    /// As `need_of_result`, for what the model said itself.
    pub need_of_said: f64,
}

impl Default for Settle {
    fn default() -> Self {
        Self {
            least: 60,
            least_saved: 10,
            giant: 4000,
            calls_expected: 50,
            caution: 1.0,
            need_of_result: 0.0,
            need_of_said: 0.6,
        }
    }
}

/// Settings of a bounded context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// The ceiling in tokens; rendered messages never exceed it.
    pub budget: u64,
    pub intra_phase: IntraPhase,
    pub settle: Settle,
}

/// The ceiling where none is given: four fifths of a window of 200,000 tokens, the share at which `context-window.md`
/// calls a context nearly full.
pub const DEFAULT_BUDGET: u64 = 160_000;

impl Default for Bounds {
    fn default() -> Self {
        Self {
            budget: DEFAULT_BUDGET,
            intra_phase: IntraPhase::default(),
            settle: Settle::default(),
        }
    }
}

/// What decides the context of each turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "policy")]
pub enum Policy {
    /// Everything.
    Full,
    /// The states of [`Settle`], or the sliding window of [`IntraPhase`], by its cadence.
    Bounded(Bounds),
    /// Old results cleared in batches, as providers' context editing does it.
    ClearToolUses {
        /// Tokens of context at which a batch is cleared.
        trigger: u64,
        /// The newest results that stay.
        keep: usize,
    },
    /// System prompt, task, and the newest messages that fit.
    Newest { budget: u64 },
}

impl Policy {
    /// Returns the policy that is used where none is named.
    pub fn plimsoll() -> Self {
        Self::Bounded(Bounds::default())
    }

    /// Returns the specification's sliding window.
    pub fn window() -> Self {
        let intra_phase = IntraPhase { cadence: Cadence::EveryTurn, ..IntraPhase::default() };
        Self::Bounded(Bounds { intra_phase, ..Bounds::default() })
    }
}
