//! The page of a replay: self-contained, without a script, and closed to the network by its own policy.

mod chart;
mod turns;

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::replay::{Replay, ratio};

use super::Run;
use crate::error::CommandError;
use crate::figures::{cost, counted, dollars, mark, thousands};
use crate::html::{self, MARK, TABLE_END, escaped, heads, share_bar};
use crate::load::Loaded;
use crate::output;
use crate::write_file::{Existing, write_file};

/// Characters that tell which message is meant.
const LABEL: usize = 80;

/// Missed messages that a policy lists; the rest is counted.
const MISSED: usize = 500;

/// Writes the page to `path`; `file` is the session's.
pub(super) fn write(
    path: &Path,
    file: &Path,
    loaded: &Loaded,
    full: &Replay,
    runs: &[Run],
) -> Result<(), CommandError> {
    write_file(path, page(file, loaded, full, runs).as_bytes(), Existing::Replace)
}

fn page(file: &Path, loaded: &Loaded, full: &Replay, runs: &[Run]) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let name = escaped(&output::line(&name, 120));
    let mut body = String::new();
    head(&mut body, &name, loaded, full);
    if let [one] = runs {
        cards(&mut body, loaded, full, &one.replay);
    }
    figures(&mut body, loaded, full, runs);
    chart::charts(&mut body, loaded, full, runs);
    for (index, run) in runs.iter().enumerate() {
        missed(&mut body, loaded, run);
        turns::turns(&mut body, loaded, run, index);
    }
    html::page(&format!("{name} · replay"), &body)
}

fn head(out: &mut String, name: &str, loaded: &Loaded, full: &Replay) {
    let session = &loaded.session;
    let mut facts = vec![
        format!("{} session", session.format),
        format!("{} messages", thousands(loaded.counted.messages() as u64)),
        format!("{} turns", thousands(u64::from(full.totals.turns))),
        format!("{} tokens", thousands(loaded.counted.tokens())),
    ];
    facts.extend(session.header.model.as_deref().map(|model| output::line(model, 60)));
    facts.extend(session.header.started.map(crate::clock::date));
    let prices = &loaded.terms.prices;
    let _ = writeln!(
        out,
        "<header>\n<p class=\"mark\">{MARK} Plimsoll <span>replay</span></p>\n<h1>{name}</h1>\n<p class=\"facts\">{}</p>\n<p class=\"quiet\">Counted by {}; prices of {} as of {}: ${} a million input tokens, {} × from the cache, {} × into it, kept {} s.</p>\n</header>",
        html::facts(facts),
        escaped(&loaded.counted.transcript.tokenizer().to_string()),
        escaped(&loaded.family),
        escaped(&loaded.pricing.date),
        prices.input,
        prices.cache_read,
        prices.cache_write,
        prices.cache_seconds
    );
}

/// The four figures that matter, for a single policy.
fn cards(out: &mut String, loaded: &Loaded, full: &Replay, replay: &Replay) {
    let cost = |replay: &Replay| dollars(loaded.terms.prices.dollars(replay.totals.cost), 2);
    let cards = [
        (
            percent(replay.totals.cost, full.totals.cost),
            "of the cost",
            format!("{}{} instead of {}", mark(loaded.estimate), cost(replay), cost(full)),
        ),
        (
            percent(replay.totals.tokens as f64, replay.totals.full_tokens as f64),
            "of the tokens",
            format!("at most {} in one request", thousands(replay.totals.peak)),
        ),
        (
            percent(replay.score.work, full.score.work),
            "of the work",
            format!(
                "the cost with {} fetched back",
                counted(u64::from(replay.score.fetches), "message")
            ),
        ),
        (
            format!("{:.1}%", 100.0 * replay.score.names.share()),
            "of names shown",
            format!(
                "that were needed; {:.1}% of lines around edits",
                100.0 * replay.score.places.share()
            ),
        ),
    ];
    out.push_str(&html::cards(cards));
}

