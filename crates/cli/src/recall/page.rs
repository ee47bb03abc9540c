//! The page of a recall.

use std::fmt::Write as _;

use plimsoll_core::recall::{Match, ScoreParts};
use plimsoll_engine::{RecallScope, Recollection};

use crate::arguments::RecallArguments;
use crate::figures::thousands;
use crate::output::{self, DIM, RESET};

pub(super) fn page(
    found: &Recollection<'_>,
    scope: &RecallScope,
    arguments: &RecallArguments,
) -> String {
    let mut page = String::new();
    for hit in &found.hits {
        for line in hit.text.trim_end_matches('\n').split('\n') {
            page.push_str(&output::plain(line));
            page.push('\n');
        }
        if arguments.explain {
            let query = arguments.query.as_deref().unwrap_or_default();
            let matches = scope.matches(query, &hit.recalled);
            let _ = writeln!(
                page,
                "{DIM}    {:.2} = {}{}{RESET}",
                hit.recalled.score,
                parts(&hit.recalled.why),
                words(&matches)
            );
        }
    }
    if found.hits.is_empty() {
        let why = match scope.messages() {
            0 => "the store has no such messages",
            _ if found.ranked > 0 => "no message fits into the budget",
            _ => "no message has to do with these words",
        };
        let _ = writeln!(page, "{why}");
    } else if arguments.explain {
        let _ = writeln!(
            page,
            "{DIM}{} messages, {} of {} tokens, {} better ones did not fit{RESET}",
            found.hits.len(),
            thousands(found.tokens),
            thousands(arguments.budget),
            found.passed_over
        );
    }
    page
}

/// Writes the parts of a score that are not zero.
fn parts(why: &ScoreParts) -> String {
    let sums = [
        ("text", why.text),
        ("vector", why.vector),
        ("neighbours", why.neighbours),
        ("passage", why.passage),
        ("date", why.date),
    ];
    let sums: Vec<String> = sums
        .iter()
        .filter(|(_, value)| value.abs() >= 0.005)
        .map(|(name, value)| format!("{name} {value:.2}"))
        .collect();
    let mut text = format!("({})", sums.join(" + "));
    let factors = [
        ("speaker", why.speaker),
        ("question", why.question),
        ("role", why.role),
        ("size", why.size),
    ];
    for (name, factor) in factors {
        if (factor - 1.0).abs() >= 0.005 {
            let _ = write!(text, " × {name} {factor:.2}");
        }
    }
    text
}

fn words(matches: &[Match]) -> String {
    let pairs: Vec<String> = matches
        .iter()
        .map(|found| {
            let said = output::line(&found.said, 40);
            if found.asked == found.said {
                said
            } else {
                format!("{} ~ {said}", output::line(&found.asked, 40))
            }
        })
        .collect();
    if pairs.is_empty() { String::new() } else { format!("  [{}]", pairs.join(", ")) }
}
