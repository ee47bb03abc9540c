//! `plimsoll replay --verify-bill`: the model of the cache, held against what providers reported.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::verify::{Sums, Verification, verify};
use serde::Serialize;

use super::{files, session};
use crate::arguments::ReplayArguments;
use crate::error::CommandError;
use crate::output::{self, BOLD, DIM, RESET};
use crate::pricing::mark;

/// One session.
#[derive(Debug, Serialize)]
struct Row {
    session: String,
    estimate: bool,
    #[serde(flatten)]
    verified: Verification,
    error: Errors,
}

/// What the model is off by, as a part of what was reported.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Errors {
    cached: Option<f64>,
    written: Option<f64>,
    plain: Option<f64>,
    dollars: Option<f64>,
}

impl Errors {
    fn of(verified: &Verification) -> Self {
        let part = |of: fn(&Sums) -> f64| {
            let (reported, modelled) = (of(&verified.reported), of(&verified.modelled));
            (reported > 0.0).then(|| (modelled - reported) / reported)
        };
        Self {
            cached: part(|sums| sums.cached),
            written: part(|sums| sums.written),
            plain: part(|sums| sums.plain),
            dollars: part(|sums| sums.dollars),
        }
    }
}

/// Half of the sessions are off by no more than `median`, a quarter by no more than `first`, three by no more than `third`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Quartiles {
    sessions: usize,
    first: f64,
    median: f64,
    third: f64,
}

impl Quartiles {
    fn of(errors: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let mut sizes: Vec<f64> = errors.flatten().map(f64::abs).collect();
        sizes.sort_by(f64::total_cmp);
        let most = sizes.len().checked_sub(1)?;
        // Between two sessions, the line between them.
        let at = |part: f64| {
            let place = part * most as f64;
            let (below, above) = (sizes[place as usize], sizes[(place.ceil() as usize).min(most)]);
            below + (above - below) * place.fract()
        };
        Some(Self { sessions: sizes.len(), first: at(0.25), median: at(0.5), third: at(0.75) })
    }
}

#[derive(Serialize)]
struct Document<'a> {
    sessions: &'a [Row],
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
        |of: fn(&Errors) -> Option<f64>| Quartiles::of(rows.iter().map(|row| of(&row.error)));
    let document = Document {
        sessions: &rows,
        cached: quartiles(|error| error.cached),
        written: quartiles(|error| error.written),
        dollars: quartiles(|error| error.dollars),
    };
    if arguments.json { output::json(&document) } else { output::data(&text(&document)) }
}

/// Returns `None` for a session that reports no usage.
fn row(arguments: &ReplayArguments, path: &Path) -> Result<Option<Row>, CommandError> {
    let loaded = session(arguments, path)?;
    let model = loaded.model();
    let verified = verify(loaded.stretches(), &loaded.unshown, &loaded.pricing, model, |_| ());
    Ok((verified.requests > 0).then(|| Row {
        session: path.display().to_string(),
        estimate: loaded.estimate,
        error: Errors::of(&verified),
        verified,
    }))
}

fn text(document: &Document<'_>) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_those_of_sizes() {
        let errors = [Some(-0.4), None, Some(0.1), Some(0.2), Some(-0.3), Some(0.0)];
        let found = Quartiles::of(errors.into_iter()).expect("five");
        assert_eq!((found.sessions, found.first, found.median, found.third), (5, 0.1, 0.2, 0.3));
        assert_eq!(Quartiles::of([None].into_iter()), None);
    }
}
