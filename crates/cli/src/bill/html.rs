//! The bill as one page: self-contained, without a script, and closed to the network by its own policy.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::bill::{Row, Saving};
use sha2::{Digest as _, Sha256};

use super::gather::Bill;
use super::page::{dearest, mark, percent};
use super::words::{self, Verdict, counted, dollars, tokens};
use crate::arguments::By;
use crate::error::CommandError;
use crate::output;
use crate::replay::html::text::{base64, escaped};
use crate::replay::html::{MARK, STYLE};
use crate::write_file::{Existing, write_file};

/// Rows of a table; the rest is summed.
const LISTED: usize = 50;
/// Days of the chart, the newest.
const DAYS: usize = 90;

/// Writes the page to `path`.
pub(super) fn write(path: &Path, bill: &Bill) -> Result<(), CommandError> {
    write_file(path, page(bill).as_bytes(), Existing::Replace)
}

fn page(bill: &Bill) -> String {
    // Only this style applies and nothing is fetched, whatever the names in sessions may hold.
    let hash = base64(&Sha256::digest(STYLE.as_bytes()));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>Bill · Plimsoll</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    head(&mut out, bill);
    days(&mut out, bill);
    went(&mut out, bill);
    saved(&mut out, bill);
    for by in By::ALL {
        table(&mut out, bill, by);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn head(out: &mut String, bill: &Bill) {
    let total = &bill.total;
    let sum = total.dollars();
    let _ = write!(
        out,
        "<header>\n<p class=\"mark\">{MARK} Plimsoll <span>bill</span></p>\n<h1>{}{}</h1>\n<p class=\"facts\">",
        mark(total),
        dollars(sum, sum)
    );
    let sessions = bill.by.get(&By::Session).map_or(0, std::collections::BTreeMap::len);
    let mut facts = vec![counted(sessions as u64, "session"), counted(total.requests, "request")];
    facts.extend(bill.first.map(|first| format!("from {}", plimsoll_core::cost::day(first))));
    facts.extend(bill.last.map(|last| format!("to {}", plimsoll_core::cost::day(last))));
    for fact in facts {
        let _ = write!(out, "<span>{}</span> ", escaped(&fact));
    }
    let _ = writeln!(
        out,
        "</p>\n<p class=\"quiet\">By the usage that the sessions report, at list prices of {}.</p>\n</header>",
        escaped(&bill.pricing_date)
    );
    let output = total.amount(Row::Output).dollars + total.amount(Row::Thinking).dollars;
    let again: f64 = Row::ALL
        .iter()
        .copied()
        .filter(|row| row.as_str().starts_with("again_"))
        .map(|row| total.amount(row).dollars)
        .sum();
    let read = [Row::SystemRead, Row::HistoryRead, Row::UnseenRead];
    let read: f64 = read.into_iter().map(|row| total.amount(row).dollars).sum();
    let card = |label: &str, amount: f64, note: String| {
        format!(
            "<li><strong>{}</strong> <span>{label}</span> <small>{note}</small></li>\n",
            dollars(amount, sum)
        )
    };
    out.push_str("<ul class=\"cards\">\n");
    out.push_str(&card(
        "read again",
        read,
        format!(
            "{:.0}% of {} of prompts came from the cache",
            100.0 * total.cached_share(),
            tokens(total.usage.prompt_tokens as f64)
        ),
    ));
    out.push_str(&card(
        "sent again",
        again,
        "what had been sent before and was not in the cache".to_owned(),
    ));
    out.push_str(&card(
        "output",
        output,
        format!("{} tokens", tokens(total.usage.output_tokens as f64)),
    ));
    out.push_str("</ul>\n");
}

/// One bar a day.
fn days(out: &mut String, bill: &Bill) {
    let Some(days) = bill.by.get(&By::Day).filter(|days| days.len() > 1) else { return };
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

fn went(out: &mut String, bill: &Bill) {
    let sum = bill.total.dollars();
    out.push_str("<section>\n<h2>Where it went</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Where it went\">\n<table class=\"figures\">\n<thead><tr><th scope=\"col\">part</th><th scope=\"col\">tokens</th><th scope=\"col\">cost</th><th scope=\"col\" colspan=\"2\">share</th></tr></thead>\n<tbody>\n");
    for &row in Row::ALL {
        let amount = bill.total.amount(row);
        // What would be printed as nothing is left out.
        if dollars(amount.dollars, sum) == dollars(0.0, sum) {
            continue;
        }
        let again = if row.as_str().starts_with("again_") { "fill over" } else { "fill" };
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
    out.push_str("</tbody>\n</table>\n</div>\n</section>\n");
}

fn saved(out: &mut String, bill: &Bill) {
    let sum = bill.total.dollars();
    out.push_str("<section>\n<h2>What would have saved some</h2>\n<p class=\"quiet\">Estimates, each on what the ones before it left.</p>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"What would have saved some\">\n<table class=\"figures\">\n<thead><tr><th scope=\"col\">setting</th><th scope=\"col\">low</th><th scope=\"col\">likely</th><th scope=\"col\">high</th><th scope=\"col\" colspan=\"2\">share</th><th scope=\"col\"></th></tr></thead>\n<tbody>\n");
    for setting in Saving::ALL {
        let estimate = bill.savings.of(setting);
        let verdict = Verdict::of(estimate, sum);
        let class = match verdict {
            Verdict::WorthIt => " class=\"good\"",
            Verdict::NotWorthIt => " class=\"bad\"",
            Verdict::Nothing | Verdict::WithinError => "",
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td{class}>{}</td><td>{}</td>{}<td>{}</td></tr>",
            words::saving(setting),
            dollars(estimate.low, sum),
            dollars(estimate.likely, sum),
            dollars(estimate.high, sum),
            share(estimate.likely, sum, "fill"),
            verdict.as_str()
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n</section>\n");
}

fn table(out: &mut String, bill: &Bill, by: By) {
    let Some(accounts) = bill.by.get(&by) else { return };
    let sum = bill.total.dollars();
    let list = dearest(accounts);
    let _ = writeln!(
        out,
        "<section>\n<h2>By {0}</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"By {0}\">\n<table class=\"figures\">\n<thead><tr><th scope=\"col\">{0}</th><th scope=\"col\">requests</th><th scope=\"col\">prompts</th><th scope=\"col\">cached</th><th scope=\"col\">cost</th><th scope=\"col\" colspan=\"2\">share</th></tr></thead>\n<tbody>",
        by.as_str()
    );
    for (name, account) in list.iter().take(LISTED) {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{:.0}%</td><td>{}{}</td>{}</tr>",
            escaped(&output::line(bill.name(by, name), 100)),
            output::thousands(account.requests),
            tokens(account.usage.prompt_tokens as f64),
            100.0 * account.cached_share(),
            mark(account),
            dollars(account.dollars(), sum),
            share(account.dollars(), sum, "fill")
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
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

/// Two cells: a share as a number and as a bar.
fn share(part: f64, whole: f64, fill: &str) -> String {
    let share = percent(part, whole);
    format!(
        "<td>{share:.1}%</td><td class=\"share\"><svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"groove\" width=\"100\" height=\"8\"/><rect class=\"{fill}\" width=\"{:.1}\" height=\"8\"/></svg></td>",
        share.clamp(0.0, 100.0)
    )
}
