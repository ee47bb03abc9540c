//! Reads cascade files and prints their problems.

use std::path::Path;

use plimsoll_cascade::{Cascade, Problem, Severity};

use crate::error::CommandError;
use crate::output;

/// Reads a cascade file. Errors: the file is not readable text.
pub(crate) fn read(path: &Path) -> Result<(Option<Cascade>, Vec<Problem>), CommandError> {
    let bytes = std::fs::read(path).map_err(|error| {
        let said = format!("cannot read {}", path.display());
        CommandError::usage(anyhow::Error::new(error).context(said))
    })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        CommandError::usage(anyhow::anyhow!("{} is no text in UTF-8", path.display()))
    })?;
    Ok(plimsoll_cascade::parse(&text, &path.to_string_lossy()))
}

/// Writes a problem on one line, as compilers do.
pub(crate) fn line(path: &Path, problem: &Problem) -> String {
    let colour = match problem.severity {
        Severity::Error => output::BAD,
        Severity::Warning => output::WARN,
    };
    let word = problem.severity.as_str();
    let told = output::plain(&problem.to_string());
    // The word is coloured where it stands: after line and column.
    let told =
        told.replacen(&format!(" {word}: "), &format!(" {colour}{word}{}: ", output::RESET), 1);
    format!("{}:{told}\n", output::plain(&path.display().to_string()))
}
