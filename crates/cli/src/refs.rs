//! `plimsoll ref`: what a ref stands for, from the store.

use std::fmt::Write as _;

use plimsoll_engine::expand::{ExpandOptions, Part, expand, part_of};
use plimsoll_engine::{Artefact, RefQuery};

use crate::arguments::{RefArguments, RefCommand};
use crate::clock;
use crate::error::CommandError;
use crate::output;
use crate::store::Store;

pub(crate) fn run(arguments: &RefArguments) -> Result<(), CommandError> {
    match &arguments.command {
        RefCommand::Get { reference, store, lines, search } => {
            let store = Store::open(store.store.as_deref())?;
            let part = part(lines.as_deref(), search.as_deref())?;
            output::data(&get(&store, reference, part)?)
        }
        RefCommand::List { store, limit } => {
            let store = Store::open(store.store.as_deref())?;
            let query = RefQuery { limit: *limit, ..RefQuery::default() };
            let found = store
                .knowledge(async |knowledge, tenant| knowledge.artefacts(tenant, &query).await)?;
            output::data(&list(&found))
        }
        RefCommand::Gc { store } => {
            let store = Store::open(store.store.as_deref())?;
            let removed = store.knowledge(async |knowledge, tenant| {
                knowledge.collect_artefacts(tenant, clock::now()).await
            })?;
            output::data(&format!("{} refs removed\n", removed.len()))
        }
    }
}

/// Looks a ref up among the messages, and among the artefacts where it is no message's.
fn get(store: &Store, reference: &str, part: Part) -> Result<String, CommandError> {
    let prefix = plimsoll_core::Ref::prefix(reference);
    let message = match prefix
        .filter(|_| reference.starts_with("ref:message:") || !reference.starts_with("ref:"))
    {
        Some(prefix) => store.history(async |history, tenant| {
            match history.message_by_hash(tenant, &prefix).await {
                Ok(record) => Ok(Some(record)),
                Err(plimsoll_engine::StoreError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })?,
        None => None,
    };
    if let Some(record) = message {
        return Ok(ended(part_of(&record.message.shown(), &part).text, &part));
    }
    let now = clock::now();
    let artefact = store
        .knowledge(async |knowledge, tenant| knowledge.artefact(tenant, reference, now).await)?;
    let options = ExpandOptions { part, ..ExpandOptions::default() };
    let found = expand(&artefact, &options, now).map_err(CommandError::usage)?;
    if found.is_stale {
        output::warning("the artefact is older than its time to live");
    }
    Ok(ended(found.text, &options.part))
}

/// Ends a part with a line break; an original is printed as it is, to the byte.
fn ended(text: String, part: &Part) -> String {
    if *part == Part::Whole { text } else { text + "\n" }
}

fn part(lines: Option<&str>, search: Option<&str>) -> Result<Part, CommandError> {
    if let Some(text) = search {
        return Ok(Part::Search { text: text.to_owned(), around: 0, limit: usize::MAX });
    }
    let Some(lines) = lines else { return Ok(Part::Whole) };
    let range = lines.split_once('-').unwrap_or((lines, lines));
    match (range.0.parse(), range.1.parse()) {
        (Ok(first), Ok(last)) if first >= 1 && first <= last => Ok(Part::Lines { first, last }),
        _ => Err(CommandError::usage(anyhow::anyhow!("`{lines}` are no lines"))
            .hint("give FIRST-LAST, counted from 1")),
    }
}

fn list(found: &[Artefact]) -> String {
    let mut out = String::new();
    for artefact in found {
        let _ = writeln!(
            out,
            "{:40} {}",
            artefact.reference.print(),
            output::line(artefact.summary.as_deref().unwrap_or(""), 60)
        );
    }
    if found.is_empty() {
        out.push_str("no artefact is kept\n");
    }
    out
}
