//! The picture in the terminal: one bar a turn.
//!
//! Solid is what was sent, coloured by component; hatched is the part of it that came from the cache; dots show the full
//! history; a red tick marks a turn at which the prefix broke.

use std::fmt::Write as _;

use plimsoll_core::context::{Components, Receipt};
use plimsoll_core::replay::Replay;

use crate::figures::thousands;
use crate::load::Loaded;
use crate::output::{self, BAD, BOLD, DIM, RESET};

/// Cells of a bar; with its margins it fits a terminal of 80 columns.
const WIDTH: usize = 56;
/// Bars that are drawn unless all are asked for.
const MOST: usize = 40;

/// Colour and share of each component, in the order in which a bar shows them.
fn parts(components: &Components) -> [(&'static str, u64); 5] {
    [
        ("\x1b[35m", components.system),
        ("\x1b[36m", components.user),
        ("\x1b[34m", components.assistant),
        ("\x1b[33m", components.tool_call),
        ("\x1b[32m", components.tool_result),
    ]
}

pub(crate) fn bars(loaded: &Loaded, replay: &Replay, all: bool) -> String {
    let receipts = &replay.receipts;
    if receipts.is_empty() {
        return String::new();
    }
    let longest = receipts.iter().map(|receipt| receipt.full_tokens).max().unwrap_or(0).max(1);
    let step = if all { 1 } else { receipts.len().div_ceil(MOST).max(1) };
    let mut out = String::from("\n");
    if output::is_coloured() {
        out.push_str("       \x1b[35m█\x1b[0m system  \x1b[36m█\x1b[0m user  \x1b[34m█\x1b[0m assistant  \x1b[33m█\x1b[0m calls  \x1b[32m█\x1b[0m results\n");
    }
    let _ = writeln!(
        out,
        "       █ sent anew  ▒ from the cache  {DIM}·{RESET} full history  {BAD}╳{RESET} prefix broke\n\n{BOLD} turn{:>68}{RESET}",
        "tokens"
    );
    for group in receipts.chunks(step) {
        // The last of a group stands for it; a break in any of them is shown.
        let Some(receipt) = group.last() else { continue };
        let broken = group.iter().any(|one| one.charge.broken);
        bar(&mut out, receipt, loaded.terms.around.before, broken, longest);
    }
    if step > 1 {
        let _ =
            writeln!(out, "{DIM}one bar stands for {step} turns; `--all-turns` draws each{RESET}");
    }
    out
}

fn bar(out: &mut String, receipt: &Receipt, before: f64, broken: bool, longest: u64) {
    let cells = |tokens: u64| ((tokens * WIDTH as u64).div_ceil(longest)) as usize;
    let sent = cells(receipt.tokens);
    let cached =
        ((receipt.cached_messages(before) * WIDTH as f64) / longest as f64).round() as usize;
    let full = cells(receipt.full_tokens);
    let _ = write!(out, "{:>5} ", receipt.turn);
    out.push_str(if broken { "\x1b[31m╳\x1b[0m" } else { " " });
    let mut colour = "";
    let mut boundaries = parts(&receipt.components).into_iter();
    let mut reached = 0;
    let mut current = boundaries.next();
    for cell in 0..sent {
        let at = (cell as u64 * receipt.tokens) / sent.max(1) as u64;
        while let Some((_, share)) = current {
            if at < reached + share {
                break;
            }
            reached += share;
            current = boundaries.next();
        }
        if let Some((wanted, _)) = current
            && wanted != colour
        {
            out.push_str(wanted);
            colour = wanted;
        }
        out.push(if cell < cached { '▒' } else { '█' });
    }
    out.push_str(RESET);
    out.push_str(DIM);
    for _ in sent..full.max(sent) {
        out.push('·');
    }
    out.push_str(RESET);
    for _ in full.max(sent)..WIDTH {
        out.push(' ');
    }
    let _ = writeln!(out, " {:>9}", thousands(receipt.tokens));
}
