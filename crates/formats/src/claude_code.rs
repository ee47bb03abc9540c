//! Claude Code: JSON lines, one API message spread over several of them, results inside user lines.

use std::collections::{HashMap, HashSet};

use plimsoll_core::{Block, MillisSinceEpoch, Role};
use serde::Deserialize;

use crate::blocks::Content;
use crate::draft::{Draft, Recorded, usage};
use crate::json::{self, Count, Flag, Stamp, Text};
use crate::note::NoteKind;
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
    message: Option<WireMessage<'a>>,
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
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct WireUsage {
    input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_creation: WireCreation,
    cache_read_input_tokens: Count,
    output_tokens: Count,
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
        let long = self.cache_creation.ephemeral_1h_input_tokens.0;
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
    /// The size that the last boundary recorded, until its summary is met.
    boundary: Option<(u32, Option<u64>)>,
}

/// Reads a Claude Code session.
pub(crate) fn read(bytes: &[u8], options: ReadOptions) -> Draft {
    let (draft, reader) = read_lines(bytes, options, Lines::Main);
    if reader.main || !reader.sidechain {
        return draft;
    }
    // A sub-agent's own file is all sidechain.
    read_lines(bytes, options, Lines::Sidechain).0
}

fn read_lines(bytes: &[u8], options: ReadOptions, lines: Lines) -> (Draft, Reader) {
    let mut draft = Draft::of_lines();
    let mut reader = Reader {
        options,
        lines,
        main: false,
        sidechain: false,
        seen: HashSet::new(),
        by_id: HashMap::new(),
        boundary: None,
    };
    json::each_line(bytes, &mut draft, |draft, number, text| {
        let line: Line<'_> = serde_json::from_str(text)?;
        reader.line(draft, number, line);
        Ok(())
    });
    (draft, reader)
}

impl Reader {
    fn line(&mut self, draft: &mut Draft, number: u32, line: Line<'_>) {
        let header = &mut draft.header;
        if header.id.is_none() {
            header.id = line.session.map(|id| id.0.into_owned());
        }
        if header.working_directory.is_none() {
            header.working_directory = line.cwd.map(|cwd| cwd.0.into_owned());
        }
        match line.kind.as_str() {
            "system" if line.subtype.as_deref() == Some("compact_boundary") => {
                let tokens = line.compact.and_then(|compact| compact.tokens_before);
                self.boundary = Some((number, tokens.map(|count| count.0)));
                return self.restart(draft);
            }
            "user" | "assistant" => {}
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
            self.assistant(draft, number, line.timestamp.0, message);
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
        time: Option<MillisSinceEpoch>,
        message: &WireMessage<'_>,
    ) {
        let model = message.model.as_ref().filter(|model| model.as_str() != "<synthetic>");
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
        if let Some(model) = model {
            recorded.message.model = Some(model.shared());
        }
        // Early lines of a message report a partial count; the last is the whole.
        if let Some(usage) = message.usage.as_ref().and_then(WireUsage::usage) {
            recorded.message.usage = Some(usage);
        }
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
            draft.restart(Vec::new());
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
