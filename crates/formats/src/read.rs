//! Reading: the one function that recognises a format, hands the file to its reader and repairs what comes out.

use std::sync::Arc;

use crate::draft::Draft;
use crate::error::ReadError;
use crate::format::Format;
use crate::note::NoteKind;
use crate::session::{ReadOptions, Session, Stretch};
use crate::{
    anthropic, claude_code, codex, gemini_cli, json, mini_swe_agent, openai, opencode, openhands,
    pi, recognise, repair, requests, swe_agent,
};

/// Reads a recorded session of any known format.
///
/// Shape: never panics, whatever the bytes; a record that cannot be read is skipped and noted.
/// Errors: only if there is no message to return.
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
    finish(format, options, read_as(format, bytes, options)?)
}

fn read_as(format: Format, bytes: &[u8], options: ReadOptions) -> Result<Draft, ReadError> {
    let text = |bytes| json::utf8_document(bytes);
    match format {
        Format::Pi => Ok(pi::read(bytes, options)),
        Format::ClaudeCode => Ok(claude_code::read(bytes, options)),
        Format::Codex => Ok(codex::read(bytes, options)),
        Format::OpenAiChat => openai::read(&text(bytes)),
        Format::AnthropicMessages => anthropic::read(&text(bytes)),
        Format::SweAgent => swe_agent::read(&text(bytes)),
        Format::MiniSweAgent => mini_swe_agent::read(&text(bytes)),
        Format::OpenHands => openhands::read(&text(bytes), options),
        Format::GeminiCli => gemini_cli::read(&text(bytes)),
        Format::OpenCode => opencode::read(&text(bytes)),
    }
}

fn finish(format: Format, options: ReadOptions, draft: Draft) -> Result<Session, ReadError> {
    let Draft {
        mut header,
        mut recorded,
        mut notes,
        mut compactions,
        mut earlier,
        mut known,
        requests: mut asked,
        branches,
        threads,
        place,
        ..
    } = draft;
    // An agent that was stopped as it compacted: what it had last is the session.
    if recorded.is_empty()
        && let Some(last) = earlier.pop()
    {
        (recorded, known) = (last.recorded, last.known);
    }
    if recorded.is_empty() {
        let skipped =
            notes.iter().filter(|note| matches!(note.kind, NoteKind::Skipped { .. })).count();
        return Err(ReadError::NothingReadable { format, skipped });
    }
    let mut stretches = Vec::with_capacity(earlier.len());
    for stretch in earlier {
        let repaired = repair::repair(stretch.recorded, place);
        let known = if stretch.known == 0 { 0 } else { repaired.moved_to(stretch.known) };
        notes.extend(repaired.notes);
        let messages = repaired.recorded.into_iter().map(|one| Arc::new(one.message)).collect();
        stretches.push(Stretch { messages, known });
    }
    let repaired = repair::repair(recorded, place);
    let known = if known == 0 { 0 } else { repaired.moved_to(known) };
    for seen in &mut compactions {
        seen.before = repaired.moved_to(seen.before);
    }
    for asked in &mut asked {
        asked.before = repaired.moved_to(asked.before);
    }
    notes.extend(repaired.notes);
    notes.sort_by_key(|note| note.place);
    // What a compaction kept is repaired in each context alike.
    notes.dedup();
    let (messages, origins): (Vec<_>, Vec<_>) = repaired
        .recorded
        .into_iter()
        .map(|recorded| (Arc::new(recorded.message), recorded.origin))
        .unzip();
    let first = stretches.iter().flat_map(|stretch| &stretch.messages).chain(&messages);
    header.started = header.started.or_else(|| first.into_iter().find_map(|message| message.time));
    let compacted: Vec<usize> = compactions.iter().map(|seen| seen.before).collect();
    let mut requests = requests::of_main(&messages, &asked, &compacted);
    for (thread, draft) in (1..).zip(&threads) {
        requests::push_thread(draft, thread, &mut requests);
    }
    requests::push_branches(branches, &mut requests);
    Ok(Session {
        format,
        options,
        header,
        messages,
        origins,
        notes,
        compactions,
        earlier: stretches,
        known,
        requests,
    })
}
