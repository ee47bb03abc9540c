//! `plimsoll validate`: prints the problems of cascades, one line each.

use std::path::{Path, PathBuf};

use plimsoll_cascade::{Problem, Severity};
use serde::Serialize;

use crate::arguments::ValidateArguments;
use crate::cascade::{line, read};
use crate::config;
use crate::error::CommandError;
use crate::figures::counted;
use crate::needs::{self, CheckedNeed, Means};
use crate::output;

/// Levels of folders that are searched (chosen; it ends loops of links).
const DEEPEST: usize = 16;

#[derive(Debug, Serialize)]
struct Checked {
    file: PathBuf,
    is_valid: bool,
    problems: Vec<Problem>,
    /// What a run needs beside the file.
    needs: Vec<CheckedNeed>,
}

pub(crate) fn run(arguments: &ValidateArguments) -> Result<(), CommandError> {
    if arguments.schema {
        return output::json(&plimsoll_cascade::json_schema());
    }
    let means = Means::new(config::read(arguments.config.as_deref())?)?;
    let mut checked = Vec::new();
    for path in &arguments.files {
        if path.is_dir() {
            folder(path, 0, arguments.strict, &means, &mut checked)?;
        } else {
            checked.push(file(path, arguments.strict, &means)?);
        }
    }
    if checked.is_empty() {
        return Err(CommandError::usage(anyhow::anyhow!("there is no cascade in these folders"))
            .hint("name the files, or a folder with .json, .yaml or .yml files"));
    }
    if arguments.json {
        output::json(&checked)?;
    } else {
        let lines: String = checked
            .iter()
            .flat_map(|one| {
                let problems = one.problems.iter().map(|problem| line(&one.file, problem));
                let needs = needs::lines(&one.needs).into_iter().chain(hints(&one.needs));
                let file = output::plain(&one.file.display().to_string());
                problems.chain(
                    needs.map(move |need| format!("{file}: note: {}\n", output::plain(&need))),
                )
            })
            .collect();
        output::data(&lines)?;
    }
    let count = |severity: Severity| {
        let problems = checked.iter().flat_map(|one| &one.problems);
        problems.filter(|problem| problem.severity == severity).count() as u64
    };
    let said = format!(
        "{}, {} and {}",
        counted(checked.len() as u64, "cascade"),
        counted(count(Severity::Error), "error"),
        counted(count(Severity::Warning), "warning"),
    );
    if checked.iter().any(|one| !one.is_valid) {
        return Err(CommandError::finding(anyhow::anyhow!(said)));
    }
    if !arguments.json {
        output::note(&said);
    }
    Ok(())
}

fn hints(checked: &[CheckedNeed]) -> impl Iterator<Item = String> {
    needs::hints(checked).into_iter().map(str::to_owned)
}

fn file(path: &Path, strict: bool, means: &Means) -> Result<Checked, CommandError> {
    let (cascade, mut problems) = read(path)?;
    let needs = cascade.map(|cascade| means.check(&cascade, path)).unwrap_or_default();
    if strict {
        problems = problems.into_iter().map(Problem::strict).collect();
    }
    let is_valid = problems.iter().all(|problem| problem.severity != Severity::Error);
    Ok(Checked { file: path.to_owned(), is_valid, problems, needs })
}

/// Checks every file of a folder that looks like a cascade.
fn folder(
    path: &Path,
    depth: usize,
    strict: bool,
    means: &Means,
    checked: &mut Vec<Checked>,
) -> Result<(), CommandError> {
    let cannot = |error: std::io::Error| {
        let said = format!("cannot read {}", path.display());
        CommandError::usage(anyhow::Error::new(error).context(said))
    };
    let mut paths = std::fs::read_dir(path)
        .map_err(cannot)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(cannot)?;
    paths.sort();
    for path in paths {
        if path.is_dir() && depth < DEEPEST {
            folder(&path, depth + 1, strict, means, checked)?;
        } else if is_cascade(&path) {
            checked.push(file(&path, strict, means)?);
        }
    }
    Ok(())
}

/// Returns whether a file looks like a cascade, by its extension and the keys that only cascades have.
fn is_cascade(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("json" | "yaml" | "yml"))
        && std::fs::read(path).is_ok_and(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            text.contains("cascade_id") || text.contains("phases") || text.contains("cells")
        })
}
