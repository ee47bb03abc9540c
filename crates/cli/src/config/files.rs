//! The files of settings, and which of them is in force.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use crate::error::CommandError;

/// The file's name, in the project and in the user's configuration folder.
const FILE: &str = "plimsoll.toml";

/// Returns where the project's settings are.
pub(crate) fn project() -> PathBuf {
    PathBuf::from(FILE)
}

/// Returns where the user's settings are.
pub(crate) fn user() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("plimsoll").join(FILE))
}

/// Returns the one file that is in force: the named one, else the project's, else the user's.
pub(crate) fn in_force(named: Option<&Path>) -> Option<PathBuf> {
    named
        .map(Path::to_owned)
        .or_else(|| [Some(project()), user()].into_iter().flatten().find(|path| path.is_file()))
}

pub(crate) fn read(path: &Path) -> Result<String, CommandError> {
    std::fs::read_to_string(path).map_err(|error| {
        CommandError::usage(
            anyhow::Error::new(error).context(format!("cannot read {}", path.display())),
        )
    })
}
