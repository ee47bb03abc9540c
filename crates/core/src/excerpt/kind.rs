//! Kinds of content, and the lines of each that a reader needs to know what was there.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use crate::message::ToolCall;

/// What a result holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Json,
    /// Logs and the output of tests and builds.
    Log,
    /// Hits of a search: `path:line: text`.
    Search,
    /// A file, or a part of one.
    File,
    Diff,
    /// Names, one a line.
    Listing,
    Table,
    Prose,
}

static HIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:\S*[/.]\S*?[:-])?[0-9]+[:-]").expect("the form of a search hit is valid")
});
static LOG_LINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^\s*(?:\[?[0-9]{2,4}[-:/][0-9]{2}[-:/ ]|[✓✗×✔✘]|PASS|FAIL|ok |not ok|test |INFO|DEBUG|WARN|ERROR",
        r"|(?:Compiling|Running|Finished|Downloading|Installing|Building) |[=-]{5,}|\[[0-9]+/[0-9]+\])"
    ))
    .expect("the form of a log line is valid")
});
static NUMBERED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*[0-9]+(?:→|\t|: |\|)").expect("the form of a numbered line is valid")
});
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"[{};,(\[:]\s*$|^\s*[)}\]]|^\s*(?:#|//|/\*|\*|--|@)|[A-Za-z0-9_)\]] (?:=|\+=|=>|->|:=|==|<-|\|>) ",
        r"|^\s*(?:return|if|else|elif|end|for|while|try|case|raise|throw|await|yield|with|do|use|import|from)\b|</?[A-Za-z]"
    ))
    .expect("the form of a line of code is valid")
});

/// Lines that are looked at to tell a kind; more would not change the shares by much.
const SAMPLE: usize = 200;

/// Tells what kind of content a result is, by its text, and by its call where the text leaves it open.
pub fn kind_of(text: &str, call: Option<&ToolCall>) -> Kind {
    let trimmed = text.trim_start();
    if trimmed.starts_with("diff --git") || trimmed.starts_with("--- ") && text.contains("\n@@ ") {
        return Kind::Diff;
    }
    if trimmed.starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(trimmed.trim_end()).is_ok()
    {
        return Kind::Json;
    }
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.trim().is_empty()).take(SAMPLE).collect();
    let share = |test: &dyn Fn(&str) -> bool| {
        lines.iter().filter(|line| test(line)).count() as f64 / lines.len().max(1) as f64
    };
    if share(&|line| line.starts_with("@@ ") || line.starts_with(['+', '-'])) > 0.3
        && text.contains("\n@@ ")
    {
        return Kind::Diff;
    }
    if share(&|line| NUMBERED.is_match(line)) > 0.7 {
        return Kind::File;
    }
    if share(&|line| HIT.is_match(line)) > 0.5 {
        return Kind::Search;
    }
    if share(&|line| line.matches('|').count() > 1 || line.matches('\t').count() > 1) > 0.6 {
        return Kind::Table;
    }
    let listed = |line: &str| {
        let words = line.split_whitespace().count();
        words == 1 && !line.contains(['{', '}', '(', ')', ';', '='])
            || line.len() > 10
                && line.starts_with(['-', 'd', 'l'])
                && line[1..].bytes().take(9).all(|byte| b"rwxst-".contains(&byte))
    };
    if share(&listed) > 0.6 {
        return Kind::Listing;
    }
    if share(&|line| LOG_LINE.is_match(line)) > 0.3 {
        return Kind::Log;
    }
    if reads_a_file(call) || share(&|line| CODE.is_match(line)) > 0.4 {
        return Kind::File;
    }
    if share(&|line| line.split_whitespace().count() >= 6) > 0.5 {
        return Kind::Prose;
    }
    Kind::Log
}

/// Tells whether a call reads a file, by the tool's name or the command it runs.
fn reads_a_file(call: Option<&ToolCall>) -> bool {
    static READER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b(?:cat|sed -n|head|tail|nl|bat)\b").expect("names of programs are valid")
    });
    call.is_some_and(|call| {
        call.name.to_ascii_lowercase().contains("read") || READER.is_match(&call.arguments)
    })
}

/// Marks the lines of a kind's skeleton in `keep`.
pub(super) fn keep_skeleton<'t>(
    kind: Kind,
    count: usize,
    line: impl Fn(usize) -> &'t str,
    keep: &mut [bool],
) {
    let worded = |at: &usize| line(*at).bytes().any(|byte| byte.is_ascii_alphanumeric());
    let mut first = |n: usize| (0..count).filter(worded).take(n).for_each(|at| keep[at] = true);
    match kind {
        // The header says what the columns are, the first row what a row looks like.
        Kind::Table => first(2),
        _ => first(1),
    }
    match kind {
        // The last line of a run is its verdict.
        Kind::Log => {
            if let Some(last) = (0..count).rev().find(worded) {
                keep[last] = true;
            }
        }
        Kind::Diff => {
            for (at, keep) in keep.iter_mut().enumerate() {
                *keep |= line(at).starts_with("diff --git");
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Kind) {
        assert_eq!(kind_of(text, None), expected, "{text}");
    }

    #[test]
    fn kinds_are_told_by_content() {
        check("{\"a\": [1, 2]}\n", Kind::Json);
        check("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", Kind::Diff);
        check("src/a.rs:12:fn main() {\nsrc/b.rs:3:    main();\n", Kind::Search);
        check("     1→use std;\n     2→\n     3→fn main() {\n", Kind::File);
        check("src/\nsrc/main.rs\nCargo.toml\n", Kind::Listing);
        check(
            "-rw-r--r-- 1 me me 12 Jan 1 a.txt\ndrwxr-xr-x 2 me me 40 Jan 1 src\n",
            Kind::Listing,
        );
        check("| a | b |\n|---|---|\n| 1 | 2 |\n", Kind::Table);
        check("test a ... ok\ntest b ... FAILED\n", Kind::Log);
        check("fn main() {\n    let x = 1;\n}\n", Kind::File);
        check(
            "This is a sentence of several words.\nAnd this is another one of them.\n",
            Kind::Prose,
        );
        check("", Kind::Log);
    }
}
