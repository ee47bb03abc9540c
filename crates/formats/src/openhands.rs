//! `OpenHands`: a list of events, or lines of an evaluation's `output.jsonl` that hold one as `history`.
//!
//! An observation answers the action that it names as its cause.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plimsoll_core::{Block, MillisSinceEpoch, Role, ToolCall, ToolResult};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::arguments;
use crate::blocks::Content;
use crate::draft::{Draft, Recorded};
use crate::error::ReadError;
use crate::json::{self, Stamp, Text};
use crate::note::NoteKind;
use crate::openai::{self, WireUsage};
use crate::session::{Compaction, ReadOptions};

#[derive(Deserialize)]
struct Run<'a> {
    #[serde(borrow)]
    instance_id: Option<Text<'a>>,
    history: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(default)]
    timestamp: Stamp,
    source: Option<Text<'a>>,
    message: Option<Text<'a>>,
    action: Option<Text<'a>>,
    observation: Option<Text<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    cause: Option<Text<'a>>,
    #[serde(default)]
    content: Content<'a>,
    tool_call_metadata: Option<CallMetadata<'a>>,
}

#[derive(Deserialize)]
struct CallMetadata<'a> {
    #[serde(borrow, default)]
    function_name: Text<'a>,
    #[serde(default)]
    tool_call_id: Text<'a>,
    model_response: Option<ModelResponse<'a>>,
}

#[derive(Deserialize)]
struct ModelResponse<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    model: Option<Text<'a>>,
    #[serde(default)]
    choices: Vec<Choice<'a>>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<Answer<'a>>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow)]
    tool_calls: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
struct Arguments<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    thought: Option<Text<'a>>,
    final_thought: Option<Text<'a>>,
    summary: Option<Text<'a>>,
    forgotten_event_ids: Option<Vec<i64>>,
    forgotten_events_start_id: Option<i64>,
    forgotten_events_end_id: Option<i64>,
    summary_offset: Option<usize>,
}

/// Reads a list of `OpenHands` events.
pub(crate) fn read(text: &str, options: ReadOptions) -> Result<Draft, ReadError> {
    let mut draft = Draft::of_elements();
    let events: Vec<&RawValue> = if text.trim_ascii_start().starts_with('[') {
        serde_json::from_str(text).map_err(ReadError::json)?
    } else {
        let mut runs = serde_json::Deserializer::from_str(text).into_iter::<Run<'_>>();
        let Some(run) = runs.next() else { return Err(ReadError::Empty) };
        let run = run.map_err(ReadError::json)?;
        draft.header.id = run.instance_id.map(|id| id.0.into_owned());
        let count = runs.take_while(Result::is_ok).count();
        if count > 0 {
            draft.note(0, NoteKind::FurtherSessions { count });
        }
        run.history
    };
    let mut reader = Reader { options, ..Reader::default() };
    json::each_element(&events, &mut draft, |draft, number, text| {
        let event: Event<'_> = serde_json::from_str(text)?;
        reader.event(draft, number, &event);
        Ok(())
    });
    Ok(draft)
}

#[derive(Default)]
struct Reader {
    options: ReadOptions,
    /// The call that each action made, by event id.
    calls: HashMap<String, Arc<str>>,
    /// The reply that the newest assistant message was read from; its further actions join it.
    reply: Option<String>,
    /// The event that each message was read from.
    events: Vec<Option<i64>>,
}

impl Reader {
    fn push(&mut self, draft: &mut Draft, id: Option<i64>, recorded: Recorded) {
        draft.recorded.push(recorded);
        self.events.push(id);
    }

