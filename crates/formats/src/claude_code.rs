//! Claude Code: JSON lines, one API message spread over several of them, results inside user lines.

use std::collections::{HashMap, HashSet};

use plimsoll_core::bill::Cause;
use plimsoll_core::{Block, MillisSinceEpoch, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::blocks::Content;
use crate::draft::{Draft, Recorded, usage};
use crate::json::{self, Count, Flag, Lenient, Stamp, Text};
use crate::note::NoteKind;
use crate::requests::Asked;
use crate::session::{Compaction, ReadOptions};

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    subtype: Option<Text<'a>>,
    uuid: Option<Text<'a>>,
    #[serde(rename = "sessionId")]
    session: Option<Text<'a>>,
    cwd: Option<Text<'a>>,
    #[serde(default)]
    timestamp: Stamp,
    #[serde(default, rename = "isSidechain")]
    sidechain: Flag,
    #[serde(default, rename = "isCompactSummary")]
    compact_summary: Flag,
    #[serde(rename = "compactMetadata")]
    compact: Option<CompactMetadata>,
    #[serde(rename = "requestId")]
    request: Option<Text<'a>>,
    #[serde(rename = "agentId")]
    agent: Option<Text<'a>>,
    #[serde(rename = "parentUuid")]
    parent: Option<Text<'a>>,
    #[serde(default, rename = "isApiErrorMessage")]
    is_api_error: Flag,
    message: Option<WireMessage<'a>>,
    /// Of progress lines.
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// What a sub-agent said, told by a progress line of the main conversation.
#[derive(Deserialize)]
struct Progress<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(rename = "agentId")]
    agent: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CompactMetadata {
    #[serde(rename = "preTokens")]
    tokens_before: Option<Count>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    model: Option<Text<'a>>,
    #[serde(default)]
    content: Content<'a>,
    usage: Option<WireUsage>,
    #[serde(borrow, default)]
    diagnostics: Lenient<Diagnostics<'a>>,
}

/// What the provider told of a cache that missed.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Diagnostics<'a> {
    #[serde(borrow)]
    cache_miss_reason: Option<MissReason<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MissReason<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
}

