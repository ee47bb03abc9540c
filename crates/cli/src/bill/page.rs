//! The bill in a terminal of 80 columns.

use std::fmt::Write as _;

use plimsoll_core::bill::{Division, RecordedBill, Row, Saving, SavingVerdict};
use plimsoll_core::cost::day;

use super::words::{self, dollars, mark};
use crate::figures::{bar, counted, percent, thousands, tokens};
use crate::output::{self, BOLD, DIM, RESET, WARN};

/// Columns of names.
const NAME: usize = 39;
/// Columns of settings.
const SETTING: usize = 31;
/// Cells of a bar.
const CELLS: usize = 18;
/// The least share of the bill, in percent, of a kind of history that is listed (chosen).
const LEAST_KIND: f64 = 0.5;
/// Rows of a table, where all are shown.
const FEW: usize = 5;
/// Rows of the only table.
const MANY: usize = 20;

pub(super) fn page(bill: &RecordedBill<'_>, by: Option<Division>, all: bool) -> String {
    let mut out = String::new();
    head(&mut out, bill);
    went(&mut out, bill);
    saved(&mut out, bill);
    match by {
        Some(by) => table(&mut out, bill, by, if all { usize::MAX } else { MANY }),
        None => {
            for by in Division::ALL {
                // A single row says what the total says.
                if bill.by.get(&by).is_some_and(|accounts| accounts.len() > 1) {
                    table(&mut out, bill, by, if all { usize::MAX } else { FEW });
                }
            }
        }
    }
    notes(&mut out, bill);
    out
}

fn head(out: &mut String, bill: &RecordedBill<'_>) {
    let total = &bill.total;
    let sum = total.dollars();
    let _ = write!(
        out,
        "{BOLD}{}{}{RESET}  {}, {}",
        mark(total),
        dollars(sum, sum),
        counted(bill.sessions() as u64, "session"),
        counted(total.requests, "request"),
    );
    if let (Some(first), Some(last)) = (bill.first, bill.last) {
        let (first, last) = (day(first), day(last));
        let _ = if first == last {
            write!(out, ", {first}")
        } else {
            write!(out, ", {first} to {last}")
        };
    }
    let _ = writeln!(
        out,
        "\n{DIM}{} in, {:.0}% of it from the cache; {} out; list prices of {}{RESET}",
        tokens(total.usage.prompt_tokens as f64),
        100.0 * total.cached_share(),
        tokens(total.usage.output_tokens as f64),
        bill.pricing.date
    );
    if bill.aside.requests > 0 {
        let _ = writeln!(
            out,
            "{DIM}of it {} for {} of sub-agents and abandoned branches{RESET}",
            dollars(bill.aside.dollars(), sum),
            counted(bill.aside.requests, "request")
        );
    }
}

fn went(out: &mut String, bill: &RecordedBill<'_>) {
    let sum = bill.total.dollars();
    let _ = writeln!(out, "\n{BOLD}{:NAME$}{:>12}{:>7}{RESET}", "where it went", "cost", "share");
    for &row in Row::ALL {
        let amount = bill.total.amount(row);
        // A row that would print as zero is left out.
        if words::is_nothing(amount.dollars, sum) {
            continue;
        }
        let _ = writeln!(
            out,
            "{:NAME$}{:>12}{:>6.1}%{}",
            words::row(row),
            dollars(amount.dollars, sum),
            percent(amount.dollars, sum),
            drawn(amount.dollars, sum)
        );
        if row == Row::HistoryRead {
            for (kind, part) in bill.total.history() {
                if percent(part.dollars, sum) >= LEAST_KIND {
                    let label = format!("  of it {}", kind.replace('_', " "));
                    let (cost, share) = (dollars(part.dollars, sum), percent(part.dollars, sum));
                    let _ = writeln!(out, "{DIM}{label:NAME$}{cost:>12}{share:>6.1}%{RESET}");
                }
            }
        }
    }
}