    fn event(&mut self, draft: &mut Draft, number: u32, event: &Event<'_>) {
        let id = event.id.as_ref().and_then(|id| id.parse().ok());
        let arguments: Arguments<'_> =
            event.args.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        if let Some(observation) = event.observation.as_deref() {
            if !matches!(observation, "agent_state_changed" | "null" | "") {
                self.observation(draft, number, id, event);
            }
            return;
        }
        let user = event.source.as_deref() == Some("user");
        let said = |text: &Option<Text<'_>>| {
            text.as_ref().filter(|text| !text.is_empty()).map(Text::shared)
        };
        match event.action.as_deref().unwrap_or_default() {
            "system" | "message" => {
                let role = match (event.action.as_deref(), user) {
                    (Some("system"), _) => Role::System,
                    (_, true) => Role::User,
                    (_, false) => Role::Assistant,
                };
                let text = said(&arguments.content).or(said(&event.message)).unwrap_or_default();
                let recorded = Recorded::text(role, number, event.timestamp.0, text);
                self.reply = None;
                self.push(draft, id, recorded);
                usage_of(draft, role, event);
            }
            "finish" if !user => {
                let text = said(&arguments.final_thought)
                    .or(said(&arguments.thought))
                    .or_else(|| answer_text(event))
                    .or(said(&event.message));
                let recorded = Recorded::text(
                    Role::Assistant,
                    number,
                    event.timestamp.0,
                    text.unwrap_or_default(),
                );
                self.reply = None;
                self.push(draft, id, recorded);
                usage_of(draft, Role::Assistant, event);
            }
            "condensation" => self.condensation(draft, number, event.timestamp.0, &arguments),
            "change_agent_state" | "recall" | "null" | "condensation_request" | "" => {}
            _ if user => {
                let text = said(&event.message).unwrap_or_default();
                self.push(draft, id, Recorded::text(Role::User, number, event.timestamp.0, text));
            }
            action => self.call(draft, number, id, action, event, &arguments),
        }
    }

    fn call(
        &mut self,
        draft: &mut Draft,
        number: u32,
        id: Option<i64>,
        action: &str,
        event: &Event<'_>,
        arguments: &Arguments<'_>,
    ) {
        let metadata = event.tool_call_metadata.as_ref();
        let response = metadata.and_then(|metadata| metadata.model_response.as_ref());
        let reply = response.map(|response| response.id.to_string()).filter(|id| !id.is_empty());
        let joins = reply.is_some() && reply == self.reply;
        let joined = if joins { draft.last_assistant().is_some() } else { false };
        if !joined {
            let thought = answer_text(event)
                .or_else(|| arguments.thought.as_ref().map(Text::shared))
                .filter(|text| !text.is_empty());
            let blocks = thought.map(|text| (None, Block::Text(text)));
            let recorded = Recorded::new(Role::Assistant, number, event.timestamp.0, blocks);
            self.push(draft, id, recorded);
            usage_of(draft, Role::Assistant, event);
        }
        self.reply = reply;
        let call = metadata.map_or_else(
            || ToolCall {
                id: Arc::from(format!("e{}", id.unwrap_or_else(|| i64::from(number)))),
                name: Arc::from(action),
                arguments: arguments::from_raw(event.args),
            },
            |metadata| model_call(metadata, event.args),
        );
        if let Some(id) = &event.id {
            self.calls.insert(id.to_string(), call.id.clone());
        }
        if let Some(recorded) = draft.last_assistant() {
            recorded.push(number, None, Block::ToolCall(call));
        }
    }

    fn observation(&mut self, draft: &mut Draft, number: u32, id: Option<i64>, event: &Event<'_>) {
        let (text, images) = event.content.text_and_images();
        let call_id =
            event.cause.as_ref().and_then(|cause| self.calls.get(cause.as_str()).cloned());
        let recorded = match call_id {
            Some(call_id) => {
                let is_error = event.observation.as_deref() == Some("error");
                let result = ToolResult { call_id, text, images, is_error };
                let block = (None, Block::ToolResult(result));
                Recorded::new(Role::Tool, number, event.timestamp.0, [block])
            }
            None if text.is_empty() => return,
            None => Recorded::text(Role::User, number, event.timestamp.0, text),
        };
        self.push(draft, id, recorded);
    }

    fn condensation(
        &mut self,
        draft: &mut Draft,
        number: u32,
        time: Option<MillisSinceEpoch>,
        arguments: &Arguments<'_>,
    ) {
        if self.options.compaction == Compaction::Honour {
            let ids: HashSet<i64> =
                arguments.forgotten_event_ids.iter().flatten().copied().collect();
            let range = arguments.forgotten_events_start_id.zip(arguments.forgotten_events_end_id);
            let forgotten = |id: &Option<i64>| {
                id.is_some_and(|id| {
                    ids.contains(&id)
                        || range.is_some_and(|(start, end)| (start..=end).contains(&id))
                })
            };
            let mut keep = self.events.iter().map(|id| !forgotten(id));
            let mut kept = draft.recorded.clone();
            kept.retain(|_| keep.next().unwrap_or(true));
            draft.restart(kept);
            self.events.retain(|id| !forgotten(id));
            if let Some(summary) = arguments.summary.as_ref().filter(|text| !text.is_empty()) {
                let at = arguments.summary_offset.unwrap_or(1).min(draft.recorded.len());
                let recorded = Recorded::text(Role::User, number, time, summary.shared());
                draft.recorded.insert(at, recorded);
                self.events.insert(at, None);
            }
            draft.begun();
        }
        draft.compacted(number, None);
    }
}

fn answer_text(event: &Event<'_>) -> Option<Arc<str>> {
    let response = event.tool_call_metadata.as_ref()?.model_response.as_ref()?;
    let (text, _) = response.choices.first()?.message.as_ref()?.content.text_and_images();
    (!text.is_empty()).then_some(text)
}

fn usage_of(draft: &mut Draft, role: Role, event: &Event<'_>) {
    let response = event.tool_call_metadata.as_ref().and_then(|data| data.model_response.as_ref());
    if let (Role::Assistant, Some(response)) = (role, response) {
        if let Some(model) = &response.model {
            draft.header.model = Some(model.to_string());
        }
        if let Some(recorded) = draft.last_assistant() {
            recorded.message.model = response.model.as_ref().map(Text::shared);
            recorded.message.usage = response.usage.as_ref().and_then(WireUsage::usage);
        }
    }
}

/// Returns the call as the model wrote it, or else the action's own arguments.
fn model_call(metadata: &CallMetadata<'_>, args: Option<&RawValue>) -> ToolCall {
    let answer = metadata
        .model_response
        .as_ref()
        .and_then(|response| response.choices.first())
        .and_then(|choice| choice.message.as_ref());
    answer
        .and_then(|answer| answer.tool_calls.as_ref())
        .into_iter()
        .flatten()
        .filter_map(|raw| openai::call(raw.get()))
        .find(|call| *call.id == *metadata.tool_call_id)
        .unwrap_or_else(|| ToolCall {
            id: metadata.tool_call_id.shared(),
            name: metadata.function_name.shared(),
            arguments: arguments::from_raw(args),
        })
}
