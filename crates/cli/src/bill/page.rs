//! The bill in a terminal of 80 columns.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_core::bill::{BillTotals, Row, Saving};

use super::gather::Bill;
use super::words::{self, Verdict, counted, dollars, tokens};
use crate::arguments::By;
use crate::output::{self, BOLD, DIM, GOOD, RESET, WARN};

/// Columns of names.
const NAME: usize = 39;
/// Columns of settings.
const SETTING: usize = 31;
/// Cells of a bar.
const CELLS: f64 = 18.0;
/// The least share of the bill, in percent, of a kind of history that is listed (chosen).
const LEAST_KIND: f64 = 0.5;
/// Rows of a table, where all are shown.
const FEW: usize = 5;
/// Rows of the only table.
const MANY: usize = 20;

pub(super) fn page(bill: &Bill, by: Option<By>, all: bool) -> String {
    let mut out = String::new();
    head(&mut out, bill);
    went(&mut out, bill);
    saved(&mut out, bill);
    match by {
        Some(by) => table(&mut out, bill, by, if all { usize::MAX } else { MANY }),
        None => {
            for by in By::ALL {
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

/// Returns accounts with their names, the most expensive first.
pub(super) fn dearest(accounts: &BTreeMap<String, BillTotals>) -> Vec<(&str, &BillTotals)> {
    let mut list: Vec<(&str, &BillTotals)> =
        accounts.iter().map(|(name, account)| (name.as_str(), account)).collect();
    list.sort_by(|a, b| b.1.dollars().total_cmp(&a.1.dollars()).then(a.0.cmp(b.0)));
    list
}

/// Returns `~` before figures that are partly priced as another model.
pub(super) fn mark(account: &BillTotals) -> &'static str {
    if account.estimated > 0 { "~" } else { "" }
}

fn head(out: &mut String, bill: &Bill) {
    let total = &bill.total;
    let sum = total.dollars();
    let _ = write!(
        out,
        "{BOLD}{}{}{RESET}  {}, {}",
        mark(total),
        dollars(sum, sum),
        counted(bill.by.get(&By::Session).map_or(0, BTreeMap::len) as u64, "session"),
        counted(total.requests, "request"),
    );
    if let (Some(first), Some(last)) = (bill.first, bill.last) {
        let (first, last) = (plimsoll_core::cost::day(first), plimsoll_core::cost::day(last));
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
        bill.pricing_date
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

fn went(out: &mut String, bill: &Bill) {
    let sum = bill.total.dollars();
    let _ = writeln!(out, "\n{BOLD}{:NAME$}{:>12}{:>7}{RESET}", "where it went", "cost", "share");
    for &row in Row::ALL {
        let amount = bill.total.amount(row);
        // What would be printed as nothing is left out.
        if dollars(amount.dollars, sum) == dollars(0.0, sum) {
            continue;
        }
        let _ = writeln!(
            out,
            "{:NAME$}{:>12}{:>6.1}%{}",
            words::row(row),
            dollars(amount.dollars, sum),
            percent(amount.dollars, sum),
            bar(amount.dollars, sum)
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

fn saved(out: &mut String, bill: &Bill) {
    let sum = bill.total.dollars();
    let _ = writeln!(
        out,
        "\n{BOLD}{:SETTING$}{:>10}{:>8}{RESET}  {DIM}range{RESET}",
        "what would have saved some", "likely", "share"
    );
    let mut any = false;
    for setting in Saving::ALL {
        let estimate = bill.savings.of(setting);
        let verdict = Verdict::of(estimate, sum);
        if verdict == Verdict::Nothing {
            continue;
        }
        any = true;
        let said = match verdict {
            Verdict::NotWorthIt | Verdict::WithinError => {
                format!("  {WARN}{}{RESET}", verdict.as_str())
            }
            Verdict::Nothing | Verdict::WorthIt => String::new(),
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

fn table(out: &mut String, bill: &Bill, by: By, most: usize) {
    let sum = bill.total.dollars();
    let Some(accounts) = bill.by.get(&by) else { return };
    let list = dearest(accounts);
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
            ending(bill.name(by, name), NAME - 1),
            format!("{}{}", mark(account), dollars(account.dollars(), sum)),
            percent(account.dollars(), sum),
            output::thousands(account.requests),
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

fn notes(out: &mut String, bill: &Bill) {
    let mut notes = Vec::new();
    let short = &bill.short;
    if short.answers > 0 {
        notes.push(format!(
            "{} longer than their reported output: at least {} more, not counted above",
            if short.answers == 1 {
                "1 answer is".to_owned()
            } else {
                format!("{} answers are", output::thousands(short.answers))
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
                format!("{} sessions report", output::thousands(bill.files.without_usage as u64))
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

/// Returns the end of a long name: of a path, it says the most.
fn ending(name: &str, most: usize) -> String {
    let name = output::plain(name);
    let length = name.chars().count();
    if length <= most {
        return name;
    }
    let end: String = name.chars().skip(length - most + 1).collect();
    format!("…{end}")
}

pub(super) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

fn bar(part: f64, whole: f64) -> String {
    let eighths = (percent(part, whole).clamp(0.0, 100.0) / 100.0 * CELLS * 8.0) as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.extend("▏▎▍▌▋▊▉".chars().nth((eighths % 8).wrapping_sub(1)));
    if bar.is_empty() { bar } else { format!(" {GOOD}{bar}{RESET}") }
}
