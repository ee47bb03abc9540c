//! Phases that are one call of a tool, without a model.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use plimsoll_core::text::shortened;
use plimsoll_core::{Block, Message, Role};
use plimsoll_engine::ToolError;
use serde_json::{Map, Value};

use super::error::RunError;
use super::event::RunEvent;
use super::phase::PhaseEnd;
use super::state::PhaseRun;
use super::visit::Visit;

impl Visit<'_> {
    /// Runs a phase that is one call of a tool.
    pub(crate) async fn tool_phase(&mut self, tool: &str) -> Result<PhaseEnd, RunError> {
        self.run.tell(&RunEvent::PhaseBegan {
            phase: self.name().to_owned(),
            visit: self.past.visits(self.name()) + 1,
            context_messages: 0,
            context_tokens: 0,
        });
        let inputs = self.inputs(&self.phase.inputs)?;
        let message = self.call_tool(tool, &inputs).await?;
        self.end_tool_phase(&message).await
    }

    /// Adds the result of the phase's tool to the past, and returns where it leads.
    pub(crate) async fn end_tool_phase(&mut self, message: &Message) -> Result<PhaseEnd, RunError> {
        let phase = self.phase;
        let result = message.results().next();
        let (mut output, is_error) = result
            .map_or_else(Default::default, |result| (result.text.to_string(), result.is_error));
        if is_error {
            return Err(self.failed(shortened(&output, 200)));
        }
        let mut value: Value =
            serde_json::from_str(&output).unwrap_or_else(|_| Value::String(output.clone()));
        let route = value.as_object_mut().and_then(|map| map.shift_remove("_route"));
        if route.is_some() {
            output = value.to_string();
        }
        let route = route.as_ref().and_then(Value::as_str);
        let key = route.or_else(|| value.get("status").and_then(Value::as_str));
        let routed = phase.routing.iter().find(|(name, _)| Some(name.as_str()) == key);
        let end = match (routed, route) {
            (Some((_, target)), _) => PhaseEnd::GoTo(target.name.clone()),
            (None, Some(target)) => {
                if !phase.handoffs.iter().any(|handoff| handoff.target.name == target) {
                    return Err(self.failed(format!(
                        "its tool goes on to `{target}`, which is none of its handoffs"
                    )));
                }
                PhaseEnd::GoTo(target.to_owned())
            }
            (None, None) => PhaseEnd::Through,
        };
        let run = self.finished(output, vec![self.shown_result(message)]);
        self.end(PhaseRun { value, ..run }).await?;
        Ok(end)
    }

    /// Calls a tool once for the phase, or takes the recorded result.
    pub(crate) async fn call_tool(
        &mut self,
        tool: &str,
        inputs: &Map<String, Value>,
    ) -> Result<Arc<Message>, RunError> {
        let arguments = Value::Object(inputs.clone()).to_string();
        if let Some(recorded) = self.journal.answer(Role::Tool)? {
            self.keep_recorded(tool, &arguments, &recorded);
            return Ok(recorded);
        }
        let caller = self.caller();
        let limit = match self.phase.timeout.as_deref() {
            Some(text) => Some(duration(text).ok_or_else(|| {
                self.failed(format!("`timeout` is `{text}`, not a time such as 30s, 5m or 1h30m"))
            })?),
            None => None,
        };
        let answer = {
            let call = std::pin::pin!(self.call(&caller, tool, &arguments));
            match limit {
                None => call.await,
                Some(limit) => match select(call, self.run.runner.clock.sleep(limit)).await {
                    Either::Left((answer, _)) => answer,
                    Either::Right(_) => Err(ToolError::Unavailable {
                        name: tool.to_owned(),
                        why: format!("it ran longer than {} s", limit.as_secs()),
                    }),
                },
            }
        };
        let phase = self.name();
        let answer = answer.map_err(|source| RunError::Tool { phase: phase.to_owned(), source })?;
        self.record_result(&format!("{phase}:{tool}"), answer).await
    }

    /// Returns the result of a tool as a later phase sees it: as the user's, since no call of a model stands before it.
    fn shown_result(&self, message: &Message) -> Arc<Message> {
        let mut blocks = Vec::new();
        for result in message.results() {
            let text: Arc<str> = format!("[Output from {}]:\n{}", self.name(), result.text).into();
            blocks.push(Block::Text(text));
            blocks.extend(result.images.iter().cloned().map(Block::Image));
        }
        let mut shown = Message::new(Role::User, blocks);
        shown.phase = Some(self.name().into());
        Arc::new(shown)
    }
}

/// Reads a duration such as `30`, `30s`, `5m` or `1h30m`; `None` for zero or another text.
fn duration(text: &str) -> Option<Duration> {
    let mut seconds: u64 = 0;
    let mut number = String::new();
    for c in text.trim().chars() {
        let unit = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            _ => return None,
        };
        seconds = seconds.saturating_add(number.parse::<u64>().ok()?.saturating_mul(unit));
        number.clear();
    }
    if !number.is_empty() {
        seconds = seconds.saturating_add(number.parse().ok()?);
    }
    (seconds > 0).then(|| Duration::from_secs(seconds))
}
