//! GitHub Copilot CLI: a log of events (`events.jsonl`), or in older versions a document of chat messages.
//!
//! Messages of a sub-agent name the tool call that started it.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_core::{Block, Role, Thinking, ToolCall, ToolResult};

use crate::content::either;
use crate::draft::{RecordedMessage, SessionDraft};
use crate::error::ReadError;
use crate::json;
use crate::object::Object;
use crate::openai;
use crate::session::{Compaction, ReadOptions};

/// Returns whether a line is an event of the log.
pub(crate) fn is_event(line: &Object<'_>) -> bool {
    let kind = line.text("type").unwrap_or_default();
    let subject = kind.split_once('.').map(|(subject, _)| subject);
    matches!(subject, Some("session" | "user" | "assistant" | "tool" | "system" | "subagent"))
        && line.object("data").is_some()
}

/// Reads a session.
pub(crate) fn read(bytes: &[u8], options: ReadOptions) -> Result<SessionDraft, ReadError> {
    let text = json::utf8_document(bytes);
    if Object::parse(&text).is_some_and(|document| document.has("chatMessages")) {
        return document(&text);
    }
    let mut draft = SessionDraft::of_lines();
    let mut agents = SubAgents::default();
    draft.each_line(bytes, |draft, number, line| {
        let Some(data) = line.object("data") else {
            return draft.skip(number, "it has no data");
        };
        let kind = line.text("type").unwrap_or_default();
        header(draft, &kind, line, &data);
        if kind == "subagent.started" {
            agents.started(&data);
        }
        let target = match data.words("parentToolCallId") {
            Some(parent) => agents.of(&parent),
            None => draft,
        };
        event(target, number, &kind, line, &data, options);
    });
    draft.threads = agents.threads;
    Ok(draft)
}

/// Reads the document that versions before the log of events wrote.
fn document(text: &str) -> Result<SessionDraft, ReadError> {
    let (mut draft, session, messages) = SessionDraft::of_document(text, "chatMessages")?;
    draft.header.id = session.owned("sessionId");
    draft.header.started = session.time("startTime");
    draft.header.model = session.owned("selectedModel");
    draft.each_element(&messages, |draft, number, message| {
        openai::each_message(draft, number, message, |draft, recorded| {
            draft.messages.push(recorded);
        });
    });
    Ok(draft)
}

/// The conversations of sub-agents, by the call that started each.
#[derive(Default)]
struct SubAgents {
    threads: Vec<SessionDraft>,
    by_call: HashMap<String, usize>,
    names: HashMap<String, String>,
}

impl SubAgents {
    fn started(&mut self, data: &Object<'_>) {
        let name = data.owned(either(data, "agentDisplayName", "agentName"));
        if let (Some(call), Some(name)) = (data.owned("toolCallId"), name) {
            self.names.insert(call, name);
        }
    }

    fn of(&mut self, call: &str) -> &mut SessionDraft {
        let next = self.threads.len();
        let index = *self.by_call.entry(call.to_owned()).or_insert(next);
        if index == next {
            let mut draft = SessionDraft::of_lines();
            draft.name = Some(self.names.get(call).map_or(call, String::as_str).to_owned());
            self.threads.push(draft);
        }
        &mut self.threads[index]
    }
}

fn header(draft: &mut SessionDraft, kind: &str, line: &Object<'_>, data: &Object<'_>) {
    let header = &mut draft.header;
    match kind {
        "session.start" => {
            header.id = data.owned("sessionId");
            header.started = data.time("startTime").or(line.time("timestamp"));
            header.model = data.owned("selectedModel");
            let context = data.object("context").unwrap_or_default();
            header.working_directory = context.owned("cwd");
        }
        "session.resume" => header.model = header.model.take().or(data.owned("selectedModel")),
        "session.model_change" => header.model = data.owned("newModel").or(header.model.take()),
        "assistant.message" => header.model = data.owned("model").or(header.model.take()),
        _ => {}
    }
}

fn event(
    draft: &mut SessionDraft,
    number: u32,
    kind: &str,
    line: &Object<'_>,
    data: &Object<'_>,
    options: ReadOptions,
) {
    let time = line.time("timestamp");
    match kind {
        "system.message" => {
            let text = data.shared("content");
            draft.messages.push(RecordedMessage::text(Role::System, number, time, text));
        }
        "user.message" => {
            // The transformed content is what the model received.
            let text = data.words("transformedContent").or(data.words("content"));
            let Some(text) = text else { return draft.skip(number, "it has no content") };
            draft.messages.push(RecordedMessage::text(Role::User, number, time, text));
        }
        "assistant.message" => {
            let recorded = assistant(number, line, data);
            if !recorded.message.blocks.is_empty() {
                draft.messages.push(recorded);
            }
        }
        "tool.execution_complete" => {
            let result = data.object("result").unwrap_or_default();
            let error = data.object("error").unwrap_or_default();
            let text = result.text("content").or(error.text("message")).unwrap_or_default();
            let result = ToolResult {
                call_id: data.shared("toolCallId"),
                text: text.into(),
                images: Vec::new(),
                is_error: data.get("success") == Some("false"),
            };
            draft.messages.push(RecordedMessage::result(number, time, None, result));
        }
        "session.compaction_complete" if data.get("success") != Some("false") => {
            let summary = data.words("summaryContent");
            if options.compaction == Compaction::Honour {
                draft.restart(Vec::new());
            }
            draft.compacted(number, data.count("preCompactionTokens"));
            if options.compaction == Compaction::Honour {
                if let Some(summary) = summary {
                    let recorded = RecordedMessage::text(Role::User, number, time, summary);
                    draft.messages.push(recorded);
                }
                draft.begun();
            }
        }
        // Starts of turns and tools repeat what their ends say; the rest is shown to the user only.
        _ => {}
    }
}

fn assistant(number: u32, line: &Object<'_>, data: &Object<'_>) -> RecordedMessage {
    let mut recorded = RecordedMessage::new(Role::Assistant, number, line.time("timestamp"), []);
    if let Some(reasoning) = data.words("reasoningText") {
        let thinking = Thinking { text: reasoning.into(), signature: "".into() };
        recorded.push(number, None, Block::Thinking(thinking));
    }
    if let Some(text) = data.words("content") {
        recorded.push(number, None, Block::Text(text.into()));
    }
    for (index, call) in (0..).zip(data.objects("toolRequests")) {
        let call = ToolCall {
            id: call.shared("toolCallId"),
            name: call.shared("name"),
            arguments: call.arguments("arguments"),
        };
        recorded.push(number, Some(index), Block::ToolCall(call));
    }
    recorded.message.model = data.words("model").map(Arc::from);
    recorded
}
