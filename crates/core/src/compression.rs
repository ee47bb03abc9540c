//! Cuts large tool results to their head and tail, and keeps the error lines from between.

use std::collections::HashSet;

use crate::message::{Block, Message, ToolResult};
use crate::text::{Limit, head, tail};
use crate::tokens::Tokenizer;

/// Results above this many tokens are compressed (`context-window.md`, step 5).
pub const LARGE_RESULT_TOKENS: u32 = 2000;

const HEAD_LINES: usize = 10;
const TAIL_LINES: usize = 10;
/// Tokens of the head, and of the tail, where lines are too long to be counted; chosen so that both, the error lines
/// and the marker stay below [`LARGE_RESULT_TOKENS`].
const SIDE_TOKENS: u64 = 750;
/// Characters of the head, and of the tail, in the same case: six a token, more than text has, so that a line of blanks
/// stays short.
const SIDE_CHARACTERS: usize = 4500;
/// The most error lines that are added, and their most tokens; chosen as twice the lines of the head.
const ERROR_LINES: usize = 20;
const ERROR_TOKENS: u32 = 350;
/// The most characters of an error line; chosen to hold a long path and a sentence.
const ERROR_LINE_CHARACTERS: usize = 300;

patterns! {
    /// Errors, failures, refusals and security warnings: a line with one of them is worth keeping wherever it stands.
    ///
    /// Wider than [`crate::text::is_error_line`]: here twenty lines at most are kept, so a false one costs little.
    ERROR r"(?ix) (?: \b (?: error | exception ) | (?-i: [a-z0-9] (?: Error | Exception ) ) )s? \b
        | \b (?: panic(?:ked)? | traceback | fatal | fail(?:ed|s|ures?)? | denied | refused | abort(?:ed)? ) \b
        | \b exit(?:ed)? \s (?: with \s )? (?: code | status ) [\s:]* [1-9]
        | \b cve-\d | \b vulnerab | \b security \s warning";
    /// Lines that only say that nothing went wrong.
    NO_ERROR r"(?i)\b(?:0|no|zero)\s+(?:errors?|fail(?:ed|ures?)|exceptions?|vulnerab)";
}

/// Returns a smaller form of the text of a tool result, or `None` if it stays as it is.
///
/// Shape: the first ten lines, a marker with the number of lines and tokens, the last ten lines, as the document writes them;
/// then, as an addition to it, at most twenty lines from between that report errors, each as it stands.
/// Where there are twenty lines or fewer, or where these still have more than 2,000 tokens, the document's rule would
/// leave a giant line whole: there the head and the tail are counted in characters, and the marker says so.
/// The result is never larger than `text`, in tokens or in bytes, and compressing it again changes nothing.
/// Source: `context-window.md`, step 5.
pub fn compress_result(text: &str, tokenizer: Tokenizer) -> Option<String> {
    let tokens = tokenizer.count(text);
    if tokens <= LARGE_RESULT_TOKENS {
        return None;
    }
    let acceptable = |compressed: &String| {
        compressed.len() < text.len() && tokenizer.count(compressed) <= LARGE_RESULT_TOKENS
    };
    by_lines(text, tokens, tokenizer)
        .filter(acceptable)
        .or_else(|| by_characters(text, tokens, tokenizer).filter(acceptable))
}

/// Returns `message` with its large results compressed, or `None` if it stays as it is.
pub(crate) fn compress_message(message: &Message, tokenizer: Tokenizer) -> Option<Message> {
    message.with_blocks(|_, block| {
        let Block::ToolResult(result) = block else { return None };
        let text = compress_result(&result.text, tokenizer)?.into();
        Some(Block::ToolResult(ToolResult { text, ..result.clone() }))
    })
}

fn by_lines(text: &str, tokens: u32, tokenizer: Tokenizer) -> Option<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let hidden = lines.len().checked_sub(HEAD_LINES + TAIL_LINES).filter(|hidden| *hidden > 0)?;
    let (head, rest) = lines.split_at(HEAD_LINES);
    let (middle, tail) = rest.split_at(hidden);
    Some(format!(
        "{}\n\n[... {hidden} lines compressed ({tokens} tokens) ...]\n\n{}{}",
        head.join("\n"),
        tail.join("\n"),
        error_lines(middle.iter().copied(), tokenizer),
    ))
}

fn by_characters(text: &str, tokens: u32, tokenizer: Tokenizer) -> Option<String> {
    let (characters, tokens_each) =
        (Limit::Characters(SIDE_CHARACTERS), Limit::Tokens(tokenizer, SIDE_TOKENS));
    let head = crate::text::head(head(text, characters), tokens_each);
    let tail = crate::text::tail(tail(&text[head.len()..], characters), tokens_each);
    let middle = &text[head.len()..text.len() - tail.len()];
    let hidden = middle.chars().count();
    (hidden > 0).then(|| {
        let errors = error_lines(middle.split('\n'), tokenizer);
        format!(
            "{head}\n\n[... {hidden} characters compressed ({tokens} tokens) ...]\n\n{tail}{errors}"
        )
    })
}

