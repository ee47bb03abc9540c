//! Cascades as they are run: names and defaults are those of `context-injection.md` and `auto-context.md`.

mod auto_context;
mod callouts;
mod context;
mod count;
mod evaluation;
mod handoff;
mod human_input;
mod inputs;
mod name;
mod output;
mod reforge;
mod rules;
mod soundings;
mod sub_cascade;
mod tackle;
mod template;
mod token_budget;
mod tool_caching;
mod validator;
mod ward;

pub use auto_context::{
    AnchorInclude, Anchors, AutoContext, AutoSelection, Cadence, InterPhase, IntraPhase,
    PreserveErrors, Selection, Strategy,
};
pub use callouts::Callouts;
pub use context::{
    AsRole, Context, ContextMode, ContextRetention, ContextTtl, ImagesFilter, Include, Includes,
    MessagesFilter, Source, SourcePhase,
};
pub use count::Count;
pub use evaluation::{CostAware, CostNormalization, Evaluator, Pareto, ParetoPolicy};
pub use handoff::{ErrorPrompt, Handoff, OnError, Routing, Target};
pub use human_input::{HumanInput, HumanInputKind, HumanOption, HumanQuestion};
pub use inputs::{Input, InputsSchema};
pub use name::Name;
pub use output::{ExtractionFormat, OutputExtraction, OutputSchema, Pattern};
pub use reforge::{MutationMode, Reforge};
pub use rules::Rules;
pub use soundings::{ModelStrategy, SoundingMode, SoundingModel, SoundingModels, Soundings};
pub use sub_cascade::SubCascade;
pub use tackle::Tackle;
pub use template::Templated;
pub use token_budget::{BudgetStrategy, Summarizer, TokenBudget};
pub use tool_caching::{CacheKey, ToolCachePolicy, ToolCaching};
pub use validator::{Language, PromptValidator, Validator};
pub use ward::{Ward, WardMode, Wards};

use crate::template::Template;

record! {
    /// Phases that run one after another, each seeing the context that is chosen for it.
    pub struct Cascade {
        /// The cascade's name: sessions, folders and logs have it.
        cascade_id | "id": Name,
        /// The purpose of the cascade.
        description: Option<String> = None,
        /// The inputs of a run: a name and a description each, or a JSON Schema.
        inputs_schema | "input_schema": Option<InputsSchema> = None,
        /// The phases, in the order in which they run where no handoff leads elsewhere.
        phases | "cells": Vec<Phase>,
        /// The management of contexts; without it every phase sees all that went before.
        auto_context: Option<AutoContext> = None,
        /// The bank in which the runs of this cascade remember.
        memory: Option<String> = None,
        /// The most tokens of a context.
        token_budget: Option<TokenBudget> = None,
        /// Results of tools that serve again.
        tool_caching: Option<ToolCaching> = None,
        /// Whole runs that are tried, of which an evaluator picks one.
        soundings | "candidates" | "takes": Option<Soundings> = None,
        /// Validators by name, each a prompt for a model.
        validators: Vec<(String, PromptValidator)> = Vec::new(),
        /// The model of phases that name none.
        model: Option<Template> = None,
        /// The most runs of one phase by handoffs that come back to it (chosen: real cycles converge in 2 to 5).
        max_visits: u32 = Cascade::MAX_VISITS,
    }
}

record! {
    /// One step: a model's turns with tools, or the call of one tool.
    pub struct Phase {
        /// The phase's name: outputs, folders and handoffs have it.
        name: Name,
        /// The task of the model.
        instructions: Option<Template> = None,
        /// The tools that the model may call.
        tackle | "traits" | "skills" | "tools": Tackle = Tackle::Names(Vec::new()),
        /// Phases that may come next; none means the next in the file, or the end after the last.
        handoffs | "handoff": Vec<Handoff> = Vec::new(),
        /// Bounds and the loop of attempts.
        rules: Rules = Rules::default(),
        /// The earlier phases that are seen; without it all of them.
        context: Option<Context> = None,
        /// Earlier phases that are seen before the flowing context.
        inject_from: Vec<Source> = Vec::new(),
        /// The management of the phase's own turns, over the cascade's setting.
        intra_context: Option<IntraPhase> = None,
        /// The part of this phase that later ones see.
        context_retention: ContextRetention = ContextRetention::Full,
        /// The turns after which kinds of content are no longer seen.
        context_ttl: Option<ContextTtl> = None,
        /// The part of the output that goes into the state.
        output_extraction: Option<OutputExtraction> = None,
        /// The JSON Schema that the output must fulfil.
        output_schema: Option<OutputSchema> = None,
        /// Attempts of which an evaluator picks one.
        soundings | "candidates" | "takes": Option<Soundings> = None,
        /// Cascades that run before the phase's turns.
        sub_cascades | "sub_cascade": Vec<SubCascade> = Vec::new(),
        /// Messages that are marked as important.
        callouts | "callout": Option<Callouts> = None,
        /// The model, over the cascade's.
        model: Option<Template> = None,
        /// Checks before, after and between the turns.
        wards: Wards = Wards::default(),
        /// The one tool that this phase calls, instead of a model.
        tool: Option<String> = None,
        /// The inputs of the tool.
        inputs | "tool_inputs": Vec<(String, Templated)> = Vec::new(),
        /// The next phase, by the `_route` or `status` of the tool's result.
        routing: Vec<(String, Routing)> = Vec::new(),
        /// The reaction to a failure of the phase.
        on_error: Option<OnError> = None,
        /// The longest that the tool may run, such as `30s`, `5m` or `1h`.
        timeout: Option<String> = None,
        /// The question to a person after the phase.
        human_input: Option<HumanQuestion> = None,
        /// The screen that a person answers, in HTML; a terminal shows its text.
        htmx | "hitl": Option<Template> = None,
        /// The title of the screen.
        hitl_title: Option<Template> = None,
        /// The text above the screen.
        hitl_description: Option<Template> = None,
        /// Whether the run waits for an answer to the screen; it does where the phase is nothing else.
        await_input: Option<bool> = None,
        /// The phase is passed over where this is false.
        condition: Option<Template> = None,
    }
}

impl Cascade {
    /// Runs of one phase by handoffs that come back, where a cascade says nothing (chosen).
    pub const MAX_VISITS: u32 = 10;

    /// Finds a phase by name.
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name.as_str() == name)
    }
}

impl Phase {
    /// Returns whether the phase is the call of one tool.
    pub fn is_tool_call(&self) -> bool {
        self.tool.is_some()
    }

    /// Returns whether the phase asks a person.
    pub fn asks(&self) -> bool {
        self.htmx.is_some()
            || self.human_input.as_ref().is_some_and(|question| question.0.is_some())
    }
}
