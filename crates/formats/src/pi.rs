//! pi (pi-coding-agent): JSON lines; since version 2 a tree of entries, whose live branch ends at the last entry.

use std::collections::HashMap;
use std::fmt::Write as _;

use plimsoll_core::bill::AddedContent;
use plimsoll_core::{Block, Role, ToolResult, Usage};
use serde::Deserialize;

use crate::blocks::Content;
use crate::draft::{Draft, Recorded, usage};
use crate::json::{self, Count, Flag, Stamp, Text};
use crate::note::NoteKind;
use crate::requests::{Asked, Branched, said_by};
use crate::session::{Compaction, CompactionSeen, ReadOptions};

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    id: Option<Text<'a>>,
    #[serde(rename = "parentId")]
    parent: Option<Text<'a>>,
    #[serde(default)]
    timestamp: Stamp,
    cwd: Option<Text<'a>>,
    #[serde(rename = "modelId")]
    model: Option<Text<'a>>,
    message: Option<WireMessage<'a>>,
    summary: Option<Text<'a>>,
    #[serde(rename = "firstKeptEntryId")]
    first_kept: Option<Text<'a>>,
    #[serde(rename = "firstKeptEntryIndex")]
    first_kept_index: Option<Count>,
    #[serde(rename = "tokensBefore")]
    tokens_before: Option<Count>,
    #[serde(default)]
    content: Content<'a>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, default)]
    role: Text<'a>,
    #[serde(default)]
    content: Content<'a>,
    #[serde(rename = "stopReason")]
    stop: Option<Text<'a>>,
    model: Option<Text<'a>>,
    usage: Option<WireUsage>,
    #[serde(rename = "toolCallId")]
    call_id: Option<Text<'a>>,
    #[serde(default, rename = "isError")]
    is_error: Flag,
    command: Option<Text<'a>>,
    output: Option<Text<'a>>,
    #[serde(default, rename = "exitCode")]
    exit_code: Option<Text<'a>>,
    #[serde(default)]
    cancelled: Flag,
    #[serde(default)]
    truncated: Flag,
    #[serde(rename = "fullOutputPath")]
    full_output: Option<Text<'a>>,
    #[serde(default, rename = "excludeFromContext")]
    excluded: Flag,
    summary: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct WireUsage {
    input: Count,
    output: Count,
    #[serde(rename = "cacheRead")]
    cache_read: Count,
    #[serde(rename = "cacheWrite")]
    cache_write: Count,
}

/// One line of the file, a node of the tree.
struct Entry {
    line: u32,
    id: Option<String>,
    parent: Option<String>,
    recorded: Option<Recorded>,
    model: Option<String>,
    compaction: Option<CompactionEntry>,
    asked: Option<Asked>,
}

struct CompactionEntry {
    summary: Recorded,
    first_kept: FirstKept,
    tokens_before: Option<u64>,
}

enum FirstKept {
    Id(String),
    /// Counted over all entries of the file, the header included.
    Index(usize),
    Unknown,
}

/// Reads a pi session.
pub(crate) fn read(bytes: &[u8], options: ReadOptions) -> Draft {
    let mut draft = Draft::of_lines();
    let mut entries: Vec<Entry> = Vec::new();
    // Version 1 counts all entries, the header too, and the header is usually the first of them.
    let mut headers_before = 0;
    json::each_line(bytes, &mut draft, |draft, number, text| {
        let line: Line<'_> = serde_json::from_str(text)?;
        if line.kind.as_str() == "session" {
            headers_before += usize::from(entries.is_empty());
            let owned = |text: Option<Text<'_>>| text.map(|text| text.0.into_owned());
            let header = &mut draft.header;
            header.id = header.id.take().or(owned(line.id));
            header.working_directory = header.working_directory.take().or(owned(line.cwd));
            header.model = header.model.take().or(owned(line.model));
            header.started = header.started.or(line.timestamp.0);
        } else {
            entries.push(entry(number, line));
        }
        Ok(())
    });
    let path = live_path(&entries, &mut draft);
    draft.branches = branches(&entries, &path);
    walk(entries, &path, headers_before, &mut draft, options);
    draft
}

