//! The bill as one page of HTML.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::bill::{Division, RecordedBill, Row, Saving, SavingVerdict};
use plimsoll_core::cost::day;

use super::words::{self, dollars, mark};
use crate::error::CommandError;
use crate::figures::{counted, percent, thousands, tokens};
use crate::html::{self, MARK, TABLE_END, cards, escaped, facts, heads, share_bar};
use crate::output;
use crate::write_file::{Existing, write_file};

/// Rows of a table; the rest is summed.
const LISTED: usize = 50;
/// Days of the chart, the newest.
const DAYS: usize = 90;

/// Writes the page to `path`.
pub(super) fn write(path: &Path, bill: &RecordedBill<'_>) -> Result<(), CommandError> {
    write_file(path, page(bill).as_bytes(), Existing::Replace)
}

fn page(bill: &RecordedBill<'_>) -> String {
    let mut body = String::new();
    head(&mut body, bill);
    days(&mut body, bill);
    went(&mut body, bill);
    saved(&mut body, bill);
    for by in Division::ALL {
        table(&mut body, bill, by);
    }
    html::page("Bill", &body)
}

fn head(out: &mut String, bill: &RecordedBill<'_>) {
    let total = &bill.total;
    let sum = total.dollars();
    let mut about =
        vec![counted(bill.sessions() as u64, "session"), counted(total.requests, "request")];
    about.extend(bill.first.map(|first| format!("from {}", day(first))));
    about.extend(bill.last.map(|last| format!("to {}", day(last))));
    let _ = writeln!(
        out,
        "<header>\n<p class=\"mark\">{MARK} Plimsoll <span>bill</span></p>\n<h1>{}{}</h1>\n<p class=\"facts\">{}</p>\n<p class=\"quiet\">By the usage that the sessions report, at list prices of {}.</p>\n</header>",
        mark(total),
        dollars(sum, sum),
        facts(about),
        escaped(&bill.pricing.date)
    );
    let rows = |is_meant: fn(Row) -> bool| -> String {
        let rows = Row::ALL.iter().copied().filter(|row| is_meant(*row));
        dollars(rows.map(|row| total.amount(row).dollars).sum(), sum)
    };
    out.push_str(&cards([
        (
            rows(|row| matches!(row, Row::SystemRead | Row::HistoryRead | Row::UnseenRead)),
            "read again",
            format!(
                "{:.0}% of {} of prompts came from the cache",
                100.0 * total.cached_share(),
                tokens(total.usage.prompt_tokens as f64)
            ),
        ),
        (
            rows(is_again),
            "sent again",
            "what had been sent before and was not in the cache".to_owned(),
        ),
        (
            rows(|row| matches!(row, Row::Output | Row::Thinking)),
            "output",
            format!("{} tokens", tokens(total.usage.output_tokens as f64)),
        ),
    ]));
}

fn is_again(row: Row) -> bool {
    row.as_str().starts_with("again_")
}

/// One bar a day.
fn days(out: &mut String, bill: &RecordedBill<'_>) {
    let Some(days) = bill.by.get(&Division::Day).filter(|days| days.len() > 1) else { return };
    let days: Vec<_> = days.iter().rev().take(DAYS).collect();
    let most = days.iter().map(|(_, account)| account.dollars()).fold(0.0, f64::max);
    let width = days.len() * 10;
    let _ = writeln!(
        out,
        "<section>\n<h2>By day</h2>\n<figure class=\"chart\"><svg viewBox=\"0 0 {width} 100\" preserveAspectRatio=\"none\" width=\"100%\" height=\"160\" role=\"img\" aria-label=\"Cost of each day\">"
    );
    for (index, (day, account)) in days.iter().rev().enumerate() {
        let height = percent(account.dollars(), most);
        let _ = writeln!(
            out,
            "<rect class=\"fill\" x=\"{}\" y=\"{:.2}\" width=\"8\" height=\"{height:.2}\"><title>{} {}</title></rect>",
            index * 10 + 1,
            100.0 - height,
            escaped(day),
            dollars(account.dollars(), bill.total.dollars())
        );
    }
    out.push_str("</svg></figure>\n</section>\n");
}

