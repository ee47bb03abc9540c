//! Phases that are one call of a tool, without a model.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use plimsoll_core::{Block, Message, Role};
use plimsoll_engine::ToolError;
use serde_json::{Map, Value};

use super::Run;
use super::error::RunError;
use super::event::Event;
use super::journal::Journal;
use super::phase::Ended;
use super::state::{Ran, RunState};
use super::toolbox::Caller;
use crate::definition::{Phase, Templated};

impl Run {
    /// Runs a phase that is one call of a tool.
    pub(crate) async fn tool_phase(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &mut Journal,
    ) -> Result<Ended, RunError> {
        let name = phase.name.as_str();
        let Some(tool) = phase.tool.as_deref() else { return Ok(Ended::Through) };
        self.tell(&Event::PhaseBegan {
            phase: name.to_owned(),
            visit: past.visits(name) + 1,
            context_messages: 0,
            context_tokens: 0,
        });
        let inputs = self.templated(phase, past, &phase.inputs)?;
        let message = self.tool_once(phase, journal, tool, &inputs).await?;
        self.end_tool_phase(phase, past, journal, &message).await
    }

    /// Adds what a phase's tool gave to the past, and returns where it leads.
    pub(crate) async fn end_tool_phase(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &Journal,
        message: &Message,
    ) -> Result<Ended, RunError> {
        let name = phase.name.as_str();
        let result = message.results().next();
        let (mut output, is_error) = result
            .map_or_else(Default::default, |result| (result.text.to_string(), result.is_error));
        if is_error {
            let why = plimsoll_core::text::shortened(&output, 200).into_owned();
            return Err(RunError::Failed { phase: name.to_owned(), why });
        }
        let mut value: Value =
            serde_json::from_str(&output).unwrap_or_else(|_| Value::String(output.clone()));
        let route = value.as_object_mut().and_then(|map| map.shift_remove("_route"));
        if route.is_some() {
            output = value.to_string();
        }
        let status = value.get("status").and_then(Value::as_str).map(str::to_owned);
        let key = route.as_ref().and_then(Value::as_str).map(str::to_owned).or(status);
        let routed = key.as_deref().and_then(|key| {
            phase
                .routing
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, target)| target.name.clone())
        });
        let ended = match (routed, route.as_ref().and_then(Value::as_str)) {
            (Some(target), _) => Ended::GoTo(target),
            (None, Some(target)) => {
                let is_known = phase.handoffs.iter().any(|handoff| handoff.target.name == target);
                if !is_known {
                    let why =
                        format!("its tool goes on to `{target}`, which is none of its handoffs");
                    return Err(RunError::Failed { phase: name.to_owned(), why });
                }
                Ended::GoTo(target.to_owned())
            }
            (None, None) => Ended::Through,
        };
        let ran = Ran {
            phase: name.to_owned(),
            output,
            value,
            messages: vec![shown_result(phase, message)],
            set: Map::new(),
            retention: phase.context_retention,
        };
        self.end(phase, past, journal, ran).await?;
        Ok(ended)
    }

    /// Calls a tool once for a phase, or takes the result that was recorded.
    pub(crate) async fn tool_once(
        &self,
        phase: &Phase,
        journal: &mut Journal,
        tool: &str,
        inputs: &Map<String, Value>,
    ) -> Result<Arc<Message>, RunError> {
        if let Some(known) = journal.answer(Role::Tool)? {
            return Ok(known);
        }
        let caller = Caller {
            tenant: journal.tenant().clone(),
            session: journal.session().clone(),
            cascade: self.cascade.cascade_id.to_string(),
            now: self.runner.clock.now(),
            number: journal.turn(),
        };
        let arguments = Value::Object(inputs.clone()).to_string();
        let call = std::pin::pin!(self.toolbox.call(&caller, tool, &arguments));
        let answer = match phase.timeout.as_deref() {
            None => call.await,
            Some(text) => {
                let limit = time_in(phase, text)?;
                match select(call, self.runner.clock.sleep(limit)).await {
                    Either::Left((answer, _)) => answer,
                    Either::Right(_) => Err(ToolError::Unavailable {
                        name: tool.to_owned(),
                        why: format!("it ran longer than {} s", limit.as_secs()),
                    }),
                }
            }
        };
        let answer =
            answer.map_err(|source| RunError::Tool { phase: phase.name.to_string(), source })?;
        let mut message = Message::result(format!("{}:{tool}", phase.name), answer.text.clone());
        message.phase = Some(phase.name.as_str().into());
        if let Some(Block::ToolResult(result)) = message.blocks.first_mut() {
            result.is_error = answer.is_error;
            result.images.clone_from(&answer.images);
        }
        self.save_images(phase, journal.session(), &message)?;
        journal.append(message, Vec::new()).await
    }

    /// Renders the texts of a tool's inputs.
    pub(crate) fn templated(
        &self,
        phase: &Phase,
        past: &RunState,
        inputs: &[(String, Templated)],
    ) -> Result<Map<String, Value>, RunError> {
        let mut rendered = Map::new();
        for (name, value) in inputs {
            rendered.insert(name.clone(), self.templated_value(phase, past, value)?);
        }
        Ok(rendered)
    }

    fn templated_value(
        &self,
        phase: &Phase,
        past: &RunState,
        value: &Templated,
    ) -> Result<Value, RunError> {
        Ok(match value {
            Templated::Text(template) => self.render_value(phase, past, template)?,
            Templated::List(items) => {
                let items = items.iter().map(|item| self.templated_value(phase, past, item));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Templated::Map(entries) => Value::Object(self.templated(phase, past, entries)?),
            Templated::Plain(value) => value.clone(),
        })
    }
}

/// Reads a span of time such as `30`, `30s`, `5m` or `1h30m`.
fn time_in(phase: &Phase, text: &str) -> Result<Duration, RunError> {
    let wrong = || RunError::Failed {
        phase: phase.name.to_string(),
        why: format!("`timeout` is `{text}`, not a time such as 30s, 5m or 1h30m"),
    };
    let mut seconds = 0;
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
            _ => return Err(wrong()),
        };
        seconds += number.parse::<u64>().map_err(|_| wrong())?.saturating_mul(unit);
        number.clear();
    }
    if !number.is_empty() {
        seconds += number.parse::<u64>().map_err(|_| wrong())?;
    }
    if seconds == 0 { Err(wrong()) } else { Ok(Duration::from_secs(seconds)) }
}

/// The result of a tool without a model, as a later phase can be shown it: no call of a model's stands before it.
fn shown_result(phase: &Phase, message: &Message) -> Arc<Message> {
    let mut blocks = Vec::new();
    for result in message.results() {
        let text: Arc<str> = format!("[Output from {}]:\n{}", phase.name, result.text).into();
        blocks.push(Block::Text(text));
        blocks.extend(result.images.iter().cloned().map(Block::Image));
    }
    let mut shown = Message::new(Role::User, blocks);
    shown.phase = Some(phase.name.as_str().into());
    Arc::new(shown)
}