fn entry(number: u32, line: Line<'_>) -> Entry {
    let time = line.timestamp.0;
    let mut model = line.model.map(|model| model.0.into_owned());
    let mut compaction = None;
    let mut recorded = None;
    let mut asked = None;
    match line.kind.as_str() {
        "message" => {
            if let Some(message) = line.message {
                if message.role.as_str() == "assistant" {
                    model = message.model.as_ref().map(|model| model.to_string());
                    asked = asked_of(number, time, line.id.as_ref(), &message);
                }
                recorded = from_message(number, time, &message);
            }
        }
        "custom_message" => {
            let blocks = line.content.blocks();
            recorded =
                (!blocks.is_empty()).then(|| Recorded::new(Role::User, number, time, blocks));
        }
        "branch_summary" => {
            recorded = line
                .summary
                .filter(|summary| !summary.is_empty())
                .map(|summary| Recorded::text(Role::User, number, time, branch_summary(&summary)));
        }
        "compaction" => {
            let summary = compaction_summary(line.summary.as_ref().map_or("", Text::as_str));
            compaction = Some(CompactionEntry {
                summary: Recorded::text(Role::User, number, time, summary),
                first_kept: match (line.first_kept, line.first_kept_index) {
                    (Some(id), _) => FirstKept::Id(id.0.into_owned()),
                    (None, Some(index)) => FirstKept::Index(index.0 as usize),
                    (None, None) => FirstKept::Unknown,
                },
                tokens_before: line.tokens_before.map(|count| count.0),
            });
        }
        _ => {}
    }
    Entry {
        line: number,
        id: line.id.map(|id| id.0.into_owned()),
        parent: line.parent.map(|parent| parent.0.into_owned()).filter(|id| !id.is_empty()),
        recorded,
        model,
        compaction,
        asked,
    }
}

/// Returns the call of the model that an answer ends, also of one that was stopped and says nothing.
fn asked_of(
    number: u32,
    time: Option<plimsoll_core::MillisSinceEpoch>,
    id: Option<&Text<'_>>,
    message: &WireMessage<'_>,
) -> Option<Asked> {
    // Entries have short ids of their own; with the time, copies in the file of a fork are known.
    let time_text = time.map_or(0, |time| time.0);
    Some(Asked {
        source: number,
        id: id.map(|id| format!("{} {time_text}", id.as_str()).into()),
        time,
        model: message.model.as_ref().map(Text::shared),
        usage: message.usage.as_ref().and_then(WireUsage::usage)?,
        ..Asked::default()
    })
}

impl WireUsage {
    fn usage(&self) -> Option<Usage> {
        let prompt = self.input.0 + self.cache_read.0 + self.cache_write.0;
        let usage = usage(prompt, self.cache_read.0, self.output.0)?;
        Some(Usage { written_tokens: self.cache_write.0, ..usage })
    }
}

fn from_message(
    number: u32,
    time: Option<plimsoll_core::MillisSinceEpoch>,
    message: &WireMessage<'_>,
) -> Option<Recorded> {
    match message.role.as_str() {
        "user" | "custom" | "hookMessage" => {
            Some(Recorded::new(Role::User, number, time, message.content.blocks()))
        }
        "assistant" => {
            let blocks = message.content.blocks();
            let stopped =
                matches!(message.stop.as_ref().map(Text::as_str), Some("aborted" | "error"));
            if stopped && blocks.is_empty() {
                return None;
            }
            let mut recorded = Recorded::new(Role::Assistant, number, time, blocks);
            recorded.message.usage = message.usage.as_ref().and_then(WireUsage::usage);
            recorded.message.model = message.model.as_ref().map(Text::shared);
            Some(recorded)
        }
        "toolResult" => {
            let (text, images) = message.content.text_and_images();
            let call_id = message.call_id.clone().unwrap_or_default().shared();
            let is_error = message.is_error.0;
            let result = ToolResult { call_id, text, images, is_error };
            Some(Recorded::new(Role::Tool, number, time, [(None, Block::ToolResult(result))]))
        }
        "bashExecution" if !message.excluded.0 => {
            Some(Recorded::text(Role::User, number, time, bash_execution(message)))
        }
        "branchSummary" => {
            let summary = message.summary.clone().unwrap_or_default();
            Some(Recorded::text(Role::User, number, time, branch_summary(&summary)))
        }
        "compactionSummary" => {
            let summary = message.summary.clone().unwrap_or_default();
            Some(Recorded::text(Role::User, number, time, compaction_summary(&summary)))
        }
        _ => None,
    }
}

/// Returns what pi tells its model of a command that the user ran.
fn bash_execution(message: &WireMessage<'_>) -> String {
    let text = |text: &Option<Text<'_>>| text.clone().unwrap_or_default().0.into_owned();
    let mut said = format!("Ran `{}`\n", text(&message.command));
    let output = text(&message.output);
    if output.is_empty() {
        said.push_str("(no output)");
    } else {
        let _ = write!(said, "```\n{output}\n```");
    }
    let exit_code = text(&message.exit_code);
    if message.cancelled.0 {
        said.push_str("\n\n(command cancelled)");
    } else if !matches!(&*exit_code, "" | "0") {
        let _ = write!(said, "\n\nCommand exited with code {exit_code}");
    }
    if message.truncated.0
        && let Some(path) = &message.full_output
    {
        let _ = write!(said, "\n\n[Output truncated. Full output: {}]", path.as_str());
    }
    said
}

fn branch_summary(summary: &str) -> String {
    format!(
        "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{summary}</summary>"
    )
}

const SUMMARY_PREFIX: &str = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n";
const SUMMARY_SUFFIX: &str = "\n</summary>";

fn compaction_summary(summary: &str) -> String {
    format!("{SUMMARY_PREFIX}{summary}{SUMMARY_SUFFIX}")
}

