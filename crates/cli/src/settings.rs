//! `plimsoll config`: shows the settings in force and their origins, and checks the files.

mod check;
mod show;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_core::ContextBudget;
use plimsoll_core::cost::Pricing;
use serde::Serialize;

use crate::arguments::{ConfigArguments, ConfigCommand, PolicyArguments};
use crate::config::{BUDGET, HISTORY, STORE, environment, environment_budget, files};
use crate::context_config;
use crate::error::CommandError;
use crate::figures::counted;
use crate::output;
use crate::pricing;
use crate::probe::KEY;
use crate::serve::LOG;

use check::{Problem, problems};

pub(crate) fn run(arguments: &ConfigArguments) -> Result<(), CommandError> {
    match &arguments.command {
        ConfigCommand::Show { settings, all, json } => show::run(settings, *all, *json),
        ConfigCommand::Path { settings, json } => path(settings, *json),
        ConfigCommand::Check { settings, json } => check(settings, *json),
    }
}

/// A place that settings are read from.
#[derive(Debug, Serialize)]
struct Row {
    layer: &'static str,
    place: String,
    exists: bool,
    in_force: bool,
    note: &'static str,
}

fn path(arguments: &PolicyArguments, json: bool) -> Result<(), CommandError> {
    let in_force = files::in_force(arguments.config.as_deref());
    let file = |layer, path: PathBuf| {
        let (exists, is_read) = (path.is_file(), Some(&path) == in_force.as_ref());
        let note = match (exists, is_read) {
            (_, true) => "in force",
            (true, false) => "not read: the file above replaces it",
            (false, false) => "does not exist",
        };
        let place = output::plain(&path.to_string_lossy());
        Row { layer, place, exists, in_force: is_read, note }
    };
    let variable = |layer, name: &str| {
        let is_set = environment(name).is_some();
        let note = if is_set { "set" } else { "not set" };
        Row { layer, place: name.to_owned(), exists: is_set, in_force: is_set, note }
    };
    let other = |layer, path: PathBuf, note| {
        let exists = path.is_file();
        let note = if exists { note } else { "does not exist" };
        let place = output::plain(&path.to_string_lossy());
        Row { layer, place, exists, in_force: exists, note }
    };
    let mut places = vec![Row {
        layer: "flags",
        place: "--budget, and the flags of each command".to_owned(),
        exists: arguments.budget.is_some(),
        in_force: arguments.budget.is_some(),
        note: "override everything below",
    }];
    places.extend([BUDGET, STORE, HISTORY, LOG, KEY].map(|name| variable("environment", name)));
    places.extend(arguments.config.clone().map(|path| file("--config", path)));
    places.push(file("project", files::project()));
    places.extend(files::user().map(|path| file("user", path)));
    places.push(other("window", context_config::FILE.into(), "shares of a context window"));
    places
        .extend(pricing::user_file().map(|path| other("prices", path, "over the shipped prices")));
    if json {
        return output::json(&places);
    }
    let width = |text: fn(&Row) -> &str| {
        places.iter().map(|place| text(place).chars().count()).max().unwrap_or(0)
    };
    let (layers, names) = (width(|place| place.layer), width(|place| &place.place));
    let mut out = String::new();
    for Row { layer, place, note, .. } in &places {
        let _ = writeln!(out, "{layer:layers$}  {place:names$}  {note}");
    }
    output::page(&out)
}

/// An error, and where it is.
#[derive(Debug, Serialize)]
struct SettingFinding {
    /// A file, or a variable of the environment.
    place: String,
    #[serde(flatten)]
    problem: Problem,
}

fn check(arguments: &PolicyArguments, json: bool) -> Result<(), CommandError> {
    let mut findings = Vec::new();
    let mut checked = 0;
    let mut add = |path: &Path, found: Vec<Problem>| {
        let place = output::plain(&path.to_string_lossy());
        findings.extend(
            found.into_iter().map(|problem| SettingFinding { place: place.clone(), problem }),
        );
        checked += 1;
    };
    let named = arguments.config.clone();
    let usual = [Some(files::project()), files::user()].into_iter().flatten();
    for path in named.into_iter().chain(usual.filter(|path| path.is_file())) {
        add(&path, problems(&files::read(&path)?));
    }
    let whole = |message: String| Problem { line: None, message, nearest: None };
    let window = Path::new(context_config::FILE);
    if window.is_file() {
        let read = ContextBudget::parse(&files::read(window)?);
        add(window, read.err().map(|error| whole(chain(error))).into_iter().collect());
    }
    if let Some(path) = pricing::user_file().filter(|path| path.is_file()) {
        let read = pricing::lay_over(Pricing::shipped(), &path).err();
        let found = read.map(|error| placed(&path, &error.to_string()));
        add(&path, found.into_iter().collect());
    }
    if let Err(error) = environment_budget() {
        let problem = whole(error.to_string());
        findings.push(SettingFinding { place: "environment".to_owned(), problem });
    }
    if json {
        output::json(&findings)?;
    } else {
        output::data(&findings.iter().map(line).collect::<String>())?;
    }
    let (files, errors) =
        (counted(checked as u64, "file"), counted(findings.len() as u64, "error"));
    let summary = format!("{files} of settings checked, {errors}");
    if !findings.is_empty() {
        return Err(CommandError::finding(anyhow::anyhow!(summary)));
    }
    if !json {
        output::note(&summary);
    }
    Ok(())
}

/// Returns the problem of an error whose text begins with the file, and with the line where that is known.
fn placed(path: &Path, error: &str) -> Problem {
    let rest = error.strip_prefix(&format!("{}:", path.display())).unwrap_or(error);
    let (line, message) = match rest.split_once(": ") {
        Some((line, message)) if line.parse::<usize>().is_ok() => (line.parse().ok(), message),
        _ => (None, rest),
    };
    Problem { line, message: message.trim_start().to_owned(), nearest: None }
}

fn chain(error: impl Into<anyhow::Error>) -> String {
    format!("{:#}", error.into())
}

fn line(finding: &SettingFinding) -> String {
    let Problem { line, message, nearest } = &finding.problem;
    let line = line.map_or(String::new(), |line| format!(":{line}"));
    let nearest =
        nearest.as_ref().map_or(String::new(), |key| format!("; the nearest known key is `{key}`"));
    let message = output::without_secrets(message);
    format!("{}{line}: {}\n", finding.place, output::plain(&format!("{message}{nearest}")))
}