fn saved(out: &mut String, bill: &RecordedBill<'_>) {
    let sum = bill.total.dollars();
    let _ = writeln!(
        out,
        "\n{BOLD}{:SETTING$}{:>10}{:>8}{RESET}  {DIM}range{RESET}",
        "what would have saved some", "likely", "share"
    );
    let mut any = false;
    for setting in Saving::ALL {
        let estimate = bill.savings.of(setting);
        let verdict = estimate.verdict(sum);
        if verdict == SavingVerdict::Nothing {
            continue;
        }
        any = true;
        let said = match verdict {
            SavingVerdict::NotWorthIt | SavingVerdict::WithinError => {
                format!("  {WARN}{}{RESET}", words::verdict(verdict))
            }
            SavingVerdict::Nothing | SavingVerdict::WorthIt => String::new(),
        };
        let share = format!("{:.1}%", percent(estimate.likely, sum)).replace('-', "−");
        let _ = writeln!(
            out,
            "{:SETTING$}{:>10}{share:>8}  {DIM}{} to {}{RESET}{said}",
            words::saving(setting),
            dollars(estimate.likely, sum),
            dollars(estimate.low, sum),
            dollars(estimate.high, sum),
        );
    }
    let _ = if any {
        writeln!(out, "{DIM}estimates, each on what the ones before it left{RESET}")
    } else {
        writeln!(out, "{DIM}nothing that these sessions would show{RESET}")
    };
}

fn table(out: &mut String, bill: &RecordedBill<'_>, by: Division, most: usize) {
    let sum = bill.total.dollars();
    let list = bill.dearest(by);
    if list.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{BOLD}{:NAME$}{:>12}{:>7}{:>10}{:>8}{RESET}",
        format!("by {}", by.as_str()),
        "cost",
        "share",
        "requests",
        "cached"
    );
    for (name, account) in list.iter().take(most) {
        let _ = writeln!(
            out,
            "{:NAME$}{:>12}{:>6.1}%{:>10}{:>7.0}%",
            output::ending(bill.label(by, name), NAME - 1),
            format!("{}{}", mark(account), dollars(account.dollars(), sum)),
            percent(account.dollars(), sum),
            thousands(account.requests),
            100.0 * account.cached_share()
        );
    }
    if let Some(more) = list.len().checked_sub(most).filter(|more| *more > 0) {
        let rest: f64 = list[most..].iter().map(|(_, account)| account.dollars()).sum();
        let _ = writeln!(
            out,
            "{DIM}{:NAME$}{:>12}{:>6.1}%  `--all` lists them{RESET}",
            format!("{more} more"),
            dollars(rest, sum),
            percent(rest, sum)
        );
    }
}

fn notes(out: &mut String, bill: &RecordedBill<'_>) {
    let mut notes = Vec::new();
    let short = &bill.short;
    if short.answers > 0 {
        notes.push(format!(
            "{} longer than their reported output: at least {} more, not counted above",
            if short.answers == 1 {
                "1 answer is".to_owned()
            } else {
                format!("{} answers are", thousands(short.answers))
            },
            dollars(short.dollars, bill.total.dollars())
        ));
    }
    let missed = bill.total.amount(Row::AgainUnknown).dollars;
    let sum = bill.total.dollars();
    // Half of it, and a share of the bill that is worth a look (chosen).
    if bill.missed_after_user > missed / 2.0 && percent(bill.missed_after_user, sum) > 5.0 {
        notes.push(format!(
            "{} went to cache misses right after a user's message: does the system prompt\n  or the list of tools change at each of them, by a date or a list of files?",
            dollars(bill.missed_after_user, sum)
        ));
    }
    if bill.files.without_usage > 0 {
        notes.push(format!(
            "{} no usage and not counted",
            if bill.files.without_usage == 1 {
                "1 session reports".to_owned()
            } else {
                format!("{} sessions report", thousands(bill.files.without_usage as u64))
            },
        ));
    }
    if bill.files.copies > 0 {
        notes.push(format!(
            "{} in more than one file, counted once",
            counted(bill.files.copies, "request")
        ));
    }
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        let _ = writeln!(out, "{WARN}!{RESET} {note}");
    }
    if bill.last.is_some() {
        let _ = writeln!(
            out,
            "\n{DIM}next:{RESET} plimsoll replay FILE shows one session turn by turn"
        );
    }
}

/// Returns a bar behind a figure, if it has any length.
fn drawn(part: f64, whole: f64) -> String {
    let (bar, cells) = bar(part, whole, CELLS);
    if cells == 0 { String::new() } else { format!(" {bar}") }
}
