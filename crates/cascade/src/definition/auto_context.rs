//! Contexts that are managed: within a phase, and between phases.

use serde_json::{Value, json};

use super::{Cascade, ContextMode, Phase};
use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::template::Template;

words! {
    /// The strategy that selects messages of earlier phases.
    pub enum Strategy {
        Heuristic "heuristic",
        Semantic "semantic",
        Llm "llm",
        Hybrid "hybrid",
    }
}

words! {
    /// The messages that are always seen.
    pub enum AnchorInclude {
        Output "output",
        Callouts "callouts",
        Input "input",
        Errors "errors",
    }
}

record! {
    /// The management of contexts, for all phases that do not say otherwise; `true` turns on its defaults.
    pub struct AutoContext short {
        /// Within a phase.
        intra_phase | "intra_cell": Option<IntraPhase> = None,
        /// Between phases.
        inter_phase | "inter_cell": Option<InterPhase> = None,
    }
}

record! {
    /// Settings within a phase, as written. Missing fields inherit from the cascade, then use the default.
    pub struct IntraPhase short {
        /// Whether old messages may be shortened; off sends everything.
        enabled: Option<bool> = None,
        /// The last turns that stay whole (5).
        window: Option<u32> = None,
        /// Turns after which a result is masked, also inside the window (3).
        mask_observations_after: Option<u32> = None,
        /// Whether a retry of a loop gets the short context of its attempts (yes).
        compress_loops: Option<bool> = None,
        /// The most attempts that a retry is told of (3).
        loop_history_limit: Option<u32> = None,
        /// Whether old reasoning without tool calls is kept (yes).
        preserve_reasoning: Option<bool> = None,
        /// Whether errors in old messages are kept (yes): true, false or `keyword`.
        preserve_errors: Option<PreserveErrors> = None,
        /// Results of fewer characters are never masked (200).
        min_masked_size: Option<u32> = None,
        /// The times at which old messages change their form: `cache_aware` or `every_turn`.
        cadence: Option<Cadence> = None,
    }
}

words! {
    /// The times at which old messages change their form.
    pub enum Cadence {
        EveryTurn "every_turn",
        CacheAware "cache_aware",
    }
}

/// The treatment of errors in old messages; the same as the engine's setting.
pub type PreserveErrors = plimsoll_core::policy::PreserveErrors;

record! {
    /// Settings of the selection between phases, as written. Missing fields inherit from the cascade, then use the default.
    pub struct InterPhase short {
        /// Whether messages are selected; off shows phases in mode `auto` everything.
        enabled: Option<bool> = None,
        /// The strategy (`hybrid`); that of `selection` goes before.
        strategy: Option<Strategy> = None,
        /// The model that chooses; that of `selection` goes before.
        selector_model: Option<Template> = None,
        /// The messages that are always seen.
        anchors: Option<Anchors> = None,
        /// The selection of the rest.
        selection: Option<Selection> = None,
    }
}

record! {
    /// The anchors, as written.
    pub struct Anchors {
        /// The last turns of the phase before (3).
        window: Option<u32> = None,
        /// Phases whose output is seen, by name or `previous`, `first` or `all` (`previous`).
        from_phases | "from_cells": Option<Vec<String>> = None,
        /// The kinds of messages (`output`, `callouts`, `input`).
        include: Option<Vec<AnchorInclude>> = None,
    }
}

record! {
    /// The selection among messages of earlier phases, as written.
    pub struct Selection {
        /// The strategy.
        strategy: Option<Strategy> = None,
        /// The most tokens of what is chosen (30,000).
        max_tokens: Option<u32> = None,
        /// The most messages (50).
        max_messages: Option<u32> = None,
        /// The model that chooses.
        selector_model: Option<Template> = None,
        /// The weight of recency (0.3).
        recency_weight: Option<f64> = None,
        /// The weight of common words (0.4).
        keyword_weight: Option<f64> = None,
        /// The weight of a callout (0.3).
        callout_weight: Option<f64> = None,
        /// The least similarity (0.7).
        similarity_threshold: Option<f64> = None,
    }
}

/// The selection of one phase in mode `auto`: its own settings over the cascade's over the defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoSelection {
    pub enabled: bool,
    pub strategy: Strategy,
    pub selector_model: Option<Template>,
    pub window: u32,
    /// The window where the cascade writes one.
    pub written_window: Option<u32>,
    pub from_phases: Vec<String>,
    pub include: Vec<AnchorInclude>,
    pub max_tokens: u32,
    pub max_messages: u32,
    pub recency_weight: f64,
    pub keyword_weight: f64,
    pub callout_weight: f64,
    pub similarity_threshold: f64,
}

impl Cascade {
    /// Returns the settings within `phase`: its own, then the cascade's, then the defaults; `None` where neither has any.
    pub fn intra_phase(&self, phase: &Phase) -> Option<plimsoll_core::policy::IntraPhase> {
        let own = phase.intra_context.as_ref();
        // `auto_context: {}` means the defaults, within phases and between them.
        if own.is_none() && self.auto_context.is_none() {
            return None;
        }
        let shared = self.auto_context.as_ref().and_then(|auto| auto.intra_phase.as_ref());
        let mut settings = plimsoll_core::policy::IntraPhase::default();
        for written in [shared, own].into_iter().flatten() {
            written.over(&mut settings);
        }
        if let Some(window) = self.selection(phase).and_then(|auto| auto.written_window) {
            // The last turns of the phase itself are anchors too.
            settings.window = settings.window.max(window);
            settings.mask_observations_after = settings.mask_observations_after.max(window);
        }
        Some(settings)
    }

