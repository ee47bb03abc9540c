//! `OpenHands`: a list of events, or lines of an evaluation's `output.jsonl` that hold one as `history`.
//!
//! An observation is the result of the action that it names as its cause.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plimsoll_core::{Block, MillisSinceEpoch, Role, ToolCall, ToolResult};
use serde_json::value::RawValue;

use crate::content::text_and_images;
use crate::draft::{RecordedMessage, SessionDraft};
use crate::error::ReadError;
use crate::note::NoteKind;
use crate::object::Object;
use crate::openai;
use crate::session::{Compaction, ReadOptions};

/// Reads a list of `OpenHands` events.
pub(crate) fn read(text: &str, options: ReadOptions) -> Result<SessionDraft, ReadError> {
    // A file of several runs has one on each line.
    let mut runs = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let Some(first) = runs.next() else { return Err(ReadError::Empty) };
    let mut draft = run(first.map_err(ReadError::json)?.get(), options)?;
    let others = runs.map_while(Result::ok).filter_map(|other| run(other.get(), options).ok());
    draft.runs = others.collect();
    if !draft.runs.is_empty() {
        draft.note(0, NoteKind::FurtherSessions { count: draft.runs.len() });
    }
    Ok(draft)
}

fn run(text: &str, options: ReadOptions) -> Result<SessionDraft, ReadError> {
    let (mut draft, run, events) = SessionDraft::of_document(text, "history")?;
    draft.header.id = run.owned("instance_id");
    draft.name.clone_from(&draft.header.id);
    let mut reader = OpenHandsReader { options, ..OpenHandsReader::default() };
    draft.each_element(&events, |draft, number, event| reader.event(draft, number, event));
    Ok(draft)
}

#[derive(Default)]
struct OpenHandsReader {
    options: ReadOptions,
    /// The call id of each action, by event id.
    calls: HashMap<String, Arc<str>>,
    /// The id of the response that the newest assistant message came from; its further actions join that message.
    reply: Option<String>,
    /// The event id of each message.
    events: Vec<Option<i64>>,
}

impl OpenHandsReader {
    fn push(&mut self, draft: &mut SessionDraft, id: Option<i64>, recorded: RecordedMessage) {
        draft.messages.push(recorded);
        self.events.push(id);
    }

    fn event(&mut self, draft: &mut SessionDraft, number: u32, event: &Object<'_>) {
        let id = event.text("id").and_then(|id| id.parse().ok());
        let time = event.time("timestamp");
        if let Some(observation) = event.text("observation") {
            if !matches!(&*observation, "agent_state_changed" | "null" | "") {
                self.observation(draft, number, id, event);
            }
            return;
        }
        let arguments = event.object("args").unwrap_or_default();
        let is_user = event.text("source").as_deref() == Some("user");
        let action = event.text("action").unwrap_or_default();
        let response = model_response(event);
        let message = || event.words("message").map(Arc::<str>::from);
        let (role, text) = match &*action {
            "system" | "message" => {
                let role = match (&*action, is_user) {
                    ("system", _) => Role::System,
                    (_, true) => Role::User,
                    (_, false) => Role::Assistant,
                };
                (role, arguments.words("content").map(Arc::from).or_else(message))
            }
            "finish" if !is_user => {
                let thoughts = arguments.words("final_thought").or(arguments.words("thought"));
                let text = thoughts.map(Arc::from).or_else(|| answer_text(&response));
                (Role::Assistant, text.or_else(message))
            }
            "condensation" => return self.condensation(draft, number, time, &arguments),
            "change_agent_state" | "recall" | "null" | "condensation_request" | "" => return,
            _ if is_user => {
                let text = message().unwrap_or_default();
                return self.push(draft, id, RecordedMessage::text(Role::User, number, time, text));
            }
            action => return self.call(draft, number, id, action, event, &arguments),
        };
        self.reply = None;
        self.push(draft, id, RecordedMessage::text(role, number, time, text.unwrap_or_default()));
        if role == Role::Assistant {
            take_usage(draft, &response);
        }
    }

