//! The log that SQLite keeps beside the file: whether it is still the one that was opened, and where it is put when another file
//! takes the place of the store.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::place::{Identity, beside, identity, log_of};

/// The state of the path of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogState {
    /// The log that was opened, or one of which nothing is known.
    Ours,
    Gone,
    Another,
}

/// The log that was opened.
#[derive(Debug, Default)]
pub(super) struct LogFile(Mutex<OpenedLog>);

#[derive(Debug, Default)]
struct OpenedLog {
    /// The file stays open: else the system may give its number to the log of another store. SQLite locks the database and
    /// the index of the log, never the log, so to close it takes no lock away.
    log: Option<(File, Identity)>,
    aside: Option<PathBuf>,
}

impl LogFile {
    fn known(&self) -> MutexGuard<'_, OpenedLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers which log is beside the store at `path`, which has it open.
    pub(super) fn remember(&self, path: &Path) {
        self.known().log = File::open(log_of(path)).ok().and_then(|file| {
            let identity = identity(&file.metadata().ok()?)?;
            Some((file, identity))
        });
    }

    /// Returns what is at the path of the log now.
    pub(super) fn state(&self, path: &Path) -> LogState {
        match &self.known().log {
            None => LogState::Ours,
            Some((_, log)) => match std::fs::metadata(log_of(path)) {
                Ok(found) if identity(&found).as_ref() == Some(log) => LogState::Ours,
                Err(error) if error.kind() == ErrorKind::NotFound => LogState::Gone,
                _ => LogState::Another,
            },
        }
    }

    /// Moves the log away from another file that is at `path` now, so that it is not applied to that one.
    ///
    /// Returns where the log is, also when it was moved before. A log that was not opened here stays: it may be that of the
    /// other file.
    pub(super) fn set_aside(&self, path: &Path) -> Option<PathBuf> {
        if self.known().log.is_some() && self.state(path) == LogState::Ours {
            let aside = free_name(&beside(&log_of(path), ".of-another-file"));
            if std::fs::rename(log_of(path), &aside).is_ok() {
                // The index is made anew from a log; one without its log would say that there is one.
                let _ = std::fs::remove_file(beside(path, "-shm"));
                self.known().aside = Some(aside);
            }
        }
        self.known().aside.clone()
    }

    /// Forgets a log whose content is in the database, when no connection has it open any more.
    ///
    /// Its index goes too: another process that still has it must not take it for the index of the next log.
    pub(super) fn end_copied(&self, path: &Path) {
        let _ = std::fs::remove_file(beside(path, "-shm"));
        *self.known() = OpenedLog::default();
    }

    /// Forgets a log that no connection has open any more, and puts back one that was set aside.
    pub(super) fn end(&self, path: &Path) {
        let OpenedLog { aside, .. } = std::mem::take(&mut *self.known());
        if let Some(aside) = aside
            && !log_of(path).exists()
        {
            // If it cannot be moved it stays where the error said that it is.
            let _ = std::fs::rename(aside, log_of(path));
        }
    }
}

/// Returns `path`, or that with a number if something is there.
fn free_name(path: &Path) -> PathBuf {
    let numbered = (2..).map(|number: u32| beside(path, &format!("-{number}")));
    let mut names = std::iter::once(path.to_owned()).chain(numbered);
    names.find(|name| name.symlink_metadata().is_err()).unwrap_or_else(|| path.to_owned())
}
