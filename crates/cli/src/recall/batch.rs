//! Rankings for a file of questions.

use std::num::NonZero;
use std::path::Path;

use plimsoll_engine::{Recall, RecallScope, SessionId};
use plimsoll_formats::{NoteKind, RecordPlace, SessionNote};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::CommandError;
use crate::load::{read_file, warn};
use crate::output;
use crate::store::Store;
use crate::write_file::{Existing, write_file};

/// A line of the questions.
#[derive(Debug, Deserialize)]
struct BatchQuestion {
    /// Any JSON value; the result repeats it.
    id: Box<RawValue>,
    #[serde(rename = "query")]
    text: String,
    #[serde(default)]
    session: Option<SessionId>,
}

/// A line of the results.
#[derive(Debug, Serialize)]
struct Ranking<'a> {
    id: &'a RawValue,
    ids: Vec<String>,
    /// The session of each, where several were asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sessions: Vec<&'a str>,
}

/// Ranks for every question and writes the rankings in their order.
pub(super) fn run(
    store: &Store,
    recall: &Recall,
    session: Option<&SessionId>,
    queries: &Path,
    out: &Path,
) -> Result<(), CommandError> {
    let queries = read(queries)?;
    let mut lines: Vec<String> = vec![String::new(); queries.len()];
    let asked = |question: &BatchQuestion| question.session.clone().or_else(|| session.cloned());
    let mut scopes: Vec<Option<SessionId>> = queries.iter().map(asked).collect();
    scopes.sort();
    scopes.dedup();
    for scope in scopes {
        let places: Vec<usize> =
            (0..queries.len()).filter(|place| asked(&queries[*place]) == scope).collect();
        let ranked = store.recall(recall, scope.as_ref(), |scope| {
            rank(scope, &places.iter().map(|place| &queries[*place]).collect::<Vec<_>>())
        })??;
        for (place, line) in places.into_iter().zip(ranked) {
            lines[place] = line;
        }
    }
    write_file(out, lines.concat().as_bytes(), Existing::Replace)?;
    output::data(&format!("{}: {} questions\n", out.display(), lines.len()))
}

fn read(path: &Path) -> Result<Vec<BatchQuestion>, CommandError> {
    let bytes = read_file(path)?;
    let (mut queries, mut notes) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(query) => queries.push(query),
            Err(error) => notes.push(SessionNote {
                place: RecordPlace::Line(number),
                kind: NoteKind::Skipped { why: error.to_string() },
            }),
        }
    }
    if queries.is_empty() {
        let first = notes.first().map_or(String::new(), |note| format!(": {note}"));
        let error = anyhow::anyhow!("{}: no question could be read{first}", path.display());
        return Err(CommandError::usage(error).hint("lines {\"id\", \"query\"}"));
    }
    warn(path, &notes, false);
    Ok(queries)
}

/// Ranks on as many threads as there are processors.
fn rank(scope: &RecallScope, queries: &[&BatchQuestion]) -> Result<Vec<String>, CommandError> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = queries.len().div_ceil(threads).max(1);
    let parts = std::thread::scope(|threads| {
        let started: Vec<_> = queries
            .chunks(share)
            .map(|queries| {
                threads.spawn(|| {
                    queries.iter().map(|question| line(scope, question)).collect::<Vec<_>>()
                })
            })
            .collect();
        started.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut lines = Vec::with_capacity(queries.len());
    for part in parts {
        let part = part.map_err(|_| CommandError::failure(anyhow::anyhow!("a thread failed")))?;
        for line in part {
            lines.push(line.map_err(CommandError::failure)?);
        }
    }
    Ok(lines)
}

fn line(scope: &RecallScope, question: &BatchQuestion) -> Result<String, serde_json::Error> {
    let ranked = scope.rank(&question.text);
    let ids = ranked.iter().map(|(record, _)| record.name()).collect();
    let sessions = match scope.sessions() {
        0 | 1 => Vec::new(),
        _ => ranked.iter().map(|(record, _)| record.session.as_str()).collect(),
    };
    let mut line = serde_json::to_string(&Ranking { id: &question.id, ids, sessions })?;
    line.push('\n');
    Ok(line)
}
