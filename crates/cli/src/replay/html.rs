//! The page of a replay: self-contained, without a script, and closed to the network by its own policy.

mod chart;
pub(crate) mod text;
mod turns;

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::replay::Replay;
use sha2::{Digest as _, Sha256};

use self::text::{base64, escaped};
use super::Run;
use crate::error::CommandError;
use crate::label::label;
use crate::load::Loaded;
use crate::output::{self, thousands};
use crate::pricing::mark;
use crate::write_file::{Existing, write_file};

pub(crate) const STYLE: &str = include_str!("html/page.css");

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
    // Only this style applies and nothing is fetched, whatever a session's text may hold.
    let hash = base64(&Sha256::digest(STYLE.as_bytes()));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{name} · Plimsoll replay</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    head(&mut out, &name, loaded, full);
    if let [one] = runs {
        cards(&mut out, loaded, full, &one.replay);
    }
    figures(&mut out, loaded, full, runs);
    chart::charts(&mut out, loaded, full, runs);
    for (index, run) in runs.iter().enumerate() {
        missed(&mut out, loaded, run);
        turns::turns(&mut out, loaded, run, index);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn head(out: &mut String, name: &str, loaded: &Loaded, full: &Replay) {
    let session = &loaded.session;
    let _ = write!(
        out,
        "<header>\n<p class=\"mark\">{MARK} Plimsoll <span>replay</span></p>\n<h1>{name}</h1>\n<p class=\"facts\">"
    );
    let mut facts = vec![
        format!("{} session", session.format),
        format!("{} messages", thousands(loaded.messages() as u64)),
        format!("{} turns", thousands(u64::from(full.totals.turns))),
        format!("{} tokens", thousands(loaded.tokens())),
    ];
    facts.extend(session.header.model.as_deref().map(|model| output::line(model, 60)));
    facts.extend(session.header.started.map(crate::clock::date));
    for fact in facts {
        let _ = write!(out, "<span>{}</span> ", escaped(&fact));
    }
    let prices = &loaded.terms.prices;
    let _ = writeln!(
        out,
        "</p>\n<p class=\"quiet\">Counted by {}; prices of {} as of {}: ${} a million input tokens, {} × from the cache, {} × into it, kept {} s.</p>\n</header>",
        escaped(&loaded.transcript.tokenizer().to_string()),
        escaped(&loaded.family),
        escaped(&loaded.pricing.date),
        prices.input,
        prices.cache_read,
        prices.cache_write,
        prices.cache_seconds
    );
}

/// A hull's mark: a circle with its line.
pub(crate) const MARK: &str = "<svg class=\"sign\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"7\"/><path d=\"M1 12h22\"/></svg>";

/// The four figures that matter, for a single policy.
fn cards(out: &mut String, loaded: &Loaded, full: &Replay, replay: &Replay) {
    let dollars = |replay: &Replay| loaded.terms.prices.dollars(replay.totals.cost);
    let cards = [
        (
            percent(replay.totals.cost, full.totals.cost),
            "of the cost",
            format!(
                "{}${:.2} instead of ${:.2}",
                mark(loaded.estimate),
                dollars(replay),
                dollars(full)
            ),
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
                counted(u64::from(replay.score.expansions), "message")
            ),
        ),
        (
            format!("{:.1}%", 100.0 * replay.score.reuse()),
            "of names kept",
            format!("that were needed; {:.1}% of passages", 100.0 * replay.score.run_reuse()),
        ),
    ];
    out.push_str("<ul class=\"cards\">\n");
    for (figure, label, note) in cards {
        let _ = writeln!(
            out,
            "<li><strong>{figure}</strong> <span>{label}</span> <small>{note}</small></li>"
        );
    }
    out.push_str("</ul>\n");
}

/// The table of all policies against the full history.
fn figures(out: &mut String, loaded: &Loaded, full: &Replay, runs: &[Run]) {
    out.push_str(
        "<section>\n<h2>Figures</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Figures of each policy\">\n<table class=\"figures\">\n<thead><tr><th scope=\"col\">policy</th><th scope=\"col\">cost</th><th scope=\"col\" colspan=\"2\">of full</th><th scope=\"col\">tokens sent</th><th scope=\"col\">of full</th><th scope=\"col\">largest</th><th scope=\"col\"><abbr title=\"cost of doing the same work: what was needed and hidden is fetched back; full history = 1\">work</abbr></th><th scope=\"col\"><abbr title=\"names that the next steps copied from earlier messages and that the context still showed\">names</abbr></th><th scope=\"col\"><abbr title=\"the same for runs of eight words\">passages</abbr></th><th scope=\"col\"><abbr title=\"turns at which the cached prefix broke while it was warm\">breaks</abbr></th><th scope=\"col\"><abbr title=\"messages that had to be fetched back\">fetches</abbr></th></tr></thead>\n<tbody>\n",
    );
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
            "<tr><th scope=\"row\">{}</th><td>{}${:.4}</td><td{class}>{:.0}%</td><td class=\"share\"><svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"groove\" width=\"100\" height=\"8\"/><rect class=\"{fill}\" width=\"{:.1}\" height=\"8\"/></svg></td><td>{}</td><td>{}</td><td>{}</td><td>{:.3}</td><td>{:.1}%</td><td>{:.1}%</td><td>{}</td><td>{}</td></tr>",
            escaped(&output::line(name, 60)),
            mark(loaded.estimate),
            loaded.terms.prices.dollars(totals.cost),
            100.0 * share,
            (100.0 * share).min(100.0),
            thousands(totals.tokens),
            percent(totals.tokens as f64, totals.full_tokens as f64),
            thousands(totals.peak),
            ratio(score.work, full.score.work),
            100.0 * score.reuse(),
            100.0 * score.run_reuse(),
            totals.breaks,
            score.expansions,
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n</section>\n");
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
    let _ = write!(
        out,
        "<details{}><summary>{}</summary>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Needed and hidden\">\n<table class=\"list\">\n<thead><tr><th scope=\"col\">turn</th><th scope=\"col\">message</th><th scope=\"col\">tokens</th><th scope=\"col\" class=\"words\">what it is</th><th scope=\"col\" class=\"words\">what was needed</th></tr></thead>\n<tbody>\n",
        if list.len() <= 12 { " open" } else { "" },
        counted(list.len() as u64, "message")
    );
    for missed in list.iter().take(MISSED) {
        let entry = &loaded.transcript_of(missed.turn).entries()[missed.position];
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"words\">{}</td><td class=\"words\">",
            missed.turn,
            missed.position,
            thousands(u64::from(entry.tokens)),
            escaped(&label(loaded, loaded.transcript_of(missed.turn), missed.position, LABEL))
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
        if missed.names.is_empty() && missed.copied.is_empty() {
            out.push_str("just arrived, and not shown whole");
        }
        out.push_str("</td></tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    if list.len() > MISSED {
        let _ = writeln!(out, "<p class=\"quiet\">and {} more</p>", list.len() - MISSED);
    }
    out.push_str("</details>\n</section>\n");
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

fn percent(part: f64, whole: f64) -> String {
    format!("{:.0}%", 100.0 * ratio(part, whole))
}

fn counted(number: u64, noun: &str) -> String {
    format!("{} {}", thousands(number), plimsoll_core::text::plural(number as usize, noun))
}