    fn call(
        &mut self,
        draft: &mut SessionDraft,
        number: u32,
        id: Option<i64>,
        action: &str,
        event: &Object<'_>,
        arguments: &Object<'_>,
    ) {
        let response = model_response(event);
        let reply = response.words("id").map(|id| id.to_string());
        let joins = reply.is_some() && reply == self.reply;
        if !joins || draft.last_assistant().is_none() {
            let thought =
                answer_text(&response).or_else(|| arguments.words("thought").map(Arc::from));
            let blocks = thought.map(|text| (None, Block::Text(text)));
            let recorded =
                RecordedMessage::new(Role::Assistant, number, event.time("timestamp"), blocks);
            self.push(draft, id, recorded);
            take_usage(draft, &response);
        }
        self.reply = reply;
        let call = match event.object("tool_call_metadata") {
            Some(metadata) => model_call(&metadata, &response, event),
            None => ToolCall {
                id: format!("e{}", id.unwrap_or_else(|| i64::from(number))).into(),
                name: action.into(),
                arguments: event.arguments("args"),
            },
        };
        if let Some(id) = event.owned("id") {
            self.calls.insert(id, call.id.clone());
        }
        if let Some(recorded) = draft.last_assistant() {
            recorded.push(number, None, Block::ToolCall(call));
        }
    }

    fn observation(
        &mut self,
        draft: &mut SessionDraft,
        number: u32,
        id: Option<i64>,
        event: &Object<'_>,
    ) {
        let (text, images) = text_and_images(event.get("content"));
        let time = event.time("timestamp");
        let call_id = event.text("cause").and_then(|cause| self.calls.get(&*cause).cloned());
        let recorded = match call_id {
            Some(call_id) => {
                let is_error = event.text("observation").as_deref() == Some("error");
                let result = ToolResult { call_id, text, images, is_error };
                RecordedMessage::result(number, time, None, result)
            }
            None if text.is_empty() => return,
            None => RecordedMessage::text(Role::User, number, time, text),
        };
        self.push(draft, id, recorded);
    }

    fn condensation(
        &mut self,
        draft: &mut SessionDraft,
        number: u32,
        time: Option<MillisSinceEpoch>,
        arguments: &Object<'_>,
    ) {
        if self.options.compaction == Compaction::Honour {
            let number_of = |raw: &str| raw.parse::<i64>().ok();
            let ids = arguments.list("forgotten_event_ids");
            let ids: HashSet<i64> = ids.iter().filter_map(|raw| number_of(raw.get())).collect();
            let end_of = |key| arguments.get(key).and_then(number_of);
            let range = end_of("forgotten_events_start_id").zip(end_of("forgotten_events_end_id"));
            let forgotten = |id: &Option<i64>| {
                id.is_some_and(|id| {
                    ids.contains(&id)
                        || range.is_some_and(|(start, end)| (start..=end).contains(&id))
                })
            };
            let mut keep = self.events.iter().map(|id| !forgotten(id));
            let mut kept = draft.messages.clone();
            kept.retain(|_| keep.next().unwrap_or(true));
            draft.restart(kept);
            self.events.retain(|id| !forgotten(id));
            if let Some(summary) = arguments.words("summary") {
                let at = arguments.count("summary_offset").unwrap_or(1) as usize;
                let at = at.min(draft.messages.len());
                let recorded = RecordedMessage::text(Role::User, number, time, summary);
                draft.messages.insert(at, recorded);
                self.events.insert(at, None);
            }
            draft.begun();
        }
        draft.compacted(number, None);
    }
}

/// Returns the chat completion that an action came from.
fn model_response<'a>(event: &Object<'a>) -> Object<'a> {
    let metadata = event.object("tool_call_metadata").unwrap_or_default();
    metadata.object("model_response").unwrap_or_default()
}

/// Returns the model's message in a chat completion.
fn answer<'a>(response: &Object<'a>) -> Option<Object<'a>> {
    response.objects("choices").first()?.object("message")
}

fn answer_text(response: &Object<'_>) -> Option<Arc<str>> {
    let (text, _) = text_and_images(answer(response)?.get("content"));
    (!text.is_empty()).then_some(text)
}

fn take_usage(draft: &mut SessionDraft, response: &Object<'_>) {
    draft.header.model = response.owned("model").or(draft.header.model.take());
    if let Some(recorded) = draft.last_assistant() {
        recorded.message.model = openai::model_of(response);
        recorded.message.usage = openai::usage_of(response);
    }
}

/// Returns the call as the model wrote it, else one with the arguments of the action.
fn model_call(metadata: &Object<'_>, response: &Object<'_>, event: &Object<'_>) -> ToolCall {
    let id = metadata.shared("tool_call_id");
    let calls = answer(response).map(|answer| answer.list("tool_calls")).unwrap_or_default();
    let mut calls = calls.iter().filter_map(|raw| openai::call(raw.get()));
    calls.find(|call| call.id == id).unwrap_or_else(|| ToolCall {
        id,
        name: metadata.shared("function_name"),
        arguments: event.arguments("args"),
    })
}