impl MissReason<'_> {
    fn cause(&self) -> Option<Cause> {
        match self.kind.as_str() {
            "model_changed" => Some(Cause::Model),
            "system_changed" | "tools_changed" => Some(Cause::Tools),
            "messages_changed" => Some(Cause::Rewind),
            _ => None,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct WireUsage {
    input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_creation: Lenient<WireCreation>,
    cache_read_input_tokens: Count,
    output_tokens: Count,
    output_tokens_details: Lenient<WireOutput>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireOutput {
    thinking_tokens: Option<Count>,
}

/// What was written to the cache, by the life that was asked for.
#[derive(Deserialize, Default)]
#[serde(default)]
struct WireCreation {
    ephemeral_1h_input_tokens: Count,
}

impl WireUsage {
    pub(crate) fn usage(&self) -> Option<plimsoll_core::Usage> {
        let cached = self.cache_read_input_tokens.0;
        let written = self.cache_creation_input_tokens.0;
        let prompt = self.input_tokens.0 + written + cached;
        let usage = usage(prompt, cached, self.output_tokens.0)?;
        let long = self.cache_creation.0.as_ref();
        let long = long.map_or(0, |written| written.ephemeral_1h_input_tokens.0);
        Some(plimsoll_core::Usage { written_tokens: written, written_long_tokens: long, ..usage })
    }
}

/// Which lines are read.
enum Lines {
    Main,
    /// Those of sub-agents, too: only if the file holds nothing else.
    Sidechain,
}

struct Reader {
    options: ReadOptions,
    lines: Lines,
    /// Whether a line of the main conversation was seen.
    main: bool,
    sidechain: bool,
    seen: HashSet<String>,
    /// Index of the message that each API message id was read into.
    by_id: HashMap<String, usize>,
    /// Index of the request that each API message id belongs to.
    asked: HashMap<String, usize>,
    /// Whether a progress line tells of a sub-agent.
    progress: bool,
    /// The size that the last boundary recorded, until its summary is met.
    boundary: Option<(u32, Option<u64>)>,
}

/// Reads a Claude Code session.
pub(crate) fn read(bytes: &[u8], options: ReadOptions) -> Draft {
    let (mut draft, reader) = read_lines(bytes, options, Lines::Main);
    if reader.sidechain && !reader.main {
        // A sub-agent's own file is all sidechain.
        return read_lines(bytes, options, Lines::Sidechain).0;
    }
    if reader.sidechain || reader.progress {
        draft.threads = sidechains(bytes, options);
    }
    draft
}

/// Reads the conversations of sub-agents that stand between the lines of a main one.
///
/// Lines of one agent have its id, or in older files a chain of parents.
fn sidechains(bytes: &[u8], options: ReadOptions) -> Vec<Draft> {
    let mut threads: Vec<(Draft, Reader)> = Vec::new();
    let mut by_agent: HashMap<String, usize> = HashMap::new();
    let mut by_uuid: HashMap<String, usize> = HashMap::new();
    let mut take = |number: u32, mut line: Line<'_>| {
        let agent = line.agent.as_deref().map(str::to_owned);
        let parent = line.parent.as_deref();
        let known = match &agent {
            Some(agent) => by_agent.get(agent),
            None => parent.and_then(|parent| by_uuid.get(parent)),
        };
        let index = known.copied().unwrap_or_else(|| {
            threads.push((Draft::of_lines(), Reader::new(options, Lines::Sidechain)));
            threads.len() - 1
        });
        if let Some(agent) = agent {
            by_agent.insert(agent, index);
        }
        if let Some(uuid) = &line.uuid {
            by_uuid.insert(uuid.to_string(), index);
        }
        line.sidechain = Flag(true);
        let (draft, reader) = &mut threads[index];
        reader.line(draft, number, line);
    };
    let mut ignored = Draft::of_lines();
    json::each_line(bytes, &mut ignored, |_, number, text| {
        let line: Line<'_> = serde_json::from_str(text)?;
        if line.sidechain.0 {
            take(number, line);
        } else if line.kind.as_str() == "progress"
            && let Some(progress) = agent_progress(&line)
            && let Some(message) = progress.message
            && let Ok(inner) = serde_json::from_str::<Line<'_>>(message.get())
        {
            // Without an id, one thread for all: its requests are counted, its causes are not known.
            let agent = progress.agent.unwrap_or_default();
            take(number, Line { agent: Some(agent), ..inner });
        }
        Ok(())
    });
    threads.into_iter().map(|(draft, _)| draft).collect()
}

fn agent_progress<'a>(line: &Line<'a>) -> Option<Progress<'a>> {
    let progress: Progress<'a> = serde_json::from_str(line.data?.get()).ok()?;
    (progress.kind.as_str() == "agent_progress").then_some(progress)
}

fn read_lines(bytes: &[u8], options: ReadOptions, lines: Lines) -> (Draft, Reader) {
    let mut draft = Draft::of_lines();
    let mut reader = Reader::new(options, lines);
    json::each_line(bytes, &mut draft, |draft, number, text| {
        let line: Line<'_> = serde_json::from_str(text)?;
        reader.line(draft, number, line);
        Ok(())
    });
    (draft, reader)
}

impl Reader {
    fn new(options: ReadOptions, lines: Lines) -> Self {
        Self {
            options,
            lines,
            main: false,
            sidechain: false,
            seen: HashSet::new(),
            by_id: HashMap::new(),
            asked: HashMap::new(),
            progress: false,
            boundary: None,
        }
    }

    fn line(&mut self, draft: &mut Draft, number: u32, mut line: Line<'_>) {
        let header = &mut draft.header;
        if header.id.is_none() {
            header.id = line.session.take().map(|id| id.0.into_owned());
        }
        if header.working_directory.is_none() {
            header.working_directory = line.cwd.take().map(|cwd| cwd.0.into_owned());
        }
        match line.kind.as_str() {
            "system" if line.subtype.as_deref() == Some("compact_boundary") => {
                let tokens = line.compact.take().and_then(|compact| compact.tokens_before);
                self.boundary = Some((number, tokens.map(|count| count.0)));
                return self.restart(draft);
            }
            "user" | "assistant" => {}
            "progress" => {
                self.progress |= agent_progress(&line).is_some();
                return;
            }
            "" => return draft.skip(number, "it has no type"),
            _ => return,
        }
        let Some(message) = &line.message else {
            return draft.skip(number, "it has no message");
        };
        self.main |= !line.sidechain.0;
        self.sidechain |= line.sidechain.0;
        if line.sidechain.0 && matches!(self.lines, Lines::Main) {
            return;
        }
        if matches!(message.content, Content::Nothing) && line.kind.as_str() == "user" {
            return draft.skip(number, "its message has no content");
        }
        if let Some(uuid) = &line.uuid
            && !self.seen.insert(uuid.to_string())
        {
            return draft.note(number, NoteKind::Duplicate { id: uuid.to_string() });
        }
        if line.kind.as_str() == "assistant" {
            self.assistant(draft, number, &line, message);
        } else {
            if line.compact_summary.0 {
                self.summary(draft, number);
            }
            user(draft, number, line.timestamp.0, message);
        }
    }

