//! `plimsoll models prices`: the table of prices, and reading published lists into the user's own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use plimsoll_core::cost::{CacheKind, PriceEntry, Pricing, day};
use plimsoll_formats::{PriceChanges, PriceList, merge_prices, read_prices};
use serde::Serialize;

use crate::arguments::PricesArguments;
use crate::clock;
use crate::error::CommandError;
use crate::figures::{aligned, compact, thousands, trimmed};
use crate::output::{self, BOLD, DIM, RESET};
use crate::pricing::{self, lay_over, pricing};
use crate::write_file::{Existing, write_file};

/// Begins a table that an import wrote.
const HEAD: &str = "# Prices over the shipped ones, written by `plimsoll models prices --import`, which keeps what else is in here.\n\n";

pub(super) fn run(arguments: &PricesArguments) -> Result<(), CommandError> {
    if arguments.import.is_some() {
        return import(arguments);
    }
    let table = pricing(arguments.pricing.as_deref())?;
    let filter = arguments.filter.as_deref().unwrap_or("").to_ascii_lowercase();
    let entries: Vec<&PriceEntry> =
        table.model.iter().filter(|entry| entry.name.contains(&filter)).collect();
    if arguments.json {
        return output::json(&PriceListing::of(&table, &entries));
    }
    if entries.is_empty() {
        return Err(CommandError::finding(anyhow::anyhow!("no model's name holds `{filter}`")));
    }
    output::page(&text(&table, &entries))
}

#[derive(Serialize)]
struct PriceListing<'a> {
    date: &'a str,
    models: Vec<Listed<'a>>,
}

/// An entry with what follows from its name.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    entry: &'a PriceEntry,
    binds_thinking: bool,
}

impl<'a> PriceListing<'a> {
    fn of(table: &'a Pricing, entries: &[&'a PriceEntry]) -> Self {
        let models = entries
            .iter()
            .map(|entry| Listed { entry, binds_thinking: binds_thinking(table, entry) });
        Self { date: &table.date, models: models.collect() }
    }
}

fn binds_thinking(table: &Pricing, entry: &PriceEntry) -> bool {
    table.of(Some(&entry.name), None).prices.bound_thinking
}

fn text(table: &Pricing, entries: &[&PriceEntry]) -> String {
    let heads = [
        "model", "from", "in", "out", "read", "writes", "least", "cache", "window", "above",
        "thinking",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(entries.iter().map(|entry| row(table, entry)));
    let aligned = aligned(&rows);
    let mut lines = aligned.lines();
    let mut out = format!(
        "US dollars for a million tokens; cache prices are multiples of `in`; read on {}\n\n{BOLD}{}{RESET}\n",
        table.date,
        lines.next().unwrap_or_default()
    );
    for (line, entry) in lines.zip(entries) {
        let _ = writeln!(out, "{line}");
        if let Some(peak) = &entry.peak {
            let hours: Vec<String> =
                peak.hours.iter().map(|[from, to]| format!("{from:02}–{to:02}")).collect();
            let (times, hours) = (trimmed(peak.times), hours.join(", "));
            let _ = writeln!(out, "  {DIM}×{times} at {hours} UTC, Monday to Friday{RESET}");
        }
    }
    out
}

fn row(table: &Pricing, entry: &PriceEntry) -> [String; 11] {
    [
        output::line(&entry.name, 40),
        entry.from.clone().unwrap_or_default(),
        trimmed(entry.input),
        trimmed(entry.output),
        format!("×{}", trimmed(entry.cache_read)),
        writes(entry),
        thousands(entry.cache_least.into()),
        kind(entry.cache).to_owned(),
        entry.window.map_or_else(String::new, |window| compact(window.into())),
        bands(entry),
        if binds_thinking(table, entry) { "bound".to_owned() } else { String::new() },
    ]
}

fn kind(cache: CacheKind) -> &'static str {
    match cache {
        CacheKind::Steps => "steps",
        CacheKind::Marks => "marks",
        CacheKind::Ends => "ends",
    }
}

/// Writes what a cache entry costs by how long it lives: `×1.25 5 min, ×2 1 h`.
fn writes(entry: &PriceEntry) -> String {
    let tier = |tier: &plimsoll_core::cost::WriteTier| {
        format!("×{} {}", trimmed(tier.price), clock::span(i64::from(tier.seconds) * 1000))
    };
    entry.cache_writes.iter().map(tier).collect::<Vec<_>>().join(", ")
}

