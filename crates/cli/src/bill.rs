//! `plimsoll bill`: where the money of recorded sessions went, and which settings would have saved some.

mod html;
mod json;
mod page;
mod words;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::bill::{BilledSession, RecordedBill};
use plimsoll_core::cost::Pricing;
use plimsoll_formats::{ReadOptions, Session};

use crate::arguments::BillArguments;
use crate::error::CommandError;
use crate::output;
use crate::progress::Progress;
use crate::sessions;

/// A longer file is not read: it would take its size several times in memory (chosen: far above any recorded).
const LARGEST: u64 = 256 << 20;

pub(crate) fn run(arguments: &BillArguments) -> Result<(), CommandError> {
    if let Some(path) = &arguments.html {
        crate::write_file::refuse(path, crate::write_file::Existing::Replace)?;
    }
    let pricing = crate::pricing::pricing(arguments.pricing.as_deref())?;
    let (home, places) = sessions::places()?;
    let files = sessions::billed(&arguments.paths, &places)?;
    let searched = arguments.paths.is_empty().then(|| sessions::named(&home, &places));
    let bill = recorded(&files, &pricing, arguments.since, searched.as_deref())?;
    if let Some(path) = &arguments.html {
        html::write(path, &bill)?;
    }
    output::show(arguments.json, &json::BillDocument::new(&bill), || {
        page::page(&bill, arguments.by, arguments.all)
    })
}

/// Adds up the requests of recorded sessions. Errors: none of them reports a usage.
pub(crate) fn recorded<'a>(
    files: &[PathBuf],
    pricing: &'a Pricing,
    since: Option<MillisSinceEpoch>,
    searched: Option<&str>,
) -> Result<RecordedBill<'a>, CommandError> {
    let mut progress = Progress::new("reading", files.len() as u64);
    let mut bill = RecordedBill::new(pricing, since);
    for file in files {
        match read(file) {
            Ok(session) => add(&mut bill, file, &session),
            Err(why) => bill.add_unreadable(|| format!("{}: {why}", file.display())),
        }
        progress.step();
    }
    drop(progress);
    for warning in words::warnings(&bill) {
        output::warning(&warning);
    }
    if bill.total.requests == 0 {
        return Err(words::nothing(&bill, searched));
    }
    Ok(bill)
}

fn read(path: &Path) -> anyhow::Result<Session> {
    let bytes = path.metadata()?.len();
    anyhow::ensure!(bytes <= LARGEST, "it is larger than {} MiB", LARGEST >> 20);
    Ok(plimsoll_formats::read(&std::fs::read(path)?, &ReadOptions::default())?)
}

fn add(bill: &mut RecordedBill<'_>, path: &Path, session: &Session) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let calls = session.messages.iter().flat_map(|message| message.calls());
    let header = &session.header;
    bill.add(&BilledSession {
        client: session.format.as_str(),
        id: header.id.as_deref().unwrap_or(&name),
        folder: header.working_directory.as_deref(),
        started: header.started,
        model: header.model.as_deref(),
        requests: &session.requests,
        tools_used: calls.map(|call| &*call.name).collect::<HashSet<_>>().len(),
    });
}
