//! Asks a model for next steps with the full and with the bounded context, and compares them.

mod ask;
mod compare;

use plimsoll_core::Message;
use plimsoll_core::ab::{
    Likelihood, NextStep, ObservedTool, answered_in_plain, in_calls, in_plain,
};
use plimsoll_core::safety::{Handling, handle_message};
use serde::{Deserialize, Serialize};

use crate::chat::{ChatReply, ChatRequest, ChatUsage, Tool};
use crate::valid::digest;

pub use ask::{AbCourse, ask_steps};
pub use compare::compare_turns;

/// A turn whose next step is asked for.
#[derive(Debug, Clone)]
pub struct AbTurn {
    pub session: String,
    pub turn: u32,
    pub full_tokens: u64,
    pub tokens: u64,
    /// The messages of both contexts, in the session's own shape.
    pub full: Vec<Message>,
    pub bounded: Vec<Message>,
    /// The step that the session recorded.
    pub recorded: Message,
    pub tools: Vec<ObservedTool>,
}

/// A context that a step is asked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    Full,
    Bounded,
    /// The full context once more, for the model's own noise.
    FullAgain,
}

/// The form of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepForm {
    /// Calls and results as such, with the tools that the session shows.
    Calls,
    /// Everything as text, for a model that calls no tools.
    Plain,
}

/// Settings of the questions.
#[derive(Debug, Clone, Copy)]
pub struct AbSettings {
    pub form: StepForm,
    /// The most tokens of an answer.
    pub max_tokens: u32,
    pub temperature: Option<f32>,
    /// Whether the full context is asked twice.
    pub again: bool,
    /// The actions on personal data and secrets in a context.
    pub handling: Handling,
}

/// An answer, as it is kept: nothing of it is asked again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepAnswer {
    /// The digest of model, request and arm.
    pub key: String,
    pub session: String,
    pub turn: u32,
    pub arm: Arm,
    pub step: NextStep,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<Likelihood>,
    pub usage: ChatUsage,
    /// US dollars that the answer cost, 0 for a model without a price.
    pub dollars: f64,
}

/// A question to the model.
#[derive(Debug)]
pub(crate) struct StepQuestion<'a> {
    turn: &'a AbTurn,
    arm: Arm,
    request: ChatRequest,
    key: String,
}

impl AbSettings {
    /// Returns the arms in the order of the questions: the full context twice in a row, while the provider's cache has it.
    pub(crate) fn arms(&self) -> impl Iterator<Item = Arm> + use<> {
        [Some(Arm::Full), self.again.then_some(Arm::FullAgain), Some(Arm::Bounded)]
            .into_iter()
            .flatten()
    }

    fn messages<'a>(&self, messages: impl IntoIterator<Item = &'a Message>) -> Vec<Message> {
        let messages = match self.form {
            StepForm::Calls => in_calls(messages),
            StepForm::Plain => in_plain(messages),
        };
        let safe = |message: Message| handle_message(&message, self.handling).0.unwrap_or(message);
        messages.into_iter().map(safe).collect()
    }

    /// Returns the request for the next step of a context.
    fn request(&self, turn: &AbTurn, arm: Arm) -> ChatRequest {
        let context = if arm == Arm::Bounded { &turn.bounded } else { &turn.full };
        let tool = |tool: &ObservedTool| Tool {
            name: tool.name.clone(),
            description: "A tool of the recorded session.".into(),
            schema: tool.schema.clone(),
        };
        let tools = turn.tools.iter().filter(|_| self.form == StepForm::Calls).map(tool).collect();
        ChatRequest {
            tools,
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            ..ChatRequest::new(self.messages(context))
        }
    }

    fn recorded(&self, turn: &AbTurn) -> Message {
        let mut sent = self.messages([&turn.recorded]);
        sent.pop().unwrap_or_else(|| Message::new(turn.recorded.role, Vec::new()))
    }

    fn step(&self, reply: &ChatReply, turn: &AbTurn) -> NextStep {
        match self.form {
            StepForm::Calls => NextStep::from(&reply.message),
            StepForm::Plain => answered_in_plain(&reply.text(), &turn.tools),
        }
    }
}

impl<'a> StepQuestion<'a> {
    fn new(turn: &'a AbTurn, arm: Arm, model: &str, settings: &AbSettings) -> Self {
        let request = settings.request(turn, arm);
        // A request of messages, texts and numbers always has a JSON form.
        let written = serde_json::to_string(&(model, arm, &request)).unwrap_or_default();
        Self { turn, arm, request, key: digest(written.as_bytes()) }
    }
}
