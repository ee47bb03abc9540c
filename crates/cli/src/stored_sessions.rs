//! `plimsoll sessions`: lists the sessions of a store, newest first.

use std::fmt::Write as _;

use plimsoll_engine::SessionSummary;

use crate::arguments::SessionsArguments;
use crate::clock;
use crate::error::CommandError;
use crate::figures::{aligned, thousands};
use crate::output;
use crate::store::Store;

pub(crate) fn run(arguments: &SessionsArguments) -> Result<(), CommandError> {
    let store = Store::open_existing(&arguments.store, None)?;
    let limit = arguments.limit;
    let mut sessions =
        store.history(async |history, tenant| history.sessions(tenant, usize::MAX >> 1).await)?;
    sessions.sort_by(|a, b| b.last_at.cmp(&a.last_at).then_with(|| a.session.cmp(&b.session)));
    let hidden = sessions.len().saturating_sub(limit);
    sessions.truncate(limit);
    output::show(arguments.json, &sessions, || {
        let row = |session: &SessionSummary| {
            [
                output::plain(session.session.as_str()),
                clock::date(session.last_at),
                format!("{} messages", thousands(u64::from(session.messages))),
                format!("{} tokens", thousands(session.tokens)),
            ]
        };
        let mut out = aligned(&sessions.iter().map(row).collect::<Vec<_>>());
        if hidden > 0 {
            let _ = writeln!(out, "{} older ones; --limit shows them", thousands(hidden as u64));
        }
        out
    })
}
