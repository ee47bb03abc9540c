//! pi (pi-coding-agent): JSON lines; since version 2 a tree of entries, whose live branch ends at the last entry.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use plimsoll_core::bill::AddedContent;
use plimsoll_core::{MillisSinceEpoch, Role, ToolResult, Usage};

use crate::content::{blocks, text_and_images};
use crate::draft::{Asked, Branched, Draft, Recorded, usage};
use crate::note::NoteKind;
use crate::object::Object;
use crate::requests::said_by;
use crate::session::{Compaction, CompactionSeen, ReadOptions};

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
    draft.each_line(bytes, |draft, number, line| match &*line.text("type").unwrap_or_default() {
        "" => draft.skip(number, "it has no type"),
        "session" => {
            headers_before += usize::from(entries.is_empty());
            let header = &mut draft.header;
            header.id = header.id.take().or_else(|| line.owned("id"));
            header.working_directory =
                header.working_directory.take().or_else(|| line.owned("cwd"));
            header.model = header.model.take().or_else(|| line.owned("modelId"));
            header.started = header.started.or(line.time("timestamp"));
        }
        kind => entries.push(entry(number, kind, line)),
    });
    let path = live_path(&entries, &mut draft);
    draft.branches = branches(&entries, &path);
    walk(entries, &path, headers_before, &mut draft, options);
    draft
}

fn entry(number: u32, kind: &str, line: &Object<'_>) -> Entry {
    let time = line.time("timestamp");
    let text = |text| Recorded::text(Role::User, number, time, text);
    let mut entry = Entry {
        line: number,
        id: line.owned("id"),
        parent: line.words("parentId").map(Cow::into_owned),
        recorded: None,
        model: line.owned("modelId"),
        compaction: None,
        asked: None,
    };
    match kind {
        "message" => {
            let message = line.object("message").unwrap_or_default();
            if message.text("role").as_deref() == Some("assistant") {
                entry.model = message.owned("model");
                entry.asked = asked_of(number, time, entry.id.as_deref(), &message);
            }
            entry.recorded = from_message(number, time, &message);
        }
        "custom_message" => {
            let blocks = blocks(line.get("content"));
            entry.recorded =
                (!blocks.is_empty()).then(|| Recorded::new(Role::User, number, time, blocks));
        }
        "branch_summary" => {
            entry.recorded = line.words("summary").map(|summary| text(branch_summary(&summary)));
        }
        "compaction" => {
            let summary = line.text("summary").unwrap_or_default();
            entry.compaction = Some(CompactionEntry {
                summary: text(compaction_summary(&summary)),
                first_kept: match (
                    line.owned("firstKeptEntryId"),
                    line.count("firstKeptEntryIndex"),
                ) {
                    (Some(id), _) => FirstKept::Id(id),
                    (None, Some(index)) => FirstKept::Index(index as usize),
                    (None, None) => FirstKept::Unknown,
                },
                tokens_before: line.count("tokensBefore"),
            });
        }
        _ => {}
    }
    entry
}

/// Returns the call of the model that an answer ends, also of one that was stopped and says nothing.
fn asked_of(
    number: u32,
    time: Option<MillisSinceEpoch>,
    id: Option<&str>,
    message: &Object<'_>,
) -> Option<Asked> {
    // Entries have short ids of their own; with the time, copies in the file of a fork are known.
    let time_text = time.map_or(0, |time| time.0);
    Some(Asked {
        source: number,
        id: id.map(|id| format!("{id} {time_text}").into()),
        time,
        model: message.text("model").map(Into::into),
        usage: usage_of(message)?,
        ..Asked::default()
    })
}

fn usage_of(message: &Object<'_>) -> Option<Usage> {
    let counts = message.object("usage")?;
    let (cached, written_tokens) = (counts.tokens("cacheRead"), counts.tokens("cacheWrite"));
    let prompt = counts.tokens("input") + cached + written_tokens;
    Some(Usage { written_tokens, ..usage(prompt, cached, counts.tokens("output"))? })
}

fn from_message(
    number: u32,
    time: Option<MillisSinceEpoch>,
    message: &Object<'_>,
) -> Option<Recorded> {
    let content = message.get("content");
    let text = |text| Some(Recorded::text(Role::User, number, time, text));
    let summary = message.text("summary").unwrap_or_default();
    match &*message.text("role")? {
        "user" | "custom" | "hookMessage" => {
            Some(Recorded::new(Role::User, number, time, blocks(content)))
        }
        "assistant" => {
            let blocks = blocks(content);
            let stop = message.text("stopReason");
            if matches!(stop.as_deref(), Some("aborted" | "error")) && blocks.is_empty() {
                return None;
            }
            let mut recorded = Recorded::new(Role::Assistant, number, time, blocks);
            recorded.message.usage = usage_of(message);
            recorded.message.model = message.text("model").map(Into::into);
            Some(recorded)
        }
        "toolResult" => {
            let (text, images) = text_and_images(content);
            let (call_id, is_error) = (message.shared("toolCallId"), message.is_true("isError"));
            let result = ToolResult { call_id, text, images, is_error };
            Some(Recorded::result(number, time, None, result))
        }
        "bashExecution" if !message.is_true("excludeFromContext") => text(bash_execution(message)),
        "branchSummary" => text(branch_summary(&summary)),
        "compactionSummary" => text(compaction_summary(&summary)),
        _ => None,
    }
}

/// Returns what pi tells its model of a command that the user ran.
fn bash_execution(message: &Object<'_>) -> String {
    let mut said = format!("Ran `{}`\n", message.text("command").unwrap_or_default());
    match message.words("output") {
        Some(output) => {
            let _ = write!(said, "```\n{output}\n```");
        }
        None => said.push_str("(no output)"),
    }
    let exit_code = message.words("exitCode").filter(|code| code != "0");
    if message.is_true("cancelled") {
        said.push_str("\n\n(command cancelled)");
    } else if let Some(exit_code) = exit_code {
        let _ = write!(said, "\n\nCommand exited with code {exit_code}");
    }
    if message.is_true("truncated")
        && let Some(path) = message.text("fullOutputPath")
    {
        let _ = write!(said, "\n\n[Output truncated. Full output: {path}]");
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

fn by_id(entries: &[Entry]) -> HashMap<&str, usize> {
    let ids = entries.iter().enumerate();
    ids.filter_map(|(index, entry)| Some((entry.id.as_deref()?, index))).collect()
}

/// Returns the indexes of the entries that are in the context, oldest first.
fn live_path(entries: &[Entry], draft: &mut Draft) -> Vec<usize> {
    let Some(last) = entries.last() else { return Vec::new() };
    if last.id.is_none() {
        return (0..entries.len()).collect();
    }
    let by_id = by_id(entries);
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
    let by_id = by_id(entries);
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
