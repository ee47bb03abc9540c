//! `plimsoll replay`: recorded sessions under policies, turn by turn.

mod contexts;
mod drawing;
mod groups;
pub(crate) mod html;
mod picture;
mod report;
mod sum;
mod verify;

use std::path::{Path, PathBuf};

use plimsoll_core::policy::Policy;
use plimsoll_core::replay::{Replay, ReplaySum, replay_stretches};

use groups::ReplayGroups;
use sum::SessionFigures;

use crate::arguments::ReplayArguments;
use crate::config::config;
use crate::error::CommandError;
use crate::load::{Loaded, compaction, load_bytes, load_part, part_of, read_file, warn};
use crate::output;
use crate::progress::Progress;
use crate::sessions::{self, ENDINGS};
use crate::store::{Recorder, Recording, recorder};

/// A policy's name and what it gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) policy: String,
    pub(crate) replay: Replay,
}

/// A policy and the name by which it was asked for.
type Named = (String, Policy);

pub(crate) fn run(arguments: &ReplayArguments) -> Result<(), CommandError> {
    if arguments.verify_bill {
        return verify::run(arguments);
    }
    let policies = policies(arguments)?;
    if let Some(path) = &arguments.html {
        crate::write_file::refuse(path, crate::write_file::Existing::Replace)?;
    }
    if let Some(path) = &arguments.picture {
        crate::write_file::refuse(path, crate::write_file::Existing::Replace)?;
    }
    let files = files(arguments)?;
    // A store that cannot be opened ends the command before it replays anything.
    let recorder = recorder(&arguments.reading, arguments.settings.config.as_deref())?;
    match files.as_slice() {
        [file] if arguments.by.is_none() => one(arguments, file, &policies, recorder.as_ref()),
        files => several(arguments, files, &policies, recorder.as_ref()),
    }
}

fn policies(arguments: &ReplayArguments) -> Result<Vec<Named>, CommandError> {
    let config = config(&arguments.settings)?;
    let names = if arguments.policy.is_empty() {
        vec!["plimsoll".to_owned()]
    } else {
        arguments.policy.clone()
    };
    let named = |name: String| config.policy(&name).map(|policy| (name, policy));
    let policies = names.into_iter().map(named).collect::<Result<Vec<_>, _>>()?;
    if arguments.contexts.is_some() && policies.len() > 1 {
        return Err(CommandError::usage(anyhow::anyhow!(
            "`--contexts` writes the contexts of one policy, {} were given",
            policies.len()
        )));
    }
    Ok(policies)
}

/// Lists the sessions that are named and those in folders that are.
fn files(arguments: &ReplayArguments) -> Result<Vec<PathBuf>, CommandError> {
    let files = sessions::files(&arguments.files)?;
    if files.is_empty() {
        return Err(
            CommandError::usage(anyhow::anyhow!("there is no session in the folder")).hint(ENDINGS)
        );
    }
    Ok(files)
}

/// Reads a session with the rules that the arguments give.
fn session(arguments: &ReplayArguments, path: &Path) -> Result<Loaded, CommandError> {
    session_in(arguments, path, &read_file(path)?)
}

/// As [`session`], from the file's bytes.
fn session_in(
    arguments: &ReplayArguments,
    path: &Path,
    bytes: &[u8],
) -> Result<Loaded, CommandError> {
    let compaction = compaction(arguments.no_compaction);
    let mut loaded = load_bytes(path, &arguments.reading, compaction, bytes)?;
    warn(path, &loaded.session.notes, arguments.reading.verbose);
    loaded.set_rules(arguments.prices, arguments.append_only);
    Ok(loaded)
}

/// Stores the messages of the session that is replayed, and of the others in its file; a number stands for one.
fn record<'r>(
    arguments: &ReplayArguments,
    recorder: &'r Recorder,
    path: &Path,
    bytes: &[u8],
    loaded: &Loaded,
) -> Result<Recording<'r>, CommandError> {
    let recording = recorder.record(loaded).map_err(|error| error.in_file(path))?;
    let parts = if part_of(path).1 == 0 { loaded.session.parts.len() } else { 0 };
    for part in 1..parts {
        let compaction = compaction(arguments.no_compaction);
        let other = load_part(path, &arguments.reading, compaction, bytes, part);
        if let Err(error) = other.and_then(|other| recorder.record(&other).map(drop)) {
            let path = output::plain(&path.display().to_string());
            output::warning(&format!("{path}: conversation {part} is not stored: {error}"));
        }
    }
    Ok(recording)
}

/// Replays one session, and tells all of it.
fn one(
    arguments: &ReplayArguments,
    path: &Path,
    policies: &[Named],
    recorder: Option<&Recorder>,
) -> Result<(), CommandError> {
    let bytes = read_file(path)?;
    let loaded = session_in(arguments, path, &bytes)?;
    let stored = |recorder| record(arguments, recorder, path, &bytes, &loaded);
    let recording = recorder.map(stored).transpose()?;
    let (full, runs) = replayed(arguments, &loaded, policies, recording.as_ref())?;
    if let Some(path) = &arguments.html {
        html::write(path, &arguments.files[0], &loaded, &full, &runs)?;
    }
    if let Some(path) = &arguments.picture {
        drawing::write(path, &loaded, &full, &runs)?;
    }
    if arguments.json {
        return report::json(&loaded, &full, &runs);
    }
    let mut text = report::text(&loaded, &full, &runs);
    if let [one] = runs.as_slice() {
        text.push_str(&picture::bars(&loaded, &one.replay, arguments.all_turns));
    }
    if arguments.missed {
        for one in &runs {
            text.push_str(&report::missed(&loaded, one));
        }
    }
    output::page(&text)
}