    /// Returns the size below which results of `phase` are not masked, in characters (200 where nothing is said).
    pub fn min_masked_size(&self, phase: &Phase) -> u32 {
        let shared = self.auto_context.as_ref().and_then(|auto| auto.intra_phase.as_ref());
        let own = phase.intra_context.as_ref();
        [own, shared]
            .into_iter()
            .flatten()
            .find_map(|written| written.min_masked_size)
            .unwrap_or(200)
    }

    /// Returns how the context of `phase` is chosen; `None` where its mode is not `auto`.
    pub fn selection(&self, phase: &Phase) -> Option<AutoSelection> {
        let context = phase.context.as_ref().filter(|context| context.mode == ContextMode::Auto)?;
        let shared = self.auto_context.as_ref().and_then(|auto| auto.inter_phase.as_ref());
        let anchors = [context.anchors.as_ref(), shared.and_then(|shared| shared.anchors.as_ref())];
        let selections =
            [context.selection.as_ref(), shared.and_then(|shared| shared.selection.as_ref())];
        let anchor = || anchors.into_iter().flatten();
        let said = || selections.into_iter().flatten();
        Some(AutoSelection {
            enabled: shared.and_then(|shared| shared.enabled).unwrap_or(true),
            strategy: said()
                .find_map(|selection| selection.strategy)
                .or_else(|| shared?.strategy)
                .unwrap_or(Strategy::Hybrid),
            selector_model: said()
                .find_map(|selection| selection.selector_model.clone())
                .or_else(|| shared?.selector_model.clone()),
            window: anchor().find_map(|anchors| anchors.window).unwrap_or(3),
            written_window: anchor().find_map(|anchors| anchors.window),
            from_phases: anchor()
                .find_map(|anchors| anchors.from_phases.clone())
                .unwrap_or_else(|| vec!["previous".to_owned()]),
            include: anchor().find_map(|anchors| anchors.include.clone()).unwrap_or_else(|| {
                vec![AnchorInclude::Output, AnchorInclude::Callouts, AnchorInclude::Input]
            }),
            max_tokens: said().find_map(|selection| selection.max_tokens).unwrap_or(30_000),
            max_messages: said().find_map(|selection| selection.max_messages).unwrap_or(50),
            recency_weight: said().find_map(|selection| selection.recency_weight).unwrap_or(0.3),
            keyword_weight: said().find_map(|selection| selection.keyword_weight).unwrap_or(0.4),
            callout_weight: said().find_map(|selection| selection.callout_weight).unwrap_or(0.3),
            similarity_threshold: said()
                .find_map(|selection| selection.similarity_threshold)
                .unwrap_or(0.7),
        })
    }
}

impl IntraPhase {
    fn of(enabled: bool) -> Self {
        Self {
            enabled: Some(enabled),
            window: None,
            mask_observations_after: None,
            compress_loops: None,
            loop_history_limit: None,
            preserve_reasoning: None,
            preserve_errors: None,
            min_masked_size: None,
            cadence: None,
        }
    }

    /// Puts what is written over `settings`.
    fn over(&self, settings: &mut plimsoll_core::policy::IntraPhase) {
        fn put<T: Copy>(written: Option<T>, setting: &mut T) {
            if let Some(value) = written {
                *setting = value;
            }
        }
        put(self.enabled, &mut settings.enabled);
        put(self.window, &mut settings.window);
        put(self.mask_observations_after, &mut settings.mask_observations_after);
        put(self.compress_loops, &mut settings.compress_loops);
        put(self.loop_history_limit, &mut settings.loop_history_limit);
        put(self.preserve_reasoning, &mut settings.preserve_reasoning);
        put(self.preserve_errors, &mut settings.preserve_errors);
        let cadence = self.cadence.map(|cadence| match cadence {
            Cadence::EveryTurn => plimsoll_core::policy::Cadence::EveryTurn,
            Cadence::CacheAware => plimsoll_core::policy::Cadence::CacheAware,
        });
        put(cadence, &mut settings.cadence);
    }
}

impl InterPhase {
    fn of(enabled: bool) -> Self {
        Self {
            enabled: Some(enabled),
            strategy: None,
            selector_model: None,
            anchors: None,
            selection: None,
        }
    }
}

impl Decode for PreserveErrors {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match node.scalar() {
            Some("keyword") => Some(Self::Keyword),
            _ => bool::decode(node, decoder).map(|on| if on { Self::Lines } else { Self::Off }),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [bool::schema(definitions), {"const": "keyword"}]})
    }
}

impl Decode for AutoContext {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if !matches!(node.kind, NodeKind::Bool(..)) {
            return Self::decode_map(node, decoder);
        }
        let enabled = bool::decode(node, decoder)?;
        Some(Self {
            intra_phase: Some(IntraPhase::of(enabled)),
            inter_phase: Some(InterPhase::of(enabled)),
        })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": "boolean"}, Self::schema_map(definitions)]})
    }
}

impl Decode for IntraPhase {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match node.kind {
            NodeKind::Bool(..) => bool::decode(node, decoder).map(Self::of),
            _ => Self::decode_map(node, decoder),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": "boolean"}, Self::schema_map(definitions)]})
    }
}

impl Decode for InterPhase {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match node.kind {
            NodeKind::Bool(..) => bool::decode(node, decoder).map(Self::of),
            _ => Self::decode_map(node, decoder),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": "boolean"}, Self::schema_map(definitions)]})
    }
}
