//! Where the store's file is, and whether it is still the one that was opened.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use plimsoll_engine::StoreError;

/// Whether the file may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenMode {
    Write,
    Read,
}

/// The file that was opened.
#[derive(Debug, Clone)]
pub(super) struct StoreFile {
    pub(super) path: PathBuf,
    pub(super) mode: OpenMode,
    /// Device and number of the file; none where the system has no such numbers, and there a file in use cannot be deleted.
    identity: Option<(u64, u64)>,
}

impl StoreFile {
    /// Remembers which file is at `path` now.
    pub(super) fn new(path: &Path, mode: OpenMode) -> Self {
        let identity = std::fs::metadata(path).ok().and_then(|found| identity(&found));
        Self { path: path.to_owned(), mode, identity }
    }

    /// Refuses if another file, or none, is at the path: what is written to a deleted file is lost when the process ends.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let why = match std::fs::metadata(&self.path) {
            Ok(found) if self.identity.is_none() || identity(&found) == self.identity => {
                return Ok(());
            }
            Ok(_) => "another file was put in its place; restart to use that one".to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "the file was deleted or moved; put it back, or restart to begin a new one"
                    .to_owned()
            }
            Err(error) => error.to_string(),
        };
        Err(StoreError::Unavailable { why, retry_after: None })
    }

    /// Returns whether a log with changes lies beside the file.
    pub(super) fn has_log(&self) -> bool {
        std::fs::metadata(log_of(&self.path)).is_ok_and(|log| log.len() > 0)
    }

    /// Names the file in an error that says what is wrong with it.
    pub(super) fn named(&self, error: StoreError) -> StoreError {
        let path = self.path.display();
        match error {
            StoreError::Unavailable { why, retry_after } => {
                StoreError::Unavailable { why: format!("{path}: {why}"), retry_after }
            }
            StoreError::Corrupt { what } => StoreError::Corrupt { what: format!("{path}: {what}") },
            error => error,
        }
    }
}

/// Returns the path of the log that SQLite keeps beside a file.
pub(super) fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// Returns the path of a file beside another, whose name goes on with `end`.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
fn identity(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}
