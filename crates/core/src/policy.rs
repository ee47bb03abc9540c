//! Policies: every setting that decides the context of a request.

mod pin;
mod request;

use serde::{Deserialize, Serialize};

use crate::allocation::ContextBudget;
use crate::terms::Terms;
use crate::value_or_word::ValueOrWord;

pub use pin::PinSettings;
pub use request::RequestSettings;

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

/// The treatment of errors in old messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "ValueOrWord<bool>", into = "ValueOrWord<bool>")]
pub enum PreserveErrors {
    /// Nothing.
    Off,
    /// Their lines are kept in every shorter form.
    #[default]
    Lines,
    /// A message that holds the word `error`, `exception` or `failed` is kept whole.
    Keyword,
}

impl From<PreserveErrors> for ValueOrWord<bool> {
    fn from(preserve: PreserveErrors) -> Self {
        match preserve {
            PreserveErrors::Off => Self::Value(false),
            PreserveErrors::Lines => Self::Value(true),
            PreserveErrors::Keyword => "keyword".into(),
        }
    }
}

impl TryFrom<ValueOrWord<bool>> for PreserveErrors {
    type Error = String;

    fn try_from(written: ValueOrWord<bool>) -> Result<Self, String> {
        Ok(match written.value_unless("keyword", "`preserve_errors` is true, false")? {
            Some(true) => Self::Lines,
            Some(false) => Self::Off,
            None => Self::Keyword,
        })
    }
}

/// Settings within a phase.
///
/// Names and defaults are those of `auto-context.md`.
/// `window`, `mask_observations_after` and `preserve_reasoning` belong to [`Cadence::EveryTurn`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IntraPhase {
    /// Whether old messages are shortened within a phase; off sends everything.
    pub enabled: bool,
    /// The last turns whose calls and reasoning stay whole, where `cadence` is `every_turn`.
    pub window: u32,
    /// Turns after which a result becomes a stub, also inside the window, where `cadence` is `every_turn`.
    pub mask_observations_after: u32,
    /// Whether a loop's retry sees only its task, its last attempts and their verdicts.
    pub compress_loops: bool,
    /// The most earlier attempts that a retry sees.
    pub loop_history_limit: u32,
    /// Whether old reasoning is kept up to 2,000 characters; else it becomes a stub, and text beside calls the names of the tools.
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

/// How often results are needed again, by the kind of tool: the chance at the next turn, times the turns since they
/// were last used, for a result of 1,300 tokens.
///
/// Measured on recorded sessions of four agents, then scaled by 0.7, which gave the least work on the same sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Need {
    /// For results of tools that show a file.
    pub reads: f64,
    /// For results of tools that find or list.
    pub finds: f64,
    /// For results of tools that run commands or edit.
    pub runs: f64,
    /// For results of all other tools.
    pub others: f64,
}

impl Default for Need {
    fn default() -> Self {
        Self { reads: 0.154, finds: 0.105, runs: 0.056, others: 0.154 }
    }
}

/// Settings of how old results become excerpts.
///
/// Source: `DESIGN` 3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settle {
    /// Whether old messages may change at all.
    pub enabled: bool,
    /// Tokens of context below which nothing changes.
    pub floor: u64,
    /// Results of fewer tokens than this are left alone.
    pub least: u32,
    /// Characters above which a new result is shortened before it is first sent; results that their tool cut already stay.
    pub giant: u32,
    /// The same for a file that is read: whoever reads one is about to work on it.
    pub giant_file: u32,
    /// The share of a result that an excerpt keeps beside its ends and its error lines.
    pub kept: f64,
    /// Turns for which a result stays whole after it came or was used.
    pub young: u32,
    /// Further calls that are expected at least; later, as many as there were.
    pub least_calls: u32,
    /// Further calls that are expected at most, as where rules bound the turns.
    pub most_calls: u32,
    /// The share by which the rewriting of a broken prefix is priced higher than it is.
    pub caution: f64,
    /// The share of the whole bill that changes may cost beyond what was saved before.
    pub allowance: f64,
    /// The share of the whole bill that changes may cost where they pay back soon.
    pub investment: f64,
    /// Calls within which a change pays back soon.
    pub payback: u32,
    /// The least gain of a batch, as a share of the expected cost of reading the context further.
    pub least_gain: f64,
    pub need: Need,
}

impl Default for Settle {
    fn default() -> Self {
        Self {
            enabled: true,
            floor: 10_000,
            least: 150,
            giant: 25_000,
            giant_file: 66_000,
            kept: 0.1,
            young: 0,
            least_calls: 10,
            most_calls: 1000,
            caution: 0.5,
            allowance: 0.01,
            investment: 0.08,
            payback: 4,
            least_gain: 0.04,
            need: Need::default(),
        }
    }
}

/// The treatment of old messages where thinking is bound to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundThinking {
    /// A message gets its form when it is first sent and keeps it.
    #[default]
    Keep,
    /// Messages may change, and the provider is asked to drop the thinking behind them.
    Drop,
    /// Messages stay, and old results are left to the provider's own context editing.
    Provider,
}

/// The most tokens of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "ValueOrWord<u64>", into = "ValueOrWord<u64>")]
pub enum Budget {
    /// Below the size at which the model's price jumps or its window is full.
    #[default]
    Auto,
    Tokens(u64),
}

