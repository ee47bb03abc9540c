//! The kinds of content that a result can be, and the lines that show the structure of each.

use crate::file_access::{Access, file_access};
use crate::message::ToolCall;

/// What a result shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentKind {
    Source,
    /// Names of files, one a line.
    Listing,
    /// Hits of a search, one a line.
    Search,
    Diff,
    /// Output of a command or of tests.
    Log,
    Json,
    /// Rows with a header.
    Table,
    /// Prose with headings.
    Page,
}

/// Endings of files by their content; a file with another ending is source.
const ENDINGS: [(&[&str], ContentKind); 4] = [
    (&["json", "jsonl", "ndjson"], ContentKind::Json),
    (&["csv", "tsv"], ContentKind::Table),
    (&["md", "mdx", "txt", "rst", "html", "htm", "adoc"], ContentKind::Page),
    (&["log", "out"], ContentKind::Log),
];

/// Words of tools and commands by the content of their results; the first that a call holds decides.
const WORDS: [(&[&str], ContentKind); 4] = [
    (&["diff", "patch", "show"], ContentKind::Diff),
    (&["grep", "rg", "search", "ag"], ContentKind::Search),
    (&["ls", "find", "glob", "tree", "fd", "list"], ContentKind::Listing),
    (&["fetch", "webfetch", "browse", "curl", "web"], ContentKind::Page),
];

patterns! {
    /// The beginning of a definition, behind the number that a tool may write before the line.
    SIGNATURE concat!(
        r"^(?:\s*\d+[→|:\t]\s?)?\s*(?:#\[|@)?(?:(?:pub(?:\([^)]*\))?|export|default|async|static|abstract|private|public|protected|final|unsafe|override|const)\s+)*",
        r"(?:fn|def|class|struct|enum|trait|impl|interface|type|function|func|module|mod|namespace|package|macro_rules!|describe|defmodule|defp?)\b"
    );
    DIFF_HEAD r"^(?:diff |\+\+\+ |--- |@@ |index |commit )";
    HEADING r"^(?:#{1,6} |={3,}|<h[1-6])";
    /// Sums that tools print, and warnings.
    SUMMARY r"(?i)\b\d+ (?:passed|failed|skipped|tests?|warnings?|errors?|files?|insertions?|problems?)\b|^(?:warning|warn)\b|^(?:=+|-+) .+ (?:=+|-+)$|^(?:total|ok|done|finished)\b";
    /// A field near the edge of a document that is printed over several lines.
    OUTER_FIELD r#"^ {0,4}(?:"[^"]+":|[\[\]{}])"#;
}

impl ContentKind {
    /// Returns what a result shows, by the call that it answers, else by its own text.
    pub(crate) fn of(call: Option<&ToolCall>, text: &str) -> Self {
        if text.starts_with("diff --git") || text.contains("\n@@ -") {
            return Self::Diff;
        }
        if let Some(call) = call {
            let file = file_access(call).filter(|(_, access)| *access != Access::Changes);
            if let Some((file, _)) = file {
                return of_file(&file);
            }
            let words = format!("{} {}", call.name, call.arguments).to_ascii_lowercase();
            let found = words
                .split(|letter: char| !letter.is_ascii_alphanumeric())
                .take(WORDS_READ)
                .find_map(|word| {
                    WORDS.iter().find(|(known, _)| known.contains(&word)).map(|(_, kind)| *kind)
                });
            if let Some(content) = found {
                return content;
            }
        }
        match text.trim_start().bytes().next() {
            Some(b'{' | b'[') => Self::Json,
            _ => Self::Log,
        }
    }

    /// Returns the lines that show the structure, the most telling first.
    pub(crate) fn structure(self, lines: &[&str]) -> Vec<usize> {
        let all = 0..lines.len();
        match self {
            Self::Source => {
                let mut found: Vec<usize> =
                    all.filter(|&at| SIGNATURE.is_match(lines[at])).collect();
                found.sort_by_key(|&at| indentation(lines[at]));
                found
            }
            Self::Diff => all.filter(|&at| DIFF_HEAD.is_match(lines[at])).collect(),
            Self::Search => {
                let file = |at: usize| lines[at].split(':').next();
                all.filter(|&at| at == 0 || file(at) != file(at - 1)).collect()
            }
            Self::Log => all.filter(|&at| SUMMARY.is_match(lines[at])).collect(),
            Self::Json => all.filter(|&at| OUTER_FIELD.is_match(lines[at])).collect(),
            Self::Page => all.filter(|&at| HEADING.is_match(lines[at])).collect(),
            Self::Listing | Self::Table => Vec::new(),
        }
    }
}

/// Words of a call that are read for its kind: the tool, the program and its first arguments (chosen).
const WORDS_READ: usize = 12;

fn of_file(path: &str) -> ContentKind {
    let ending = path.rsplit('.').next().unwrap_or("").to_ascii_lowercase();
    let known = ENDINGS.iter().find(|(endings, _)| endings.contains(&ending.as_str()));
    known.map_or(ContentKind::Source, |(_, content)| *content)
}

fn indentation(line: &str) -> usize {
    let line = line.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ' ');
    let line = line.trim_start_matches(['→', '|', ':']);
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, arguments: &str, text: &str) -> ContentKind {
        let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() };
        ContentKind::of(Some(&call), text)
    }

    #[test]
    fn the_call_tells_the_kind_before_the_text() {
        assert_eq!(of("Read", r#"{"file_path":"a/b.rs"}"#, "x"), ContentKind::Source);
        assert_eq!(of("Read", r#"{"file_path":"a/b.json"}"#, "{"), ContentKind::Json);
        assert_eq!(of("Read", r#"{"file_path":"README.md"}"#, "# x"), ContentKind::Page);
        assert_eq!(of("bash", r#"{"command":"rg -n parse src"}"#, "a:1:x"), ContentKind::Search);
        assert_eq!(of("bash", r#"{"command":"ls -la"}"#, "total 3"), ContentKind::Listing);
        assert_eq!(of("bash", r#"{"command":"git show"}"#, "commit 1"), ContentKind::Diff);
        assert_eq!(of("bash", r#"{"command":"cargo test"}"#, "ok"), ContentKind::Log);
        assert_eq!(of("bash", r#"{"command":"make"}"#, "diff --git a b"), ContentKind::Diff);
        assert_eq!(ContentKind::of(None, "[1]"), ContentKind::Json);
    }

    #[test]
    fn structure_is_the_skeleton_of_its_kind() {
        let source = [
            "use a;",
            "    12→    fn inner() {",
            "     9→pub struct Plan {",
            "x",
            "export default class A {",
        ];
        assert_eq!(ContentKind::Source.structure(&source), [2, 4, 1]);
        let hits = ["a.rs:1:x", "a.rs:2:y", "b.rs:1:z"];
        assert_eq!(ContentKind::Search.structure(&hits), [0, 2]);
        let log = ["compiling", "test result: ok. 12 passed; 0 failed", "warning: unused"];
        assert_eq!(ContentKind::Log.structure(&log), [1, 2]);
        assert_eq!(ContentKind::Diff.structure(&["@@ -1 +1 @@", "-a", "+b"]), [0]);
        assert_eq!(ContentKind::Page.structure(&["# A", "b", "## C"]), [0, 2]);
        assert_eq!(
            ContentKind::Json.structure(&["{", "  \"a\": 1,", "          \"b\": 2", "}"]),
            [0, 1, 3]
        );
    }
}
