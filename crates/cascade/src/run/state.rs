//! What has happened in a run so far: its input, its state, and the phases that ended.

use std::sync::Arc;

use plimsoll_core::{Block, Image, Message, Role};
use serde_json::{Map, Value, json};

use crate::definition::ContextRetention;

/// A run's past, as templates and contexts see it.
#[derive(Debug, Clone, Default)]
pub struct RunState {
    pub input: Map<String, Value>,
    pub state: Map<String, Value>,
    /// The phases that ended, in that order; one that ran twice is there twice.
    pub ran: Vec<Ran>,
}

/// One run of a phase.
#[derive(Debug, Clone)]
pub struct Ran {
    pub phase: String,
    /// The last answer of its model, or the result of its tool.
    pub output: String,
    /// The output as a value: what a tool gave, parsed.
    pub value: Value,
    /// All that was said in it, from its own prompts on.
    pub messages: Vec<Arc<Message>>,
    /// The state that it set, by key.
    pub set: Map<String, Value>,
    pub retention: ContextRetention,
}

impl Ran {
    /// Returns the images that came up in it, each once, in their order.
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
    pub fn latest(&self, phase: &str) -> Option<&Ran> {
        self.ran.iter().rev().find(|ran| ran.phase == phase)
    }

    /// Returns how often a phase has run.
    pub fn visits(&self, phase: &str) -> usize {
        self.ran.iter().filter(|ran| ran.phase == phase).count()
    }

    /// Returns what templates see: `input`, `state`, `outputs`, `lineage` and `history`.
    pub fn values(&self) -> Map<String, Value> {
        let outputs: Map<String, Value> =
            self.ran.iter().map(|ran| (ran.phase.clone(), ran.value.clone())).collect();
        let lineage: Vec<Value> = self
            .ran
            .iter()
            .map(|ran| json!({"phase": ran.phase, "cell": ran.phase, "output": ran.value}))
            .collect();
        let said = self.ran.iter().flat_map(|ran| {
            ran.messages.iter().map(|message| {
                let role = message.role.as_str();
                json!({"role": role, "content": message.shown(), "phase": ran.phase})
            })
        });
        let mut values = Map::new();
        values.insert("input".to_owned(), Value::Object(self.input.clone()));
        values.insert("state".to_owned(), Value::Object(self.state.clone()));
        values.insert("outputs".to_owned(), Value::Object(outputs));
        values.insert("lineage".to_owned(), Value::Array(lineage));
        values.insert("history".to_owned(), said.collect());
        values
    }
}

/// Returns the text of the last answer that has any, else of the last result.
pub(crate) fn output_of(messages: &[Arc<Message>]) -> String {
    let said = |role: Role| {
        messages.iter().rev().filter(move |message| message.role == role).find_map(|message| {
            let text = text_of(message);
            (!text.trim().is_empty()).then_some(text)
        })
    };
    said(Role::Assistant).or_else(|| said(Role::Tool)).unwrap_or_default()
}

/// Returns what a message says without its calls.
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
