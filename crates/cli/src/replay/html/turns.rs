//! Every turn of a policy in a table: the text that stands for the picture, and the list of what changed.

use std::fmt::Write as _;

use plimsoll_core::context::Receipt;

use super::{LABEL, Run};
use crate::figures::{counted, dollars, thousands};
use crate::html::{self, TABLE_END, escaped, heads};
use crate::load::Loaded;
use crate::output;

/// Changes of a turn that are listed at once; more are folded away.
const AT_ONCE: usize = 4;

pub(super) fn turns(out: &mut String, loaded: &Loaded, run: &Run, index: usize) {
    let replay = &run.replay;
    if replay.receipts.is_empty() {
        return;
    }
    let columns = heads([
        "turn",
        "sent",
        "of full",
        "from cache",
        "cost",
        "system",
        "user",
        "assistant",
        "calls",
        "results",
    ]) + "<th scope=\"col\" class=\"words\">what changed</th>";
    let _ = write!(
        out,
        "<section>\n<h2>Turns under {}</h2>\n<details{}><summary>{}, {} of state</summary>\n{}",
        escaped(&output::line(&run.policy, 60)),
        if replay.receipts.len() <= 30 { " open" } else { "" },
        counted(replay.receipts.len() as u64, "turn"),
        counted(u64::from(replay.totals.changes), "change"),
        html::table("list turns-table", "Every turn", &columns)
    );
    for receipt in &replay.receipts {
        row(out, loaded, receipt, index);
    }
    let _ = writeln!(out, "{TABLE_END}</details>\n</section>");
}

fn row(out: &mut String, loaded: &Loaded, receipt: &Receipt, index: usize) {
    let parts = &receipt.components;
    let _ = write!(
        out,
        "<tr id=\"p{index}t{}\"><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"words\">",
        receipt.turn,
        receipt.turn,
        thousands(receipt.tokens),
        thousands(receipt.full_tokens),
        thousands(receipt.charge.cached as u64),
        dollars(loaded.terms.prices.dollars(receipt.cost), 4),
        thousands(parts.system),
        thousands(parts.user),
        thousands(parts.assistant),
        thousands(parts.tool_call),
        thousands(parts.tool_result),
    );
    if receipt.charge.broken {
        out.push_str("<b class=\"bad\">prefix broke</b> ");
    }
    if receipt.charge.cold {
        out.push_str("<b class=\"cold\">cache was cold</b> ");
    }
    if receipt.over_budget > 0 {
        let _ =
            write!(out, "<b class=\"bad\">over budget by {}</b> ", thousands(receipt.over_budget));
    }
    let folded = receipt.changes.len() > AT_ONCE;
    if folded {
        let _ = write!(out, "<details><summary>{} changes</summary>", receipt.changes.len());
    }
    if !receipt.changes.is_empty() {
        out.push_str("<ul>");
        for change in &receipt.changes {
            let _ = write!(
                out,
                "<li><b>{}</b> {} <code>{}</code> {} → {} <i>{}</i></li>",
                change.treatment.as_str(),
                change.position,
                escaped(&loaded.label(
                    loaded.counted.transcript_of(receipt.turn),
                    change.position,
                    LABEL
                )),
                thousands(u64::from(change.tokens_before)),
                thousands(u64::from(change.tokens_after)),
                escaped(&change.reason.to_string()),
            );
        }
        out.push_str("</ul>");
    }
    if folded {
        out.push_str("</details>");
    }
    out.push_str("</td></tr>\n");
}
