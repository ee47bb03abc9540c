//! `plimsoll ref`: reads, lists and removes refs of a store.

use std::fmt::Write as _;

use plimsoll_engine::expand::{ContentPart, ExpandError, ExpandOptions, Originals, expand};
use plimsoll_engine::{Artefact, RefQuery};

use crate::arguments::{RefArguments, RefCommand, RefGetArguments};
use crate::clock;
use crate::error::CommandError;
use crate::output;
use crate::store::{Store, unanswered};

pub(crate) fn run(arguments: &RefArguments) -> Result<(), CommandError> {
    match &arguments.command {
        RefCommand::Get(arguments) => get(arguments),
        RefCommand::List { store, limit, json } => {
            let store = Store::open_existing(store, None)?;
            let query = RefQuery { limit: *limit, ..RefQuery::default() };
            let found = store
                .knowledge(async |knowledge, tenant| knowledge.artefacts(tenant, &query).await)?;
            if *json {
                return output::json(&found.iter().map(listed).collect::<Vec<_>>());
            }
            output::page(&list(&found))
        }
        RefCommand::Gc { store, json } => {
            let store = Store::open_existing(store, None)?;
            let removed = store.knowledge(async |knowledge, tenant| {
                knowledge.collect_artefacts(tenant, clock::now()).await
            })?;
            if *json {
                let refs: Vec<String> =
                    removed.iter().map(plimsoll_engine::ArtefactRef::print).collect();
                return output::json(&refs);
            }
            output::data(&format!("{} refs removed\n", removed.len()))
        }
    }
}

fn get(arguments: &RefGetArguments) -> Result<(), CommandError> {
    let options = options(arguments)?;
    let store = Store::open_existing(&arguments.store, None)?;
    let found = store.with(async |history, knowledge, tenant| {
        let (history, knowledge) = (&*history, Some(&*knowledge));
        let originals = Originals { history, knowledge, tenant, asker: None };
        expand(&originals, &arguments.reference, &options, clock::now()).await
    });
    let found = found.map_err(|error| match error {
        ExpandError::Store(error) => unanswered(error),
        error => CommandError::usage(error),
    })?;
    if arguments.json {
        return output::json(&found);
    }
    if found.is_stale {
        output::warning("the artefact is older than its time to live");
    }
    if !found.missing.is_empty() {
        output::warning(&format!("not there: {}", found.missing.join(", ")));
    }
    // An original is printed as it is, to the byte.
    let is_whole = options == ExpandOptions::default();
    output::data(&if is_whole { found.text } else { found.text + "\n" })
}

fn options(arguments: &RefGetArguments) -> Result<ExpandOptions, CommandError> {
    let part = if let Some(text) = &arguments.search {
        ContentPart::Search { text: text.clone(), around: 0, limit: usize::MAX }
    } else if let Some(lines) = &arguments.lines {
        let range = lines.split_once('-').unwrap_or((lines, lines));
        match (range.0.parse(), range.1.parse()) {
            (Ok(first), Ok(last)) if first >= 1 && first <= last => {
                ContentPart::Lines { first, last }
            }
            _ => {
                return Err(CommandError::usage(anyhow::anyhow!("`{lines}` are no lines"))
                    .hint("give FIRST-LAST, counted from 1"));
            }
        }
    } else if let Some(slice) = &arguments.slice {
        match slice.split_once(':').map(|(offset, limit)| (offset.parse(), limit.parse())) {
            Some((Ok(offset), Ok(limit))) => ContentPart::Slice { offset, limit },
            _ => {
                return Err(CommandError::usage(anyhow::anyhow!("`{slice}` is no slice"))
                    .hint("give OFFSET:LIMIT, counted from 0"));
            }
        }
    } else {
        ContentPart::Whole
    };
    Ok(ExpandOptions { fields: arguments.fields.clone(), part })
}

/// Returns the fields of an artefact that a list shows: all but its content.
fn listed(artefact: &Artefact) -> serde_json::Value {
    serde_json::json!({
        "ref": artefact.reference.print(),
        "summary": artefact.summary,
        "created_at": artefact.created_at,
        "ttl_expires_at": artefact.ttl_expires_at,
        "is_stale": artefact.is_stale(clock::now()),
        "access_count": artefact.access_count,
    })
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
