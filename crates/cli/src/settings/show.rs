//! The settings in force, each with its origin.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};
use toml::de::DeTable;

use super::check;
use crate::arguments::PolicyArguments;
use crate::config::{self, BUDGET, Config, HISTORY, STORE, environment, files};
use crate::error::CommandError;
use crate::output;

/// Where a value that is not a default comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
enum SettingOrigin {
    Default,
    File { file: PathBuf, line: usize },
    Environment { variable: &'static str },
    Flag { flag: &'static str },
}

/// A setting.
#[derive(Debug)]
struct Setting {
    /// The names of its tables and its own.
    path: Vec<String>,
    value: Value,
    origin: SettingOrigin,
}

/// The settings as JSON.
#[derive(Debug, Serialize)]
struct Shown {
    file: Option<PathBuf>,
    settings: Value,
    /// By dotted key.
    origins: BTreeMap<String, SettingOrigin>,
}

pub(super) fn run(arguments: &PolicyArguments, all: bool, json: bool) -> Result<(), CommandError> {
    let config = config::config(arguments)?;
    let file = files::in_force(arguments.config.as_deref());
    let text = file.as_deref().map(files::read).transpose()?.unwrap_or_default();
    let mut settings = settings(&config, file.as_deref(), &text)?;
    if let Some(budget) = settings.iter_mut().find(|setting| setting.path == ["budget"]) {
        if arguments.budget.is_some() {
            budget.origin = SettingOrigin::Flag { flag: "--budget" };
        } else if environment(BUDGET).is_some() {
            budget.origin = SettingOrigin::Environment { variable: BUDGET };
        }
    }
    for (key, variable) in [("address", STORE), ("history", HISTORY)] {
        let found = settings.iter_mut().find(|setting| setting.path == ["store", key]);
        if let Some(setting) = found.filter(|_| environment(variable).is_some()) {
            setting.origin = SettingOrigin::Environment { variable };
        }
    }
    if !all {
        settings.retain(|setting| setting.origin != SettingOrigin::Default);
    }
    if json {
        return output::json(&shown(file, settings));
    }
    output::data(&toml_text(file.as_deref(), &settings, all))
}

/// Returns all settings; the file's text says which of them it sets.
fn settings(
    config: &Config,
    file: Option<&Path>,
    text: &str,
) -> Result<Vec<Setting>, CommandError> {
    // By way of a text: a number of 32 bits keeps the digits that it was written with.
    let written = serde_json::to_string(config).map_err(CommandError::failure)?;
    let value: Value = serde_json::from_str(&written).map_err(CommandError::failure)?;
    let (table, _) = DeTable::parse_recoverable(text);
    let mut settings = Vec::new();
    collect(&value, &mut Vec::new(), &mut |path, value| {
        let origin = match (file, is_set(table.get_ref(), path)) {
            (Some(file), true) => SettingOrigin::File {
                file: file.to_owned(),
                line: check::key_line(text, table.get_ref(), path).unwrap_or(1),
            },
            _ => SettingOrigin::Default,
        };
        settings.push(Setting { path: path.to_vec(), value: cleaned(value), origin });
    });
    Ok(settings)
}

fn collect(value: &Value, path: &mut Vec<String>, found: &mut impl FnMut(&[String], &Value)) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                path.push(key.clone());
                collect(value, path, found);
                path.pop();
            }
        }
        _ => found(path, value),
    }
}

/// Returns whether the file sets the key at `path`.
fn is_set(table: &DeTable<'_>, path: &[String]) -> bool {
    let Some((first, inner)) = path.split_first() else { return true };
    let found = table.iter().find(|(key, _)| *key.get_ref() == first.as_str());
    found.is_some_and(|(_, value)| match value.get_ref() {
        toml::de::DeValue::Table(table) => is_set(table, inner),
        _ => inner.is_empty(),
    })
}

/// Returns `value` without what looks like a secret: an address may hold a password. Keys are redacted by their type.
fn cleaned(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(output::without_secrets(text)),
        Value::Array(list) => list.iter().map(cleaned).collect(),
        Value::Object(map) => {
            let present = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(present.map(|(key, value)| (key.clone(), cleaned(value))).collect())
        }
        other => other.clone(),
    }
}

fn shown(file: Option<PathBuf>, settings: Vec<Setting>) -> Shown {
    let mut origins = BTreeMap::new();
    let mut root = Value::Object(Map::new());
    for Setting { path, value, origin } in settings {
        if origin != SettingOrigin::Default {
            origins.insert(dotted(&path), origin);
        }
        let mut place = &mut root;
        for part in &path {
            place = &mut place[part.as_str()];
        }
        *place = value;
    }
    Shown { file, settings: root, origins }
}

fn toml_text(file: Option<&Path>, settings: &[Setting], all: bool) -> String {
    let mut out = String::new();
    let read = file.map_or("no file".to_owned(), |file| output::plain(&file.to_string_lossy()));
    let rest = if all { "keys without an origin" } else { "all other keys" };
    let _ = writeln!(out, "# {read} is in force; {rest} have their defaults");
    // The keys of the root come first: behind a table's heading they would be that table's.
    let mut tables: Vec<(&[String], Vec<&Setting>)> = vec![(&[], Vec::new())];
    for setting in settings {
        let Some((_, table)) = setting.path.split_last() else { continue };
        match tables.iter_mut().find(|(name, _)| *name == table) {
            Some((_, members)) => members.push(setting),
            None => tables.push((table, vec![setting])),
        }
    }
    for (table, members) in tables {
        if !table.is_empty() {
            let _ = writeln!(out, "\n[{}]", dotted(table));
        }
        for Setting { path, value, origin } in members {
            let key = path.last().map_or(String::new(), |name| bare(name));
            let origin = match origin {
                SettingOrigin::Default => String::new(),
                SettingOrigin::File { file, line } => {
                    format!("  # {}:{line}", output::plain(&file.to_string_lossy()))
                }
                SettingOrigin::Environment { variable } => format!("  # {variable}"),
                SettingOrigin::Flag { flag } => format!("  # {flag}"),
            };
            let _ = match toml::Value::try_from(value) {
                Ok(value) => writeln!(out, "{key} = {value}{origin}"),
                Err(_) => writeln!(out, "# {key} is not set"),
            };
        }
    }
    out
}

fn dotted(path: &[String]) -> String {
    path.iter().map(|part| bare(part)).collect::<Vec<_>>().join(".")
}

/// Returns a key as TOML writes it.
fn bare(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(is_bare) {
        return key.to_owned();
    }
    toml::Value::String(key.to_owned()).to_string()
}
