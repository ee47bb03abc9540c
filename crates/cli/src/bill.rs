//! `plimsoll bill`: where the money of recorded sessions went, and which settings would have saved some.

mod files;
mod gather;
mod html;
mod json;
mod page;
mod words;

use plimsoll_core::safety::{Action, Handling};

use crate::arguments::BillArguments;
use crate::error::CommandError;
use crate::output;
use crate::progress::Progress;

/// Names of models come from files; a secret in one is not printed.
pub(super) const NAMES: Handling = Handling { personal: Action::Ignore, secrets: Action::Redact };

pub(crate) fn run(arguments: &BillArguments) -> Result<(), CommandError> {
    if let Some(path) = &arguments.html {
        crate::write_file::refuse(path, crate::write_file::Existing::Replace)?;
    }
    let pricing = crate::pricing::pricing(arguments.pricing.as_deref())?;
    let found = files::find(&arguments.paths)?;
    let mut progress = Progress::new("reading", found.files.len() as u64);
    let mut gathered = gather::Gathered::new(&pricing, arguments.since);
    for file in &found.files {
        gathered.read(file);
        progress.step();
    }
    drop(progress);
    let bill = gathered.finish();
    for warning in words::warnings(&bill) {
        output::warning(&warning);
    }
    if bill.total.requests == 0 {
        return Err(words::nothing(&bill, &found.places));
    }
    if let Some(path) = &arguments.html {
        html::write(path, &bill)?;
    }
    if arguments.json {
        return output::json(&json::Document::new(&bill));
    }
    output::data(&page::page(&bill, arguments.by, arguments.all))
}
