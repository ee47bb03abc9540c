//! The figures of one session, as `inspect --json` prints them.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::{
    Block, Calibration, ContextBudget, MillisSinceEpoch, Pressure, Role, Statistics, pressure,
    statistics,
};
use plimsoll_formats::{PartKind, SessionNote, SessionPart};
use serde::Serialize;

use crate::load::{Loaded, part_of};

/// A session at a glance.
#[derive(Debug, Serialize)]
pub(super) struct Glance {
    pub(super) file: String,
    pub(super) format: &'static str,
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) working_directory: Option<String>,
    pub(super) started: Option<MillisSinceEpoch>,
    pub(super) duration_ms: Option<i64>,
    pub(super) messages: Messages,
    /// Assistant messages: each is one call of the model.
    pub(super) turns: u32,
    /// Assistant messages that call tools, with their results.
    pub(super) exchanges: usize,
    pub(super) tool_calls: usize,
    /// Results that the tool itself marked as an error.
    pub(super) tool_errors: usize,
    pub(super) images: usize,
    pub(super) thinking_blocks: usize,
    pub(super) tokenizer: String,
    pub(super) calibration: Option<Calibration>,
    /// All tokens, thinking and overhead included.
    pub(super) tokens: u64,
    pub(super) statistics: Statistics,
    pub(super) usage: Option<UsageSum>,
    /// The model whose prices are taken.
    pub(super) prices: String,
    /// Whether the prices are those of another model, so that figures in money are estimates.
    pub(super) estimate: bool,
    pub(super) pressure: Pressure,
    pub(super) compactions: Vec<Compacted>,
    pub(super) notes: BTreeMap<&'static str, usize>,
    /// The conversations of the file, if it has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) conversations: Vec<Conversation>,
}

/// A conversation of a file with several.
#[derive(Debug, Serialize)]
pub(super) struct Conversation {
    /// What reads it: `FILE#1`.
    pub(super) file: String,
    pub(super) kind: &'static str,
    pub(super) name: Option<String>,
    pub(super) messages: usize,
    pub(super) task: Option<String>,
}

/// Messages by role.
#[derive(Debug, Default, Serialize)]
pub(super) struct Messages {
    pub(super) system: usize,
    pub(super) user: usize,
    pub(super) assistant: usize,
    pub(super) tool: usize,
}

/// The usage that the provider reported, summed over all requests that have a report.
#[derive(Debug, Default, Serialize)]
pub(super) struct UsageSum {
    pub(super) requests: usize,
    pub(super) prompt_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) largest_prompt: u64,
    /// US dollars for them, each request by its own model and day.
    pub(super) dollars: f64,
}

/// A compaction that the agent made.
#[derive(Debug, Serialize)]
pub(super) struct Compacted {
    pub(super) before_message: usize,
    pub(super) tokens_before: Option<u64>,
}

/// Returns all tokens of a session, thinking and overhead included: what its window holds and what trimming counts.
pub(crate) fn session_tokens(statistics: &Statistics) -> u64 {
    statistics.total + statistics.overhead
}

pub(super) fn glance(path: &Path, loaded: &Loaded, budget: &ContextBudget) -> Glance {
    let (session, transcript) = (&loaded.session, &loaded.counted.transcript);
    let header = &session.header;
    let statistics = statistics(transcript);
    let tokens = session_tokens(&statistics);
    let mut messages = Messages::default();
    let (mut tool_calls, mut tool_errors, mut images, mut thinking_blocks) = (0, 0, 0, 0);
    for message in &session.messages {
        *match message.role {
            Role::System => &mut messages.system,
            Role::User => &mut messages.user,
            Role::Assistant => &mut messages.assistant,
            Role::Tool => &mut messages.tool,
        } += 1;
        for block in &message.blocks {
            match block {
                Block::Image(_) => images += 1,
                Block::ToolCall(_) => tool_calls += 1,
                Block::Thinking(_) => thinking_blocks += 1,
                Block::ToolResult(result) => {
                    images += result.images.len();
                    tool_errors += usize::from(result.is_error);
                }
                Block::Text(_) | Block::Opaque(_) => {}
            }
        }
    }
    let ended = session.messages.iter().rev().find_map(|message| message.time);
    let duration = |(start, end): (MillisSinceEpoch, MillisSinceEpoch)| end.0.checked_sub(start.0);
    Glance {
        file: path.display().to_string(),
        format: session.format.as_str(),
        id: header.id.clone(),
        model: header.model.clone(),
        working_directory: header.working_directory.clone(),
        started: header.started,
        duration_ms: header.started.zip(ended).and_then(duration).filter(|millis| *millis >= 0),
        turns: transcript.turns(),
        exchanges: transcript.exchanges().len(),
        tool_calls,
        tool_errors,
        images,
        thinking_blocks,
        messages,
        tokenizer: transcript.tokenizer().to_string(),
        calibration: loaded.counted.calibration,
        tokens,
        usage: usage(loaded),
        prices: loaded.family.clone(),
        estimate: loaded.estimate,
        pressure: pressure(tokens, budget),
        statistics,
        compactions: session
            .compactions
            .iter()
            .map(|seen| Compacted {
                before_message: seen.before,
                tokens_before: seen.tokens_before,
            })
            .collect(),
        notes: SessionNote::count(&session.notes),
        conversations: conversations(path, &session.parts),
    }
}

fn conversations(path: &Path, parts: &[SessionPart]) -> Vec<Conversation> {
    let (file, _) = part_of(path);
    let conversation = |(number, part): (usize, &SessionPart)| Conversation {
        file: format!("{}#{number}", file.display()),
        kind: match part.kind {
            PartKind::Main => "main",
            PartKind::SubAgent => "sub-agent",
            PartKind::Run => "session",
        },
        name: part.name.clone(),
        messages: part.messages,
        task: part.task.clone(),
    };
    parts.iter().enumerate().map(conversation).collect()
}

fn usage(loaded: &Loaded) -> Option<UsageSum> {
    let mut sum = UsageSum::default();
    for message in &loaded.session.messages {
        let Some(usage) = message.usage else { continue };
        sum.dollars += loaded.prices_of(message).billed(&usage);
        sum.requests += 1;
        sum.prompt_tokens += usage.prompt_tokens;
        sum.cached_tokens += usage.cached_tokens;
        sum.output_tokens += usage.output_tokens;
        sum.largest_prompt = sum.largest_prompt.max(usage.prompt_tokens);
    }
    (sum.prompt_tokens + sum.output_tokens > 0).then_some(sum)
}
