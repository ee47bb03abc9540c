//! The tools, models, validators and cascades that a run needs beside its file.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::definition::{
    Cascade, ContextMode, OnError, Phase, SoundingMode, Strategy, Tackle, Validator,
};
use crate::template::Template;

/// The kind of a need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NeedKind {
    Tool,
    Model,
    Validator,
    Cascade,
}

impl NeedKind {
    /// Returns the kind's name as every interface prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Model => "model",
            Self::Validator => "validator",
            Self::Cascade => "cascade",
        }
    }
}

/// Something that a run needs, and the phases that need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunNeed {
    pub kind: NeedKind,
    /// The name; none for the usual model, where a phase names no other.
    pub name: Option<String>,
    pub phases: Vec<String>,
}

/// The needs of a cascade, by kind and name. A name that a template makes is known only in the run, and is not listed.
#[derive(Debug, Default)]
struct RunNeeds(BTreeMap<(NeedKind, Option<String>), Vec<String>>);

impl RunNeeds {
    fn add(&mut self, kind: NeedKind, name: Option<&str>, phase: &str) {
        if name.is_some_and(|name| name.contains('{')) {
            return;
        }
        let phases = self.0.entry((kind, name.map(str::to_owned))).or_default();
        if phases.iter().all(|known| known != phase) {
            phases.push(phase.to_owned());
        }
    }
}

impl Cascade {
    /// Returns what a run of this cascade needs beside its file, each once, by kind and name.
    pub fn needs(&self) -> Vec<RunNeed> {
        let mut needs = RunNeeds::default();
        let whole = self.soundings.as_ref().zip(self.phases.first());
        if let Some((soundings, phase)) = whole {
            self.sounding_needs(soundings, phase, &mut needs);
        }
        for phase in &self.phases {
            self.phase_needs(phase, &mut needs);
        }
        let needs = needs.0.into_iter();
        needs.map(|((kind, name), phases)| RunNeed { kind, name, phases }).collect()
    }

    fn phase_needs(&self, phase: &Phase, needs: &mut RunNeeds) {
        let name = phase.name.as_str();
        if let Some(tool) = &phase.tool {
            needs.add(NeedKind::Tool, Some(tool), name);
        } else if phase.instructions.is_some() {
            self.model(phase, None, needs);
        }
        if let Tackle::Names(names) = &phase.tackle {
            for tool in names {
                needs.add(NeedKind::Tool, Some(tool), name);
            }
        }
        for sub in &phase.sub_cascades {
            needs.add(NeedKind::Cascade, Some(&sub.reference), name);
        }
        let wards = phase.wards.all().map(|ward| &ward.validator);
        for validator in phase.rules.loop_until.iter().chain(wards) {
            self.validator_needs(validator, phase, needs);
        }
        if let Some(soundings) = &phase.soundings {
            self.sounding_needs(soundings, phase, needs);
        }
        match &phase.on_error {
            Some(OnError::Prompt(prompt)) => self.model(phase, prompt.model.as_ref(), needs),
            Some(OnError::AutoFix { model, .. }) => self.model(phase, model.as_ref(), needs),
            _ => {}
        }
    }

    fn sounding_needs(
        &self,
        soundings: &crate::definition::Soundings,
        phase: &Phase,
        needs: &mut RunNeeds,
    ) {
        for model in &soundings.models.0 {
            self.model(phase, Some(&model.model), needs);
        }
        match soundings.mode {
            SoundingMode::Evaluate => {
                self.model(phase, soundings.evaluator_model.as_ref(), needs);
            }
            SoundingMode::Aggregate if soundings.aggregator_instructions.is_some() => {
                self.model(phase, soundings.aggregator_model.as_ref(), needs);
            }
            SoundingMode::Aggregate => {}
        }
        if let Some(validator) = &soundings.validator {
            self.validator_needs(validator, phase, needs);
        }
    }

    fn validator_needs(&self, validator: &Validator, phase: &Phase, needs: &mut RunNeeds) {
        let name = phase.name.as_str();
        match validator {
            Validator::Named(known) => {
                match self.validators.iter().find(|(name, _)| name == known) {
                    Some((_, prompt)) => self.model(phase, prompt.model.as_ref(), needs),
                    // The phase's model judges by its own prompt where nobody else does.
                    None if phase.rules.loop_until_prompt.is_some()
                        && phase.rules.loop_until.as_ref() == Some(validator) => {}
                    None => needs.add(NeedKind::Validator, Some(known), name),
                }
            }
            Validator::Tool { tool, .. } => needs.add(NeedKind::Tool, Some(tool), name),
            Validator::Code { language, .. } => {
                needs.add(NeedKind::Tool, Some(&language.tool()), name);
            }
            Validator::Prompt(prompt) => self.model(phase, prompt.model.as_ref(), needs),
        }
    }

    /// Adds the model of a template, else that of the phase, else that of the cascade, else the usual one.
    fn model(&self, phase: &Phase, own: Option<&Template>, needs: &mut RunNeeds) {
        let model = own.or(phase.model.as_ref()).or(self.model.as_ref());
        needs.add(NeedKind::Model, model.map(Template::source), phase.name.as_str());
    }

    /// Returns the models that select messages of earlier phases; a run goes on without them.
    pub fn selector_models(&self) -> Vec<String> {
        let selects = |phase: &&Phase| {
            phase.context.as_ref().is_some_and(|context| context.mode == ContextMode::Auto)
        };
        let mut names: Vec<String> = Vec::new();
        for phase in self.phases.iter().filter(selects) {
            let Some(auto) = self.selection(phase) else { continue };
            if !matches!(auto.strategy, Strategy::Llm | Strategy::Hybrid) {
                continue;
            }
            let name = auto.selector_model.as_ref().map_or_else(
                || plimsoll_core::select::SELECTOR_MODEL.to_owned(),
                |model| model.source().to_owned(),
            );
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}
