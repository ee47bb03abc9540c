//! Claude Code: JSON lines, one API message spread over several of them, results inside user lines.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plimsoll_core::bill::Cause;
use plimsoll_core::{Block, MillisSinceEpoch, Role};

use crate::anthropic::usage_of;
use crate::content::{self, is_content};
use crate::draft::{RecordedMessage, RecordedRequest, SessionDraft};
use crate::note::NoteKind;
use crate::object::Object;
use crate::session::{Compaction, ReadOptions};

/// Returns why the cache missed, if the provider reported it.
fn cause(message: &Object<'_>) -> Option<Cause> {
    let reason = message.object("diagnostics")?.object("cache_miss_reason")?;
    match &*reason.text("type")? {
        "model_changed" => Some(Cause::Model),
        "system_changed" | "tools_changed" => Some(Cause::Tools),
        "messages_changed" => Some(Cause::Rewind),
        _ => None,
    }
}

/// The lines that a reader takes messages from.
#[derive(PartialEq)]
enum LineSelection {
    Main,
    /// Lines of sub-agents, too.
    Sidechain,
}

struct ClaudeCodeReader {
    options: ReadOptions,
    lines: LineSelection,
    /// Whether a line of the main conversation was seen.
    main: bool,
    sidechain: bool,
    seen: HashSet<String>,
    /// Index of the message that each API message id was read into.
    by_id: HashMap<String, usize>,
    /// Index of the request that each API message id belongs to.
    requests: HashMap<String, usize>,
    /// Whether a progress line shows a message of a sub-agent.
    progress: bool,
    /// The line and the size of the last boundary, until its summary comes.
    boundary: Option<(u32, Option<u64>)>,
    /// The ids of the lines' sessions.
    sessions: HashSet<String>,
}

/// Reads a Claude Code session; further sessions of the file are its runs.
pub(crate) fn read(bytes: &[u8], options: ReadOptions) -> SessionDraft {
    let (all, one) = read_session(bytes, options, &|_| true);
    if one.sessions.len() < 2 {
        return all;
    }
    let SessionLines { of_line, count } = session_lines(bytes);
    let session = |number| {
        let lines = |line| of_line.get(&line).copied().unwrap_or(0) == number;
        read_session(bytes, options, &lines).0
    };
    let mut draft = session(0);
    draft.runs = (1..count).map(session).filter(|run| !run.messages.is_empty()).collect();
    if !draft.runs.is_empty() {
        draft.note(0, NoteKind::FurtherSessions { count: draft.runs.len() });
    }
    draft
}

/// Chooses lines by their number.
type LineFilter<'a> = &'a dyn Fn(u32) -> bool;

fn read_session(
    bytes: &[u8],
    options: ReadOptions,
    is_own: LineFilter<'_>,
) -> (SessionDraft, ClaudeCodeReader) {
    let (mut draft, reader) = read_lines(bytes, options, LineSelection::Main, is_own);
    if reader.sidechain && !reader.main {
        // In a sub-agent's own file all lines are of the sidechain.
        return read_lines(bytes, options, LineSelection::Sidechain, is_own);
    }
    if reader.sidechain || reader.progress {
        draft.threads = sidechains(bytes, options, is_own);
    }
    (draft, reader)
}

/// The sessions of a file, counted from 0 in the order of their first messages.
struct SessionLines {
    of_line: HashMap<u32, usize>,
    count: usize,
}

/// Returns the session of each line: a message of another id goes on with its parent's session, as after a resume, and begins one
/// where it has no parent.
fn session_lines(bytes: &[u8]) -> SessionLines {
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut by_uuid: HashMap<String, usize> = HashMap::new();
    let mut found = SessionLines { of_line: HashMap::new(), count: 0 };
    let mut current = 0;
    SessionDraft::of_lines().each_line(bytes, |_, number, line| {
        if let (Some(id), Some(uuid)) = (line.owned("sessionId"), line.owned("uuid")) {
            let parent = line.text("parentUuid").and_then(|parent| by_uuid.get(&*parent).copied());
            current = by_id.get(&id).copied().or(parent).unwrap_or(found.count);
            found.count = found.count.max(current + 1);
            by_id.entry(id).or_insert(current);
            by_uuid.insert(uuid, current);
        }
        found.of_line.insert(number, current);
    });
    found
}