fn went(out: &mut String, bill: &RecordedBill<'_>) {
    let sum = bill.total.dollars();
    out.push_str("<section>\n<h2>Where it went</h2>\n");
    let columns = heads(["part", "tokens", "cost"]);
    out.push_str(&html::table("figures", "Where it went", &(columns + SHARE)));
    for &row in Row::ALL {
        let amount = bill.total.amount(row);
        // A row that would print as zero is left out.
        if words::is_nothing(amount.dollars, sum) {
            continue;
        }
        let again = if is_again(row) { "fill over" } else { "fill" };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>{}</tr>",
            words::row(row),
            if row == Row::Cliff { String::new() } else { tokens(amount.tokens) },
            dollars(amount.dollars, sum),
            share(amount.dollars, sum, again)
        );
        for (kind, part) in bill.total.history().into_iter().filter(|_| row == Row::HistoryRead) {
            let _ = writeln!(
                out,
                "<tr class=\"quiet\"><th scope=\"row\">of it {}</th><td>{}</td><td>{}</td>{}</tr>",
                kind.replace('_', " "),
                tokens(part.tokens),
                dollars(part.dollars, sum),
                share(part.dollars, sum, "fill")
            );
        }
    }
    let _ = writeln!(out, "{TABLE_END}</section>");
}

fn saved(out: &mut String, bill: &RecordedBill<'_>) {
    let sum = bill.total.dollars();
    out.push_str("<section>\n<h2>What would have saved some</h2>\n<p class=\"quiet\">Estimates, each on what the ones before it left.</p>\n");
    let columns = heads(["setting", "low", "likely", "high"]) + SHARE + &heads([""]);
    out.push_str(&html::table("figures", "What would have saved some", &columns));
    for setting in Saving::ALL {
        let estimate = bill.savings.of(setting);
        let verdict = estimate.verdict(sum);
        let class = match verdict {
            SavingVerdict::WorthIt => " class=\"good\"",
            SavingVerdict::NotWorthIt => " class=\"bad\"",
            SavingVerdict::Nothing | SavingVerdict::WithinError => "",
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td{class}>{}</td><td>{}</td>{}<td>{}</td></tr>",
            words::saving(setting),
            dollars(estimate.low, sum),
            dollars(estimate.likely, sum),
            dollars(estimate.high, sum),
            share(estimate.likely, sum, "fill"),
            words::verdict(verdict)
        );
    }
    let _ = writeln!(out, "{TABLE_END}</section>");
}

fn table(out: &mut String, bill: &RecordedBill<'_>, by: Division) {
    let sum = bill.total.dollars();
    let list = bill.dearest(by);
    if list.is_empty() {
        return;
    }
    let name = by.as_str();
    let _ = writeln!(out, "<section>\n<h2>By {name}</h2>");
    let columns = heads([name, "requests", "prompts", "cached", "cost"]);
    out.push_str(&html::table("figures", &format!("By {name}"), &(columns + SHARE)));
    for (name, account) in list.iter().take(LISTED) {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{:.0}%</td><td>{}{}</td>{}</tr>",
            escaped(&output::line(bill.label(by, name), 100)),
            thousands(account.requests),
            tokens(account.usage.prompt_tokens as f64),
            100.0 * account.cached_share(),
            mark(account),
            dollars(account.dollars(), sum),
            share(account.dollars(), sum, "fill")
        );
    }
    out.push_str(TABLE_END);
    if list.len() > LISTED {
        let rest: f64 = list[LISTED..].iter().map(|(_, account)| account.dollars()).sum();
        let _ = writeln!(
            out,
            "<p class=\"quiet\">and {} more for {}</p>",
            list.len() - LISTED,
            dollars(rest, sum)
        );
    }
    out.push_str("</section>\n");
}

/// The head over both cells of [`share`].
const SHARE: &str = "<th scope=\"col\" colspan=\"2\">share</th>";

/// Returns two cells: a share as a number and as a bar.
fn share(part: f64, whole: f64, fill: &str) -> String {
    let share = percent(part, whole);
    format!("<td>{share:.1}%</td>{}", share_bar(share, fill))
}
