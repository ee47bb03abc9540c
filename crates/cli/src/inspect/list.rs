//! Lists sessions, newest first.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_formats::{FoundSession, ReadOptions, newest_first, sessions_under};
use serde::Serialize;

use crate::clock;
use crate::error::CommandError;
use crate::figures::bytes;
use crate::output::{self, BOLD, DIM, RESET};
use crate::sessions::{ENDINGS, in_folder, named, places, short_path};

/// Larger files are listed without a look into them: a list must not wait.
const LOOKED_INTO: u64 = 32 << 20;

/// One line of the list.
#[derive(Debug, Serialize)]
struct ListedSession {
    /// `None` where the file is too large to look into.
    format: Option<&'static str>,
    modified: Option<MillisSinceEpoch>,
    bytes: u64,
    path: String,
}

/// Lists the sessions in the usual places below the home directory.
pub(super) fn usual(limit: usize, json: bool) -> Result<(), CommandError> {
    let (home, places) = places()?;
    let mut files: Vec<FoundSession> = places.iter().flat_map(sessions_under).collect();
    newest_first(&mut files);
    let more = files.len().saturating_sub(limit);
    let list: Vec<ListedSession> =
        files.iter().take(limit).map(|file| listed(file, Some(file.format.as_str()))).collect();
    print(&list, more, json, &home, || {
        CommandError::finding(anyhow::anyhow!("no session in {}", named(&home, &places)))
            .hint("give a session or a folder of them, `plimsoll inspect FILE`")
    })
}

/// Lists the sessions in a folder and below it.
pub(super) fn folder(path: &Path, limit: usize, json: bool) -> Result<(), CommandError> {
    let files = in_folder(path)?;
    // Much ends with .json that is no session; only as many files are opened as it takes to fill the list.
    let (mut list, mut seen) = (Vec::new(), 0);
    for file in &files {
        if list.len() >= limit {
            break;
        }
        seen += 1;
        if file.bytes > LOOKED_INTO {
            list.push(listed(file, None));
        } else if let Some(format) = format_of(&file.path) {
            list.push(listed(file, Some(format)));
        }
    }
    print(&list, files.len() - seen, json, path, || {
        CommandError::finding(anyhow::anyhow!("no session in {}", path.display())).hint(ENDINGS)
    })
}

fn format_of(path: &Path) -> Option<&'static str> {
    let bytes = std::fs::read(path).ok()?;
    let session = plimsoll_formats::read(&bytes, &ReadOptions::default()).ok()?;
    Some(session.format.as_str())
}

fn listed(file: &FoundSession, format: Option<&'static str>) -> ListedSession {
    ListedSession {
        format,
        modified: file.modified,
        bytes: file.bytes,
        path: file.path.display().to_string(),
    }
}

fn print(
    list: &[ListedSession],
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
            bytes(one.bytes),
            output::plain(&short_path(Path::new(&one.path), root)),
        );
    }
    if more > 0 {
        let _ = writeln!(out, "{DIM}and {more} more files; `--limit N` lists more{RESET}");
    }
    let next = quoted(&first.path);
    let _ =
        writeln!(out, "\n{DIM}next:{RESET} plimsoll inspect {next}\n      plimsoll replay {next}");
    output::page(&out)
}

/// Quotes a path for a shell where it needs it.
fn quoted(path: &str) -> String {
    let is_simple = |c: char| c.is_alphanumeric() || "/._-+=:@,".contains(c);
    if path.chars().all(is_simple) {
        return path.to_owned();
    }
    format!("'{}'", output::plain(path).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted("/a/b-c_1.jsonl"), "/a/b-c_1.jsonl");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
