//! Newer Gemini CLI: a chat as a log. A line with the id of an earlier one replaces it, `$set` changes the session, and
//! `$rewindTo` takes a message and all after it away.

use std::collections::HashSet;

use crate::draft::SessionDraft;
use crate::gemini_cli;
use crate::json;
use crate::object::Object;
use crate::session::{Compaction, ReadOptions};

/// Returns whether a line is the head of a log, or one of its commands.
pub(crate) fn is_line(line: &Object<'_>) -> bool {
    let is_head = line.has("sessionId")
        && !line.has("type")
        && !line.has("uuid")
        && ["projectHash", "startTime", "kind"].into_iter().any(|key| line.has(key));
    is_head || line.has("$set") || line.has("$rewindTo")
}

/// Returns whether a chat is a log, and no document.
pub(crate) fn is_log(bytes: &[u8]) -> bool {
    let is_line = |line: &[u8]| {
        str::from_utf8(line).ok().and_then(Object::parse).is_some_and(|l| is_line(&l))
    };
    json::lines(bytes).any(|(_, line)| is_line(line))
        && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_err()
}

/// A message as its newest line has it.
struct Entry {
    id: String,
    number: u32,
    text: String,
}

/// The messages between two compactions.
#[derive(Default)]
struct Stretch {
    entries: Vec<Entry>,
    /// How many of them the compaction before it gave.
    given: usize,
    /// The line of that compaction.
    number: u32,
}

/// Reads a log.
pub(crate) fn read(bytes: &[u8], options: ReadOptions) -> SessionDraft {
    let mut draft = SessionDraft::of_lines();
    let mut stretches = vec![Stretch::default()];
    draft.each_line(bytes, |draft, number, line| {
        let (id, rewind) = (line.owned("id"), line.owned("$rewindTo"));
        if let Some(to) = rewind {
            let Some(stretch) = stretches.last_mut() else { return };
            // Gemini CLI drops the whole history if it does not know the message.
            let at = stretch.entries.iter().position(|entry| entry.id == to).unwrap_or(0);
            stretch.entries.truncate(at);
            stretch.given = stretch.given.min(at);
        } else if let Some(id) = id {
            upsert(&mut stretches, Entry { id, number, text: line.raw().to_owned() });
        } else if let Some(set) = line.object("$set") {
            header(draft, &set);
            if set.has("messages") {
                replace(&mut stretches, number, &set);
            }
        } else if is_line(line) {
            header(draft, line);
            replace(&mut stretches, number, line);
        } else {
            draft.skip(number, "it has no id");
        }
    });
    match options.compaction {
        Compaction::Honour => honour(&mut draft, &stretches),
        Compaction::PassOver => pass_over(&mut draft, &stretches),
    }
    draft
}

fn header(draft: &mut SessionDraft, object: &Object<'_>) {
    let header = &mut draft.header;
    header.id = object.owned("sessionId").or(header.id.take());
    header.started = header.started.or(object.time("startTime"));
    let folders = object.list("directories");
    let folder = folders.first().map(|raw| crate::object::text_of(raw.get()).into_owned());
    header.working_directory = header.working_directory.take().or(folder);
    if object.text("kind").is_some_and(|kind| kind != "main") {
        draft.name = object.owned("kind");
    }
}

fn upsert(stretches: &mut [Stretch], entry: Entry) {
    let Some(stretch) = stretches.last_mut() else { return };
    match stretch.entries.iter_mut().rev().find(|known| known.id == entry.id) {
        Some(known) => *known = entry,
        None => stretch.entries.push(entry),
    }
}

/// Takes over a list that stands for all messages: fewer of them are a rewind, others a compaction.
fn replace(stretches: &mut Vec<Stretch>, number: u32, set: &Object<'_>) {
    let list: Vec<Entry> = set
        .objects("messages")
        .into_iter()
        .filter_map(|message| {
            Some(Entry { id: message.owned("id")?, number, text: message.raw().to_owned() })
        })
        .collect();
    let Some(stretch) = stretches.last_mut() else { return };
    let had: Vec<&str> = stretch.entries.iter().map(|entry| &*entry.id).collect();
    let is_start = list.iter().zip(&had).all(|(new, old)| new.id == *old);
    if is_start && list.len() <= had.len() {
        stretch.entries.truncate(list.len());
        stretch.given = stretch.given.min(list.len());
    } else if is_start {
        stretch.entries.extend(list.into_iter().skip(stretch.entries.len()));
    } else {
        stretches.push(Stretch { given: list.len(), entries: list, number });
    }
}

fn honour(draft: &mut SessionDraft, stretches: &[Stretch]) {
    let mut charged = HashSet::new();
    for (index, stretch) in stretches.iter().enumerate() {
        if index > 0 {
            draft.forget();
            draft.compacted(stretch.number, None);
        }
        for (at, entry) in stretch.entries.iter().enumerate() {
            if at == stretch.given && index > 0 {
                draft.begun();
            }
            push(draft, entry, &mut charged);
        }
        if stretch.given >= stretch.entries.len() && index > 0 {
            draft.begun();
        }
    }
}

fn pass_over(draft: &mut SessionDraft, stretches: &[Stretch]) {
    let (mut seen, mut charged) = (HashSet::new(), HashSet::new());
    for (index, stretch) in stretches.iter().enumerate() {
        if index > 0 {
            draft.compacted(stretch.number, None);
        }
        for entry in &stretch.entries {
            if seen.insert(&entry.id) {
                push(draft, entry, &mut charged);
            }
        }
    }
}

/// Appends a message; its request counts once, though a compaction may keep the message.
fn push<'a>(draft: &mut SessionDraft, entry: &'a Entry, charged: &mut HashSet<&'a str>) {
    let Some(message) = Object::parse(&entry.text) else { return };
    let before = draft.requests.len();
    gemini_cli::message(draft, entry.number, &message);
    if !charged.insert(&entry.id) {
        draft.requests.truncate(before);
    }
}