fn bands(entry: &PriceEntry) -> String {
    let band = |band: &plimsoll_core::cost::Band| {
        format!(
            "{}: in ×{} out ×{}",
            compact(band.above),
            trimmed(band.input),
            trimmed(band.output)
        )
    };
    entry.bands.iter().map(band).collect::<Vec<_>>().join(", ")
}

/// The result of an import of prices.
#[derive(Serialize)]
struct PriceReport {
    source: String,
    /// Names that the table did not list.
    new: Vec<String>,
    /// Names that it listed with other figures.
    changed: Vec<String>,
    /// Models that cost what the table says already.
    alike: usize,
    /// Models that were not taken, by reason.
    left: BTreeMap<&'static str, usize>,
    /// Where the table went; nowhere where nothing changed.
    out: Option<PathBuf>,
}

fn import(arguments: &PricesArguments) -> Result<(), CommandError> {
    let (Some(path), Some(out)) =
        (&arguments.import, arguments.out.clone().or_else(pricing::user_file))
    else {
        return Err(CommandError::usage(anyhow::anyhow!("this user has no configuration folder"))
            .hint("name a file with `--out`"));
    };
    let list = read_prices(&pricing::read(path)?).map_err(|error| {
        CommandError::usage(anyhow::Error::new(error).context(path.display().to_string()))
            .hint("give models.dev's api.json or LiteLLM's model_prices_and_context_window.json")
    })?;
    let shipped = Pricing::shipped();
    let today = day(clock::now());
    // Entries of the file, by hand or by an earlier import, stay unless the list changes them.
    let existing = out.is_file();
    let table = if existing { lay_over(shipped.clone(), &out)? } else { shipped.clone() };
    let merged = merge_prices(&list, &table, &today);
    let is_changed = !(merged.new.is_empty() && merged.changed.is_empty());
    if is_changed {
        if let Some(folder) = out.parent().filter(|_| arguments.out.is_none()) {
            std::fs::create_dir_all(folder).map_err(|error| {
                let error = anyhow::Error::new(error);
                CommandError::failure(error.context(format!("cannot make {}", folder.display())))
            })?;
        }
        let own = own(&shipped, table, &merged, today);
        let written = toml::to_string(&own).map_err(CommandError::failure)?;
        write_file(&out, (HEAD.to_owned() + &written).as_bytes(), Existing::Replace)?;
    }
    let report = report(&list, merged, is_changed.then_some(out));
    if arguments.json {
        return output::json(&report);
    }
    output::data(&told(&report))
}

/// Returns what of a table is not the shipped one, with what an import changes in it.
fn own(shipped: &Pricing, table: Pricing, merged: &PriceChanges, today: String) -> Pricing {
    let mut model: Vec<PriceEntry> = table
        .model
        .iter()
        .filter(|entry| {
            let of_name = |one: &&PriceEntry| one.name == entry.name;
            // A name that is overlaid is so with all its days.
            !shipped.model.iter().filter(of_name).eq(table.model.iter().filter(of_name))
        })
        .filter(|entry| merged.entries.iter().all(|new| new.name != entry.name))
        .cloned()
        .collect();
    model.extend(merged.entries.iter().cloned());
    model.sort_by(|one, other| (&one.name, &one.from).cmp(&(&other.name, &other.from)));
    let fallback = table.fallback.into_iter().filter(|one| !shipped.fallback.contains(one));
    Pricing { date: today, fallback: fallback.collect(), model }
}

fn report(list: &PriceList, merged: PriceChanges, out: Option<PathBuf>) -> PriceReport {
    PriceReport {
        source: list.source.to_string(),
        new: merged.new,
        changed: merged.changed,
        alike: merged.alike,
        left: list.omitted.iter().map(|(why, names)| (why.why(), names.len())).collect(),
        out,
    }
}

fn told(report: &PriceReport) -> String {
    let (new, changed) = (report.new.len(), report.changed.len());
    let mut out = match &report.out {
        Some(path) => format!(
            "{} models of {} taken: {new} new, {changed} at other prices; wrote {}\n",
            new + changed,
            report.source,
            output::plain(&path.display().to_string())
        ),
        None => format!("nothing new in {}, and nothing was written\n", report.source),
    };
    if report.alike > 0 {
        let _ = writeln!(out, "{:>6}  cost what the table says", thousands(report.alike as u64));
    }
    let skipped = report.left.iter();
    out.extend(
        skipped.map(|(why, number)| format!("{:>6}  skipped: {why}\n", thousands(*number as u64))),
    );
    out
}
