//! Dry runs: what each phase would see, with placeholders for what models and tools would say.

use std::sync::Arc;

use plimsoll_core::{Message, Role};
use serde_json::{Map, Value};

use super::context::phase_context;
use super::error::RunError;
use super::next::after;
use super::past::{Past, Ran};
use super::turns::own_message;
use crate::definition::{Cascade, InputsSchema, Phase, Template};
use crate::template::Values;

/// A phase of a dry run.
#[derive(Debug, Clone)]
pub struct DryPhase {
    pub name: String,
    /// What its model would be sent first; what mode `auto` would choose is shown as everything it may choose from.
    pub messages: Vec<Arc<Message>>,
    pub notes: Vec<String>,
}

/// Goes through a cascade without a model: each phase once, by its first handoff.
pub fn dry_run(cascade: &Cascade, input: Map<String, Value>) -> Result<Vec<DryPhase>, RunError> {
    let mut whole = cascade.inputs_schema.as_ref().map(InputsSchema::defaults).unwrap_or_default();
    whole.extend(input);
    let mut past = Past { input: whole, ..Past::default() };
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
            let values = values(&past, phase);
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
            own.push(Arc::new(own_message(phase, Role::System, instructions)));
            let prompt = format!("Carry out the phase `{name}`.");
            own.push(Arc::new(own_message(phase, Role::User, prompt)));
            let mut messages = context.messages;
            messages.extend(own.iter().cloned());
            phases.push(DryPhase { name: name.to_owned(), messages, notes: context.notes });
            own.push(Arc::new(own_message(phase, Role::Assistant, output.clone())));
        }
        past.ran.push(Ran {
            phase: name.to_owned(),
            value: Value::String(output.clone()),
            output,
            messages: own,
            set: Map::new(),
            retention: phase.context_retention,
        });
        next = after(cascade, phase);
    }
    Ok(phases)
}

fn values(past: &Past, phase: &Phase) -> Values {
    let mut values = Values::default();
    for (name, value) in past.values() {
        values.set(&name, &value);
    }
    values.set("phase", &Value::String(phase.name.to_string()));
    values
}

fn failed(phase: &Phase, error: &dyn std::fmt::Display) -> RunError {
    RunError::Template { phase: phase.name.to_string(), what: error.to_string() }
}
