//! `plimsoll learn`: how often results are needed again in the user's own sessions, and whether settings learnt from it save
//! work on sessions that they were not learnt from.

mod report;
mod work;

use std::path::Path;

use anyhow::anyhow;
use plimsoll_core::learn::{
    Fold, LEAST_SESSIONS, NeedTable, SCALES, SessionWork, folds, learnt, measure, validated,
};
use plimsoll_core::policy::Need;
use plimsoll_formats::Compaction;

use crate::arguments::{LearnArguments, ReadingArguments};
use crate::config::{self, config};
use crate::error::CommandError;
use crate::load::{Loaded, load};
use crate::output;
use crate::progress::Progress;
use crate::sessions::{self, ENDINGS};
use crate::write_file::{Existing, refuse, write_file};

use work::Bench;

pub(crate) fn run(arguments: &LearnArguments) -> Result<(), CommandError> {
    let existing = if arguments.overwrite { Existing::Replace } else { Existing::Refuse };
    refuse(&arguments.out, existing)?;
    let config = config(&arguments.settings)?;
    let sessions = sessions_of(arguments)?;
    if sessions.len() < LEAST_SESSIONS {
        return Err(CommandError::usage(anyhow!(
            "{} sessions have turns, and {LEAST_SESSIONS} are needed",
            sessions.len()
        ))
        .hint(ENDINGS));
    }
    let tables: Vec<NeedTable> =
        sessions.iter().map(|loaded| measure(loaded.counted.stretches())).collect();
    let all = |table: &dyn Fn(usize) -> bool| {
        let mut sum = NeedTable::default();
        tables.iter().enumerate().filter(|(at, _)| table(*at)).for_each(|(_, one)| sum.add(one));
        sum
    };
    let groups = folds(sessions.len(), usize::from(arguments.folds));
    let mut progress = Progress::new("replaying", groups.len() as u64 + 2);
    let default = Need::default();
    let mut bench = Bench::new(&sessions, &config, &default)?;
    progress.step();
    let mut found = Vec::new();
    for group in groups {
        let others: Vec<usize> = (0..sessions.len()).filter(|at| !group.contains(at)).collect();
        let table = all(&|at| !group.contains(&at));
        let (scale, need) = best(&mut bench, &table, &default, &others);
        let learnt_work = bench.work(&need, &group);
        let work = group
            .iter()
            .zip(learnt_work)
            .map(|(at, learnt)| (*at, SessionWork { default: bench.default_work(*at), learnt }));
        found.push(Fold { scale, work: work.collect(), need });
        progress.step();
    }
    let table = all(&|_| true);
    let everything: Vec<usize> = (0..sessions.len()).collect();
    let (gain, is_gain) = validated(&found);
    let (scale, need) = best(&mut bench, &table, &default, &everything);
    progress.step();
    drop(progress);
    let is_new = is_gain && scale.is_some();
    let result = report::Learnt {
        sessions: sessions.len(),
        turns: sessions.iter().map(|loaded| loaded.counted.turns()).sum(),
        power: table.power(),
        kept: learnt(&table, &default, scale.unwrap_or(1.0)).kept,
        need: if is_new { need } else { default.clone() },
        default,
        table,
        gain,
        is_new,
        scale,
        folds: found,
    };
    write_policy(arguments, &result, existing)?;
    output::show(arguments.json, &result, || result.text(&arguments.out))
}

/// Reads all sessions that have turns.
fn sessions_of(arguments: &LearnArguments) -> Result<Vec<Loaded>, CommandError> {
    let reading =
        ReadingArguments { model: arguments.model.clone(), ..ReadingArguments::default() };
    let mut sessions = Vec::new();
    for path in sessions::files(&arguments.files)? {
        match load(&path, &reading, Compaction::Honour) {
            Ok(loaded) if loaded.counted.turns() > 0 => sessions.push(loaded),
            Ok(_) => {}
            // Much in a folder is no session; a file that was named should be one.
            Err(error) if !arguments.files.contains(&path) => output::warning(&error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok(sessions)
}

/// Returns the factor on the measured law with the least work on `sessions`, and that law; the default where none is better.
fn best(
    bench: &mut Bench<'_>,
    table: &NeedTable,
    default: &Need,
    sessions: &[usize],
) -> (Option<f64>, Need) {
    let mut best = (0.0, None, default.clone());
    for scale in SCALES {
        let need = learnt(table, default, scale).need;
        if need == *default {
            continue;
        }
        let works = bench.work(&need, sessions);
        let gains = sessions
            .iter()
            .zip(works)
            .map(|(at, learnt)| SessionWork { default: bench.default_work(*at), learnt }.gain());
        // Each session counts alike, as in the validation.
        let gain = gains.sum::<f64>() / sessions.len().max(1) as f64;
        if gain > best.0 {
            best = (gain, Some(scale), need);
        }
    }
    (best.1, best.2)
}

/// Writes the settings in force with the learnt law.
fn write_policy(
    arguments: &LearnArguments,
    result: &report::Learnt,
    existing: Existing,
) -> Result<(), CommandError> {
    let base = config::files::in_force(arguments.settings.config.as_deref());
    let settings = base.as_deref().map_or_else(|| Ok(String::new()), config::files::read)?;
    let text = with_need(&settings, result.is_new.then_some(&result.need))?;
    let text = format!("{}{text}", result.origin(base.as_deref().map(Path::display)));
    write_file(&arguments.out, text.as_bytes(), existing)
}

/// Returns settings with the law `need` in place of theirs, if there is one.
fn with_need(settings: &str, need: Option<&Need>) -> Result<String, CommandError> {
    let mut settings: toml::Table = toml::from_str(settings).map_err(CommandError::usage)?;
    if let Some(need) = need {
        let need = toml::Table::try_from(need).map_err(CommandError::failure)?;
        let settle = settings.entry("settle").or_insert_with(|| toml::Table::new().into());
        if let Some(settle) = settle.as_table_mut() {
            settle.insert("need".into(), need.into());
        }
    }
    toml::to_string(&settings).map_err(CommandError::failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_written_law_is_the_one_that_is_read() {
        let base = "budget = 5000\n[settle]\nfloor = 7\n[settle.need]\nruns = 9.0\n";
        let need = Need { reads: 0.25, ..Need::default() };
        let written = with_need(base, Some(&need)).expect("sound");
        let read: Config = toml::from_str(&written).expect("settings");
        assert_eq!((&read.settle.need, read.settle.floor), (&need, 7));
        let kept: Config =
            toml::from_str(&with_need(base, None).expect("sound")).expect("settings");
        assert!((kept.settle.need.runs - 9.0).abs() < 1e-12);
        let alone: Config =
            toml::from_str(&with_need("", Some(&need)).expect("sound")).expect("settings");
        assert_eq!(alone.settle.need, need);
    }
}
