//! What a phase's model may call, and where it may go on to.

use plimsoll_engine::Tool;
use serde_json::Value;

use super::Run;
use super::error::RunError;
use super::journal::Journal;
use super::state::RunState;
use super::toolbox::{EXPAND_REF, ROUTE_TO};
use super::turns::Talk;
use crate::definition::{Handoff, Phase, Tackle};

impl Run {
    /// Returns the tools that a phase's model is offered; with a manifest the model picks them first.
    pub(crate) async fn offered(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        talk: &Talk,
    ) -> Result<Vec<Tool>, RunError> {
        let names = match &phase.tackle {
            Tackle::Names(names) => names.clone(),
            Tackle::Manifest => self.picked(phase, past, journal, talk).await?,
        };
        let mut tools: Vec<Tool> = Vec::new();
        let open = self.open_handoffs(phase, past)?;
        let routes = (!open.is_empty()).then_some(ROUTE_TO);
        // A ref is shown only where it can be expanded.
        let refs = self.shows_refs(phase).then_some(EXPAND_REF);
        let named = names.iter().map(String::as_str).filter(|name| *name != ROUTE_TO);
        for name in named.chain(refs).chain(routes) {
            let Some(mut tool) = self.toolbox.find(name) else { continue };
            if name == ROUTE_TO {
                tool.schema = targets(&open).into();
            }
            if !tools.iter().any(|known| known.name == tool.name) {
                tools.push(tool);
            }
        }
        Ok(tools)
    }

    /// Returns the handoffs whose condition holds.
    pub(crate) fn open_handoffs<'a>(
        &self,
        phase: &'a Phase,
        past: &RunState,
    ) -> Result<Vec<&'a Handoff>, RunError> {
        let mut open = Vec::new();
        for handoff in &phase.handoffs {
            let is_open = match &handoff.condition {
                Some(condition) => self.holds(phase, past, condition)?,
                None => true,
            };
            if is_open {
                open.push(handoff);
            }
        }
        Ok(open)
    }

    /// Lets the model pick from the directory of all tools.
    async fn picked(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        talk: &Talk,
    ) -> Result<Vec<String>, RunError> {
        let directory: Vec<String> = self
            .toolbox
            .directory()
            .into_iter()
            .map(|(name, about)| format!("{name}: {about}"))
            .collect();
        let task = match &phase.instructions {
            Some(template) => self.render(phase, past, template, [])?,
            None => String::new(),
        };
        let question = format!(
            "Which of these tools may help with the task? Name as few as will do.\n\nTASK:\n{task}\n\nTOOLS:\n{}",
            directory.join("\n")
        );
        let schema = r#"{"type":"object","properties":{"tools":{"type":"array","items":{"type":"string"}}},"required":["tools"]}"#;
        let answer = self
            .ask(phase, journal, talk.model.clone(), talk.asked_for.clone(), question, schema)
            .await?;
        let picked = answer.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
        let names = picked.iter().filter_map(Value::as_str).map(str::to_owned);
        let (known, unknown): (Vec<String>, Vec<String>) =
            names.partition(|name| self.toolbox.find(name).is_some());
        if !unknown.is_empty() {
            self.note(phase.name.as_str(), format!("no such tools: {}", unknown.join(", ")));
        }
        Ok(known)
    }
}

/// Returns the schema of the tool that goes on to another phase, with the phases of this one.
fn targets(open: &[&Handoff]) -> String {
    let names: Vec<&str> = open.iter().map(|handoff| handoff.target.name.as_str()).collect();
    let about: Vec<String> = open
        .iter()
        .filter_map(|handoff| {
            handoff.description.as_ref().map(|about| format!("{}: {about}", handoff.target.name))
        })
        .collect();
    let mut target = serde_json::json!({"type": "string", "enum": names});
    if !about.is_empty() {
        target["description"] = about.join("; ").into();
    }
    serde_json::json!({"type": "object", "properties": {"target": target}, "required": ["target"]})
        .to_string()
}
