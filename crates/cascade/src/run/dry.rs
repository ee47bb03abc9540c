//! Dry runs: the context of each phase, with placeholders for the answers of models and tools.

use std::sync::Arc;

use plimsoll_core::{Message, Role};
use serde_json::Map;
use serde_json::Value;

use super::context::phase_context;
use super::error::RunError;
use super::next::after;
use super::phase::prompts_of;
use super::state::{PhaseRun, RunState};
use super::values::{failed, values};
use super::visit::phase_message;
use crate::definition::Cascade;
use crate::template::Template;

/// A phase of a dry run.
#[derive(Debug, Clone)]
pub struct DryPhase {
    pub name: String,
    /// The first messages that its model would get; in mode `auto` all those that it may choose from.
    pub messages: Vec<Arc<Message>>,
    pub notes: Vec<String>,
}

/// Goes through a cascade without a model: each phase once, by its first handoff.
pub fn dry_run(cascade: &Cascade, input: Map<String, Value>) -> Result<Vec<DryPhase>, RunError> {
    let mut past = RunState { input: cascade.with_defaults(input), ..RunState::default() };
    let mut phases = Vec::new();
    let mut next = cascade.phases.first();
    while let Some(phase) = next.filter(|phase| past.visits(phase.name.as_str()) == 0) {
        let name = phase.name.as_str();
        let output = format!("(output of {name})");
        let mut own = Vec::new();
        if let Some(tool) = &phase.tool {
            phases.push(DryPhase {
                name: name.to_owned(),
                messages: Vec::new(),
                notes: vec![format!("calls the tool `{tool}`, and no model")],
            });
        } else {
            let values = values(cascade, phase, &past);
            let holds = |condition: &Template| {
                condition.is_true(&values).map_err(|error| failed(phase, &error))
            };
            let mut context = phase_context(phase, &past, &holds)?;
            if cascade.selection(phase).is_some() {
                context.messages = super::context::snowball(&past);
                context.notes.push("mode `auto` chooses from these when it runs".to_owned());
            }
            let instructions = match &phase.instructions {
                Some(template) => {
                    template.render(&values).map_err(|error| failed(phase, &error))?
                }
                None => String::new(),
            };
            own.extend(prompts_of(phase, instructions).map(Arc::new));
            let mut messages = context.messages;
            messages.extend(own.iter().cloned());
            phases.push(DryPhase { name: name.to_owned(), messages, notes: context.notes });
            own.push(Arc::new(phase_message(phase, Role::Assistant, output.clone())));
        }
        past.runs.push(PhaseRun::new(phase, output, own));
        next = after(cascade, phase);
    }
    Ok(phases)
}