/// Returns the different error lines among `lines` under a line that counts them; empty if there are none.
fn error_lines<'a>(lines: impl Iterator<Item = &'a str>, tokenizer: Tokenizer) -> String {
    let mut seen = HashSet::new();
    let (mut found, mut shown, mut tokens) = (0, 0, 0);
    let mut text = String::new();
    for line in lines {
        let Some(first) = ERROR.find(line).filter(|_| !NO_ERROR.is_match(line)) else { continue };
        if !seen.insert(line) {
            continue;
        }
        found += 1;
        if shown == ERROR_LINES {
            continue;
        }
        let around = around(line, first.start());
        let cost = tokenizer.count(&around);
        if tokens + cost <= ERROR_TOKENS {
            tokens += cost;
            shown += 1;
            text.push('\n');
            text.push_str(&around);
        }
    }
    if shown == 0 {
        return String::new();
    }
    format!("\n\n[... {shown} of {found} different error lines among the compressed ...]{text}")
}

/// Returns `line`, or of a long one the part around `place`, marked where it is cut.
fn around(line: &str, place: usize) -> String {
    let before: usize = line[..place].chars().count();
    let all = before + line[place..].chars().count();
    if all <= ERROR_LINE_CHARACTERS {
        return line.to_owned();
    }
    // A third stands before the match: the description of an error mostly follows the word.
    let start = before.saturating_sub(ERROR_LINE_CHARACTERS / 3).min(all - ERROR_LINE_CHARACTERS);
    let part: String = line.chars().skip(start).take(ERROR_LINE_CHARACTERS).collect();
    let ahead = if start > 0 { "[...] " } else { "" };
    let behind = if start + ERROR_LINE_CHARACTERS < all { " [...]" } else { "" };
    format!("{ahead}{part}{behind}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    const TOKENIZER: Tokenizer = Tokenizer::Estimate;

    fn compressed(text: &str) -> String {
        let found = compress_result(text, TOKENIZER).expect("a large result");
        assert_eq!(compress_result(&found, TOKENIZER), None, "compressed twice");
        found
    }

    /// Forty characters, so ten tokens, line break included.
    fn line(n: usize) -> String {
        format!("{n:039}\n")
    }

    #[test]
    fn more_than_two_thousand_tokens_become_head_and_tail() {
        let text: String = (0..200).map(line).collect();
        assert_eq!(compress_result(&text, TOKENIZER), None, "exactly 2,000");
        let text: String = (0..300).map(line).collect();
        let lines: Vec<&str> = text.split('\n').collect();
        assert_eq!(
            compressed(&text),
            format!(
                "{}\n\n[... 281 lines compressed (3000 tokens) ...]\n\n{}",
                lines[..10].join("\n"),
                lines[291..].join("\n")
            )
        );
    }

    #[test]
    fn a_giant_line_is_cut_by_characters() {
        let text = "ä".repeat(40_000);
        let side = "ä".repeat(3000);
        assert_eq!(
            compressed(&text),
            format!("{side}\n\n[... 34000 characters compressed (10000 tokens) ...]\n\n{side}")
        );
        let blanks = compress_result(&" ".repeat(300_000), Tokenizer::O200k { factor: 1.0 });
        assert!(blanks.is_some_and(|text| text.len() < 10_000), "blanks are many to a token");
        let many = format!("{}\n", "x".repeat(2000)).repeat(30);
        assert!(compressed(&many).contains("characters compressed"));
    }

    #[test]
    fn error_lines_from_between_survive() {
        let mut lines: Vec<String> = (0..300).map(line).collect();
        lines[3] = "error: in the head, not repeated\n".to_owned();
        lines[100] = "src/a.rs:7: TypeError: boom\n".to_owned();
        lines[120] = "test result: ok. 5 passed; 0 failed\n".to_owned();
        lines[130] = "src/a.rs:7: TypeError: boom\n".to_owned();
        lines[150] = "process exited with code 2\n".to_owned();
        lines[160] = "def error_handler(terror): # no report\n".to_owned();
        lines[200] = "3 vulnerabilities, see CVE-2020-1\n".to_owned();
        let found = compressed(&lines.concat());
        let (_, errors) = found.split_once("[... 3 of 3 different error lines").expect("errors");
        assert_eq!(
            errors,
            " among the compressed ...]\nsrc/a.rs:7: TypeError: boom\nprocess exited with code 2\n\
             3 vulnerabilities, see CVE-2020-1"
        );
    }

    #[test]
    fn many_or_long_error_lines_are_bounded_and_counted() {
        let lines: Vec<String> =
            (0..300).map(|n| format!("error number {n:04} ..........\n")).collect();
        let found = compressed(&lines.concat().repeat(2));
        assert!(found.contains("[... 20 of 300 different error lines"), "{found}");

        let long = format!("{}error: here {}", "a ".repeat(9000), "b ".repeat(9000));
        let (_, errors) = compressed(&long)
            .split_once("[... 1 of 1 ")
            .map(|(head, errors)| (head.len(), errors.to_owned()))
            .expect("the error inside the line");
        assert!(errors.contains("[...] a a") && errors.contains("error: here b b"), "{errors}");
    }

    #[test]
    fn only_large_results_of_a_message_change() {
        let large: String = (0..300).map(line).collect();
        let mut message = Message::result("1", large.clone());
        message.blocks.extend(Message::result("2", "small").blocks);
        let found = compress_message(&message, TOKENIZER).expect("one is large");
        assert!(
            compress_result(&large, TOKENIZER)
                .is_some_and(|text| *text == *found.results().next().expect("two results").text)
        );
        assert_eq!(found.blocks[1], message.blocks[1]);
        assert_eq!(compress_message(&Message::text(Role::User, large), TOKENIZER), None);
    }

    #[test]
    fn a_tokenizer_that_leaves_no_room_leaves_the_result_whole() {
        let dense = Tokenizer::Characters { per_token: 0.1 };
        assert_eq!(compress_result(&"x".repeat(220), dense), None);
    }
}