/// Replays one session after the other and adds them up; none stays in memory.
fn several(
    arguments: &ReplayArguments,
    files: &[PathBuf],
    policies: &[Named],
    recorder: Option<&Recorder>,
) -> Result<(), CommandError> {
    for (given, flag) in [
        (arguments.contexts.is_some(), "--contexts"),
        (arguments.html.is_some(), "--html"),
        (arguments.picture.is_some(), "--picture"),
        (arguments.missed, "--missed"),
        (arguments.all_turns, "--all-turns"),
    ] {
        if given {
            let error = anyhow::anyhow!("`{flag}` is for one session, {} were given", files.len());
            return Err(CommandError::usage(error));
        }
    }
    let mut sum = ReplaySum::new(policies.iter().map(|(name, _)| name.clone()));
    let mut each = Vec::new();
    let mut groups = arguments.by.map(ReplayGroups::new);
    let mut unstored = 0;
    for path in files {
        let read = || {
            let bytes = read_file(path)?;
            Ok::<_, CommandError>((session_in(arguments, path, &bytes)?, bytes))
        };
        let (loaded, bytes) = match read() {
            Ok(read) => read,
            // Much in a folder is no session; a file that was named should be one.
            Err(error) if !arguments.files.contains(path) => {
                output::warning(&error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        let stored = |recorder| record(arguments, recorder, path, &bytes, &loaded);
        // The figures of a session do not depend on the store, and the other sessions may still go in.
        let recording = recorder.map(stored).transpose().unwrap_or_else(|error| {
            output::warning(&error.to_string());
            unstored += 1;
            None
        });
        drop(bytes);
        let (full, runs) = replayed(arguments, &loaded, policies, recording.as_ref())
            .map_err(|error| error.in_file(path))?;
        if arguments.each && !arguments.json {
            let name = output::plain(&path.display().to_string());
            output::page(&format!("{name}\n{}\n", report::text(&loaded, &full, &runs)))?;
        }
        sum.add(loaded.estimate, &full, runs.iter().map(|run| &run.replay));
        if let Some(groups) = &mut groups {
            groups.add(path, &loaded, &full, &runs);
        }
        if arguments.each {
            each.push(SessionFigures::of(path, &loaded, &full, &runs));
        }
    }
    output::show(arguments.json, &sum::document(&sum, &each, groups.as_ref()), || {
        sum::text(&sum) + &groups.as_ref().map_or_else(String::new, ReplayGroups::text)
    })?;
    if unstored > 0 {
        let error = anyhow::anyhow!("{unstored} of {} sessions are not stored", files.len());
        return Err(CommandError::failure(error));
    }
    Ok(())
}

/// Replays a session under each policy, with the full history beside them on a thread of its own.
fn replayed(
    arguments: &ReplayArguments,
    loaded: &Loaded,
    policies: &[Named],
    recording: Option<&Recording<'_>>,
) -> Result<(Replay, Vec<Run>), CommandError> {
    std::thread::scope(|scope| {
        let full = scope.spawn(|| {
            let terms = |message: &plimsoll_core::Message| loaded.terms_of(message);
            let (stretches, shared) = (loaded.counted.stretches(), loaded.counted.overhead.shared);
            replay_stretches(stretches, &Policy::Full, shared, terms, |_| {})
        });
        let runs = runs(arguments, loaded, policies, recording)?;
        // A panic there is a panic here.
        Ok((full.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), runs))
    })
}

fn runs(
    arguments: &ReplayArguments,
    loaded: &Loaded,
    policies: &[Named],
    recording: Option<&Recording<'_>>,
) -> Result<Vec<Run>, CommandError> {
    let turns = loaded.counted.turns() * policies.len() as u64;
    let mut progress = Progress::new("replaying", turns);
    let terms = |message: &plimsoll_core::Message| loaded.terms_of(message);
    let shared = loaded.counted.overhead.shared;
    let mut runs = Vec::new();
    for (name, policy) in policies {
        let mut contexts = match &arguments.contexts {
            Some(path) => Some(contexts::Writer::create(path, loaded.session.format)?),
            None => None,
        };
        let mut records = Vec::new();
        let replay = replay_stretches(loaded.counted.stretches(), policy, shared, terms, |turn| {
            if let Some(recording) = recording {
                records.push(recording.receipt(name, &turn));
            }
            if let Some(writer) = &mut contexts {
                writer.write(&turn);
            }
            progress.step();
        });
        if let Some(writer) = contexts {
            writer.finish()?;
        }
        if let Some(recording) = recording {
            recording.keep_receipts(records)?;
        }
        runs.push(Run { policy: name.clone(), replay });
    }
    Ok(runs)
}
