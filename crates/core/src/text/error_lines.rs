//! Recognises lines that report an error or a security warning, so that no treatment loses them.

use super::cut::{Limit, head, tail};

patterns! {
    /// Words that begin a report of a failure, as tools write them: at a word boundary and with their usual continuation.
    ///
    /// A line that only mentions such a word (`handle_error(`, `0 errors`) is no report. Measured on recorded sessions, the
    /// bare keyword keeps 63–76 % of all result bytes, these forms keep under 3 %.
    REPORT concat!(
        r"(?:^|[^A-Za-z0-9_.])(?:",
        r"[A-Za-z_.]*(?:Error|Exception|Panic)(?:\[[A-Z0-9]+\])?: ",
        r"|(?:error|fatal|panic|critical|ERROR|FATAL|PANIC|CRITICAL)(?:\[[A-Z0-9]+\])?(?::|\]| TS[0-9]+:)",
        r"|(?:FAILED|FAIL)(?:[: ]|$)",
        r"|Traceback \(most recent call last\)",
        r"|panicked at |Segmentation fault|core dumped|undefined reference|command not found",
        r"|No such file or directory|Permission denied|Connection refused|not recognized as",
        r"|npm ERR!|Unhandled(?:PromiseRejection)?|Caused by:|AssertionError",
        r"|(?i:security warning|vulnerabilit(?:y|ies) found|deprecated and insecure)|CVE-[0-9]{4}-[0-9]+",
        r"|exit (?:code|status):? [1-9]|exited with code [1-9]|returned non-zero|[1-9][0-9]* (?:failed|failing|errors?)(?:[^A-Za-z_]|$)",
        r")"
    );
    MENTION "(?i-u:error|exception|failed)";
}

/// Returns whether `line` reports an error or a security warning.
pub fn is_error_line(line: &str) -> bool {
    // A line of a kilobyte is data; its ends are enough, and the work stays bounded.
    const ENDS: usize = 400;
    if line.len() <= 2 * ENDS {
        return REPORT.is_match(line);
    }
    let ends = Limit::Bytes(ENDS);
    REPORT.is_match(head(line, ends)) || REPORT.is_match(tail(line, ends))
}

/// Returns whether the literal rule of `auto-context.md` keeps `text`: it holds `error`, `exception` or `failed`.
pub fn mentions_error(text: &str) -> bool {
    MENTION.is_match(text)
}

/// Returns the lines of `text` that report errors, each once where it repeats in a row.
pub fn error_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut last = "";
    text.lines().filter(move |line| {
        let new = *line != last && is_error_line(line);
        if new {
            last = line;
        }
        new
    })
}

/// Adds to `shown` the lines of `text` that report errors and are not in it yet, each once.
pub fn with_error_lines(mut shown: String, text: &str) -> String {
    for line in text.lines().map(str::trim_end).filter(|line| is_error_line(line)) {
        if !shown.contains(line) {
            shown.push('\n');
            shown.push_str(line);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_told_from_mentions() {
        for report in [
            "error: could not compile `x`",
            "error[E0308]: mismatched types",
            "src/a.ts(3,4): error TS2304: Cannot find name",
            "ValueError: bad literal",
            "requests.exceptions.ConnectionError: refused",
            "Traceback (most recent call last):",
            "thread 'main' panicked at src/main.rs:4:5:",
            "FAILED tests/test_a.py::test_b - assert 1 == 2",
            "bash: foo: command not found",
            "3 failed, 12 passed",
            "npm ERR! code ENOENT",
            "found CVE-2024-12345 in libfoo",
            "process exited with code 2",
        ] {
            assert!(is_error_line(report), "{report}");
        }
        for mention in [
            "def handle_error(self):",
            "0 failed, 12 passed",
            "    raise_on_error=False,",
            "test result: ok. 0 errors",
            "import { ErrorBoundary } from './error'",
            "exit code: 0",
            "class MyError(Exception):",
        ] {
            assert!(!is_error_line(mention), "{mention}");
        }
    }

    #[test]
    fn long_lines_are_read_at_their_ends() {
        let line = format!("error: {}", "ö".repeat(5000));
        assert!(is_error_line(&line));
        assert!(is_error_line(&format!("{} 2 failed", "ö".repeat(5000))));
    }
}
