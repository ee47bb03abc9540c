//! Settings of runs: the limits of a phase, and the switches of `auto-context.md`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll_core::safety::Safety;
use plimsoll_engine::cards::CardSettings;
use serde::{Deserialize, Serialize};

/// Models that a caller of a run names instead of those in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelOverrides {
    /// For every call.
    pub all: Option<String>,
    /// For the turns of phases by name; they go before all others.
    pub phases: BTreeMap<String, String>,
    /// For models by the name in the file.
    pub renamed: BTreeMap<String, String>,
}

impl ModelOverrides {
    /// Returns the model instead of `name`.
    pub fn instead_of(&self, name: Option<String>) -> Option<String> {
        let renamed = name.as_ref().and_then(|name| self.renamed.get(name));
        renamed.or(self.all.as_ref()).cloned().or(name)
    }

    /// Returns the model of a phase for which the file names `name`.
    pub(crate) fn name_of(&self, phase: &str, name: Option<String>) -> Option<String> {
        self.phases.get(phase).cloned().or_else(|| self.instead_of(name))
    }
}

/// Settings of `plimsoll run`.
#[expect(clippy::struct_excessive_bools, reason = "feature flags, each of its own")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunSettings {
    /// The model of phases that name none.
    pub model: Option<String>,
    /// The most turns of a phase with tools whose rules name no limit.
    pub max_turns: u32,
    /// The most attempts of a loop that names no limit.
    pub max_attempts: u32,
    /// The most levels of cascades inside cascades.
    pub max_depth: u32,
    /// The most tokens of an answer.
    pub max_tokens: u32,
    /// Characters above which the result of a tool becomes an artefact.
    pub artefact_from: usize,
    /// Whether a phase's own old messages may be shortened.
    pub intra_phase_enabled: bool,
    /// Whether a phase sees a selection of earlier phases.
    pub inter_phase_enabled: bool,
    /// Whether a model may choose messages; off makes such strategies use the heuristic.
    pub llm_selection_enabled: bool,
    /// Whether the messages of a run get cards and jobs as they are stored.
    #[serde(skip)]
    pub cards: CardSettings,
    /// The handling of personal data and secrets in what a selecting model is sent.
    #[serde(skip)]
    pub safety: Safety,
    /// Models instead of those that the cascade names.
    #[serde(skip)]
    pub models: ModelOverrides,
    /// The folder below which images are saved, as `images/{session}/{phase}/`.
    #[serde(skip)]
    pub images: Option<PathBuf>,
    /// Whether tools and validators that nobody has are answered instead of refused.
    #[serde(skip)]
    pub stubs: bool,
}

impl Default for RunSettings {
    /// `max_turns` is that of the example of `auto-context.md`; the other limits were chosen.
    fn default() -> Self {
        Self {
            model: None,
            max_turns: 30,
            max_attempts: 3,
            max_depth: 8,
            max_tokens: 4_096,
            artefact_from: 2_000,
            intra_phase_enabled: true,
            inter_phase_enabled: true,
            llm_selection_enabled: true,
            cards: CardSettings::default(),
            safety: Safety::default(),
            models: ModelOverrides::default(),
            images: None,
            stubs: false,
        }
    }
}
