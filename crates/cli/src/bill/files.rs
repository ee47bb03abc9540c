//! The files of a bill: those that are named, those in folders, else those in the usual places.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use plimsoll_formats::{SessionFormat, UsualPlace, sessions_under, usual_places};

use crate::error::CommandError;

/// What the names of session files end with.
const SUFFIXES: [&str; 3] = [".jsonl", ".json", ".traj"];
/// How deep below a folder sessions are looked for (chosen: deeper than any agent nests them).
const DEPTH: usize = 16;

/// Files to read, and the usual places where nothing was named.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) files: Vec<PathBuf>,
    pub(super) places: Vec<String>,
}

/// Finds all files of a bill, each once.
pub(super) fn find(paths: &[PathBuf]) -> Result<Found, CommandError> {
    let mut files = Vec::new();
    let mut places = Vec::new();
    if paths.is_empty() {
        let strategy = etcetera::choose_base_strategy().map_err(CommandError::failure)?;
        let home = strategy.home_dir();
        for place in usual_places(home) {
            let root = place.root.strip_prefix(home).unwrap_or(&place.root);
            places.push(format!("~/{}", root.display()));
            files.extend(sessions_under(&place).into_iter().map(|found| found.path));
            if place.format == SessionFormat::ClaudeCode {
                // Sub-agents have files of their own: PROJECT/SESSION/subagents/agent-ID.jsonl.
                let depth = place.depth + 2;
                let agents =
                    UsualPlace { depth, prefix: "agent-", parent: Some("subagents"), ..place };
                files.extend(sessions_under(&agents).into_iter().map(|found| found.path));
            }
        }
    }
    for path in paths {
        let metadata = path.metadata().map_err(|error| {
            let error =
                anyhow::Error::new(error).context(format!("cannot read {}", path.display()));
            CommandError::usage(error).hint("give recorded sessions or folders of them")
        })?;
        if metadata.is_dir() {
            folder(path, &mut files);
        } else {
            files.push(path.clone());
        }
    }
    // Sub-agents' own files say more than what the main file tells of them, so they come first.
    let is_main = |path: &Path| {
        let folder = path.parent().and_then(Path::file_name);
        folder != Some("subagents".as_ref())
    };
    files.sort_by(|a, b| (is_main(a), a).cmp(&(is_main(b), b)));
    let mut seen = HashSet::new();
    files.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    Ok(Found { files, places })
}

fn folder(root: &Path, files: &mut Vec<PathBuf>) {
    for suffix in SUFFIXES {
        // The format is a stand-in: only the content tells it.
        let place = UsualPlace {
            format: SessionFormat::Pi,
            root: root.to_owned(),
            depth: DEPTH,
            prefix: "",
            suffix,
            parent: None,
        };
        files.extend(sessions_under(&place).into_iter().map(|found| found.path));
    }
}
