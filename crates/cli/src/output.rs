//! The only place that prints: data to standard output, everything else to standard error.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use crate::error::{CommandError, Kind};

/// Writes data, colours stripped where nobody looks; a closed pipe is no failure.
pub(crate) fn data(text: &str) -> Result<(), CommandError> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CommandError::failure(anyhow::Error::new(error).context("cannot write the output")))
        }
        _ => Ok(()),
    }
}

/// Writes one line of warning.
pub(crate) fn warning(text: &str) {
    // Nothing can be done about a standard error that cannot be written.
    let _ = writeln!(anstream::stderr().lock(), "{WARN}warning{RESET}: {text}");
}

/// Renders an error on one line and returns its exit code.
pub(crate) fn failure(error: &CommandError) -> ExitCode {
    let _ = writeln!(anstream::stderr().lock(), "{BAD}error{RESET}: {error}");
    ExitCode::from(match error.kind {
        Kind::Usage => 2,
        Kind::Failure => 1,
    })
}

/// Prints what the argument parser says: help to standard output, mistakes to standard error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    ExitCode::from(error.exit_code().clamp(0, 2) as u8)
}

pub(crate) const RESET: &str = "\x1b[0m";
pub(crate) const BOLD: &str = "\x1b[1m";
pub(crate) const DIM: &str = "\x1b[2m";
pub(crate) const BAD: &str = "\x1b[31m";
pub(crate) const GOOD: &str = "\x1b[32m";
pub(crate) const WARN: &str = "\x1b[33m";

/// Writes a number with a comma at each thousand.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