    fn assistant(
        &mut self,
        draft: &mut Draft,
        number: u32,
        line: &Line<'_>,
        message: &WireMessage<'_>,
    ) {
        let time = line.timestamp.0;
        // What the client itself says in the model's place.
        let is_synthetic = line.is_api_error.0 || message.model.as_deref() == Some("<synthetic>");
        let model = message.model.as_ref().filter(|model| !is_synthetic && !model.is_empty());
        if let Some(model) = model {
            draft.header.model = Some(model.to_string());
        }
        let id = message.id.as_deref().filter(|id| !id.is_empty());
        let known = id.and_then(|id| self.by_id.get(id).copied());
        let index = known.unwrap_or_else(|| {
            draft.recorded.push(Recorded::new(Role::Assistant, number, time, []));
            draft.recorded.len() - 1
        });
        if let Some(id) = id {
            self.by_id.insert(id.to_owned(), index);
        }
        let recorded = &mut draft.recorded[index];
        for (block_index, block) in message.content.blocks() {
            recorded.push(number, block_index, block);
        }
        let model = model.map(Text::shared);
        recorded.message.model = model.clone().or(recorded.message.model.take());
        let Some(wire) = message.usage.as_ref().filter(|_| !is_synthetic) else { return };
        let Some(usage) = wire.usage() else { return };
        // Early lines of a message report a partial count; the last is the whole.
        recorded.message.usage = Some(usage);
        let request = line.request.as_deref().unwrap_or_default();
        let asked = id.and_then(|id| self.asked.get(id).copied());
        let asked = asked.unwrap_or_else(|| {
            let key = id.map(|id| format!("{id} {request}"));
            let own = key.as_deref().or(line.uuid.as_deref()).map(std::sync::Arc::from);
            draft.requests.push(Asked {
                before: index,
                source: number,
                id: own,
                time,
                model,
                ..Asked::default()
            });
            draft.requests.len() - 1
        });
        if let Some(id) = id {
            self.asked.insert(id.to_owned(), asked);
        }
        let asked = &mut draft.requests[asked];
        asked.usage = usage;
        let details = wire.output_tokens_details.0.as_ref();
        let thinking = details.and_then(|details| details.thinking_tokens).map(|count| count.0);
        asked.thinking_tokens = thinking.or(asked.thinking_tokens);
        let told = message.diagnostics.0.as_ref();
        let told = told.and_then(|told| told.cache_miss_reason.as_ref());
        asked.told = told.and_then(MissReason::cause).or(asked.told);
    }

    fn summary(&mut self, draft: &mut Draft, number: u32) {
        let boundary = self.boundary.take();
        if boundary.is_none() {
            self.restart(draft);
        }
        let (source, tokens_before) = boundary.unwrap_or((number, None));
        draft.compacted(source, tokens_before);
    }

    /// Forgets what the agent forgot, where that is to be honoured.
    fn restart(&mut self, draft: &mut Draft) {
        if self.options.compaction == Compaction::Honour {
            draft.forget();
            self.by_id.clear();
        }
    }
}

fn user(draft: &mut Draft, number: u32, time: Option<MillisSinceEpoch>, message: &WireMessage<'_>) {
    let (results, rest): (Vec<_>, Vec<_>) = message
        .content
        .blocks()
        .into_iter()
        .partition(|(_, block)| matches!(block, Block::ToolResult(_)));
    for result in results {
        draft.recorded.push(Recorded::new(Role::Tool, number, time, [result]));
    }
    let says_something =
        rest.iter().any(|(_, block)| !matches!(block, Block::Text(text) if text.is_empty()));
    if says_something {
        draft.recorded.push(Recorded::new(Role::User, number, time, rest));
    }
}
