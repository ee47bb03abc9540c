//! The answer of the scripted model, before it is written in the shape of an API.

use plimsoll_core::lazy_tools::DESCRIBE_TOOL;
use plimsoll_wire::Wire;
use serde_json::{Value, json};

use super::offered::ToolForm;
use super::plan::{PlannedCall, ScriptedPlan};
use super::usage::ReportedUsage;
use super::{offered, progress};

/// An answer of the scripted model.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScriptedAnswer {
    /// Whether the text stands before calls on Responses too; Codex's models call without a word.
    pub(crate) speaks: bool,
    /// The number of the request; ids are made of it.
    pub(crate) request: u64,
    pub(crate) turn: usize,
    pub(crate) model: String,
    /// Present when the request asks for reasoning.
    pub(crate) reasoning: Option<String>,
    pub(crate) text: String,
    pub(crate) calls: Vec<PlannedCall>,
    pub(crate) usage: ReportedUsage,
    /// Of the reasoning, where it is checked.
    pub(crate) signature: Option<String>,
    /// The changes to the request's thinking, if the request asks for them.
    pub(crate) transformations: Option<Value>,
    /// The edits by which the provider cleared content, if the request asks for any.
    pub(crate) edits: Option<Value>,
    /// Whether the prompt was only read (`max_tokens: 0`).
    pub(crate) is_silent: bool,
}

impl ScriptedAnswer {
    /// Answers `body`.
    pub(crate) fn to(
        wire: Wire,
        model: &str,
        body: &Value,
        raw: &str,
        plan: &ScriptedPlan,
        request: u64,
    ) -> Self {
        let tools = offered::offered(wire, body);
        let turn = progress::next_turn(wire, body);
        let calls = plan.calls(turn, &tools, raw);
        let text = if !calls.is_empty() {
            format!("Turn {}: going on with the investigation.", turn + 1)
        } else if wants_json(wire, body) {
            r#"{"title":"A scripted session","isNewTopic":true,"reasoning":"scripted","next_speaker":"user","model_choice":"pro","complexity_reasoning":"scripted","complexity_score":50}"#.to_owned()
        } else if tools.is_empty() && !plan.turns.is_empty() {
            "A scripted session".to_owned()
        } else {
            plan.last.clone()
        };
        let reasoning = wants_reasoning(wire, body)
            .then(|| format!("Scripted reasoning of turn {}: what to look at next.", turn + 1));
        let model = model.to_owned();
        Self { request, turn, model, reasoning, text, calls, ..Self::default() }
    }

    /// Returns the id of a call.
    pub(crate) fn id(&self, prefix: &str, at: usize) -> String {
        if self.calls[at].name == DESCRIBE_TOOL {
            return progress::question(prefix, at, self.request);
        }
        progress::id(prefix, self.turn, at, self.request)
    }

    /// Answers a load tool: so many words and, if it named its request, one call.
    pub(crate) fn plain(label: Option<u64>, words: usize, bytes: usize) -> Self {
        let request = label.unwrap_or_default();
        let read = PlannedCall {
            name: "read".to_owned(),
            namespace: None,
            kind: ToolForm::Function,
            arguments: json!({"path": format!("parts/{request}.py")}),
        };
        let usage = ReportedUsage {
            input: super::pieces::tokens(bytes),
            output: words as u64 + 1,
            ..ReportedUsage::default()
        };
        Self {
            request,
            model: "scripted".to_owned(),
            speaks: true,
            text: format!("answer-{request}{}", " word".repeat(words)),
            calls: label.map(|_| read).into_iter().collect(),
            usage,
            ..Self::default()
        }
    }

    /// Estimates the tokens of the answer.
    pub(crate) fn tokens(&self) -> u64 {
        let calls =
            self.calls.iter().map(|call| call.name.len() + call.arguments.to_string().len());
        let reasoning = self.reasoning.as_ref().map_or(0, String::len);
        super::pieces::tokens(self.text.len() + reasoning + calls.sum::<usize>()).max(1)
    }
}

pub(crate) fn wants_reasoning(wire: Wire, body: &Value) -> bool {
    match wire {
        Wire::AnthropicMessages => {
            matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive"))
        }
        Wire::Responses => {
            let include = body["include"].as_array().into_iter().flatten();
            include.into_iter().any(|what| what == "reasoning.encrypted_content")
        }
        // Chat has no form for it, and Gemini's is the signature of a call.
        Wire::ChatCompletions | Wire::Gemini => false,
    }
}

fn wants_json(wire: Wire, body: &Value) -> bool {
    match wire {
        Wire::AnthropicMessages => {
            !body["output_config"]["format"].is_null() || !body["output_format"].is_null()
        }
        Wire::ChatCompletions => body["response_format"]["type"]
            .as_str()
            .is_some_and(|format| format.starts_with("json")),
        Wire::Responses => {
            body["text"]["format"]["type"].as_str().is_some_and(|format| format.starts_with("json"))
        }
        Wire::Gemini => body["generationConfig"]["responseMimeType"] == "application/json",
    }
}
