//! pi (pi-coding-agent): JSON lines; since version 2 a tree of entries, whose live branch ends at the last entry.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use plimsoll_core::bill::AddedContent;
use plimsoll_core::{MillisSinceEpoch, Role, ToolResult, Usage};

use crate::content::{blocks, text_and_images};
use crate::draft::{BranchRequest, RecordedMessage, RecordedRequest, SessionDraft, usage};
use crate::note::NoteKind;
use crate::object::Object;
use crate::requests::characters_by_kind;
use crate::session::{Compaction, ReadOptions, RecordedCompaction};

/// One line of the file: a node of the tree.
struct PiEntry {
    line: u32,
    id: Option<String>,
    parent: Option<String>,
    recorded: Option<RecordedMessage>,
    model: Option<String>,
    compaction: Option<CompactionEntry>,
    request: Option<RecordedRequest>,
}

struct CompactionEntry {
    summary: RecordedMessage,
    first_kept: FirstKept,
    tokens_before: Option<u64>,
}

enum FirstKept {
    Id(String),
    /// An index over all entries of the file, including the header.
    Index(usize),
    Unknown,
}

/// Reads a pi session.
pub(crate) fn read(bytes: &[u8], options: ReadOptions) -> SessionDraft {
    let mut draft = SessionDraft::of_lines();
    let mut entries: Vec<PiEntry> = Vec::new();
    // Version 1 counts the header, too, which is usually the first entry.
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
        "message" if line.has("message") && line.object("message").is_none() => {
            draft.skip(number, "its message is not an object");
        }
        kind => entries.push(entry(number, kind, line)),
    });
    let path = live_path(&entries, &mut draft);
    draft.branches = branches(&entries, &path);
    walk(entries, &path, headers_before, &mut draft, options);
    draft
}

