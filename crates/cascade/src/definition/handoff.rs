//! Where a phase may go next.

use serde_json::{Value, json};

use super::rules::Rules;
use super::tackle::Tackle;
use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::problem::Place;
use crate::template::Template;

record! {
    /// A phase that may come next; a name alone is its `target`.
    pub struct Handoff short {
        /// The phase.
        target | "phase" | "cell" | "to" | "name": Target,
        /// The reason to go there, as the model reads it.
        description | "when": Option<String> = None,
        /// The handoff is offered where this is true.
        condition: Option<Template> = None,
    }
}

/// The name of a phase that something leads to, with its place in the file.
#[derive(Debug, Clone)]
pub struct Target {
    pub name: String,
    pub place: Place,
}

/// Targets are the same if they name the same phase.
impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The phase to which a result of a tool leads.
pub type Routing = Target;

/// The reaction to a failed phase.
#[derive(Debug, Clone, PartialEq)]
pub enum OnError {
    /// Another phase takes over.
    Phase(Target),
    /// A model does the work of the tool that failed.
    Prompt(Box<ErrorPrompt>),
    /// A model mends the tool's inputs, so many times at most.
    AutoFix { max_attempts: u32, model: Option<Template>, prompt: Option<Template> },
    /// The run goes on with the error as output.
    Continue,
    /// The run fails; so it does where nothing is said.
    Fail,
}

record! {
    /// The correction of a tool's inputs.
    pub(crate) struct AutoFix {
        /// Whether inputs are corrected.
        enabled: bool = true,
        /// The most attempts.
        max_attempts: u32 = 2,
        /// The model, instead of the phase's.
        model: Option<Template> = None,
        /// The instructions of the model.
        prompt: Option<Template> = None,
    }
}

record! {
    /// A prompt that stands in for a failed phase.
    pub struct ErrorPrompt {
        /// The instructions of the model.
        instructions | "prompt": Template,
        /// The model, instead of the phase's.
        model: Option<Template> = None,
        /// The tools that it may call.
        tackle | "traits" | "skills" | "tools": Tackle = Tackle::Names(Vec::new()),
        /// Its bounds.
        rules: Rules = Rules::default(),
        /// A name for the log.
        name: Option<String> = None,
    }
}

impl Decode for Target {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if matches!(node.kind, NodeKind::Map(_)) {
            return Handoff::decode_map(node, decoder).map(|handoff| handoff.target);
        }
        match node.scalar() {
            Some(name) => Some(Self { name: name.to_owned(), place: node.place }),
            None => decoder.expected(node, "the name of a phase"),
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": ["string", "number", "boolean", "object"]})
    }
}

impl Decode for Handoff {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if matches!(node.kind, NodeKind::Map(_)) {
            return Self::decode_map(node, decoder);
        }
        let target = Target::decode(node, decoder)?;
        Some(Self { target, description: None, condition: None })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": ["string", "number", "boolean"]}, Self::schema_map(definitions)]})
    }
}

impl OnError {
    fn mended(fix: AutoFix) -> Self {
        if !fix.enabled {
            return Self::Fail;
        }
        Self::AutoFix { max_attempts: fix.max_attempts, model: fix.model, prompt: fix.prompt }
    }
}

impl Decode for OnError {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if let Some(fix) = node.get("auto_fix") {
            return decoder.under("auto_fix", |decoder| {
                if let NodeKind::Map(_) = &fix.kind {
                    AutoFix::decode(fix, decoder).map(Self::mended)
                } else {
                    let enabled = bool::decode(fix, decoder)?;
                    Some(Self::mended(AutoFix {
                        enabled,
                        max_attempts: 2,
                        model: None,
                        prompt: None,
                    }))
                }
            });
        }
        if matches!(node.kind, NodeKind::Map(_)) {
            let prompt = ErrorPrompt::decode(node, decoder)?;
            return Some(Self::Prompt(Box::new(prompt)));
        }
        let target = Target::decode(node, decoder)?;
        Some(match target.name.as_str() {
            "auto_fix" => Self::AutoFix { max_attempts: 2, model: None, prompt: None },
            "continue" | "ignore" | "skip" => Self::Continue,
            "fail" | "abort" | "stop" | "raise" => Self::Fail,
            _ => Self::Phase(target),
        })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let fix = json!({"type": "object", "required": ["auto_fix"], "properties": {"auto_fix": {"anyOf": [bool::schema(definitions), AutoFix::schema(definitions)]}}});
        json!({"anyOf": [{"type": "string"}, fix, ErrorPrompt::schema(definitions)]})
    }
}
