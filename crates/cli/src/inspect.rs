//! `plimsoll inspect`: a session at a glance, or the sessions that there are.

mod glance;
mod list;
mod page;

pub(crate) use glance::session_tokens;

use std::path::Path;

use crate::arguments::{InspectArguments, SessionArguments};
use crate::context_config::recorded_budget;
use crate::error::CommandError;
use crate::load::{load_bytes, read_file};
use crate::output;

pub(crate) fn run(arguments: &InspectArguments) -> Result<(), CommandError> {
    match &arguments.file {
        None => list::usual(arguments.limit.get(), arguments.json),
        Some(path) if path.is_dir() => list::folder(path, arguments.limit.get(), arguments.json),
        Some(path) => session(path, arguments),
    }
}

fn session(path: &Path, arguments: &InspectArguments) -> Result<(), CommandError> {
    let session = SessionArguments {
        file: path.to_owned(),
        tokens: arguments.tokens.clone(),
        pricing: None,
        model: arguments.model.clone(),
        honour_compaction: arguments.honour_compaction,
        verbose: arguments.verbose,
        store: None,
    };
    let loaded = load_bytes(&session, &read_file(path)?)?;
    let budget = recorded_budget(arguments.window, &loaded.session);
    let glance = glance::glance(path, &loaded, &budget);
    if arguments.json {
        return output::json(&glance);
    }
    output::data(&page::page(&glance, &loaded, arguments.verbose))
}
