//! The picture: one bar a turn, drawn by component, in plain SVG.
//!
//! A chart is stretched to the width that it gets, so no text stands in it: figures of a turn are in a list laid over it,
//! which a pointer opens without a script, and in the table below, which everybody else reads.

use std::fmt::Write as _;

use plimsoll_core::context::{Components, Receipt};
use plimsoll_core::replay::Replay;

use super::{Run, percent};
use crate::figures::{compact, dollars, thousands};
use crate::html::escaped;
use crate::load::Loaded;
use crate::output;

/// Units of a chart's width, whatever its width on the page.
const WIDTH: f64 = 1000.0;
/// Height of the bars; the style sheet gives the drawing the same height in pixels.
const HEIGHT: f64 = 220.0;
/// Height of the strip below them, for the ticks.
const STRIP: f64 = 12.0;
/// Up to this many bars have gaps between them; more would be all gap.
const GAPS: usize = 120;

/// Class and name of each component, from the bottom of a bar to its top.
const PARTS: [(&str, &str); 5] = [
    ("system", "system"),
    ("user", "user"),
    ("assistant", "assistant"),
    ("call", "tool calls"),
    ("result", "tool results"),
];

fn parts(components: &Components) -> [u64; 5] {
    [
        components.system,
        components.user,
        components.assistant,
        components.tool_call,
        components.tool_result,
    ]
}

pub(super) fn charts(out: &mut String, loaded: &Loaded, full: &Replay, runs: &[Run]) {
    out.push_str("<section>\n<h2>Turn by turn</h2>\n");
    if full.receipts.is_empty() {
        out.push_str(
            "<p class=\"quiet\">The session has no turn: no model was asked in it.</p>\n</section>\n",
        );
        return;
    }
    legend(out);
    // One scale for all, so that the pictures can be compared.
    let most = runs
        .iter()
        .flat_map(|run| &run.replay.receipts)
        .map(|receipt| receipt.full_tokens.max(receipt.tokens))
        .max()
        .unwrap_or(1)
        .max(1);
    let step = step(most);
    let top = most.div_ceil(step) * step;
    // Rows without a hole: three beside each other where that fills them, else two.
    let class = match runs.len() {
        1 => "charts",
        count if count.is_multiple_of(3) => "charts many three",
        _ => "charts many",
    };
    let _ = writeln!(out, "<div class=\"{class}\">");
    for (index, run) in runs.iter().enumerate() {
        chart(out, loaded, full, run, index, (step, top));
    }
    out.push_str("</div>\n</section>\n");
}

fn legend(out: &mut String) {
    // One definition serves every chart of the page.
    out.push_str("<svg class=\"definitions\" aria-hidden=\"true\" width=\"0\" height=\"0\"><defs><pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><path class=\"hatch\" d=\"M0 0V7\"/></pattern></defs></svg>\n<ul class=\"legend\" aria-label=\"Legend\">");
    for (class, name) in PARTS {
        let _ = write!(
            out,
            "<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><rect class=\"{class}\" width=\"14\" height=\"14\" rx=\"2\"/></svg>{name}</li>"
        );
    }
    out.push_str("<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><rect class=\"result\" width=\"14\" height=\"14\" rx=\"2\"/><rect fill=\"url(#hatch)\" width=\"14\" height=\"14\" rx=\"2\"/></svg>hatched: from the cache</li><li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><path class=\"outline\" d=\"M1 12V3h12v9\"/></svg>full history</li><li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><path class=\"tick\" d=\"M7 2l5 9H2z\"/></svg>prefix broke</li></ul>\n");
}

fn chart(
    out: &mut String,
    loaded: &Loaded,
    full: &Replay,
    run: &Run,
    index: usize,
    (step, top): (u64, u64),
) {
    let (receipts, totals) = (&run.replay.receipts, &run.replay.totals);
    let name = escaped(&output::line(&run.policy, 60));
    let cost = format!(
        "{}, {} of full",
        dollars(loaded.terms.prices.dollars(totals.cost), 2),
        percent(totals.cost, full.totals.cost)
    );
    let _ = write!(
        out,
        "<figure class=\"chart\">\n<figcaption><b>{name}</b> <span>{cost}</span></figcaption>\n<div class=\"plot\">"
    );
    axis(out, step, top);
    let _ = write!(
        out,
        "<div class=\"area\"><svg viewBox=\"0 0 {WIDTH} {}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Tokens sent at each of {} turns under {name}: {} of {} in all, at most {}; the prefix broke {} times; {cost}. The table below has every turn.\">",
        HEIGHT + STRIP,
        receipts.len(),
        thousands(totals.tokens),
        thousands(totals.full_tokens),
        thousands(totals.peak),
        totals.breaks,
    );
    drawing(out, receipts, loaded.terms.around.before, step, top);
    out.push_str("</svg><ol class=\"hits\" aria-hidden=\"true\">");
    for receipt in receipts {
        hit(out, receipt, index);
    }
    out.push_str("</ol>");
    if index == 0 {
        out.push_str("<p class=\"hint\" aria-hidden=\"true\">point at a bar for its figures, click for its changes</p>");
    }
    out.push_str("</div></div>\n");
    ends(out, receipts);
    out.push_str("</figure>\n");
}

