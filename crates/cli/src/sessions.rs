//! Files of recorded sessions: those that are named, those in folders, and those in the usual places.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use plimsoll_formats::{
    FoundSession, UsualPlace, candidates_in, sub_agents_first, sub_agents_under, usual_places,
};

use crate::error::CommandError;
use crate::load::{STANDARD_INPUT, part_of};

/// Levels of folders below a named one that are searched (chosen: deeper than any agent nests sessions).
const DEPTH: usize = 16;

/// The endings of session files, for an error about a folder without any.
pub(crate) const ENDINGS: &str = "sessions are files that end with .jsonl, .json or .traj";

/// Returns the home directory and the places below it where agents keep sessions.
pub(crate) fn places() -> Result<(PathBuf, Vec<UsualPlace>), CommandError> {
    let strategy = etcetera::choose_base_strategy().map_err(CommandError::failure)?;
    let home = strategy.home_dir().to_owned();
    let places = usual_places(&home);
    Ok((home, places))
}

/// Writes a path below `root` from there; `~` stands for a home directory.
pub(crate) fn short_path(path: &Path, root: &Path) -> String {
    let is_home = etcetera::home_dir().is_ok_and(|home| home == root);
    match path.strip_prefix(root) {
        Ok(rest) if is_home => format!("~/{}", rest.display()),
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// Lists the usual places in an error about missing sessions.
pub(crate) fn named(home: &Path, places: &[UsualPlace]) -> String {
    let roots: Vec<String> = places.iter().map(|place| short_path(&place.root, home)).collect();
    roots.join(", ")
}

/// Lists the files in a folder and below it that may be sessions, newest first.
pub(crate) fn in_folder(folder: &Path) -> Result<Vec<FoundSession>, CommandError> {
    folder.read_dir().map_err(|error| CommandError::unreadable(folder, error))?;
    Ok(candidates_in(folder, DEPTH))
}

/// Lists the files that are named and those in named folders, folders in the order of paths.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    for path in paths {
        if path.as_os_str() == STANDARD_INPUT {
            files.push(path.clone());
            continue;
        }
        let metadata = part_of(path).0.metadata().map_err(|error| {
            CommandError::unreadable(path, error).hint("give recorded sessions or folders of them")
        })?;
        if metadata.is_dir() {
            let mut found: Vec<PathBuf> =
                in_folder(path)?.into_iter().map(|file| file.path).collect();
            found.sort();
            files.append(&mut found);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// Lists the sessions of a bill, each once: those of `paths`, else all in the usual places, and files of sub-agents first.
pub(crate) fn billed(
    paths: &[PathBuf],
    places: &[UsualPlace],
) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = files(paths)?;
    if paths.is_empty() {
        let found = places.iter().flat_map(|place| {
            plimsoll_formats::sessions_under(place).into_iter().chain(sub_agents_under(place))
        });
        files.extend(found.map(|file| file.path));
    }
    sub_agents_first(&mut files);
    let mut seen = HashSet::new();
    files.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    Ok(files)
}
