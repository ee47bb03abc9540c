//! Validators: what says whether an output will do.

use serde_json::{Value, json};

use super::count::Count;
use super::template::Templated;
use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::template::Template;

/// The judge of an output, which answers `{valid, reason}`.
#[derive(Debug, Clone, PartialEq)]
pub enum Validator {
    /// A validator of the cascade, a tool or a cascade of this name.
    Named(String),
    /// A tool with its inputs.
    Tool { tool: String, inputs: Vec<(String, Templated)> },
    /// A program text.
    Code { language: Language, code: String },
    /// A prompt for a model.
    Prompt(PromptValidator),
}

words! {
    /// The language of a validator's program.
    pub enum Language {
        Bash "bash" | "sh",
        Python "python",
        Javascript "javascript",
        Sql "sql",
        Clojure "clojure",
    }
}

record! {
    /// A prompt whose answer is `{"valid": …, "reason": …}`.
    pub struct PromptValidator short {
        /// The question; `input.content` is the output and `input.original_input` the cascade's input.
        instructions | "prompt": Template,
        /// The model, instead of the phase's.
        model: Option<Template> = None,
        /// The most turns.
        max_turns: Count = Count::Fixed(1),
    }
}

record! {
    /// A validator that is a tool.
    pub(crate) struct ToolValidator {
        /// The tool.
        tool: String,
        /// The inputs of the tool.
        inputs: Vec<(String, Templated)> = Vec::new(),
    }
}

impl Decode for PromptValidator {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        // Its input is the output that it judges.
        decoder.apart(|decoder| Self::decode_map(node, decoder))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        Self::schema_map(definitions)
    }
}

impl Validator {
    /// Returns the name for the log.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Tool { tool, .. } => tool,
            Self::Code { language, .. } => language.as_str(),
            Self::Prompt(_) => "prompt",
        }
    }
}

impl Language {
    /// Returns the name of the tool that runs programs of this language.
    pub fn tool(self) -> String {
        format!("run_{}", self.as_str())
    }
}

const LANGUAGES: [Language; 5] =
    [Language::Bash, Language::Python, Language::Javascript, Language::Sql, Language::Clojure];

impl Decode for Validator {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if !matches!(node.kind, NodeKind::Map(_)) {
            return match node.scalar() {
                Some(name) => Some(Self::Named(name.to_owned())),
                None => decoder.expected(
                    node,
                    "the name of a validator, or a map with `tool`, `instructions` or a program",
                ),
            };
        }
        if node.get("tool").is_some() {
            let ToolValidator { tool, inputs } = ToolValidator::decode(node, decoder)?;
            return Some(Self::Tool { tool, inputs });
        }
        if node.get("instructions").is_some() || node.get("prompt").is_some() {
            return PromptValidator::decode(node, decoder).map(Self::Prompt);
        }
        for language in LANGUAGES {
            if let Some(code) = node.get(language.as_str()) {
                let code =
                    decoder.under(language.as_str(), |decoder| String::decode(code, decoder))?;
                return Some(Self::Code { language, code });
            }
        }
        decoder.expected(node, "a validator with `tool`, `instructions`, `bash`, `python`, `javascript`, `sql` or `clojure`")
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let programs: Vec<Value> = LANGUAGES
            .iter()
            .map(|language| json!({"type": "object", "required": [language.as_str()]}))
            .collect();
        let mut forms = vec![
            json!({"type": ["string", "number", "boolean"]}),
            ToolValidator::schema(definitions),
            PromptValidator::schema(definitions),
        ];
        forms.extend(programs);
        json!({"anyOf": forms})
    }
}