/// The table of all policies against the full history.
fn figures(out: &mut String, loaded: &Loaded, full: &Replay, runs: &[Run]) {
    out.push_str("<section>\n<h2>Figures</h2>\n");
    let columns = "<th scope=\"col\">policy</th><th scope=\"col\">cost</th><th scope=\"col\" colspan=\"2\">of full</th><th scope=\"col\">tokens sent</th><th scope=\"col\">of full</th><th scope=\"col\">largest</th><th scope=\"col\"><abbr title=\"cost of doing the same work: what was needed and hidden is fetched back; full history = 1\">work</abbr></th><th scope=\"col\"><abbr title=\"names that the next steps copied from earlier messages and that the context showed in a line of an original\">names</abbr></th><th scope=\"col\"><abbr title=\"the same for runs of eight words\">passages</abbr></th><th scope=\"col\"><abbr title=\"the same for the lines around a text that an edit replaces\">places</abbr></th><th scope=\"col\"><abbr title=\"turns at which something was needed and hidden\">blind</abbr></th><th scope=\"col\"><abbr title=\"turns at which the cached prefix broke while it was warm\">breaks</abbr></th><th scope=\"col\"><abbr title=\"messages that had to be fetched back\">fetches</abbr></th>";
    out.push_str(&html::table("figures", "Figures of each policy", columns));
    let rows = std::iter::once(("full history", full)).chain(
        runs.iter().filter(|run| run.policy != "full").map(|run| (&*run.policy, &run.replay)),
    );
    for (name, replay) in rows {
        let (totals, score) = (&replay.totals, &replay.score);
        let share = ratio(totals.cost, full.totals.cost);
        let fill = if share > 1.005 { "fill over" } else { "fill" };
        let class = if share < 0.995 {
            " class=\"good\""
        } else if share > 1.005 {
            " class=\"bad\""
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td{class}>{:.0}%</td>{}<td>{}</td><td>{}</td><td>{}</td><td>{:.3}</td><td>{:.1}%</td><td>{:.1}%</td><td>{:.1}%</td><td>{:.1}%</td><td>{}</td><td>{}</td></tr>",
            escaped(&output::line(name, 60)),
            cost(loaded.terms.prices.dollars(totals.cost), loaded.estimate),
            100.0 * share,
            share_bar(100.0 * share, fill),
            thousands(totals.tokens),
            percent(totals.tokens as f64, totals.full_tokens as f64),
            thousands(totals.peak),
            ratio(score.work, full.score.work),
            100.0 * score.names.share(),
            100.0 * score.passages.share(),
            100.0 * score.places.share(),
            100.0 * score.blind_share(),
            totals.breaks,
            score.fetches,
        );
    }
    let _ = writeln!(out, "{TABLE_END}</section>");
}

fn missed(out: &mut String, loaded: &Loaded, run: &Run) {
    let list = &run.replay.missed;
    let _ = writeln!(
        out,
        "<section>\n<h2>Needed and hidden under {}</h2>",
        escaped(&output::line(&run.policy, 60))
    );
    if list.is_empty() {
        out.push_str("<p class=\"quiet\">Nothing: each step had before it all that it copied.</p>\n</section>\n");
        return;
    }
    let columns = heads(["turn", "message", "tokens"])
        + "<th scope=\"col\" class=\"words\">what it is</th><th scope=\"col\" class=\"words\">what was needed</th>";
    let _ = write!(
        out,
        "<details{}><summary>{}</summary>\n{}",
        if list.len() <= 12 { " open" } else { "" },
        counted(list.len() as u64, "message"),
        html::table("list", "Needed and hidden", &columns)
    );
    for missed in list.iter().take(MISSED) {
        let entry = &loaded.counted.transcript_of(missed.turn).entries()[missed.position];
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"words\">{}</td><td class=\"words\">",
            missed.turn,
            missed.position,
            thousands(u64::from(entry.tokens)),
            escaped(&loaded.label(
                loaded.counted.transcript_of(missed.turn),
                missed.position,
                LABEL
            ))
        );
        for name in missed.names.iter().take(12) {
            let _ = write!(out, "<code>{}</code> ", escaped(&output::line(name, 80)));
        }
        if missed.names.len() > 12 {
            let _ = write!(out, "and {} more names ", missed.names.len() - 12);
        }
        for words in missed.copied.iter().take(4) {
            let _ = write!(out, "<q>{}</q> ", escaped(&output::line(words, 160)));
        }
        if missed.copied.len() > 4 {
            let _ = write!(out, "and {} more passages", missed.copied.len() - 4);
        }
        if !missed.places.is_empty() {
            let lines = counted(missed.places.len() as u64, "line");
            let first = escaped(&output::line(&missed.places[0], 80));
            let _ = write!(out, "{lines} around an edit: <q>{first}</q> ");
        }
        if missed.first {
            out.push_str("just arrived, and not shown whole");
        }
        out.push_str("</td></tr>\n");
    }
    out.push_str(TABLE_END);
    if list.len() > MISSED {
        let _ = writeln!(out, "<p class=\"quiet\">and {} more</p>", list.len() - MISSED);
    }
    out.push_str("</details>\n</section>\n");
}

fn percent(part: f64, whole: f64) -> String {
    format!("{:.0}%", 100.0 * ratio(part, whole))
}
