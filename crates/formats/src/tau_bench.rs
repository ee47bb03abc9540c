//! tau-bench: a list of runs, each with the chat messages of one task.

use serde_json::value::RawValue;

use crate::draft::SessionDraft;
use crate::error::ReadError;
use crate::note::NoteKind;
use crate::object::Object;
use crate::openai;

/// Reads the runs of a results file; the first is the session, and the others are further ones.
pub(crate) fn read(text: &str) -> Result<SessionDraft, ReadError> {
    let runs: Vec<&RawValue> = if text.trim_ascii_start().starts_with('[') {
        serde_json::from_str(text).map_err(ReadError::json)?
    } else {
        vec![serde_json::from_str(text).map_err(ReadError::json)?]
    };
    let mut skipped = SessionDraft::of_elements();
    let mut drafts = Vec::with_capacity(runs.len());
    for (number, raw) in (1..).zip(runs) {
        match run(raw.get()) {
            Ok(draft) if !draft.messages.is_empty() => drafts.push(draft),
            _ => skipped.skip(number, "a run without messages"),
        }
    }
    let mut drafts = drafts.into_iter();
    let Some(mut first) = drafts.next() else { return Ok(skipped) };
    first.runs = drafts.collect();
    first.notes.append(&mut skipped.notes);
    if !first.runs.is_empty() {
        first.note(0, NoteKind::FurtherSessions { count: first.runs.len() });
    }
    Ok(first)
}

fn run(text: &str) -> Result<SessionDraft, ReadError> {
    let (mut draft, run, messages) = SessionDraft::of_document(text, "traj")?;
    let field = |key| run.text(key).unwrap_or_default().into_owned();
    let (task, trial) = (field("task_id"), field("trial"));
    draft.header.id = Some(format!("task-{task}-trial-{trial}"));
    draft.header.model = run.object("info").and_then(|info: Object<'_>| info.owned("model"));
    draft.name = Some(format!("task {task}, trial {trial}, reward {}", field("reward")));
    draft.each_element(&messages, |draft, number, message| {
        openai::each_message(draft, number, message, |draft, recorded| {
            draft.messages.push(recorded);
        });
    });
    Ok(draft)
}
