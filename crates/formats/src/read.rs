//! Reading: recognises the format of a file, calls the reader of that format, and repairs the messages.

use std::sync::Arc;

use plimsoll_core::{Role, text};

use crate::draft::SessionDraft;
use crate::error::ReadError;
use crate::format::SessionFormat;
use crate::note::{NoteKind, SessionNote};
use crate::session::{EarlierContext, PartKind, ReadOptions, Session, SessionPart};
use crate::{
    anthropic, claude_code, cline, codex, copilot_cli, cursor, gemini_cli, gemini_log, json,
    mini_swe_agent, openai, opencode, openhands, pi, recognise, repair, requests, swe_agent,
    tau_bench,
};

/// Reads a recorded session of any known format.
///
/// Shape: never panics; skips a record that cannot be read, with a note.
/// Errors: only if no message could be read.
pub fn read(bytes: &[u8], options: &ReadOptions) -> Result<Session, ReadError> {
    let bytes = json::without_mark(bytes);
    match read_strictly(bytes, *options) {
        Err(error @ ReadError::Malformed { .. }) => {
            match str::from_utf8(bytes).ok().and_then(json::mended) {
                Some(mended) => read_strictly(mended.as_bytes(), *options).or(Err(error)),
                None => Err(error),
            }
        }
        result => result,
    }
}

fn read_strictly(bytes: &[u8], options: ReadOptions) -> Result<Session, ReadError> {
    let format = recognise::recognise(bytes)?;
    let mut draft = read_as(format, bytes, options)?;
    let parts = parts(&draft);
    if options.part > 0 {
        draft = part(draft, options.part)?;
    }
    let session = finish(format, options, draft)?;
    Ok(Session { parts, ..session })
}

/// Lists the conversations of a file; none if there is only one.
fn parts(draft: &SessionDraft) -> Vec<SessionPart> {
    let listed = |kind, draft: &SessionDraft| {
        let own = draft.messages.iter().find(|one| one.message.role == Role::User);
        let task = own.map(|recorded| text::line(&recorded.message.shown(), 120));
        let name = draft.name.clone();
        SessionPart { kind, name, messages: draft.messages.len(), task }
    };
    if draft.threads.is_empty() && draft.runs.is_empty() {
        return Vec::new();
    }
    let mut parts = vec![listed(PartKind::Main, draft)];
    parts.extend(draft.threads.iter().map(|thread| listed(PartKind::SubAgent, thread)));
    parts.extend(draft.runs.iter().map(|run| listed(PartKind::Run, run)));
    parts
}

fn part(draft: SessionDraft, part: usize) -> Result<SessionDraft, ReadError> {
    let main = draft.header;
    let count = 1 + draft.threads.len() + draft.runs.len();
    let threads = draft.threads.into_iter().map(|thread| (true, thread));
    let mut all = threads.chain(draft.runs.into_iter().map(|run| (false, run)));
    let (is_thread, mut found) = all.nth(part - 1).ok_or(ReadError::NoPart { part, count })?;
    if is_thread {
        // A sub-agent has the id of its session; alone it needs its own.
        let id = main.id.as_deref().unwrap_or("session");
        found.header.id = Some(format!("{id}:{}", found.name.as_deref().unwrap_or("agent")));
        found.header.working_directory = found.header.working_directory.or(main.working_directory);
    }
    Ok(found)
}

fn read_as(
    format: SessionFormat,
    bytes: &[u8],
    options: ReadOptions,
) -> Result<SessionDraft, ReadError> {
    let text = |bytes| json::utf8_document(bytes);
    match format {
        SessionFormat::Pi => Ok(pi::read(bytes, options)),
        SessionFormat::ClaudeCode => Ok(claude_code::read(bytes, options)),
        SessionFormat::Codex => Ok(codex::read(bytes, options)),
        SessionFormat::OpenAiChat => openai::read(&text(bytes)),
        SessionFormat::AnthropicMessages => anthropic::read(&text(bytes)),
        SessionFormat::SweAgent => swe_agent::read(&text(bytes)),
        SessionFormat::MiniSweAgent => mini_swe_agent::read(&text(bytes)),
        SessionFormat::OpenHands => openhands::read(&text(bytes), options),
        SessionFormat::GeminiCli if gemini_log::is_log(bytes) => {
            Ok(gemini_log::read(bytes, options))
        }
        SessionFormat::GeminiCli => gemini_cli::read(&text(bytes)),
        SessionFormat::OpenCode => opencode::read(&text(bytes)),
        SessionFormat::CopilotCli => copilot_cli::read(bytes, options),
        SessionFormat::Cursor => Ok(cursor::read(bytes)),
        SessionFormat::Cline => cline::read(&text(bytes)),
        SessionFormat::TauBench => tau_bench::read(&text(bytes)),
    }
}

fn finish(
    format: SessionFormat,
    options: ReadOptions,
    draft: SessionDraft,
) -> Result<Session, ReadError> {
    let SessionDraft { mut header, mut messages, mut known, mut earlier, mut notes, .. } = draft;
    // The agent was stopped while it compacted: its last context is the session.
    if messages.is_empty()
        && let Some(last) = earlier.pop()
    {
        (messages, known) = (last.messages, last.known);
    }
    if messages.is_empty() {
        let is_skipped = |note: &&SessionNote| matches!(note.kind, NoteKind::Skipped { .. });
        let skipped = notes.iter().filter(is_skipped).count();
        return Err(ReadError::NothingReadable { format, skipped });
    }
    let mut contexts = Vec::with_capacity(earlier.len());
    for context in earlier {
        let repaired = repair::repair(context.messages, draft.place);
        let known = repaired.moved_to(context.known);
        notes.extend(repaired.notes);
        let messages = repaired.messages.into_iter().map(|one| Arc::new(one.message)).collect();
        contexts.push(EarlierContext { messages, known });
    }
    let repaired = repair::repair(messages, draft.place);
    let known = repaired.moved_to(known);
    let (mut compactions, mut reported) = (draft.compactions, draft.requests);
    for compaction in &mut compactions {
        compaction.before = repaired.moved_to(compaction.before);
    }
    for request in &mut reported {
        request.before = repaired.moved_to(request.before);
    }
    notes.extend(repaired.notes);
    notes.sort_by_key(|note| note.place);
    // Messages that a compaction kept are repaired in each context alike.
    notes.dedup();
    let (messages, origins): (Vec<_>, Vec<_>) =
        repaired.messages.into_iter().map(|one| (Arc::new(one.message), one.origin)).unzip();
    let mut all = contexts.iter().flat_map(|context| &context.messages).chain(&messages);
    header.started = header.started.or_else(|| all.find_map(|message| message.time));
    let compacted: Vec<usize> = compactions.iter().map(|seen| seen.before).collect();
    let mut requests = requests::of_main(&messages, &reported, &compacted);
    for (thread, draft) in (1..).zip(draft.threads.iter().chain(&draft.runs)) {
        requests::push_thread(draft, thread, &mut requests);
    }
    requests::push_branches(draft.branches, &mut requests);
    Ok(Session {
        format,
        options,
        header,
        messages,
        origins,
        notes,
        compactions,
        earlier: contexts,
        known,
        requests,
        parts: Vec::new(),
    })
}
