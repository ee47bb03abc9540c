//! The only place that prints: data to standard output, everything else to standard error.

use std::cell::RefCell;
use std::io::{ErrorKind, Write as _};

use plimsoll_core::safety::{Handling, redact};
use plimsoll_core::text::{Limit, tail};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::error::{CommandError, Kind};

/// The output of a command that another program runs.
#[derive(Debug, Clone, Default)]
pub struct Captured {
    /// The exit code.
    pub code: u8,
    /// Standard output.
    pub data: Vec<u8>,
    /// The lines of standard error, without colours; the last one of a failure is its error.
    pub messages: Vec<String>,
}

thread_local! {
    /// The output of the command that this thread runs for another program.
    static CAPTURED: RefCell<Option<Captured>> = const { RefCell::new(None) };
}

/// Runs a command on this thread and returns its output, of which nothing is printed.
pub(crate) fn captured(command: impl FnOnce() -> u8) -> Captured {
    CAPTURED.with_borrow_mut(|captured| *captured = Some(Captured::default()));
    let code = command();
    let captured = CAPTURED.with_borrow_mut(Option::take).unwrap_or_default();
    Captured { code, ..captured }
}

/// Returns whether `take` took a piece of output for another program.
fn is_captured(take: impl FnOnce(&mut Captured)) -> bool {
    CAPTURED.with_borrow_mut(|captured| captured.as_mut().map(take).is_some())
}

/// Writes data, without colours where nobody sees them; a closed pipe is no failure.
pub(crate) fn data(text: &str) -> Result<(), CommandError> {
    let plain = |captured: &mut Captured| {
        captured.data.extend(anstream::adapter::strip_str(text).to_string().bytes());
    };
    if is_captured(plain) {
        return Ok(());
    }
    write(anstream::stdout().lock(), text.as_bytes())
}

/// Writes one line to standard error; nothing helps if that fails.
fn message(line: &str) {
    let plain = |captured: &mut Captured| {
        captured.messages.push(anstream::adapter::strip_str(line).to_string());
    };
    if !is_captured(plain) {
        let _ = writeln!(anstream::stderr().lock(), "{line}");
    }
}

/// Writes a page for a reader: no line is wider than the terminal.
pub(crate) fn page(text: &str) -> Result<(), CommandError> {
    match width() {
        Some(width) => data(&wrapped(text, width)),
        None => data(text),
    }
}

/// Returns the columns of the terminal, or those that `COLUMNS` names; `None` where the output goes elsewhere.
#[expect(clippy::disallowed_methods, reason = "the width of the terminal is the output's own")]
pub(crate) fn width() -> Option<usize> {
    /// A narrower terminal cannot show a table at all (chosen).
    const LEAST: usize = 20;
    let named = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let seen =
        || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into());
    named.or_else(seen).filter(|width| *width >= LEAST)
}

/// Breaks lines that are wider than `width` at a blank, and begins what follows under the line's own beginning.
///
/// Colours have no width.
fn wrapped(text: &str, width: usize) -> String {
    /// Columns by which the rest of a line is further in (chosen).
    const INDENT: usize = 2;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let plain = anstream::adapter::strip_str(line).to_string();
        if UnicodeWidthStr::width(plain.as_str()) <= width {
            out.push_str(line);
        } else {
            let margin = plain.chars().take_while(|c| *c == ' ').count().min(width / 3) + INDENT;
            wrap(&mut out, line, width, margin);
        }
        out.push_str(end);
    }
    out
}

fn wrap(out: &mut String, line: &str, width: usize, margin: usize) {
    // The columns so far, and the last blank that can be a break: its place in `out`, and the columns up to it.
    let (mut columns, mut blank, mut is_escape) = (0, None, false);
    for c in line.chars() {
        if is_escape || c == '\u{1b}' {
            is_escape = !c.is_ascii_alphabetic();
            out.push(c);
            continue;
        }
        let own = UnicodeWidthChar::width(c).unwrap_or(0);
        if columns + own > width {
            let indent = format!("\n{:margin$}", "");
            match blank.take() {
                Some((place, before)) => {
                    out.replace_range(place..=place, &indent);
                    columns = margin + columns - before - 1;
                }
                None => {
                    out.push_str(&indent);
                    columns = margin;
                }
            }
            if c == ' ' && columns == margin {
                continue;
            }
        }
        if c == ' ' && columns > margin {
            blank = Some((out.len(), columns));
        }
        out.push(c);
        columns += own;
    }
}

fn write(mut out: impl std::io::Write, bytes: &[u8]) -> Result<(), CommandError> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CommandError::failure(anyhow::Error::new(error).context("cannot write the output")))
        }
        _ => Ok(()),
    }
}