fn entry(number: u32, kind: &str, line: &Object<'_>) -> PiEntry {
    let time = line.time("timestamp");
    let text = |text| RecordedMessage::text(Role::User, number, time, text);
    let mut entry = PiEntry {
        line: number,
        id: line.owned("id"),
        parent: line.words("parentId").map(Cow::into_owned),
        recorded: None,
        model: line.owned("modelId"),
        compaction: None,
        request: None,
    };
    match kind {
        "message" => {
            let message = line.object("message").unwrap_or_default();
            if message.text("role").as_deref() == Some("assistant") {
                entry.model = message.owned("model");
                entry.request = request_of(number, time, entry.id.as_deref(), &message);
            }
            entry.recorded = from_message(number, time, &message);
        }
        "custom_message" => {
            let blocks = blocks(line.get("content"));
            entry.recorded = (!blocks.is_empty())
                .then(|| RecordedMessage::new(Role::User, number, time, blocks));
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

/// Returns the request behind a response, also behind an aborted one without content.
fn request_of(
    number: u32,
    time: Option<MillisSinceEpoch>,
    id: Option<&str>,
    message: &Object<'_>,
) -> Option<RecordedRequest> {
    // The ids of entries are short. With the time, copies in the file of a forked session are recognised.
    let time_text = time.map_or(0, |time| time.0);
    Some(RecordedRequest {
        source: number,
        id: id.map(|id| format!("{id} {time_text}").into()),
        time,
        model: message.text("model").map(Into::into),
        usage: usage_of(message)?,
        ..RecordedRequest::default()
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
) -> Option<RecordedMessage> {
    let content = message.get("content");
    let text = |text| Some(RecordedMessage::text(Role::User, number, time, text));
    let summary = message.text("summary").unwrap_or_default();
    match &*message.text("role")? {
        "user" | "custom" | "hookMessage" => {
            Some(RecordedMessage::new(Role::User, number, time, blocks(content)))
        }
        "assistant" => {
            let blocks = blocks(content);
            let stop = message.text("stopReason");
            if matches!(stop.as_deref(), Some("aborted" | "error")) && blocks.is_empty() {
                return None;
            }
            let mut recorded = RecordedMessage::new(Role::Assistant, number, time, blocks);
            recorded.message.usage = usage_of(message);
            recorded.message.model = message.text("model").map(Into::into);
            Some(recorded)
        }
        "toolResult" => {
            let (text, images) = text_and_images(content);
            let (call_id, is_error) = (message.shared("toolCallId"), message.is_true("isError"));
            let result = ToolResult { call_id, text, images, is_error };
            Some(RecordedMessage::result(number, time, None, result))
        }
        "bashExecution" if !message.is_true("excludeFromContext") => text(bash_execution(message)),
        "branchSummary" => text(branch_summary(&summary)),
        "compactionSummary" => text(compaction_summary(&summary)),
        _ => None,
    }
}

/// Returns the text that pi sends to its model for a command that the user ran.
fn bash_execution(message: &Object<'_>) -> String {
    let mut text = format!("Ran `{}`\n", message.text("command").unwrap_or_default());
    match message.words("output") {
        Some(output) => {
            let _ = write!(text, "```\n{output}\n```");
        }
        None => text.push_str("(no output)"),
    }
    let exit_code = message.words("exitCode").filter(|code| code != "0");
    if message.is_true("cancelled") {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(exit_code) = exit_code {
        let _ = write!(text, "\n\nCommand exited with code {exit_code}");
    }
    if message.is_true("truncated")
        && let Some(path) = message.text("fullOutputPath")
    {
        let _ = write!(text, "\n\n[Output truncated. Full output: {path}]");
    }
    text
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

/// Returns the summary without the frame that pi puts around it.
pub(crate) fn without_frame(text: &str) -> &str {
    let inner =
        text.strip_prefix(SUMMARY_PREFIX).and_then(|text| text.strip_suffix(SUMMARY_SUFFIX));
    inner.unwrap_or(text)
}

fn by_id(entries: &[PiEntry]) -> HashMap<&str, usize> {
    let ids = entries.iter().enumerate();
    ids.filter_map(|(index, entry)| Some((entry.id.as_deref()?, index))).collect()
}

/// Returns the indexes of the entries that are in the context, oldest first.
fn live_path(entries: &[PiEntry], draft: &mut SessionDraft) -> Vec<usize> {
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
                // pi stops here, too; a guessed parent would show messages that the model never saw.
                let id = parent.to_owned();
                draft.note(entry.line, NoteKind::MissingParent { id });
            }
            found
        });
    }
    path.reverse();
    path
}

/// Returns the requests on branches that the user left, with the characters between each and the one that it continues.
fn branches(entries: &[PiEntry], path: &[usize]) -> Vec<BranchRequest> {
    let mut on_path = vec![false; entries.len()];
    for index in path {
        on_path[*index] = true;
    }
    let by_id = by_id(entries);
    let left = entries.iter().enumerate().filter(|(index, _)| !on_path[*index]);
    left.filter_map(|(index, entry)| {
        let mut branch =
            BranchRequest { request: entry.request.clone()?, ..BranchRequest::default() };
        let mut at = index;
        // The bound ends the walk where parents form a cycle.
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
                branch.said.add(&characters_by_kind(&recorded.message));
            }
            if entry.request.is_some() {
                branch.continues = Some(entry.line);
                break;
            }
        }
        Some(branch)
    })
    .collect()
}

fn walk(
    mut entries: Vec<PiEntry>,
    path: &[usize],
    headers: usize,
    draft: &mut SessionDraft,
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
            draft.messages.push(recorded.clone());
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
        draft.compactions.push(RecordedCompaction {
            before: 0,
            source: line,
            tokens_before: compaction.tokens_before,
        });
        // The kept entries follow the summary.
        let kept = path[first..position].iter().filter_map(|at| entries[*at].recorded.clone());
        draft.messages.extend(kept);
        draft.begun();
    }
}

fn take_all(entries: &mut [PiEntry], path: &[usize], draft: &mut SessionDraft) {
    for index in path {
        let entry = &mut entries[*index];
        if let Some(compaction) = entry.compaction.take() {
            draft.compacted(entry.line, compaction.tokens_before);
            // Without a message before it, the summary is all that is left of the compacted messages.
            if draft.messages.is_empty() {
                draft.messages.push(compaction.summary);
            }
        }
        if let Some(model) = entry.model.take() {
            draft.header.model = Some(model);
        }
        if let Some(request) = entry.request.take() {
            draft.requests.push(RecordedRequest { before: draft.messages.len(), ..request });
        }
        if let Some(recorded) = entry.recorded.take() {
            draft.messages.push(recorded);
        }
    }
}
