//! `plimsoll inspect`: shows one session at a glance, or lists sessions.

mod glance;
mod list;
mod page;
mod totals;

pub(crate) use glance::session_tokens;

use std::path::Path;

use crate::arguments::{InspectArguments, ReadingArguments};
use crate::context_config::recorded_budget;
use crate::error::CommandError;
use crate::load::{compaction, load_bytes, read_file};
use crate::output;

pub(crate) fn run(arguments: &InspectArguments) -> Result<(), CommandError> {
    if let Some(by) = arguments.by {
        return totals::run(arguments, by);
    }
    match &arguments.file {
        None => list::usual(arguments.limit.get(), arguments.json),
        Some(path) if path.is_dir() => list::folder(path, arguments.limit.get(), arguments.json),
        Some(path) => session(path, arguments),
    }
}

fn session(path: &Path, arguments: &InspectArguments) -> Result<(), CommandError> {
    let reading = ReadingArguments {
        tokens: arguments.tokens.clone(),
        model: arguments.model.clone(),
        verbose: arguments.verbose,
        ..ReadingArguments::default()
    };
    let compaction = compaction(arguments.no_compaction);
    let loaded = load_bytes(path, &reading, compaction, &read_file(path)?)?;
    let budget = recorded_budget(arguments.window, &loaded.session);
    let glance = glance::glance(path, &loaded, &budget);
    output::show(arguments.json, &glance, || page::page(&glance, &loaded, arguments.verbose))
}
