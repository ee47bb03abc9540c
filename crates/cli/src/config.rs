//! Configuration: the project's `plimsoll.toml`, else the user's; `PLIMSOLL_*` over the file, flags over all.

pub(crate) mod files;
pub(crate) mod trust;

use std::path::Path;

use plimsoll_cascade::run::RunSettings;
use plimsoll_core::ContextBudget;
use plimsoll_core::answer::AnswerSettings;
use plimsoll_core::lazy_tools::LazySettings;
use plimsoll_core::memory::frame::Frames;
use plimsoll_core::policy::{
    BoundThinking, Bounds, Budget, Cadence, IntraPhase, PinSettings, Policy, RequestSettings,
    Settle,
};
use plimsoll_core::recall::RecallSettings;
use plimsoll_core::safety::Safety;
use plimsoll_core::select::SelectionConfig;
use plimsoll_engine::MemoryConfig;
use plimsoll_engine::cards::CardSettings;
use plimsoll_gateway::GatewayConfig;
use plimsoll_models::ModelsConfig;
use plimsoll_store::{StoreAddress, StoreSettings};
use plimsoll_tools::ToolsConfig;
use serde::{Deserialize, Serialize};

use crate::arguments::PolicyArguments;
use crate::error::CommandError;

/// `PLIMSOLL_BUDGET`: the ceiling in tokens, or `auto`.
pub(crate) const BUDGET: &str = "PLIMSOLL_BUDGET";

/// `PLIMSOLL_STORE`: the path or address of the store.
pub(crate) const STORE: &str = "PLIMSOLL_STORE";

/// `PLIMSOLL_HISTORY`: the address of the ClickHouse that keeps the history.
pub(crate) const HISTORY: &str = "PLIMSOLL_HISTORY";

/// All settings of the command line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) budget: Budget,
    pub(crate) said_once: SaidOnce,
    pub(crate) thinking: BoundThinking,
    pub(crate) intra_phase: IntraPhase,
    pub(crate) settle: Settle,
    pub(crate) pin: PinSettings,
    pub(crate) clear_tool_uses: ClearToolUses,
    pub(crate) newest: Newest,
    pub(crate) recall: RecallSettings,
    pub(crate) models: ModelsConfig,
    pub(crate) run: RunSettings,
    pub(crate) tools: ToolsConfig,
    pub(crate) cards: CardSettings,
    pub(crate) answers: AnswerSettings,
    pub(crate) lazy_tools: LazySettings,
    pub(crate) safety: Safety,
    pub(crate) selection: SelectionConfig,
    pub(crate) memory: MemoryConfig,
    pub(crate) request: RequestSettings,
    pub(crate) gateway: GatewayConfig,
    pub(crate) store: StoreSettings,
}

/// Whether lines that stand in the context already are left out on arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SaidOnce(pub(crate) bool);

impl Default for SaidOnce {
    fn default() -> Self {
        Self(true)
    }
}

/// Settings of the policy `clear-tool-uses`; the defaults are those of the provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClearToolUses {
    /// Tokens of context at which a batch of old results is cleared.
    pub(crate) trigger: u64,
    /// The newest results that stay.
    pub(crate) keep: usize,
}

impl Default for ClearToolUses {
    fn default() -> Self {
        Self { trigger: 100_000, keep: 3 }
    }
}

/// Settings of the policy `newest`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Newest {
    /// The most tokens of the newest messages that are sent.
    pub(crate) budget: u64,
}

impl Default for Newest {
    fn default() -> Self {
        Self { budget: 30_000 }
    }
}

/// Reads the configuration for a command that sends text or runs programs: a project's file that the user has not trusted
/// must not say where.
pub(crate) fn for_sending(named: Option<&Path>) -> Result<Config, CommandError> {
    let project = files::project();
    if named.is_none() && files::in_force(None).as_ref() == Some(&project) {
        let text = files::read(&project)?;
        // A mistyped key is told as one below, not as a key that needs trust.
        if toml::from_str::<Config>(&text).is_ok() {
            trust::refuse_unsent(&project, &text)?;
        }
    }
    read(named)
}

/// Reads the configuration that the arguments and the environment name.
pub(crate) fn config(arguments: &PolicyArguments) -> Result<Config, CommandError> {
    let mut config = read(arguments.config.as_deref())?;
    config.budget = environment_budget()?.unwrap_or(config.budget);
    config.budget = arguments.budget.map_or(config.budget, Budget::Tokens);
    Ok(config)
}

pub(crate) fn environment_budget() -> Result<Option<Budget>, CommandError> {
    let Some(budget) = environment(BUDGET) else { return Ok(None) };
    if budget == "auto" {
        return Ok(Some(Budget::Auto));
    }
    budget.parse().map(|tokens| Some(Budget::Tokens(tokens))).map_err(|_| {
        CommandError::usage(anyhow::anyhow!("{BUDGET} is `{budget}`"))
            .hint("give a whole number of tokens, or auto")
    })
}

