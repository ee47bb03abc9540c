//! The command line's one error: what failed, for which exit code, and what to do about it.

use std::fmt;

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The input or the arguments are not what they should be: exit code 2.
    Usage,
    /// Something else failed: exit code 1.
    Failure,
    /// Nothing failed, and what was asked for was not done: exit code 1, told as a note.
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

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, whatever a cause holds: a log or a terminal shows it whole.
        let mut line = format!("{:#}", self.error);
        if let Some(hint) = &self.hint {
            line.push_str("; ");
            line.push_str(hint);
        }
        f.write_str(&line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}
