//! The tool calls of a model: they are executed, and their results recorded.

use std::sync::Arc;

use plimsoll_core::{Block, Message, Role, Tokenizer, ToolCall, ToolResult};
use plimsoll_engine::page::artefact_of;
use plimsoll_engine::{ToolAnswer, ToolError};
use serde_json::Value;

use super::error::RunError;
use super::event::RunEvent;
use super::toolbox::{Caller, ROUTE_TO, SET_STATE, is_own, object};
use super::visit::Visit;

/// The tokenizer that measures the views of artefacts.
const TOKENIZER: Tokenizer = Tokenizer::O200k { factor: 1.0 };

impl Visit<'_> {
    /// Executes one call, or takes its recorded result; returns the result and the phase that the call goes on to.
    pub(crate) async fn answer_call(
        &mut self,
        call: &ToolCall,
    ) -> Result<(Arc<Message>, Option<String>), RunError> {
        let is_recorded = self.journal.is_recorded();
        let mut target = None;
        let message = if matches!(&*call.name, ROUTE_TO | SET_STATE) {
            // These change the run itself: a resumed run does them again, with the same result.
            let answer = self.steer(call, &mut target);
            self.journal.say(self.result(&call.id, answer)).await?
        } else if let Some(recorded) = self.journal.answer(Role::Tool)? {
            self.keep_recorded(&call.name, &call.arguments, &recorded);
            recorded
        } else {
            let caller = self.caller();
            let answer = self.call(&caller, &call.name, &call.arguments).await;
            let answer = answer.unwrap_or_else(|error| ToolAnswer::failed(error.to_string()));
            self.keep_artefact(&caller, call, &answer).await?;
            self.record_result(&call.id, answer).await?
        };
        if let Some(result) = message.results().next() {
            self.run.tell(&RunEvent::ToolEnded {
                phase: self.name().to_owned(),
                tool: call.name.to_string(),
                is_error: result.is_error,
                characters: result.text.chars().count(),
                is_recorded,
            });
        }
        Ok((message, target))
    }

    /// Calls a tool, or takes a result that serves again.
    pub(crate) async fn call(
        &self,
        caller: &Caller,
        tool: &str,
        arguments: &str,
    ) -> Result<ToolAnswer, ToolError> {
        let cache = &self.run.tool_cache;
        if let Some(answer) = cache.get(tool, arguments, caller.now) {
            self.note(format!("`{tool}` was called so before: its result serves again"));
            return Ok(answer);
        }
        self.name_in_flight(tool);
        let answer = self.run.toolbox.call(caller, tool, arguments).await?;
        if !is_own(tool) {
            cache.put(tool, arguments, &answer, caller.now);
        }
        Ok(answer)
    }

    /// Keeps a recorded result for calls that follow.
    pub(crate) fn keep_recorded(&self, tool: &str, arguments: &str, recorded: &Message) {
        let Some(result) = recorded.results().next().filter(|_| !is_own(tool)) else { return };
        let (text, images) = (result.text.to_string(), result.images.clone());
        let answer = ToolAnswer { text, images, is_error: result.is_error };
        let now = recorded.time.unwrap_or_else(|| self.run.runner.clock.now());
        self.run.tool_cache.put(tool, arguments, &answer, now);
    }

    /// Notes that a tool runs again which may have run when an earlier run stopped.
    pub(crate) fn name_in_flight(&self, tool: &str) {
        if self.journal.is_at_break() {
            self.note(format!(
                "`{tool}` may have run already: the run stopped before its result was recorded, and it is called again"
            ));
        }
    }

    /// Sets a key of the state, or the next phase.
    fn steer(&mut self, call: &ToolCall, target: &mut Option<String>) -> ToolAnswer {
        let arguments = match object(&call.name, &call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return ToolAnswer::failed(error.to_string()),
        };
        if &*call.name == SET_STATE {
            let Some(key) = arguments.get("key").and_then(Value::as_str) else {
                return ToolAnswer::failed("the argument `key`, a text, is missing");
            };
            self.set(key.to_owned(), arguments.get("value").cloned().unwrap_or(Value::Null));
            return ToolAnswer::text(format!("`{key}` is set"));
        }
        let open = self.open_handoffs().unwrap_or_default();
        let allowed: Vec<&str> = open.iter().map(|handoff| handoff.target.name.as_str()).collect();
        // Models do not keep to the argument's name.
        let names = ["target", "phase", "phase_name", "cell", "name", "to"];
        let name = names.iter().find_map(|key| arguments.get(*key)).and_then(Value::as_str);
        match name {
            Some(name) if allowed.contains(&name) => {
                *target = Some(name.to_owned());
                ToolAnswer::text(format!("going on to `{name}`"))
            }
            _ => ToolAnswer::failed(format!("`target` is one of: {}", allowed.join(", "))),
        }
    }

    /// Keeps a large result as an artefact.
    async fn keep_artefact(
        &self,
        caller: &Caller,
        call: &ToolCall,
        answer: &ToolAnswer,
    ) -> Result<(), RunError> {
        let runner = &self.run.runner;
        if answer.text.len() <= runner.settings.artefact_from {
            return Ok(());
        }
        let (tenant, session) = (&caller.tenant, Some(&caller.session));
        let mut artefact =
            artefact_of(tenant, session, &answer.text, TOKENIZER, runner.clock.now());
        // A known payload names its source; of any other only the call is known.
        artefact.source_meta.get_or_insert_with(|| {
            let source = serde_json::json!({
                "tool": call.name, "arguments": call.arguments, "cascade": caller.cascade,
            });
            source.to_string()
        });
        runner.knowledge.put_artefact(&artefact).await?;
        Ok(())
    }

    /// Records a result, with its images on disk.
    pub(crate) async fn record_result(
        &mut self,
        id: &str,
        answer: ToolAnswer,
    ) -> Result<Arc<Message>, RunError> {
        let message = self.result(id, answer);
        self.save_images(&message)?;
        self.journal.append(message, Vec::new()).await
    }

    fn result(&self, id: &str, answer: ToolAnswer) -> Message {
        let result = ToolResult {
            call_id: id.into(),
            text: answer.text.into(),
            images: answer.images,
            is_error: answer.is_error,
        };
        let mut message = Message::new(Role::Tool, vec![Block::ToolResult(result)]);
        message.phase = Some(self.name().into());
        message
    }
}
