//! Sessions added up by day, project, model or session: one table of reported tokens and their dollars.

use std::path::PathBuf;

use plimsoll_core::bill::{BillTotals, Division, RecordedBill};
use serde::Serialize;

use crate::arguments::InspectArguments;
use crate::bill;
use crate::error::CommandError;
use crate::figures::{aligned_right, dollars, mark, thousands};
use crate::output::{self, BOLD, RESET};
use crate::sessions;

/// The rows and their sum.
#[derive(Debug, Serialize)]
struct TotalsDocument {
    by: &'static str,
    rows: Vec<TotalsRow>,
    total: TotalsRow,
}

#[derive(Debug, Serialize)]
struct TotalsRow {
    name: String,
    requests: u64,
    /// Plain input: neither read from a cache nor written into one.
    input_tokens: u64,
    output_tokens: u64,
    cache_write_tokens: u64,
    cache_read_tokens: u64,
    total_tokens: u64,
    dollars: f64,
    /// Whether some of it is priced as another model.
    is_estimate: bool,
}

impl TotalsRow {
    fn of(name: &str, totals: &BillTotals) -> Self {
        let usage = &totals.usage;
        let written = usage.written_tokens;
        let input = usage.prompt_tokens.saturating_sub(usage.cached_tokens + written);
        Self {
            name: name.to_owned(),
            requests: totals.requests,
            input_tokens: input,
            output_tokens: usage.output_tokens,
            cache_write_tokens: written,
            cache_read_tokens: usage.cached_tokens,
            total_tokens: usage.prompt_tokens + usage.output_tokens,
            dollars: totals.dollars(),
            is_estimate: totals.estimated > 0,
        }
    }
}

/// Prints the totals of the sessions in a folder, else of those in the usual places.
pub(super) fn run(arguments: &InspectArguments, by: Division) -> Result<(), CommandError> {
    let pricing = crate::pricing::pricing(None)?;
    let (home, places) = sessions::places()?;
    let paths: Vec<PathBuf> = arguments.file.iter().cloned().collect();
    let files = sessions::billed(&paths, &places)?;
    let searched = paths.is_empty().then(|| sessions::named(&home, &places));
    let bill = bill::recorded(&files, &pricing, arguments.since, searched.as_deref())?;
    let document = document(&bill, by);
    output::show(arguments.json, &document, || text(&document))
}

fn document(bill: &RecordedBill<'_>, by: Division) -> TotalsDocument {
    let mut accounts = bill.dearest(by);
    if by == Division::Day {
        accounts.sort_by_key(|(name, _)| *name);
    }
    let row = |(name, totals): (&str, &BillTotals)| TotalsRow::of(bill.label(by, name), totals);
    TotalsDocument {
        by: by.as_str(),
        rows: accounts.into_iter().map(row).collect(),
        total: TotalsRow::of("total", &bill.total),
    }
}

fn text(document: &TotalsDocument) -> String {
    let heads =
        [document.by, "requests", "input", "output", "cache write", "cache read", "tokens", "cost"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(document.rows.iter().map(cells));
    rows.push(cells(&document.total));
    let table = aligned_right(&rows);
    let (head, rest) = table.split_once('\n').unwrap_or((&table, ""));
    format!("{BOLD}{head}{RESET}\n{rest}")
}

fn cells(row: &TotalsRow) -> [String; 8] {
    [
        output::ending(&row.name, name_width()),
        thousands(row.requests),
        thousands(row.input_tokens),
        thousands(row.output_tokens),
        thousands(row.cache_write_tokens),
        thousands(row.cache_read_tokens),
        thousands(row.total_tokens),
        format!("{}{}", mark(row.is_estimate), dollars(row.dollars, 2)),
    ]
}

/// Returns the columns of names: what the figures leave of the terminal.
fn name_width() -> usize {
    /// Columns of the figures and their gaps, where the figures are millions (chosen).
    const FIGURES: usize = 76;
    output::width().map_or(40, |width| width.saturating_sub(FIGURES).clamp(18, 80))
}
