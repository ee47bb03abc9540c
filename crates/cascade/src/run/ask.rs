//! Questions to a model beside the conversation: a judge, an evaluator, a choice.

use std::sync::Arc;

use plimsoll_core::{Message, Role};
use plimsoll_engine::{ChatModel, ChatRequest, ModelError, Response};
use serde_json::Value;

use super::Run;
use super::error::RunError;
use super::journal::Journal;
use super::state::text_of;
use super::turns::own_message;
use crate::definition::Phase;

impl Run {
    /// Asks for a JSON value of a schema; what is none is `null`, and the caller goes on without.
    pub(crate) async fn ask(
        &self,
        phase: &Phase,
        journal: &mut Journal,
        model: Arc<dyn ChatModel>,
        asked_for: Option<String>,
        question: String,
        schema: &str,
    ) -> Result<Value, RunError> {
        let response = Response::Json { schema: schema.into() };
        let answer = self.asked(phase, journal, model, asked_for, question, response).await?;
        Ok(json_in(&text_of(&answer)).unwrap_or(Value::Null))
    }

    /// Asks for a text.
    pub(crate) async fn ask_text(
        &self,
        phase: &Phase,
        journal: &mut Journal,
        model: Arc<dyn ChatModel>,
        asked_for: Option<String>,
        question: String,
    ) -> Result<Arc<Message>, RunError> {
        self.asked(phase, journal, model, asked_for, question, Response::Text).await
    }

    async fn asked(
        &self,
        phase: &Phase,
        journal: &mut Journal,
        model: Arc<dyn ChatModel>,
        asked_for: Option<String>,
        question: String,
        response: Response,
    ) -> Result<Arc<Message>, RunError> {
        let question = journal.say(own_message(phase, Role::User, question)).await?;
        if let Some(answer) = journal.answer(Role::Assistant)? {
            self.runner.models.passed_over(asked_for.as_deref());
            return Ok(answer);
        }
        let mut request = ChatRequest::new(vec![(*question).clone()]);
        request.response = response;
        request.max_tokens = self.runner.settings.max_tokens;
        let reply = match model.complete(&request).await {
            Ok(reply) => reply.message,
            // It answered, and not as it was asked: that is an answer too, and is kept.
            Err(ModelError::Unusable(why)) => {
                self.note(phase.name.as_str(), format!("a model's answer can't be used: {why}"));
                own_message(phase, Role::Assistant, format!("[unusable: {why}]"))
            }
            Err(source) => {
                return Err(RunError::Model { phase: phase.name.to_string(), source });
            }
        };
        let mut reply = reply;
        reply.phase = Some(phase.name.as_str().into());
        journal.append(reply, Vec::new()).await
    }
}

/// Finds the JSON in a model's answer: all of it, what stands in a code fence, or from the first brace to the last.
pub(crate) fn json_in(text: &str) -> Option<Value> {
    let whole = text.trim();
    let fenced = whole.split("```").nth(1).map(|inside| inside.trim_start_matches("json").trim());
    let braced = |open: char, close: char| {
        let (from, to) = (whole.find(open)?, whole.rfind(close)?);
        (from < to).then(|| &whole[from..=to])
    };
    [Some(whole), fenced, braced('{', '}'), braced('[', ']')]
        .into_iter()
        .flatten()
        .find_map(|part| serde_json::from_str(part).ok())
}
