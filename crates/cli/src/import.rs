//! `plimsoll import`: dialogues and recorded sessions into a store.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::safety::{Flags, add, handle_message, told};
use plimsoll_core::{ContentHash, Message};
use plimsoll_engine::SessionId;
use plimsoll_formats::{NoteKind, ReadOptions, RecordPlace, Session, SessionNote, read_dialogue};
use serde::Serialize;

use crate::arguments::ImportArguments;
use crate::config::{self, Config};
use crate::error::CommandError;
use crate::figures::thousands;
use crate::load::{part_of, read_file, read_session, warn};
use crate::output;
use crate::store::{Store, id_of, session_id};

/// The result of importing one file.
#[derive(Debug, Serialize)]
pub(crate) struct ImportReport {
    file: String,
    pub(crate) added: usize,
    known: usize,
    skipped: usize,
}

/// The messages of a file, each with its session and its line.
struct Read {
    messages: Vec<(SessionId, Message)>,
    places: Vec<RecordPlace>,
    notes: Vec<SessionNote>,
    /// Whether it is an agent's session, and no dialogue.
    is_recorded: bool,
}

pub(crate) fn run(arguments: &ImportArguments) -> Result<(), CommandError> {
    let config = config::read(arguments.config.as_deref())?;
    let store = Store::open(&arguments.store, arguments.config.as_deref())?;
    let mut reports = Vec::new();
    for file in &arguments.files {
        reports.push(import_file(&store, &config, file, arguments)?);
    }
    if arguments.json {
        return output::json(&reports);
    }
    let mut text = String::new();
    for report in &reports {
        let file = output::plain(&report.file);
        let _ = write!(text, "{file}: {} messages added", thousands(report.added as u64));
        if report.known > 0 {
            let _ = write!(text, ", {} known", thousands(report.known as u64));
        }
        text.push('\n');
    }
    output::page(&text)
}

/// Puts the messages of one file into a store.
pub(crate) fn import_file(
    store: &Store,
    config: &Config,
    file: &Path,
    arguments: &ImportArguments,
) -> Result<ImportReport, CommandError> {
    let mut read = read(file, arguments)?;
    let mut flags = Flags::new();
    for (_, message) in &mut read.messages {
        let (changed, found) = handle_message(message, config.safety.ingestion);
        add(&mut flags, &found);
        if let Some(changed) = changed {
            *message = changed;
        }
    }
    if !flags.is_empty() {
        output::warning(&format!(
            "{} holds {}; `[safety.ingestion]` of the settings redacts",
            file.display(),
            told(&flags)
        ));
    }
    if read.is_recorded {
        apart(store, &mut read.messages)?;
    }
    let imported = store.import(read.messages, &config.cards)?;
    read.notes.extend(imported.differing.iter().map(|place| SessionNote {
        place: read.places[*place],
        kind: NoteKind::Skipped { why: "its id is kept with another text".to_owned() },
    }));
    warn(file, &read.notes, arguments.verbose);
    let skipped =
        read.notes.iter().filter(|note| matches!(note.kind, NoteKind::Skipped { .. })).count();
    Ok(ImportReport {
        file: file.display().to_string(),
        added: imported.added,
        known: imported.known,
        skipped,
    })
}

fn read(path: &Path, arguments: &ImportArguments) -> Result<Read, CommandError> {
    let bytes = read_file(path)?;
    let Some(dialogue) = read_dialogue(&bytes) else { return session(path, &bytes) };
    let (mut messages, mut places, mut notes) = (Vec::new(), Vec::new(), dialogue.notes);
    let usual = match &arguments.session {
        Some(session) => Ok(session_id(session)?),
        None => SessionId::new(&path.file_stem().unwrap_or_default().to_string_lossy()),
    };
    for line in dialogue.lines {
        let session = line.session.as_deref().map_or_else(|| usual.clone(), SessionId::new);
        match session {
            Ok(session) => {
                messages.push((session, line.message));
                places.push(RecordPlace::Line(line.line));
            }
            Err(error) => notes.push(SessionNote {
                place: RecordPlace::Line(line.line),
                kind: NoteKind::Skipped { why: format!("its session: {error}") },
            }),
        }
    }
    if messages.is_empty() {
        let first = notes.first().map_or(String::new(), |note| format!(": {note}"));
        let error = anyhow::anyhow!("{}: no line could be read{first}", path.display());
        return Err(CommandError::usage(error));
    }
    notes.sort_by_key(|note| note.place.number());
    Ok(Read { messages, places, notes, is_recorded: false })
}

fn session(path: &Path, bytes: &[u8]) -> Result<Read, CommandError> {
    let session = read_session(path, bytes, ReadOptions::default()).map_err(|error| {
        error.hint("or lines {\"id\", \"session\", \"speaker\", \"time\", \"text\"}")
    })?;
    let mut read =
        Read { messages: Vec::new(), places: Vec::new(), notes: Vec::new(), is_recorded: true };
    let (first, others) = (part_of(path).1, session.parts.len());
    add_session(&mut read, &session)?;
    // The file stands for all of its conversations, a number for one.
    for part in 1..if first == 0 { others } else { 0 } {
        let options = ReadOptions { part, ..ReadOptions::default() };
        match plimsoll_formats::read(bytes, &options) {
            Ok(session) => add_session(&mut read, &session)?,
            Err(error) => read.notes.push(SessionNote {
                place: RecordPlace::Line(0),
                kind: NoteKind::Skipped { why: format!("conversation {part}: {error}") },
            }),
        }
    }
    read.notes.retain(|note| !matches!(note.kind, NoteKind::FurtherSessions { .. }));
    Ok(read)
}

fn add_session(read: &mut Read, session: &Session) -> Result<(), CommandError> {
    let id = id_of(session)?;
    for message in &session.messages {
        read.places.push(RecordPlace::Line(message.source.unwrap_or(0)));
        read.messages.push((id.clone(), (**message).clone()));
    }
    read.notes.extend(session.notes.iter().cloned());
    Ok(())
}

/// Gives recorded sessions that are others than the ones of their names in the store names of their own.
fn apart(store: &Store, messages: &mut [(SessionId, Message)]) -> Result<(), CommandError> {
    for one in messages.chunk_by_mut(|(a, _), (b, _)| a == b) {
        let Some((id, _)) = one.first() else { continue };
        let hashes: Vec<ContentHash> =
            one.iter().map(|(_, message)| ContentHash::of(message)).collect();
        let own = store.own_session(id, &hashes)?;
        for (id, _) in one {
            id.clone_from(&own);
        }
    }
    Ok(())
}
