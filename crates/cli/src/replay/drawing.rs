//! The picture of a replay as one SVG: a panel for each policy side by side, with one bar a turn.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::context::Receipt;
use plimsoll_core::replay::{Replay, ratio};

use super::Run;
use crate::error::CommandError;
use crate::figures::{compact, dollars, thousands};
use crate::html::escaped;
use crate::load::Loaded;
use crate::output;
use crate::write_file::{Existing, write_file};

/// The size of a panel, its margins, and the space above it for its title (chosen: two fit a page of 1,000 pixels).
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 240.0;
const MARGIN: f64 = 48.0;
const TITLE: f64 = 52.0;
/// Panels in a row.
const ROW: usize = 2;

/// Colours of what is read from the cache, of what is new, of the full history, and of a broken prefix; each differs in
/// brightness, so that a print without colours can be read.
const CACHED: &str = "#9ecae1";
const NEW: &str = "#08519c";
const FULL: &str = "#999999";
const BROKEN: &str = "#cb181d";

/// Writes the picture of the policies to `path`.
pub(super) fn write(
    path: &Path,
    loaded: &Loaded,
    full: &Replay,
    runs: &[Run],
) -> Result<(), CommandError> {
    write_file(path, picture(loaded, full, runs).as_bytes(), Existing::Replace)
}

fn picture(loaded: &Loaded, full: &Replay, runs: &[Run]) -> String {
    let receipts = runs.iter().flat_map(|run| &run.replay.receipts);
    let most = receipts.map(|one| one.full_tokens.max(one.tokens)).max().unwrap_or(1).max(1);
    let (columns, rows) = (runs.len().clamp(1, ROW), runs.len().div_ceil(ROW).max(1));
    let (panel_width, panel_height) = (WIDTH + 2.0 * MARGIN, HEIGHT + TITLE + MARGIN);
    let (width, height) = (columns as f64 * panel_width, rows as f64 * panel_height + MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">\n<title>Tokens sent at each turn, by policy</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for (index, run) in runs.iter().enumerate() {
        let x = (index % ROW) as f64 * panel_width + MARGIN;
        let y = (index / ROW) as f64 * panel_height + TITLE;
        let _ = writeln!(out, "<g transform=\"translate({x} {y})\">");
        title(&mut out, loaded, full, run);
        panel(&mut out, &run.replay.receipts, loaded.terms.around.before, most);
        out.push_str("</g>\n");
    }
    legend(&mut out, height - MARGIN / 2.0);
    out.push_str("</svg>\n");
    out
}

fn title(out: &mut String, loaded: &Loaded, full: &Replay, run: &Run) {
    let totals = &run.replay.totals;
    let cost = loaded.terms.prices.dollars(totals.cost);
    let _ = writeln!(
        out,
        "<text y=\"-28\" font-weight=\"bold\">{}</text><text y=\"-10\" fill=\"#555555\">{} tokens sent, {:.0}% of full; input {}, {:.0}% of full</text>",
        escaped(&output::line(&run.policy, 48)),
        thousands(totals.tokens),
        100.0 * ratio(totals.tokens as f64, totals.full_tokens as f64),
        dollars(cost, 4),
        100.0 * ratio(totals.cost, full.totals.cost),
    );
}

fn panel(out: &mut String, receipts: &[Receipt], before: f64, most: u64) {
    let slot = WIDTH / receipts.len().max(1) as f64;
    let height = |tokens: f64| tokens * HEIGHT / most as f64;
    let (mut cached, mut new, mut ticks) = (String::new(), String::new(), String::new());
    let mut outline = format!("M0 {HEIGHT}");
    for (at, receipt) in receipts.iter().enumerate() {
        let x = at as f64 * slot;
        let bar = |path: &mut String, from: f64, to: f64| {
            if to > from {
                let (y, tall) = (HEIGHT - height(from), height(to - from));
                let _ = write!(path, "M{x:.2} {y:.2}v-{tall:.2}h{:.2}v{tall:.2}z", slot * 0.86);
            }
        };
        let (all, read) = (receipt.tokens as f64, receipt.cached_messages(before));
        bar(&mut cached, 0.0, read.min(all));
        bar(&mut new, read.min(all), all);
        let _ =
            write!(outline, "V{:.2}H{:.2}", HEIGHT - height(receipt.full_tokens as f64), x + slot);
        if receipt.charge.broken {
            let _ = write!(ticks, "M{:.2} {}l4 7h-8z", x + slot * 0.43, HEIGHT + 3.0);
        }
    }
    let _ =
        write!(out, "<path d=\"{cached}\" fill=\"{CACHED}\"/><path d=\"{new}\" fill=\"{NEW}\"/>");
    let _ = write!(
        out,
        "<path d=\"{outline}\" fill=\"none\" stroke=\"{FULL}\"/><path d=\"{ticks}\" fill=\"{BROKEN}\"/>"
    );
    let _ = write!(out, "<path d=\"M0 0V{HEIGHT}H{WIDTH}\" fill=\"none\" stroke=\"#333333\"/>");
    for share in [0_u64, 1, 2] {
        let (tokens, y) = (most * share / 2, HEIGHT - HEIGHT * share as f64 / 2.0 + 4.0);
        let _ =
            write!(out, "<text x=\"-6\" y=\"{y}\" text-anchor=\"end\">{}</text>", compact(tokens));
    }
    if let (Some(first), Some(last)) = (receipts.first(), receipts.last()) {
        let y = HEIGHT + 22.0;
        let _ = writeln!(
            out,
            "<text y=\"{y}\">turn {}</text><text x=\"{WIDTH}\" y=\"{y}\" text-anchor=\"end\">{}</text>",
            first.turn, last.turn
        );
    }
}

fn legend(out: &mut String, y: f64) {
    let entries = [
        (CACHED, "from the cache"),
        (NEW, "sent anew"),
        (FULL, "full history (line)"),
        (BROKEN, "prefix broke"),
    ];
    for (index, (colour, name)) in entries.into_iter().enumerate() {
        let x = MARGIN + index as f64 * 118.0;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"{y}\">{name}</text>",
            y - 10.0,
            x + 15.0
        );
    }
}
