//! Where the store's file is, and whether it is still the one that was opened.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_engine::StoreError;

use super::failure::{CANNOT_OPEN, CANNOT_WRITE};
use super::log_file::{LogFile, LogState};
use super::others::OtherConnections;

/// Device and number of a file.
pub(super) type Identity = (u64, u64);

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
    /// None where the system has no such numbers, and there a file in use cannot be deleted.
    identity: Option<Identity>,
    pub(super) log: Arc<LogFile>,
    pub(super) others: Arc<OtherConnections>,
}

impl StoreFile {
    /// Remembers which file is at `path` now.
    pub(super) fn new(path: &Path, mode: OpenMode) -> Self {
        let identity = std::fs::metadata(path).ok().and_then(|found| identity(&found));
        let path = path.to_owned();
        Self { path, mode, identity, log: Arc::default(), others: Arc::default() }
    }

    /// Refuses if another file, or none, is at the path of the file or of its log: what is written to a deleted file is lost
    /// when the process ends.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.check_file()?;
        self.check_log(self.log.state(&self.path))
    }

    /// Refuses a state of the log in which nothing may be read or written.
    pub(super) fn check_log(&self, state: LogState) -> Result<(), StoreError> {
        let log = log_of(&self.path);
        let why = match state {
            LogState::Ours => return Ok(()),
            LogState::Gone => format!("its log {} was deleted or moved", log.display()),
            LogState::Another => format!(
                "another file was put in the place of its log {}; put the log back, or restart without it",
                log.display()
            ),
        };
        Err(StoreError::Unavailable { why, retry_after: None })
    }

    /// Refuses if another file, or none, is at the path of the file itself.
    ///
    /// The log is moved away from another file at once: the next program that opens that file would apply it.
    pub(super) fn check_file(&self) -> Result<(), StoreError> {
        let why = match std::fs::metadata(&self.path) {
            Ok(found) if self.identity.is_none() || identity(&found) == self.identity => {
                return Ok(());
            }
            Ok(_) => {
                let mut why =
                    "another file was put in its place; restart to use that one".to_owned();
                if let Some(aside) = self.log.set_aside(&self.path) {
                    why.push_str("; the log of the store that was opened is kept as ");
                    why.push_str(&aside.display().to_string());
                }
                why
            }
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
        named(&self.path, error)
    }
}

/// Names the file at `path` in an error that says what is wrong with it and does not name it yet.
pub(super) fn named(path: &Path, error: StoreError) -> StoreError {
    let name = path.display().to_string();
    let with_name = |text: String| {
        if says(&text, &name) { text } else { format!("{name}: {text}{}", cause(path, &text)) }
    };
    match error {
        StoreError::Unavailable { why, retry_after } => {
            StoreError::Unavailable { why: with_name(why), retry_after }
        }
        StoreError::Corrupt { what } => StoreError::Corrupt { what: with_name(what) },
        error => error,
    }
}

/// Returns whether a text names a path; a short one such as `p` may also be a part of a word.
fn says(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        before.is_none_or(char::is_whitespace)
            && after.is_none_or(|end| end.is_whitespace() || ":;,".contains(end))
    })
}

/// Returns why a file cannot be opened or written, which SQLite does not say.
///
/// The file is looked at and not opened: to close it again would take away the locks that this process has on it.
fn cause(path: &Path, what: &str) -> String {
    if what != CANNOT_OPEN && what != CANNOT_WRITE {
        return String::new();
    }
    match std::fs::metadata(path) {
        Err(error) => format!(": {error}"),
        Ok(found) if !found.is_file() => ": it is no file".to_owned(),
        Ok(found) if found.permissions().readonly() => ": it may only be read".to_owned(),
        Ok(_) => {
            ": this user may not write it or in its folder, or the file system is full or read-only"
                .to_owned()
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
pub(super) fn identity(found: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
pub(super) fn identity(_: &Metadata) -> Option<Identity> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_file_once() {
        let check = |path: &str, what: &str, expected: &str| {
            let error = named(Path::new(path), StoreError::Corrupt { what: what.to_owned() });
            let StoreError::Corrupt { what } = error else { panic!("{error:?}") };
            assert_eq!(what, expected);
        };
        check("p", "a page is damaged", "p: a page is damaged");
        check("p", "p: it is no file", "p: it is no file");
        check("a b.db", "a b.db is damaged", "a b.db is damaged");
        let none = Path::new("none/store.db");
        let why = CANNOT_OPEN.to_owned();
        let error = named(none, StoreError::Unavailable { why, retry_after: None }).to_string();
        assert!(error.contains("none/store.db: the file cannot be opened: "), "{error}");
    }
}