/// Reads the conversations of sub-agents between the lines of the main conversation.
///
/// Lines of one agent share its id, or in older files form a chain of parents.
fn sidechains(bytes: &[u8], options: ReadOptions, is_own: LineFilter<'_>) -> Vec<SessionDraft> {
    let mut threads: Vec<(SessionDraft, ClaudeCodeReader)> = Vec::new();
    let mut by_agent: HashMap<String, usize> = HashMap::new();
    let mut by_uuid: HashMap<String, usize> = HashMap::new();
    let mut take = |number: u32, line: &Object<'_>, agent: Option<String>| {
        let known = match &agent {
            Some(agent) => by_agent.get(agent),
            None => line.text("parentUuid").and_then(|parent| by_uuid.get(&*parent)),
        };
        let index = known.copied().unwrap_or_else(|| {
            let mut draft = SessionDraft::of_lines();
            draft.name = agent.clone().filter(|name| !name.is_empty());
            threads.push((draft, ClaudeCodeReader::new(options, LineSelection::Sidechain)));
            threads.len() - 1
        });
        if let Some(agent) = agent {
            by_agent.insert(agent, index);
        }
        if let Some(uuid) = line.owned("uuid") {
            by_uuid.insert(uuid, index);
        }
        let (draft, reader) = &mut threads[index];
        reader.line(draft, number, line);
    };
    SessionDraft::of_lines().each_line(bytes, |_, number, line| {
        if !is_own(number) {
            return;
        }
        if line.is_true("isSidechain") {
            take(number, line, line.owned("agentId"));
        } else if let Some(progress) = agent_progress(line)
            && let Some(inner) = progress.object("message")
        {
            // Sub-agents without an id share one thread: their requests are counted, but the causes of cache misses are unknown.
            take(number, &inner, Some(progress.owned("agentId").unwrap_or_default()));
        }
    });
    threads.into_iter().map(|(draft, _)| draft).collect()
}

/// Returns the data of a progress line that shows a message of a sub-agent.
fn agent_progress<'a>(line: &'a Object<'_>) -> Option<Object<'a>> {
    let is_progress = line.text("type").as_deref() == Some("progress");
    let data = line.object("data").filter(|_| is_progress)?;
    (data.text("type").as_deref() == Some("agent_progress")).then_some(data)
}

fn read_lines(
    bytes: &[u8],
    options: ReadOptions,
    lines: LineSelection,
    is_own: LineFilter<'_>,
) -> (SessionDraft, ClaudeCodeReader) {
    let mut draft = SessionDraft::of_lines();
    let mut reader = ClaudeCodeReader::new(options, lines);
    draft.each_line(bytes, |draft, number, line| {
        if is_own(number) {
            reader.line(draft, number, line);
        }
    });
    (draft, reader)
}

impl ClaudeCodeReader {
    fn new(options: ReadOptions, lines: LineSelection) -> Self {
        Self {
            options,
            lines,
            main: false,
            sidechain: false,
            seen: HashSet::new(),
            by_id: HashMap::new(),
            requests: HashMap::new(),
            progress: false,
            boundary: None,
            sessions: HashSet::new(),
        }
    }

    fn line(&mut self, draft: &mut SessionDraft, number: u32, line: &Object<'_>) {
        let header = &mut draft.header;
        if let Some(id) = line.text("sessionId") {
            if !self.sessions.contains(&*id) {
                self.sessions.insert(id.to_string());
            }
            header.id = header.id.take().or_else(|| Some(id.to_string()));
        }
        header.working_directory = header.working_directory.take().or_else(|| line.owned("cwd"));
        let kind = line.text("type").unwrap_or_default();
        match &*kind {
            "system" if line.text("subtype").as_deref() == Some("compact_boundary") => {
                let size = line.object("compactMetadata").and_then(|data| data.count("preTokens"));
                self.boundary = Some((number, size));
                return self.restart(draft);
            }
            "user" | "assistant" => {}
            "progress" => {
                self.progress |= agent_progress(line).is_some();
                return;
            }
            "" => return draft.skip(number, "it has no type"),
            _ => return,
        }
        let Some(message) = line.object("message") else {
            let is_there = line.has("message");
            let why = if is_there { "its message is not an object" } else { "it has no message" };
            return draft.skip(number, why);
        };
        let is_sidechain = line.is_true("isSidechain") || self.lines == LineSelection::Sidechain;
        self.main |= !is_sidechain;
        self.sidechain |= is_sidechain;
        if is_sidechain && self.lines == LineSelection::Main {
            return;
        }
        if kind == "user" && !is_content(message.get("content")) {
            return draft.skip(number, "its message has no content");
        }
        if let Some(id) = line.owned("uuid")
            && !self.seen.insert(id.clone())
        {
            return draft.note(number, NoteKind::Duplicate { id });
        }
        if kind == "assistant" {
            self.assistant(draft, number, line, &message);
        } else {
            if line.is_true("isCompactSummary") {
                self.summary(draft, number);
            }
            user(draft, number, line.time("timestamp"), &message);
        }
    }