/// Draws the bars: one path for each component, so that a page of thousands of turns stays light.
fn drawing(out: &mut String, receipts: &[Receipt], before: f64, step: u64, top: u64) {
    let slot = WIDTH / receipts.len() as f64;
    let gap = if receipts.len() <= GAPS { (slot * 0.16).min(6.0) } else { 0.0 };
    let height = |tokens: f64| tokens * HEIGHT / top as f64;
    for line in 1..=top / step {
        let y = HEIGHT - height((line * step) as f64);
        let _ = write!(out, "<path class=\"grid\" d=\"M0 {y:.1}H{WIDTH}\"/>");
    }
    let mut outline = String::new();
    for (at, receipt) in receipts.iter().enumerate() {
        let (x, y) = (at as f64 * slot, HEIGHT - height(receipt.full_tokens as f64));
        let begin = if at == 0 { format!("M0 {HEIGHT}V{y:.1}") } else { format!("V{y:.1}") };
        let _ = write!(outline, "{begin}H{:.2}", x + slot);
    }
    let _ = write!(outline, "V{HEIGHT}");
    let _ = write!(out, "<path class=\"ghost\" d=\"{outline}z\"/>");
    for (part, (class, _)) in PARTS.iter().enumerate() {
        let mut path = String::new();
        for (at, receipt) in receipts.iter().enumerate() {
            let shares = parts(&receipt.components);
            let below: u64 = shares[..part].iter().sum();
            rectangle(
                &mut path,
                at as f64 * slot + gap / 2.0,
                slot - gap,
                HEIGHT - height(below as f64),
                height(shares[part] as f64),
            );
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"{class} bars\" d=\"{path}\"/>");
        }
    }
    let (mut cached, mut ticks) = (String::new(), String::new());
    for (at, receipt) in receipts.iter().enumerate() {
        let x = at as f64 * slot + gap / 2.0;
        rectangle(&mut cached, x, slot - gap, HEIGHT, height(receipt.cached_messages(before)));
        if receipt.charge.broken {
            let (middle, half) = (x + (slot - gap) / 2.0, ((slot - gap) / 2.0).clamp(1.0, 5.0));
            let _ = write!(
                ticks,
                "M{middle:.2} {:.1}l{half:.2} {h:.1}h-{:.2}z",
                HEIGHT + 2.0,
                2.0 * half,
                h = STRIP - 3.0
            );
        }
    }
    let _ = write!(
        out,
        "<path class=\"cached bars\" fill=\"url(#hatch)\" d=\"{cached}\"/><path class=\"outline\" d=\"{outline}\"/><path class=\"base\" d=\"M0 {HEIGHT}H{WIDTH}\"/>"
    );
    if !ticks.is_empty() {
        let _ = write!(out, "<path class=\"tick\" d=\"{ticks}\"/>");
    }
}

/// Appends a rectangle that stands on `bottom`.
fn rectangle(path: &mut String, x: f64, width: f64, bottom: f64, height: f64) {
    if height > 0.0 {
        let _ = write!(path, "M{x:.2} {bottom:.2}v-{height:.2}h{width:.2}v{height:.2}z");
    }
}

/// Writes what a pointer at the turn's bar sees.
fn hit(out: &mut String, receipt: &Receipt, index: usize) {
    let _ = write!(
        out,
        "<li><a href=\"#p{index}t{turn}\" tabindex=\"-1\"><span>turn {turn}: {} of {}, {} cached",
        thousands(receipt.tokens),
        thousands(receipt.full_tokens),
        thousands(receipt.charge.cached as u64),
        turn = receipt.turn,
    );
    if receipt.charge.broken {
        out.push_str(", prefix broke");
    }
    if receipt.charge.cold {
        out.push_str(", cache was cold");
    }
    if !receipt.changes.is_empty() {
        let count = receipt.changes.len();
        let _ = write!(out, ", {count} {}", plimsoll_core::text::plural(count, "change"));
    }
    out.push_str("</span></a></li>");
}

/// Draws the numbers of the vertical axis, which is never stretched.
fn axis(out: &mut String, step: u64, top: u64) {
    let _ = write!(
        out,
        "<svg class=\"axis\" viewBox=\"0 0 48 {}\" aria-hidden=\"true\">",
        HEIGHT + STRIP
    );
    for line in 0..=top / step {
        let tokens = line * step;
        let y = HEIGHT - tokens as f64 * HEIGHT / top as f64;
        let _ = write!(out, "<text x=\"42\" y=\"{:.1}\">{}</text>", y + 3.5, compact(tokens));
    }
    out.push_str("</svg>");
}

fn ends(out: &mut String, receipts: &[Receipt]) {
    let (Some(first), Some(last)) = (receipts.first(), receipts.last()) else { return };
    let _ = write!(out, "<p class=\"ends\" aria-hidden=\"true\"><span>turn {}</span>", first.turn);
    if receipts.len() > 2 {
        let _ = write!(out, "<span>{}</span>", receipts[receipts.len() / 2].turn);
    }
    if receipts.len() > 1 {
        let _ = write!(out, "<span>{}</span>", last.turn);
    }
    out.push_str("</p>\n");
}

/// Returns the distance of the lines of a grid that has at most five.
fn step(most: u64) -> u64 {
    let mut size = 1;
    loop {
        for step in [size, 2 * size, 5 * size] {
            if most.div_ceil(step) <= 5 {
                return step;
            }
        }
        size *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_have_at_most_five_round_lines() {
        assert_eq!(
            [1, 5, 6, 9_000, 186_759, 1_000_000].map(step),
            [1, 1, 2, 2000, 50_000, 200_000]
        );
    }
}