/// Reads the file that is named, else that of the project, else the user's; without any the defaults stand. The environment
/// overrides where the stores are.
pub(crate) fn read(named: Option<&Path>) -> Result<Config, CommandError> {
    let mut config = match files::in_force(named) {
        Some(path) => parse(&path, named.is_some())?,
        None => Config::default(),
    };
    let address = |name| environment(name).map(StoreAddress::new);
    config.store.address = address(STORE).or(config.store.address);
    config.store.history = address(HISTORY).or(config.store.history);
    Ok(config)
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the line, counted from 1, in which byte `at` of `text` stands.
pub(crate) fn line_at(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// Reads a file; one that the user did not name, and that is the project's, needs the user's trust.
fn parse(path: &Path, is_named: bool) -> Result<Config, CommandError> {
    let text = files::read(path)?;
    let parsed = toml::from_str(&text);
    if parsed.is_ok()
        && !is_named
        && path == files::project()
        && let Some(table) = trust::untrusted(path, &text)
    {
        return Config::deserialize(table).map_err(CommandError::usage);
    }
    parsed.map_err(|error| {
        let place =
            error.span().map_or(String::new(), |span| format!(":{}", line_at(&text, span.start)));
        let message = error.message().to_owned();
        let named = CommandError::usage(anyhow::anyhow!("{}{place}: {message}", path.display()));
        match nearest_key(&message) {
            Some(known) => named.hint(format!("the nearest known key is `{known}`")),
            None => named.hint("`plimsoll config check` shows all errors"),
        }
    })
}

/// Finds the known key that is nearest to the unknown one of a message such as
/// ``unknown field `windwo`, expected one of `enabled`, `window` ``.
pub(crate) fn nearest_key(message: &str) -> Option<&str> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| message.starts_with("unknown field"))?;
    let known: Vec<&str> = quoted.collect();
    plimsoll_core::nearest(unknown, known.iter().copied())
}

impl Config {
    /// Returns the policy that `name` means with these settings, `name[:numbers]`.
    pub(crate) fn policy(&self, name: &str) -> Result<Policy, CommandError> {
        let unknown = || {
            CommandError::usage(anyhow::anyhow!("unknown policy `{name}`")).hint(
                "one of full, window, plimsoll, clear-tool-uses[:TRIGGER,KEEP], newest[:BUDGET], trim[:WINDOW], working-set[:BUDGET]",
            )
        };
        let (word, numbers) = name.split_once(':').unwrap_or((name, ""));
        let numbers: Vec<u64> = numbers
            .split(',')
            .filter(|part| !part.is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|_| unknown())?;
        match (word, numbers.as_slice()) {
            ("full", []) => Ok(Policy::Full),
            ("window", []) => Ok(Policy::Bounded(self.bounds(Some(Cadence::EveryTurn)))),
            ("plimsoll", []) => Ok(Policy::Bounded(self.bounds(None))),
            ("clear-tool-uses", []) => Ok(Policy::ClearToolUses {
                trigger: self.clear_tool_uses.trigger,
                keep: self.clear_tool_uses.keep,
            }),
            ("clear-tool-uses", [trigger]) => {
                Ok(Policy::ClearToolUses { trigger: *trigger, keep: self.clear_tool_uses.keep })
            }
            ("clear-tool-uses", [trigger, keep]) => {
                Ok(Policy::ClearToolUses { trigger: *trigger, keep: *keep as usize })
            }
            ("newest", []) => Ok(Policy::Newest { budget: self.newest.budget }),
            ("newest", [budget]) => Ok(Policy::Newest { budget: *budget }),
            ("trim", []) => Ok(Policy::Trim(ContextBudget::default())),
            ("trim", [window]) => {
                let budget = ContextBudget { total_tokens: *window, ..ContextBudget::default() };
                budget.checked().map(Policy::Trim).map_err(CommandError::usage)
            }
            ("working-set", []) => Ok(Policy::WorkingSet(self.request.clone())),
            ("working-set", [total]) => {
                Ok(Policy::WorkingSet(RequestSettings { total: *total, ..self.request.clone() }))
            }
            _ => Err(unknown()),
        }
    }

    /// Returns the policy of a name that bounds requests, with another budget where one is given.
    pub(crate) fn policy_within(&self, name: &str, budget: Option<u64>) -> Option<Policy> {
        let policy = match budget {
            None => self.policy(name),
            Some(budget) => {
                let mut config = self.clone();
                config.budget = budget.into();
                config.newest.budget = budget;
                config.request.total = budget;
                config.policy(name)
            }
        };
        // A client's messages may be made smaller; a summary between them has no place in what it sends next.
        policy.ok().filter(|policy| !matches!(policy, Policy::Trim(_)))
    }

    /// Returns the frames to choose from.
    pub(crate) fn frames(&self) -> Result<Frames, CommandError> {
        let frames = self.memory.frames();
        frames.map_err(|error| CommandError::usage(anyhow::Error::new(error).context("[memory]")))
    }

    fn bounds(&self, cadence: Option<Cadence>) -> Bounds {
        let mut intra_phase = self.intra_phase.clone();
        intra_phase.cadence = cadence.unwrap_or(intra_phase.cadence);
        Bounds {
            budget: self.budget,
            said_once: self.said_once.0,
            said_once_from: 0,
            thinking: self.thinking,
            intra_phase,
            settle: self.settle.clone(),
            pin: self.pin.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let error = toml::from_str::<Config>("[intra_phase]\nwindwo = 3\n").expect_err("unknown");
        assert_eq!(nearest_key(error.message()), Some("window"));
    }

    #[test]
    fn the_readme_shows_the_defaults() {
        let (_, rest) =
            include_str!("../../../README.md").split_once("```toml\n").expect("a block");
        let mut shown: Config =
            toml::from_str(rest.split_once("```").expect("its end").0).expect("sound");
        // Options without a default are shown with their effective values.
        let usual = SelectionConfig::default();
        assert_eq!(shown.selection.strategy(), usual.strategy());
        assert_eq!(shown.selection.selector_model(), usual.selector_model());
        (shown.selection.strategy, shown.selection.selector_model) = (None, None);
        assert_eq!(shown, Config::default());
    }

    #[test]
    fn policies_take_numbers() {
        let config = Config::default();
        assert_eq!(config.policy("newest:5").ok(), Some(Policy::Newest { budget: 5 }));
        assert!(config.policy("newest:x").is_err());
        assert!(config.policy("newst").is_err());
    }
}
