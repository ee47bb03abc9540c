//! Questions to a person.

use serde_json::{Value, json};

use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::template::Template;

words! {
    /// The form of an answer.
    pub enum HumanInputKind {
        Confirmation "confirmation",
        Choice "choice",
        MultiChoice "multi_choice",
        Rating "rating",
        Text "text",
        Form "form",
        Review "review",
        Auto "auto",
        Htmx "htmx",
    }
}

record! {
    /// One of the answers to choose from; a text alone is its value.
    pub struct HumanOption short {
        /// The answer as the run gets it.
        value: Option<String> = None,
        /// The answer as the person reads it.
        label: Option<String> = None,
        /// More about it.
        description: Option<String> = None,
    }
}

record! {
    /// A question to a person after a phase; `true` asks for a confirmation.
    pub struct HumanInput short {
        /// The form of the answer.
        kind as "type": HumanInputKind = HumanInputKind::Confirmation,
        /// The question; made from the phase where it is missing.
        prompt | "hint": Option<Template> = None,
        /// The answers to choose from.
        options: Vec<HumanOption> = Vec::new(),
        /// The question is asked where this is true.
        condition: Option<Template> = None,
        /// The answer where nobody is there.
        default_value: Option<Value> = None,
    }
}

impl HumanInput {
    fn confirmation() -> Self {
        Self {
            kind: HumanInputKind::Confirmation,
            prompt: None,
            options: Vec::new(),
            condition: None,
            default_value: None,
        }
    }
}

/// A question, or none: `false` asks nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct HumanQuestion(pub Option<HumanInput>);

impl Decode for HumanQuestion {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.kind {
            NodeKind::Bool(asks, _) => Some(Self(asks.then(HumanInput::confirmation))),
            NodeKind::Text(_) => {
                let prompt = Some(Template::decode(node, decoder)?);
                Some(Self(Some(HumanInput { prompt, ..HumanInput::confirmation() })))
            }
            _ => HumanInput::decode(node, decoder).map(|input| Self(Some(input))),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": ["boolean", "string"]}, HumanInput::schema(definitions)]})
    }
}

impl Decode for HumanInput {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        Self::decode_map(node, decoder)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        Self::schema_map(definitions)
    }
}

impl Decode for HumanOption {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if matches!(node.kind, NodeKind::Map(_)) {
            return Self::decode_map(node, decoder);
        }
        let value = Some(String::decode(node, decoder)?);
        Some(Self { value, label: None, description: None })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": ["string", "number", "boolean"]}, Self::schema_map(definitions)]})
    }
}
