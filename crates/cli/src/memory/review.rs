//! `plimsoll memory review`: goes through new records one by one, each with the message that it comes from.

use std::io::BufRead as _;

use plimsoll_core::memory::score::OPERATOR;
use plimsoll_engine::remember::{Edit, REVIEWED};
use plimsoll_engine::{HistoryStore, MemoryQuery, MemoryRecord, SearchQuery, StoreError, TenantId};

use super::{Desk, list, refused, scope};
use crate::arguments::ReviewArguments;
use crate::error::CommandError;
use crate::output::{self, DIM, RESET};

/// Characters of a message that are shown.
const SHOWN: usize = 300;

/// The decisions of a review.
#[derive(Debug, Default, serde::Serialize)]
struct Reviewed {
    kept: usize,
    edited: usize,
    dropped: usize,
    waiting: usize,
}

pub(super) fn run(arguments: &ReviewArguments) -> Result<(), CommandError> {
    let desk = Desk::open_existing(&arguments.plain)?;
    let records = waiting(&desk, arguments)?;
    let mut done = Reviewed { waiting: records.len(), ..Reviewed::default() };
    let mut answers = std::io::stdin().lock().lines();
    let mut answer = || answers.next().and_then(Result::ok);
    for (number, (record, source)) in records.iter().enumerate() {
        output::progress(&format!(
            "{DIM}{} of {}{RESET}  {}{}",
            number + 1,
            records.len(),
            list::line(record, None),
            source
                .as_deref()
                .map_or_else(String::new, |source| format!("    {DIM}{source}{RESET}\n"))
        ));
        output::note("keep, edit, drop, later or quit? [k/e/d/l/q]");
        let Some(said) = answer() else { break };
        match said.trim() {
            "k" | "keep" => {
                desk.remember(async |remember, now| remember.keep(&record.id, now).await)?;
                done.kept += 1;
            }
            "e" | "edit" => {
                output::note("the new text:");
                let Some(text) = answer().filter(|text| !text.trim().is_empty()) else { break };
                let edit = Edit { text: Some(text), ..Edit::default() };
                desk.remember(async |remember, now| remember.edit(&record.id, &edit, now).await)?;
                done.edited += 1;
            }
            "d" | "drop" => {
                let ids = [record.id.clone()];
                desk.remember(async |remember, _| remember.forget(&ids).await)?;
                done.dropped += 1;
            }
            "q" | "quit" => break,
            _ => continue,
        }
        done.waiting -= 1;
    }
    output::show(arguments.plain.json, &done, || {
        let Reviewed { kept, edited, dropped, waiting } = &done;
        format!("{kept} kept, {edited} edited, {dropped} dropped, {waiting} waiting\n")
    })
}

/// Returns the records that nobody has looked at, the oldest first, each with what its message says.
fn waiting(
    desk: &Desk,
    arguments: &ReviewArguments,
) -> Result<Vec<(MemoryRecord, Option<String>)>, CommandError> {
    let query = MemoryQuery {
        scope: scope(&arguments.scope)?,
        search: SearchQuery { limit: usize::MAX >> 1, ..SearchQuery::default() },
        ..MemoryQuery::default()
    };
    let found = desk.ask(async |history, knowledge, tenant| {
        let hits = knowledge.memories(tenant, &query).await?;
        let mut records: Vec<MemoryRecord> = hits.into_iter().map(|hit| hit.item).collect();
        records.retain(|one| one.origin != OPERATOR && !one.tags.iter().any(|tag| tag == REVIEWED));
        records.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        records.truncate(arguments.limit);
        let mut with_sources = Vec::with_capacity(records.len());
        for record in records {
            let source = source(history, tenant, &record).await?;
            with_sources.push((record, source));
        }
        Ok(with_sources)
    })?;
    found.map_err(|error: StoreError| refused(error.into()))
}

/// Returns what the message of a record says, with its place.
pub(super) async fn source(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    record: &MemoryRecord,
) -> Result<Option<String>, StoreError> {
    let (Some(session), Some(reference)) = (&record.scope.session, &record.source_ref) else {
        return Ok(None);
    };
    let messages = history.messages(tenant, session, 0, usize::MAX >> 1).await?;
    let found = messages.into_iter().find(|one| format!("ref:message:{}", one.hash) == *reference);
    Ok(found.map(|message| {
        format!(
            "message {} of {session}, by {}: {}",
            message.position,
            message.message.role.as_str(),
            output::line(&message.message.shown(), SHOWN)
        )
    }))
}
