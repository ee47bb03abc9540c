//! `plimsoll replay --verify-bill`: the model of the cache, held against what providers reported.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::verify::{Quartiles, Verification, VerifyErrors, verify};
use serde::Serialize;

use super::{files, session};
use crate::arguments::ReplayArguments;
use crate::error::CommandError;
use crate::figures::mark;
use crate::output::{self, BOLD, DIM, RESET};

/// One session.
#[derive(Debug, Serialize)]
struct VerifyRow {
    session: String,
    estimate: bool,
    #[serde(flatten)]
    verified: Verification,
    error: VerifyErrors,
}

#[derive(Serialize)]
struct VerifyDocument<'a> {
    sessions: &'a [VerifyRow],
    cached: Option<Quartiles>,
    written: Option<Quartiles>,
    dollars: Option<Quartiles>,
}

pub(super) fn run(arguments: &ReplayArguments) -> Result<(), CommandError> {
    let mut rows = Vec::new();
    for path in files(arguments)? {
        match row(arguments, &path) {
            Ok(row) => rows.extend(row),
            Err(error) if !arguments.files.contains(&path) => output::warning(&error.to_string()),
            Err(error) => return Err(error),
        }
    }
    if rows.is_empty() {
        return Err(CommandError::finding(anyhow::anyhow!("no session reports its usage")));
    }
    let quartiles =
        |of: fn(&VerifyErrors) -> Option<f64>| Quartiles::of(rows.iter().map(|row| of(&row.error)));
    let document = VerifyDocument {
        sessions: &rows,
        cached: quartiles(|error| error.cached),
        written: quartiles(|error| error.written),
        dollars: quartiles(|error| error.dollars),
    };
    output::show(arguments.json, &document, || text(&document))
}

/// Returns `None` for a session that reports no usage.
fn row(arguments: &ReplayArguments, path: &Path) -> Result<Option<VerifyRow>, CommandError> {
    let loaded = session(arguments, path)?;
    let model = loaded.model();
    let verified = verify(
        loaded.counted.stretches(),
        &loaded.counted.overhead,
        &loaded.pricing,
        model,
        |_| (),
    );
    Ok((verified.requests > 0).then(|| VerifyRow {
        session: path.display().to_string(),
        estimate: loaded.estimate,
        error: verified.errors(),
        verified,
    }))
}

fn text(document: &VerifyDocument<'_>) -> String {
    let mut out = format!(
        "tokens in thousands: reported, modelled, and by how much the model is off\n\n{BOLD}{:28} {:>5} {:>8} {:>8} {:>5} {:>7} {:>7} {:>5} {:>6} {:>6} {:>9} {:>9} {:>5}{RESET}\n",
        "session", "turns", "cached", "", "", "written", "", "", "plain", "", "dollars", "", ""
    );
    let percent = |part: Option<f64>| match part {
        Some(part) => format!("{:+.0}%", (100.0 * part).clamp(-9999.0, 9999.0)),
        None => String::new(),
    };
    let thousand = |tokens: f64| format!("{:.0}", tokens / 1000.0);
    for row in document.sessions {
        let Verification { requests, reported, modelled } = &row.verified;
        let about = mark(row.estimate);
        let _ = writeln!(
            out,
            "{:28} {requests:>5} {:>8} {:>8} {:>5} {:>7} {:>7} {:>5} {:>6} {:>6} {:>9} {:>9} {:>5}",
            output::line(row.session.rsplit(['/', '\\']).next().unwrap_or_default(), 28),
            thousand(reported.cached),
            thousand(modelled.cached),
            percent(row.error.cached),
            thousand(reported.written),
            thousand(modelled.written),
            percent(row.error.written),
            thousand(reported.plain),
            thousand(modelled.plain),
            format!("{about}{:.3}", reported.dollars),
            format!("{about}{:.3}", modelled.dollars),
            percent(row.error.dollars),
        );
    }
    out.push('\n');
    for (name, found) in
        [("cached", document.cached), ("written", document.written), ("dollars", document.dollars)]
    {
        if let Some(found) = found {
            let _ = writeln!(
                out,
                "{BOLD}{name:8}{RESET} off by {:.1}% in the median of {} sessions {DIM}(quartiles {:.1}% and {:.1}%){RESET}",
                100.0 * found.median,
                found.sessions,
                100.0 * found.first,
                100.0 * found.third
            );
        }
    }
    out
}
