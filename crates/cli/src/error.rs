//! The error of a command: its message, its exit code and a hint.

use std::fmt;
use std::path::Path;

/// The kind of an error, which sets the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The input or the arguments are wrong: exit code 2.
    Usage,
    /// Any other failure: exit code 1.
    Failure,
    /// The command worked and has something to report, such as a failed check: exit code 1, printed as a note.
    Finding,
}

/// An error with advice, rendered on one line.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) kind: Kind,
    error: anyhow::Error,
    hint: Option<String>,
}

impl CommandError {
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: Kind::Usage, error: error.into(), hint: None }
    }

    pub(crate) fn failure(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: Kind::Failure, error: error.into(), hint: None }
    }

    pub(crate) fn finding(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: Kind::Finding, error: error.into(), hint: None }
    }

    /// Says that a file or a folder that the user named cannot be read.
    pub(crate) fn unreadable(path: &Path, error: std::io::Error) -> Self {
        Self::usage(anyhow::Error::new(error).context(format!("cannot read {}", path.display())))
    }

    /// Names the file that the error is about.
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.error = self.error.context(path.display().to_string());
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Everything on one line, as a log shows it; a cause may hold several.
        let mut line = format!("{:#}", self.error);
        if let Some(hint) = &self.hint {
            line.push_str("; ");
            line.push_str(hint);
        }
        f.write_str(&line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}