/// Returns the summary without what pi puts around it.
pub(crate) fn without_frame(text: &str) -> &str {
    let inner =
        text.strip_prefix(SUMMARY_PREFIX).and_then(|text| text.strip_suffix(SUMMARY_SUFFIX));
    inner.unwrap_or(text)
}

/// Returns the indexes of the entries that are in the context, oldest first.
fn live_path(entries: &[Entry], draft: &mut Draft) -> Vec<usize> {
    let Some(last) = entries.last() else { return Vec::new() };
    if last.id.is_none() {
        return (0..entries.len()).collect();
    }
    let by_id: HashMap<&str, usize> = entries
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| Some((entry.id.as_deref()?, index)))
        .collect();
    let mut on_path = vec![false; entries.len()];
    let mut path = Vec::new();
    let mut at = Some(entries.len() - 1);
    while let Some(index) = at {
        let entry = &entries[index];
        if std::mem::replace(&mut on_path[index], true) {
            let id = entry.id.clone().unwrap_or_default();
            draft.note(entry.line, NoteKind::Cycle { id });
            break;
        }
        path.push(index);
        at = entry.parent.as_deref().and_then(|parent| {
            let found = by_id.get(parent).copied();
            if found.is_none() {
                // pi itself walks no further; guessing a parent would show the model what it never saw.
                let id = parent.to_owned();
                draft.note(entry.line, NoteKind::MissingParent { id });
            }
            found
        });
    }
    path.reverse();
    path
}

/// Returns the calls of the model on branches that were left, with what stands between each and the one that it continues.
fn branches(entries: &[Entry], path: &[usize]) -> Vec<Branched> {
    let mut on_path = vec![false; entries.len()];
    for index in path {
        on_path[*index] = true;
    }
    let by_id: HashMap<&str, usize> = entries
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| Some((entry.id.as_deref()?, index)))
        .collect();
    let left = entries.iter().enumerate().filter(|(index, _)| !on_path[*index]);
    left.filter_map(|(index, entry)| {
        let mut branch = Branched { asked: entry.asked.clone()?, ..Branched::default() };
        let mut at = index;
        // A chain is no longer than the file, whatever its ids say.
        for _ in 0..entries.len() {
            let parent = entries[at].parent.as_deref().and_then(|parent| by_id.get(parent));
            let Some(&parent) = parent else { break };
            at = parent;
            let entry = &entries[at];
            if branch.said == AddedContent::default()
                && let Some(recorded) = &entry.recorded
            {
                branch.after_user = recorded.message.role == Role::User;
            }
            branch.compacted |= entry.compaction.is_some();
            if let Some(recorded) = &entry.recorded {
                branch.said.add(&said_by(&recorded.message));
            }
            if entry.asked.is_some() {
                branch.continues = Some(entry.line);
                break;
            }
        }
        Some(branch)
    })
    .collect()
}

fn walk(
    mut entries: Vec<Entry>,
    path: &[usize],
    headers: usize,
    draft: &mut Draft,
    options: ReadOptions,
) {
    if options.compaction == Compaction::PassOver {
        return take_all(&mut entries, path, draft);
    }
    for (position, index) in path.iter().enumerate() {
        let entry = &mut entries[*index];
        if let Some(model) = entry.model.take() {
            draft.header.model = Some(model);
        }
        if let Some(recorded) = &entry.recorded {
            draft.recorded.push(recorded.clone());
        }
        let Some(compaction) = entry.compaction.take() else { continue };
        let line = entry.line;
        let first = match compaction.first_kept {
            FirstKept::Id(id) => {
                path.iter().position(|at| entries[*at].id.as_deref() == Some(&*id))
            }
            FirstKept::Index(index) => path.iter().position(|at| at + headers >= index),
            FirstKept::Unknown => None,
        };
        let first = first.unwrap_or(position).min(position);
        draft.restart(vec![compaction.summary]);
        draft.compactions.push(CompactionSeen {
            before: 0,
            source: line,
            tokens_before: compaction.tokens_before,
        });
        // Kept entries begin behind all earlier ones' summaries.
        let kept = path[first..position].iter().filter_map(|at| entries[*at].recorded.clone());
        draft.recorded.extend(kept);
        draft.begun();
    }
}

fn take_all(entries: &mut [Entry], path: &[usize], draft: &mut Draft) {
    for index in path {
        let entry = &mut entries[*index];
        if let Some(compaction) = entry.compaction.take() {
            draft.compacted(entry.line, compaction.tokens_before);
            // Where nothing stands before it, the summary is all that is left of what was compacted.
            if draft.recorded.is_empty() {
                draft.recorded.push(compaction.summary);
            }
        }
        if let Some(model) = entry.model.take() {
            draft.header.model = Some(model);
        }
        if let Some(asked) = entry.asked.take() {
            draft.requests.push(Asked { before: draft.recorded.len(), ..asked });
        }
        if let Some(recorded) = entry.recorded.take() {
            draft.recorded.push(recorded);
        }
    }
}
