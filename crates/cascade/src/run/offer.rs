//! The tools and the handoffs that a phase's model is offered.

use plimsoll_engine::Tool;
use serde_json::{Value, json};

use super::ask::RequestedModel;
use super::error::RunError;
use super::toolbox::{EXPAND_REF, ROUTE_TO};
use super::visit::Visit;
use crate::definition::{Handoff, Tackle};

impl<'r> Visit<'r> {
    /// Returns the tools that a phase's model is offered; with a manifest the model picks them first.
    pub(crate) async fn offered_tools(
        &mut self,
        model: &RequestedModel,
    ) -> Result<Vec<Tool>, RunError> {
        let names = match &self.phase.tackle {
            Tackle::Names(names) => names.clone(),
            Tackle::Manifest => self.pick_tools(model).await?,
        };
        let mut tools: Vec<Tool> = Vec::new();
        let open = self.open_handoffs()?;
        let routes = (!open.is_empty()).then_some(ROUTE_TO);
        // A ref is shown only where it can be expanded.
        let refs = self.run.shows_refs(self.phase).then_some(EXPAND_REF);
        let named = names.iter().map(String::as_str).filter(|name| *name != ROUTE_TO);
        for name in named.chain(refs).chain(routes) {
            let Some(mut tool) = self.run.toolbox.find(name) else { continue };
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
    pub(crate) fn open_handoffs(&self) -> Result<Vec<&'r Handoff>, RunError> {
        let mut open = Vec::new();
        for handoff in &self.phase.handoffs {
            if self.holds(handoff.condition.as_ref())? {
                open.push(handoff);
            }
        }
        Ok(open)
    }

    /// Lets the model pick from the directory of all tools.
    async fn pick_tools(&mut self, model: &RequestedModel) -> Result<Vec<String>, RunError> {
        let directory = self.run.toolbox.directory().join("\n");
        let question = format!(
            "Which of these tools may help with the task? Name as few as will do.\n\nTASK:\n{}\n\nTOOLS:\n{directory}",
            self.task()?
        );
        let schema = r#"{"type":"object","properties":{"tools":{"type":"array","items":{"type":"string"}}},"required":["tools"]}"#;
        let answer = self.ask(model, question, schema).await?;
        let picked = answer.get("tools").and_then(Value::as_array).into_iter().flatten();
        let (known, unknown): (Vec<String>, Vec<String>) = picked
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .partition(|name| self.run.toolbox.find(name).is_some());
        if !unknown.is_empty() {
            self.note(format!("no such tools: {}", unknown.join(", ")));
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
    let mut target = json!({"type": "string", "enum": names});
    if !about.is_empty() {
        target["description"] = about.join("; ").into();
    }
    json!({"type": "object", "properties": {"target": target}, "required": ["target"]}).to_string()
}