/// Returns `text` with each secret in it redacted: an address may hold a password, and a response a key.
pub(crate) fn without_secrets(text: &str) -> String {
    redact(text, Handling::SECRETS).0.into_owned()
}

/// Writes one line of warning.
pub(crate) fn warning(text: &str) {
    message(&format!("{WARN}warning{RESET}: {}", plain(&without_secrets(text))));
}

/// Writes one line of report, for commands whose standard output is the result itself.
pub(crate) fn note(text: &str) {
    message(&plain(text));
}

/// Writes one line of progress with its colours; the caller cleans foreign text ([`plain`], [`line()`]).
pub(crate) fn progress(text: &str) {
    message(text);
}

/// Writes a document as indented JSON.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<(), CommandError> {
    let mut text = serde_json::to_string_pretty(document).map_err(CommandError::failure)?;
    text.push('\n');
    data(&text)
}

/// Writes a document as JSON where that is asked for, else as text.
pub(crate) fn show(
    is_json: bool,
    document: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), CommandError> {
    if is_json { json(document) } else { page(&text()) }
}

/// Writes bytes as they are; a closed pipe is no failure.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), CommandError> {
    if is_captured(|captured| captured.data.extend(bytes)) {
        return Ok(());
    }
    write(std::io::stdout().lock(), bytes)
}

/// Returns whether colours written to standard output will be seen.
pub(crate) fn is_coloured() -> bool {
    !is_captured(|_| {})
        && anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

/// Renders an error on one line and returns its exit code.
pub(crate) fn failure(error: &CommandError) -> u8 {
    let (word, code) = match error.kind {
        Kind::Usage => (format!("{BAD}error{RESET}"), 2),
        Kind::Failure => (format!("{BAD}error{RESET}"), 1),
        Kind::Finding => (format!("{WARN}note{RESET}"), 1),
    };
    message(&format!("{word}: {}", plain(&without_secrets(&error.to_string()))));
    code
}

/// Prints a message of the argument parser: help to standard output, errors as one line to standard error.
pub(crate) fn usage(error: &clap::Error) -> u8 {
    let code = error.exit_code().clamp(0, 2) as u8;
    if !error.use_stderr()
        || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        if !is_captured(|captured| captured.data.extend(error.to_string().bytes())) {
            let _ = error.print();
        }
        return code;
    }
    let rendered = error.to_string();
    let told: Vec<&str> = rendered
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let told = told.join(" ");
    let told = told.strip_prefix("error: ").unwrap_or(&told);
    message(&format!("{BAD}error{RESET}: {}; `--help` tells more", plain(told)));
    code
}

pub(crate) const RESET: &str = "\x1b[0m";
pub(crate) const BOLD: &str = "\x1b[1m";
pub(crate) const DIM: &str = "\x1b[2m";
pub(crate) const BAD: &str = "\x1b[31m";
pub(crate) const GOOD: &str = "\x1b[32m";
pub(crate) const WARN: &str = "\x1b[33m";

/// Returns `text` with each control character replaced, so that no session can move the cursor or colour the terminal.
///
/// Marks that change the direction of writing go too: they can make a line look like another.
pub(crate) fn plain(text: &str) -> String {
    let replaced = |c: char| match c {
        '\t' => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(replaced).collect()
}

/// Returns `text` on one plain line of at most `most` characters, an ellipsis included.
pub(crate) fn line(text: &str, most: usize) -> String {
    plain(&plimsoll_core::text::line(text, most))
}

/// Returns the end of a long name in plain characters: the end of a path says the most.
pub(crate) fn ending(name: &str, most: usize) -> String {
    let name = plain(name);
    if name.chars().count() <= most {
        return name;
    }
    format!("…{}", tail(&name, Limit::Characters(most - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_lines_break_at_blanks_and_lose_nothing() {
        assert_eq!(wrapped("  a bc def\nx\n", 8), "  a bc\n    def\nx\n");
        assert_eq!(wrapped("123456789012", 8), "12345678\n  9012");
        let coloured = format!("{BOLD}name{RESET}      12    3456");
        assert_eq!(wrapped(&coloured, 40), coloured);
        for width in 20..60 {
            let text =
                "alpha  beta 日本語日本語日本語 gamma/delta/epsilon/zeta/eta/theta/iota  kappa";
            let found = wrapped(text, width);
            let widest = found.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
            assert!(widest <= width, "{width}: {found}");
            let letters =
                |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(letters(&found), letters(text));
        }
    }

    #[test]
    fn lines_are_plain_and_short() {
        assert_eq!(line("a\n\tb  \u{1b}[31mred", 80), "a b \u{fffd}[31mred");
        assert_eq!(line("123456", 6), "123456");
        assert_eq!(line("1234567", 6), "12345…");
        assert_eq!(plain("a\u{202e}b\0"), "a\u{fffd}b\u{fffd}");
    }
}
