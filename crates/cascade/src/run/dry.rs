//! Dry runs: the context of each phase, with placeholders for the answers of models and tools.

use std::sync::Arc;

use plimsoll_core::select::heuristic;
use plimsoll_core::{Message, Role};
use serde_json::Map;
use serde_json::Value;

use super::auto_context::prepared;
use super::context::phase_context;
use super::error::RunError;
use super::next::after;
use super::opening::opened;
use super::phase::prompts_of;
use super::state::{PhaseRun, RunState};
use super::validate::announcement;
use super::values::values;
use super::visit::phase_message;
use crate::definition::{Cascade, Count, Phase, Rules, Strategy};
use crate::template::Template;

/// A phase of a dry run.
#[derive(Debug, Clone)]
pub struct DryPhase {
    pub name: String,
    /// The first messages that its model would get.
    pub messages: Vec<Arc<Message>>,
    pub notes: Vec<String>,
}

/// Goes through a cascade without a model: each phase once, by its first handoff.
pub fn dry_run(cascade: &Cascade, input: Map<String, Value>) -> Result<Vec<DryPhase>, RunError> {
    let mut past = RunState { input: cascade.with_defaults(input), ..RunState::default() };
    let mut phases = Vec::new();
    let mut next = cascade.phases.first();
    let mut seen: Vec<&str> = Vec::new();
    while let Some(phase) = next.filter(|phase| !seen.contains(&phase.name.as_str())) {
        let name = phase.name.as_str();
        seen.push(name);
        next = after(cascade, phase);
        let mut visit = DryVisit { cascade, phase, past: &past, notes: Vec::new() };
        if let Some(condition) = &phase.condition
            && !visit.holds(condition)
        {
            let notes = vec!["passed over: its condition is false".to_owned()];
            phases.push(DryPhase { name: name.to_owned(), messages: Vec::new(), notes });
            continue;
        }
        let output = format!("(output of {name})");
        let mut own = Vec::new();
        let messages = if let Some(tool) = &phase.tool {
            visit.notes.push(format!("calls the tool `{tool}`, and no model"));
            Vec::new()
        } else if phase.instructions.is_none() && phase.asks() {
            visit.notes.push("asks a person, and no model".to_owned());
            Vec::new()
        } else {
            let instructions = visit.instructions();
            let mut messages = visit.context(&instructions)?;
            own.extend(prompts_of(phase, instructions).map(Arc::new));
            messages.extend(own.iter().cloned());
            own.push(Arc::new(phase_message(phase, Role::Assistant, output.clone())));
            opened(messages)
        };
        let notes = visit.notes;
        phases.push(DryPhase { name: name.to_owned(), messages, notes });
        past.runs.push(PhaseRun::new(phase, output, own));
    }
    Ok(phases)
}

/// A phase of a dry run, while it is shown.
struct DryVisit<'a> {
    cascade: &'a Cascade,
    phase: &'a Phase,
    past: &'a RunState,
    notes: Vec<String>,
}

impl DryVisit<'_> {
    /// Returns whether a condition holds; one that placeholders can't decide does.
    fn holds(&mut self, condition: &Template) -> bool {
        match condition.is_true(&values(self.cascade, self.phase, self.past)) {
            Ok(holds) => holds,
            Err(error) => {
                self.notes.push(format!("the placeholders can't decide its condition: {error}"));
                true
            }
        }
    }

    /// Renders a text; one that needs more than placeholders stands as it is written.
    fn rendered(&mut self, template: &Template, what: &str) -> String {
        match template.render(&values(self.cascade, self.phase, self.past)) {
            Ok(text) => text,
            Err(error) => {
                self.notes.push(format!("{what} can't be rendered with placeholders: {error}"));
                template.source().to_owned()
            }
        }
    }

    fn instructions(&mut self) -> String {
        let template = self.phase.instructions.as_ref();
        let mut text = template
            .map(|template| self.rendered(template, "the instructions"))
            .unwrap_or_default();
        let rules = &self.phase.rules;
        if let Some(validator) = rules.loop_until.as_ref().filter(|_| !rules.loop_until_silent) {
            let about = if let Some(prompt) = &rules.loop_until_prompt {
                self.rendered(prompt, "`loop_until_prompt`")
            } else {
                let most = rules.max_attempts.as_ref().and_then(Count::fixed);
                announcement(validator, None, most.unwrap_or(Rules::MAX_ATTEMPTS))
            };
            text.push_str("\n\n");
            text.push_str(&about);
        }
        text
    }

    /// Returns the messages that the phase would see; where a strategy selects, by the heuristic.
    fn context(&mut self, task: &str) -> Result<Vec<Arc<Message>>, RunError> {
        if let Some(auto) = self.cascade.selection(self.phase).filter(|auto| auto.enabled) {
            let prepared = prepared(self.phase, &auto, self.past, task);
            self.notes.extend(prepared.notes.iter().cloned());
            let selection = heuristic(&prepared.pool);
            let (anchors, chosen) = (prepared.anchors.len(), selection.hashes().count());
            let by = match auto.strategy {
                Strategy::Heuristic => "the heuristic".to_owned(),
                other => format!("the heuristic, where a run asks `{}`", other.as_str()),
            };
            self.notes.push(format!("{anchors} anchors, and {chosen} messages selected by {by}"));
            return Ok(prepared.messages(&selection));
        }
        let values = values(self.cascade, self.phase, self.past);
        // A condition that placeholders can't decide is taken for true.
        let holds = |condition: &Template| Ok(condition.is_true(&values).unwrap_or(true));
        let context = phase_context(self.phase, self.past, &holds)?;
        self.notes.extend(context.notes);
        Ok(context.messages)
    }
}