impl Budget {
    /// Returns the ceiling of a request; `turns` are those that stand in it.
    pub fn tokens(self, terms: &Terms, turns: u32) -> u64 {
        let Self::Auto = self else {
            let Self::Tokens(tokens) = self else { return DEFAULT_BUDGET };
            return tokens;
        };
        // The client itself makes room where the window ends; a change would cost the thinking that is bound to it.
        if terms.binds() {
            return u64::MAX;
        }
        let prices = &terms.prices;
        let window = u64::from(prices.window) as f64 * BELOW_WINDOW;
        let band = prices.bands[0].above;
        let band = if band == u64::MAX { f64::INFINITY } else { band as f64 * BELOW_BAND };
        let whole = if window > 0.0 { window.min(band) } else { band };
        if whole.is_infinite() {
            return DEFAULT_BUDGET;
        }
        // The caller takes off our own tools, which stand in `before` too.
        let client = terms.around.before - f64::from(terms.around.own_tools);
        let unseen = client.max(0.0) + terms.around.unseen * f64::from(turns);
        (whole - unseen).max(0.0) as u64
    }
}

/// The share of the window at which `context-window.md` calls a context nearly full.
const BELOW_WINDOW: f64 = 0.8;
/// The share of a price band's size that is used: counts of tokens are off by some percent. Chosen.
const BELOW_BAND: f64 = 0.9;

impl From<u64> for Budget {
    fn from(tokens: u64) -> Self {
        Self::Tokens(tokens)
    }
}

impl From<Budget> for ValueOrWord<u64> {
    fn from(budget: Budget) -> Self {
        match budget {
            Budget::Auto => "auto".into(),
            Budget::Tokens(tokens) => Self::Value(tokens),
        }
    }
}

impl TryFrom<ValueOrWord<u64>> for Budget {
    type Error = String;

    fn try_from(written: ValueOrWord<u64>) -> Result<Self, String> {
        let tokens = written.value_unless("auto", "`budget` is a number of tokens")?;
        Ok(tokens.map_or(Self::Auto, Self::Tokens))
    }
}

/// Settings of a bounded context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// The ceiling; rendered messages never exceed it.
    pub budget: Budget,
    /// Whether lines that stand in the context already are left out on arrival.
    pub said_once: bool,
    /// Tokens of standing context below which arriving messages stay whole: a provider caches no shorter prefix, so that a smaller
    /// context may cost more than a larger one.
    pub said_once_from: u64,
    /// The treatment of old messages where thinking is bound to them.
    pub thinking: BoundThinking,
    pub intra_phase: IntraPhase,
    pub settle: Settle,
    pub pin: PinSettings,
}

/// The ceiling where neither window nor prices of a model are known: four fifths of a window of 200,000 tokens, the share at
/// which `context-window.md` calls a context nearly full.
pub const DEFAULT_BUDGET: u64 = 160_000;

impl Default for Bounds {
    fn default() -> Self {
        Self {
            budget: Budget::Auto,
            said_once: true,
            said_once_from: 0,
            thinking: BoundThinking::Keep,
            intra_phase: IntraPhase::default(),
            settle: Settle::default(),
            pin: PinSettings::default(),
        }
    }
}

/// The rules that decide the context of each request.
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
    /// The session trimmer: turns of high priority within their share of the window, and a summary of the rest.
    Trim(ContextBudget),
    /// The last messages, shorter with age, and the records for the turn.
    WorkingSet(RequestSettings),
}

impl Policy {
    /// Returns the policy that is used where none is named.
    pub fn plimsoll() -> Self {
        Self::Bounded(Bounds::default())
    }

    /// Returns the settings of what is pinned without being named; other policies pin what is named only.
    pub(crate) fn pin(&self) -> Option<&PinSettings> {
        match self {
            Self::Bounded(bounds) => Some(&bounds.pin),
            _ => None,
        }
    }

    /// Returns the most tokens of a context, where the policy names a number.
    pub fn ceiling(&self) -> Option<u64> {
        match self {
            Self::Bounded(Bounds { budget: Budget::Tokens(tokens), .. })
            | Self::Newest { budget: tokens }
            | Self::WorkingSet(RequestSettings { total: tokens, .. }) => Some(*tokens),
            _ => None,
        }
    }

    /// Returns whether every message is sent as it is.
    pub fn sends_everything(&self) -> bool {
        match self {
            Self::Full => true,
            Self::Bounded(bounds) => !bounds.intra_phase.enabled,
            _ => false,
        }
    }

    /// Returns the ceiling of a request, if the policy has one; `turns` are those that stand in it.
    pub fn ceiling_of(&self, terms: &Terms, turns: u32) -> Option<u64> {
        match self {
            _ if self.sends_everything() => None,
            Self::Bounded(bounds) => Some(bounds.budget.tokens(terms, turns)),
            _ => self.ceiling(),
        }
    }

    /// Returns the specification's sliding window.
    pub fn window() -> Self {
        let intra_phase = IntraPhase { cadence: Cadence::EveryTurn, ..IntraPhase::default() };
        Self::Bounded(Bounds { intra_phase, ..Bounds::default() })
    }
}