    fn assistant(
        &mut self,
        draft: &mut SessionDraft,
        number: u32,
        line: &Object<'_>,
        message: &Object<'_>,
    ) {
        let time = line.time("timestamp");
        let model = message.text("model");
        // The client itself wrote such a message in the model's place.
        let is_synthetic =
            line.is_true("isApiErrorMessage") || model.as_deref() == Some("<synthetic>");
        let model = model.filter(|model| !is_synthetic && !model.is_empty()).map(Arc::<str>::from);
        if let Some(model) = &model {
            draft.header.model = Some(model.to_string());
        }
        let id = message.words("id");
        let known = id.as_deref().and_then(|id| self.by_id.get(id).copied());
        let index = known.unwrap_or_else(|| {
            draft.messages.push(RecordedMessage::new(Role::Assistant, number, time, []));
            draft.messages.len() - 1
        });
        if let Some(id) = &id {
            self.by_id.insert(id.to_string(), index);
        }
        let recorded = &mut draft.messages[index];
        for (block_index, block) in content::blocks(message.get("content")) {
            recorded.push(number, block_index, block);
        }
        recorded.message.model = model.clone().or(recorded.message.model.take());
        let Some(counts) = message.object("usage").filter(|_| !is_synthetic) else { return };
        let Some(usage) = usage_of(&counts) else { return };
        // The first lines of a message report a partial count; the last line reports the whole.
        recorded.message.usage = Some(usage);
        let request = id.as_deref().and_then(|id| self.requests.get(id).copied());
        let request = request.unwrap_or_else(|| {
            let request = line.text("requestId").unwrap_or_default();
            let key = id.as_deref().map(|id| format!("{id} {request}"));
            let own = key.or_else(|| line.owned("uuid")).map(Arc::from);
            draft.requests.push(RecordedRequest {
                before: index,
                source: number,
                id: own,
                time,
                model,
                ..RecordedRequest::default()
            });
            draft.requests.len() - 1
        });
        if let Some(id) = &id {
            self.requests.insert(id.to_string(), request);
        }
        let request = &mut draft.requests[request];
        request.usage = usage;
        let details = counts.object("output_tokens_details").unwrap_or_default();
        request.thinking_tokens = details.count("thinking_tokens").or(request.thinking_tokens);
        request.told = cause(message).or(request.told);
    }

    fn summary(&mut self, draft: &mut SessionDraft, number: u32) {
        let boundary = self.boundary.take();
        if boundary.is_none() {
            self.restart(draft);
        }
        let (source, tokens_before) = boundary.unwrap_or((number, None));
        draft.compacted(source, tokens_before);
    }

    /// Ends the context with the agent's, if compactions are honoured.
    fn restart(&mut self, draft: &mut SessionDraft) {
        if self.options.compaction == Compaction::Honour {
            draft.forget();
            self.by_id.clear();
        }
    }
}

fn user(
    draft: &mut SessionDraft,
    number: u32,
    time: Option<MillisSinceEpoch>,
    message: &Object<'_>,
) {
    let (results, rest): (Vec<_>, Vec<_>) = content::blocks(message.get("content"))
        .into_iter()
        .partition(|(_, block)| matches!(block, Block::ToolResult(_)));
    for result in results {
        draft.messages.push(RecordedMessage::new(Role::Tool, number, time, [result]));
    }
    let says_something =
        rest.iter().any(|(_, block)| !matches!(block, Block::Text(text) if text.is_empty()));
    if says_something {
        draft.messages.push(RecordedMessage::new(Role::User, number, time, rest));
    }
}
