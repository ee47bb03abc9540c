//! The sessions that there are, newest first.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_formats::{FoundSession, ReadOptions, SessionFormat, UsualPlace};
use serde::Serialize;

use crate::clock;
use crate::error::CommandError;
use crate::output::{self, BOLD, DIM, RESET};

/// Larger files are listed without a look into them: a list must not wait.
const LOOKED_INTO: u64 = 32 << 20;

/// What the names of session files in a folder end with.
const SUFFIXES: [&str; 3] = [".jsonl", ".json", ".traj"];

/// How deep below a folder sessions are looked for.
const DEPTH: usize = 5;

/// One line of the list.
#[derive(Debug, Serialize)]
struct Found {
    /// `None` where the file is too large to look into.
    format: Option<&'static str>,
    modified: Option<MillisSinceEpoch>,
    bytes: u64,
    path: String,
}

/// Lists the sessions in the usual places below the home directory.
pub(super) fn usual(limit: usize, json: bool) -> Result<(), CommandError> {
    let strategy = etcetera::choose_base_strategy().map_err(CommandError::failure)?;
    let home = strategy.home_dir();
    let places = plimsoll_formats::usual_places(home);
    let mut files: Vec<FoundSession> =
        places.iter().flat_map(plimsoll_formats::sessions_under).collect();
    newest_first(&mut files);
    let more = files.len().saturating_sub(limit);
    let list: Vec<Found> =
        files.iter().take(limit).map(|file| found(file, Some(file.format.as_str()))).collect();
    print(&list, more, json, home, || {
        let roots: Vec<String> = places
            .iter()
            .map(|place| short_path(&place.root.display().to_string(), home))
            .collect();
        CommandError::finding(anyhow::anyhow!("no session in {}", roots.join(", ")))
            .hint("give a session or a folder of them, `plimsoll inspect FILE`")
    })
}

/// Lists the files in a folder and below it that may be sessions, by their names in order.
pub(crate) fn sessions_in(path: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let mut paths: Vec<PathBuf> = files_in(path)?.into_iter().map(|file| file.path).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn files_in(path: &Path) -> Result<Vec<FoundSession>, CommandError> {
    path.read_dir().map_err(|error| {
        CommandError::usage(
            anyhow::Error::new(error).context(format!("cannot read {}", path.display())),
        )
    })?;
    // The format is a stand-in: outside of the usual places only the content tells it.
    let place = |suffix: &'static str| UsualPlace {
        format: SessionFormat::Pi,
        root: path.to_owned(),
        depth: DEPTH,
        prefix: "",
        suffix,
        parent: None,
    };
    Ok(SUFFIXES
        .iter()
        .flat_map(|suffix| plimsoll_formats::sessions_under(&place(suffix)))
        .collect())
}

/// Lists the sessions in a folder and below it.
pub(super) fn folder(path: &Path, limit: usize, json: bool) -> Result<(), CommandError> {
    let mut files = files_in(path)?;
    newest_first(&mut files);
    // Much ends with .json that is no session; only as many files are opened as it takes to fill the list.
    let (mut list, mut seen) = (Vec::new(), 0);
    for file in &files {
        if list.len() >= limit {
            break;
        }
        seen += 1;
        if file.bytes > LOOKED_INTO {
            list.push(found(file, None));
        } else if let Some(format) = format_of(&file.path) {
            list.push(found(file, Some(format)));
        }
    }
    print(&list, files.len() - seen, json, path, || {
        CommandError::finding(anyhow::anyhow!("no session in {}", path.display()))
            .hint("sessions are files that end with .jsonl, .json or .traj")
    })
}

fn format_of(path: &Path) -> Option<&'static str> {
    let bytes = std::fs::read(path).ok()?;
    let session = plimsoll_formats::read(&bytes, &ReadOptions::default()).ok()?;
    Some(session.format.as_str())
}

fn found(file: &FoundSession, format: Option<&'static str>) -> Found {
    Found {
        format,
        modified: file.modified,
        bytes: file.bytes,
        path: file.path.display().to_string(),
    }
}

fn newest_first(files: &mut [FoundSession]) {
    files.sort_by(|a, b| (b.modified, &a.path).cmp(&(a.modified, &b.path)));
}

fn print(
    list: &[Found],
    more: usize,
    json: bool,
    root: &Path,
    empty: impl FnOnce() -> CommandError,
) -> Result<(), CommandError> {
    if json {
        return output::json(&list);
    }
    let Some(first) = list.first() else { return Err(empty()) };
    let now = clock::now();
    let mut out = format!("{BOLD}{:18} {:>11} {:>9}  session{RESET}\n", "agent", "changed", "size");
    for one in list {
        let age = one.modified.map_or_else(String::new, |then| clock::age(now, then));
        let _ = writeln!(
            out,
            "{:18} {DIM}{age:>11}{RESET} {:>9}  {}",
            one.format.unwrap_or("?"),
            size(one.bytes),
            output::plain(&short_path(&one.path, root)),
        );
    }
    if more > 0 {
        let _ = writeln!(out, "{DIM}and {more} more files; `--limit N` lists more{RESET}");
    }
    let next = quoted(&first.path);
    let _ =
        writeln!(out, "\n{DIM}next:{RESET} plimsoll inspect {next}\n      plimsoll replay {next}");
    output::data(&out)
}

/// Writes a path below `root` from there; `~` stands for a home directory.
fn short_path(path: &str, root: &Path) -> String {
    let relative = Path::new(path).strip_prefix(root).ok();
    let is_home = etcetera::home_dir().is_ok_and(|home| home == root);
    match relative {
        Some(rest) if is_home => format!("~/{}", rest.display()),
        Some(rest) => rest.display().to_string(),
        None => path.to_owned(),
    }
}

/// Quotes a path for a shell where it needs it.
fn quoted(path: &str) -> String {
    let is_simple = |c: char| c.is_alphanumeric() || "/._-+=:@,".contains(c);
    if path.chars().all(is_simple) {
        return path.to_owned();
    }
    format!("'{}'", output::plain(path).replace('\'', r"'\''"))
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted("/a/b-c_1.jsonl"), "/a/b-c_1.jsonl");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }

    #[test]
    fn sizes_have_three_digits_or_so() {
        assert_eq!([5, 12_345, 12_345_678].map(size), ["5 B", "12 kB", "12.3 MB"]);
    }
}
