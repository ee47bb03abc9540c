//! Questions to a model beside the conversation: of a judge, an evaluator or a selector.

use std::sync::Arc;

use plimsoll_core::cost::Charge;
use plimsoll_core::{Message, Role, Tokenizer};
use plimsoll_engine::{ChatModel, ChatRequest, ModelError, Response, UnfitJson};
use serde_json::Value;

use super::error::RunError;
use super::event::{Purpose, RunEvent};
use super::state::text_of;
use super::visit::Visit;
use crate::template::Template;

/// A model, and the name by which the cascade requested it.
#[derive(Debug, Clone)]
pub(crate) struct RequestedModel {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) name: Option<String>,
}

impl Visit<'_> {
    /// Returns the model of this name; without a name that of the phase, else that of the cascade.
    pub(crate) fn model(&self, name: Option<String>) -> Result<RequestedModel, RunError> {
        let overrides = &self.run.runner.settings.models;
        let template = self.phase.model.as_ref().or(self.run.cascade.model.as_ref());
        let name = match name {
            Some(name) => overrides.instead_of(Some(name)),
            None => overrides.name_of(self.name(), self.render_option(template)?),
        };
        let found = self.run.runner.models.model(name.as_deref());
        found.map(|model| RequestedModel { model, name }).map_err(|error| self.no_answer(error))
    }

    /// Returns the model that a template names; without a template that of the phase.
    pub(crate) fn model_of(&self, name: Option<&Template>) -> Result<RequestedModel, RunError> {
        self.model(self.render_option(name)?)
    }

    pub(crate) fn no_answer(&self, source: ModelError) -> RunError {
        RunError::Model { phase: self.name().to_owned(), source }
    }

    /// Asks for a JSON value of a schema; an answer without JSON is `null`, and the caller goes on without.
    pub(crate) async fn ask(
        &mut self,
        purpose: Purpose,
        model: &RequestedModel,
        question: String,
        schema: &str,
    ) -> Result<Value, RunError> {
        let response = Response::Json { schema: schema.into() };
        let answer = self.answer(purpose, model, question, response).await?;
        Ok(json_in(&text_of(&answer)).unwrap_or(Value::Null))
    }

    /// Asks for a text.
    pub(crate) async fn ask_text(
        &mut self,
        purpose: Purpose,
        model: &RequestedModel,
        question: String,
    ) -> Result<String, RunError> {
        Ok(text_of(&*self.answer(purpose, model, question, Response::Text).await?))
    }

    async fn answer(
        &mut self,
        purpose: Purpose,
        model: &RequestedModel,
        question: String,
        response: Response,
    ) -> Result<Arc<Message>, RunError> {
        let question = self.say(Role::User, question).await?;
        let turn = self.journal.turn();
        let mut request = ChatRequest::new(vec![(*question).clone()]);
        request.response = response;
        request.unfit_json = UnfitJson::Return;
        request.max_tokens = self.run.runner.settings.max_tokens;
        let recorded = self.journal.answer(Role::Assistant)?;
        let is_recorded = recorded.is_some();
        let answer = if let Some(answer) = recorded {
            self.run.runner.models.passed_over(model.name.as_deref());
            answer
        } else {
            let mut reply = match model.model.complete(&request).await {
                Ok(reply) => reply.message,
                // The answer was paid for, so it is recorded although it has another form than the request asks for.
                Err(ModelError::Unusable(why)) => self.unusable(&why),
                Err(error) => return Err(self.no_answer(error)),
            };
            reply.phase = Some(self.name().into());
            self.journal.append(reply, Vec::new()).await?
        };
        self.tell_call(purpose, model, turn, &request, &answer, is_recorded);
        Ok(answer)
    }

    /// Informs the observer of a call beside the conversation.
    fn tell_call(
        &self,
        purpose: Purpose,
        model: &RequestedModel,
        turn: u32,
        request: &ChatRequest,
        answer: &Message,
        is_recorded: bool,
    ) {
        let name = model.model.model();
        let tokenizer = Tokenizer::for_model(name);
        let schema = match &request.response {
            Response::Text => 0,
            Response::Json { schema } => tokenizer.count(schema),
        };
        let messages: u32 =
            request.messages.iter().map(|message| tokenizer.count_message(message)).sum();
        let tokens = u64::from(messages + schema);
        let runner = &self.run.runner;
        let priced = runner.pricing.of(Some(name), Some(runner.clock.now()));
        let output_tokens = answer.usage.map_or(0, |usage| usage.output_tokens);
        let prices = &priced.prices;
        let charge = Charge { plain: tokens as f64, ..Charge::default() };
        let price = prices.input_cost(&charge) + prices.output_ratio() * output_tokens as f64;
        let cost = prices.dollars(price);
        let is_overhead = purpose.is_overhead();
        self.run.tell(&RunEvent::Turn {
            phase: self.name().to_owned(),
            turn,
            purpose,
            model: name.to_owned(),
            full_tokens: if is_overhead { 0 } else { tokens },
            sent_tokens: tokens,
            output_tokens,
            reported_tokens: answer.usage.map(|usage| usage.prompt_tokens),
            cost,
            full_cost: if is_overhead { 0.0 } else { cost },
            priced_as: priced.name.to_owned(),
            estimate: priced.is_estimate(),
            calls: Vec::new(),
            is_recorded,
        });
    }
}

/// Finds the JSON in a model's answer: the whole answer, a code fence, or from the first brace to the last.
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
