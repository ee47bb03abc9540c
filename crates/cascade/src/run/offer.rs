//! The tools and the handoffs that a phase's model is offered.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use plimsoll_core::Tokenizer;
use plimsoll_engine::Tool;
use serde_json::{Value, json};

use super::ask::RequestedModel;
use super::error::RunError;
use super::event::Purpose;
use super::toolbox::{EXPAND_REF, ROUTE_TO};
use super::visit::Visit;
use crate::definition::{Handoff, Tackle};

/// The tools that a phase's model is offered.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfferedTools {
    tools: Vec<Tool>,
    /// The tool that looks up a ref: it is offered from the first ref on, since its schema costs in every request.
    lookup: Option<Tool>,
}

impl OfferedTools {
    /// Returns the tools of a request.
    pub(crate) fn tools(&self, shows_refs: bool) -> Vec<Tool> {
        self.tools.iter().chain(self.lookup.iter().filter(|_| shows_refs)).cloned().collect()
    }

    /// Returns the tokens of the tools that stand in every request.
    pub(crate) fn tokens(&self, tokenizer: Tokenizer) -> u64 {
        self.tools.iter().map(|tool| tokens_of(tool, tokenizer)).sum()
    }

    /// Returns the tokens of the tool that looks up a ref.
    pub(crate) fn lookup_tokens(&self, tokenizer: Tokenizer) -> u64 {
        self.lookup.iter().map(|tool| tokens_of(tool, tokenizer)).sum()
    }

    /// Returns whether there is a tool beside those that steer the run and look up refs.
    pub(crate) fn has_own(&self) -> bool {
        self.tools.iter().any(|tool| !matches!(&*tool.name, ROUTE_TO | EXPAND_REF))
    }
}

fn tokens_of(tool: &Tool, tokenizer: Tokenizer) -> u64 {
    let texts = [&tool.name, &tool.description, &tool.schema];
    u64::from(texts.into_iter().map(|text| tokenizer.count(text)).sum::<u32>() + AROUND_TOOL)
}

/// Tokens of the braces and keys around a tool (measured on the bodies of the three wires: 9 to 14).
const AROUND_TOOL: u32 = 14;

/// Returns a digest of tools: another one is another prefix for a provider's cache.
pub(crate) fn key_of(tools: &[Tool]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for tool in tools {
        (&tool.name, &tool.description, &tool.schema).hash(&mut hasher);
    }
    hasher.finish()
}

impl<'r> Visit<'r> {
    /// Returns the tools that a phase's model is offered; with a manifest the model picks them first.
    pub(crate) async fn offered_tools(
        &mut self,
        model: &RequestedModel,
    ) -> Result<OfferedTools, RunError> {
        let names = match &self.phase.tackle {
            Tackle::Names(names) => names.clone(),
            Tackle::Manifest => self.pick_tools(model).await?,
        };
        let mut tools: Vec<Tool> = Vec::new();
        let open = self.open_handoffs()?;
        let routes = (!open.is_empty()).then_some(ROUTE_TO);
        let named = names.iter().map(String::as_str).filter(|name| *name != ROUTE_TO);
        for name in named.chain(routes) {
            let Some(mut tool) = self.run.toolbox.find(name) else { continue };
            if name == ROUTE_TO {
                tool.schema = targets(&open).into();
            }
            if !tools.iter().any(|known| known.name == tool.name) {
                tools.push(tool);
            }
        }
        // A ref is shown only where it can be expanded.
        let is_named = tools.iter().any(|tool| &*tool.name == EXPAND_REF);
        let may_show_refs = self.run.shows_refs(self.phase) && !is_named;
        let lookup = may_show_refs.then(|| self.run.toolbox.find(EXPAND_REF)).flatten();
        Ok(OfferedTools { tools, lookup })
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
        let answer = self.ask(Purpose::Manifest, model, question, schema).await?;
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
