//! `plimsoll memory stats`.

use std::fmt::Write as _;

use plimsoll_engine::memory_stats::{MemoryStats, memory_stats};

use super::{Desk, refused};
use crate::arguments::PlainArguments;
use crate::clock;
use crate::error::CommandError;
use crate::figures::thousands;
use crate::output::{self, DIM, RESET};

/// Days of growth that are printed.
const DAYS: usize = 7;

pub(super) fn run(arguments: &PlainArguments) -> Result<(), CommandError> {
    let desk = Desk::open_existing(arguments)?;
    let stats = desk
        .ask(async |history, knowledge, tenant| memory_stats(history, knowledge, tenant).await)?
        .map_err(|error| refused(error.into()))?;
    if arguments.json {
        return output::json(&stats);
    }
    output::page(&page(&stats))
}

fn page(stats: &MemoryStats) -> String {
    let mut out = format!("{} records\n", thousands(stats.records as u64));
    for (kind, states) in &stats.by_kind {
        let told: Vec<String> =
            states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let _ = writeln!(out, "  {kind:10} {}", told.join(", "));
    }
    let newest = stats.growth.iter().rev().take(DAYS);
    for (day, count) in newest {
        let date = clock::date(*day);
        let _ = writeln!(out, "  {} +{count}", date.get(..10).unwrap_or(&date));
    }
    let mut line = |name: &str, value: Option<String>, aim: &str| {
        let value = value.unwrap_or_else(|| "not known yet".to_owned());
        let _ = writeln!(out, "{name:22} {value:16} {DIM}{aim}{RESET}");
    };
    let share = |share: Option<f64>| share.map(|share| format!("{:.0} %", share * 100.0));
    let pair = |pair: Option<(f64, f64)>, unit: &str| {
        pair.map(|(half, most)| format!("{half:.0} / {most:.0}{unit}"))
    };
    line("confirmed facts", share(stats.confirmation_rate), "aim: above 20 %");
    line("assemblies", Some(thousands(stats.assemblies as u64)), "");
    line("relevance", stats.relevance.map(|one| format!("{one:.2}")), "aim: above 0.60");
    line("budget used", share(stats.utilisation), "aim: 50 to 90 %");
    line("made anew", share(stats.refresh_rate), "of later turns; aim: below 30 %");
    line("taken up in answers", share(stats.recall_precision), "aim: above 40 %");
    line("time, p50 / p90", pair(stats.took, " ms"), "aim: below 500 ms from scratch");
    line("tokens, p50 / p90", pair(stats.tokens_a_turn, ""), "aim: 3000 a turn");
    line("history not sent", share(stats.compression), "aim: above 70 %");
    out
}
