//! The state of a run: its input, the values that it set, and the phases that ended.

use std::sync::Arc;

use plimsoll_core::{Block, Image, Message, Role};
use serde_json::{Map, Value, json};

use crate::definition::{ContextRetention, Phase};

/// The past of a run, as templates and contexts see it.
#[derive(Debug, Clone, Default)]
pub struct RunState {
    pub input: Map<String, Value>,
    pub state: Map<String, Value>,
    /// The phases that ended, in that order; one that ran twice is there twice.
    pub runs: Vec<PhaseRun>,
}

/// One run of a phase.
#[derive(Debug, Clone)]
pub struct PhaseRun {
    pub phase: String,
    /// The last answer of its model, or the result of its tool.
    pub output: String,
    /// The output as a value: the JSON of a tool's result, else the text.
    pub value: Value,
    /// All its messages, from its own prompts on.
    pub messages: Vec<Arc<Message>>,
    /// The keys of the state that it set, with their values.
    pub changes: Map<String, Value>,
    pub retention: ContextRetention,
}

impl PhaseRun {
    /// Returns a run of `phase` whose output is a text.
    pub(crate) fn new(phase: &Phase, output: String, messages: Vec<Arc<Message>>) -> Self {
        Self {
            phase: phase.name.to_string(),
            value: Value::String(output.clone()),
            output,
            messages,
            changes: Map::new(),
            retention: phase.context_retention,
        }
    }

    /// Returns the images of its messages, each once, in their order.
    pub fn images(&self) -> Vec<&Image> {
        let mut images: Vec<&Image> = Vec::new();
        for block in self.messages.iter().flat_map(|message| &message.blocks) {
            let found = match block {
                Block::Image(image) => std::slice::from_ref(image),
                Block::ToolResult(result) => result.images.as_slice(),
                _ => &[],
            };
            for image in found {
                if !images.contains(&image) {
                    images.push(image);
                }
            }
        }
        images
    }
}

impl RunState {
    /// Returns the latest run of a phase.
    pub fn latest(&self, phase: &str) -> Option<&PhaseRun> {
        self.runs.iter().rev().find(|run| run.phase == phase)
    }

    /// Returns how often a phase has run.
    pub fn visits(&self, phase: &str) -> usize {
        self.runs.iter().filter(|run| run.phase == phase).count()
    }

    /// Returns the values that templates can name: `input`, `state`, `outputs`, `lineage` and `history`.
    pub fn values(&self) -> Map<String, Value> {
        let outputs: Map<String, Value> =
            self.runs.iter().map(|run| (run.phase.clone(), run.value.clone())).collect();
        let lineage: Vec<Value> = self
            .runs
            .iter()
            .map(|run| json!({"phase": run.phase, "cell": run.phase, "output": run.value}))
            .collect();
        let history = self.runs.iter().flat_map(|run| {
            run.messages.iter().map(|message| {
                let role = message.role.as_str();
                json!({"role": role, "content": message.shown(), "phase": run.phase})
            })
        });
        let mut values = Map::new();
        values.insert("input".to_owned(), Value::Object(self.input.clone()));
        values.insert("state".to_owned(), Value::Object(self.state.clone()));
        values.insert("outputs".to_owned(), Value::Object(outputs));
        values.insert("lineage".to_owned(), Value::Array(lineage));
        values.insert("history".to_owned(), history.collect());
        values
    }
}

/// Returns the text of the last answer that has any, else of the last result.
pub(crate) fn output_of(messages: &[Arc<Message>]) -> String {
    let text = |role: Role| {
        messages.iter().rev().filter(move |message| message.role == role).find_map(|message| {
            let text = text_of(message);
            (!text.trim().is_empty()).then_some(text)
        })
    };
    text(Role::Assistant).or_else(|| text(Role::Tool)).unwrap_or_default()
}

/// Returns the text of a message, without its calls.
pub(crate) fn text_of(message: &Message) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for block in &message.blocks {
        match block {
            Block::Text(text) => parts.push(text),
            Block::ToolResult(result) => parts.push(&result.text),
            _ => {}
        }
    }
    parts.join("\n")
}
