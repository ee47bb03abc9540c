//! Own words: the parts of a text that its author wrote in this message.
//!
//! Structure decides, never what a text claims. Blocks in tags, fences, quoted lines, mail below its heading, transcripts,
//! documents and the texts of agents' clients are quotations of their source, and nothing of them is their author's word.

use std::ops::Range;

patterns! {
    /// A tag that opens or closes a block: not a type parameter, which stands right behind a letter.
    TAG r"(?:<|&lt;)(/?)([A-Za-z][A-Za-z0-9_:.-]*)(?:\s[^<>]*?)?(/?)(?:>|&gt;)";
    MAIL r"(?i)^\s*(?:on .{6,120} wrote:|-{2,} ?(?:original|forwarded) message|begin forwarded message|from: .*@|(?:from|sent|von|gesendet): \S)";
    /// A line of a talk: a time or a name in front of what somebody said.
    SPEAKER r"^\s*(?:[-*] )?(?:\[[^\]]{1,40}\]\s*)?(?:\*\*)?@?([A-Z][\w.'-]*(?: [A-Z(@][\w.'()-]*){0,2})(?:\*\*)?(?: \([^)]{1,40}\))?:(?:\*\*)?\s";
    TIMED r"^\s*\[?\d{1,4}[-:/]\d{1,2}[-:/]?\d{0,4}";
    /// The end of a line that introduces a text of others, up to the end of the message.
    INTRODUCES r"(?i)\b(?:issue|ticket|pr|pull request|e-?mail|mail|message|comment|review|readme|docs?|document(?:ation)?|logs?|output|transcript|summary|report|article|post|reply|answer|response|quote|thread|discussion|spec(?:ification)?|text|description|changelog|chat|conversation|paste|slack|forwarded)\b[^.!?:]{0,60}:[*_]{0,2}$";
    /// A text of others in the same line, which is to be worked on.
    WORKED_ON r"(?i)\b(?:translate|proof-?read|summari[sz]e|rephrase|paraphrase|rewrite|reword|shorten|spell-?check|correct|edit|polish|explain|analy[sz]e|classify)\b[^:.?!]{0,60}:\s*\S";
    /// Words of somebody else in a sentence.
    SAID_BY r"(?i)^\W*(?:the |our |my )?(?:[\w.'-]+ ){1,3}?(?:said|says|wrote|writes|thinks|believes|claims|claimed|mentioned|argues|argued|insists|insisted|announced|reported|told (?:me|us|everyone)) (?:that )?(?:we|i|you|they|he|she|it|the team)\b|\bis what [\w' -]{1,30}? (?:said|says|wrote|claims|claimed|told)\b|\b(?:in|per|from|inside) (?:the|our|their|his|her|its|your|this|that) (?:[\w' -]|\.\w){1,30}?(?: it)? ?(?:says|said|reads|states|stated)\b|\bit (?:says|reads|states)\b";
pub(super) REPORTED r"(?i)^\W*(?:the |our |my )?(?:[\w.'-]+ ){1,3}?(?:said|says|wrote|writes|commented|replied|claims|claimed|told me)\b[^.]{0,20}[:,\x22“]|\baccording to\b";
}

/// Labels in front of a statement that are no names of speakers.
const LABELS: &[&str] = &[
    "Decision",
    "Note",
    "Todo",
    "TODO",
    "Remember",
    "Important",
    "Rule",
    "Preference",
    "Task",
    "Final",
    "Fix",
    "Update",
    "Idea",
    "Goal",
    "Plan",
    "Requirement",
    "Constraint",
    "NB",
    "PS",
    "IMPORTANT",
    "NOTE",
    "Action",
];

/// Beginnings of texts that clients of agents write in the user's name.
const CLIENTS: &[&str] = &[
    "Caveat: The messages below",
    "This session is being continued from",
    "Base directory for this skill",
    "[Request interrupted",
    "<command-",
    "<local-command",
    "IT IS CRITICAL THAT YOU FOLLOW",
    "Another language model started to solve",
    "The following is a summary",
];

/// Characters of the longest text that somebody writes by hand; a longer one holds a document (chosen).
const LONGEST: usize = 3_000;

/// Returns the bytes of `text` that are its author's own words, in order; each range is a part of one line.
pub(super) fn own_words(text: &str) -> Vec<Range<usize>> {
    if CLIENTS.iter().any(|client| text.trim_start().starts_with(client)) {
        return Vec::new();
    }
    let tagged = tagged(text);
    let mut own = Vec::new();
    let mut fence: Option<&str> = None;
    let mut is_quoted = false;
    let is_document = text.chars().nth(LONGEST).is_some();
    let mut start = 0;
    for whole in text.split_inclusive(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        let (from, line) = (start, whole.trim_end());
        start += whole.len();
        let bare = line.trim_start();
        if let Some(mark) = fence_of(bare) {
            match fence {
                None => fence = Some(mark),
                Some(open) if open == mark => fence = None,
                Some(_) => {}
            }
            continue;
        }
        if fence.is_some() || line.starts_with("    ") || line.starts_with('\t') {
            continue;
        }
        // A document, quoted mail or a transcript ends with the message: nobody marks where own words begin again.
        if is_heading(bare) || MAIL.is_match(line) || (is_document && own.len() >= 3) {
            break;
        }
        if bare.is_empty() {
            is_quoted = false;
            continue;
        }
        // A line below a quoted one continues the quotation until an empty line.
        is_quoted |=
            bare.trim_start_matches(['-', '*', '+', ' ']).starts_with(['>', '|', '│', '┃']);
        if INTRODUCES.is_match(line) || WORKED_ON.is_match(line) {
            break;
        }
        if is_quoted || is_talk(line) || REPORTED.is_match(line) || SAID_BY.is_match(line) {
            continue;
        }
        own.extend(outside(from..from + line.len(), &tagged));
    }
    own.retain(|range| !text[range.clone()].trim().is_empty());
    own
}

/// Returns the fence that a line opens or closes.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['-', '*', '+', '>', ' ']);
    ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark))
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    rest.len() < line.len() && rest.starts_with(' ')
        || line.starts_with("---")
        || line.starts_with("===")
}

/// Returns whether a line is somebody's part of a talk that was pasted.
fn is_talk(line: &str) -> bool {
    TIMED.is_match(line)
        || SPEAKER.captures(line).is_some_and(|found| {
            let first = found[1].split(' ').next().unwrap_or_default().to_owned();
            !LABELS.contains(&&*first)
        })
}

/// Returns the bytes within tags, from an opening tag to its end, or to the end of the text where there is none.
fn tagged(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(tag) = TAG.captures_at(text, at) {
        let (Some(whole), name) = (tag.get(0), tag[2].to_ascii_lowercase()) else { break };
        at = whole.end();
        let before = text[..whole.start()].chars().next_back();
        let is_parameter =
            before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '<'));
        if is_parameter || !tag[3].is_empty() {
            continue;
        }
        if !tag[1].is_empty() {
            // A block whose beginning is missing: all before it may belong to it.
            found.push(0..whole.end());
            continue;
        }
        let end = closing(text, whole.end(), &name);
        found.push(whole.start()..end);
        at = end;
    }
    found
}

/// Returns the end of the block that `name` opened before `from`, blocks of the same name inside it included.
fn closing(text: &str, from: usize, name: &str) -> usize {
    let mut depth = 1_usize;
    for tag in TAG.captures_iter(&text[from..]) {
        if tag[2].to_ascii_lowercase() != name || !tag[3].is_empty() {
            continue;
        }
        if tag[1].is_empty() {
            depth += 1;
        } else {
            depth -= 1;
        }
        if depth == 0 {
            return from + tag.get(0).map_or(0, |whole| whole.end());
        }
    }
    text.len()
}

/// Returns the parts of `line` that no range of `tagged` covers.
fn outside(line: Range<usize>, tagged: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut parts = vec![line];
    for gone in tagged {
        parts = parts
            .into_iter()
            .flat_map(|part| {
                let before = part.start..gone.start.clamp(part.start, part.end);
                let after = gone.end.clamp(part.start, part.end)..part.end;
                [before, after]
            })
            .filter(|part| part.start < part.end)
            .collect();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "We decided to use Redis for the sessions.";

    fn own(text: &str) -> String {
        own_words(text).into_iter().map(|range| text[range].trim()).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn what_others_say_is_no_own_word() {
        for text in [
            format!("<bash-stdout>{SAID}</bash-stdout>"),
            format!("<system-reminder>\n{SAID}\n</system-reminder>"),
            format!("<task-notification status=\"done\">\n<summary>x</summary>\n{SAID}"),
            format!("<A><a>x</a>\n{SAID}</A>"),
            format!("{SAID}\n</local-command-stdout>"),
            format!("> {SAID}"),
            format!("> an issue\n{SAID}"),
            format!("- > {SAID}"),
            format!("```\n{SAID}\n```"),
            format!("~~~text\n{SAID}"),
            format!("    {SAID}"),
            format!("On Mon, 3 Mar 2025, Ann Example wrote:\n\n{SAID}"),
            format!("-----Original Message-----\n{SAID}"),
            format!("From: ann@mail.net\nSubject: x\n\n{SAID}"),
            format!("Ann: {SAID}"),
            format!("[10:32] {SAID}"),
            format!("**Ann Example** (reviewer): {SAID}"),
            format!("# A plan\n{SAID}"),
            format!("Bob said: {SAID}"),
            format!("This session is being continued from a previous conversation. {SAID}"),
            format!("| {SAID} |"),
            format!("Forwarded message:\n\nHi all,\n{SAID}"),
            format!("Issue #12 text:\n\n{SAID}"),
            format!("Summary of the other agent's output:\n{SAID}"),
            format!("Translate this to German: {SAID}"),
            format!("In the README it says: {SAID}"),
            "Bob says we decided to use Redis.".to_owned(),
            format!("<command-message>x</command-message>\n{SAID}"),
            format!("&lt;system-reminder&gt;{SAID}&lt;/system-reminder&gt;"),
            format!("&lt;system-reminder&gt;{SAID}"),
        ] {
            assert!(!own(&text).contains("Redis"), "{text}: {}", own(&text));
        }
    }

    #[test]
    fn own_words_stay() {
        assert_eq!(own(SAID), SAID);
        assert_eq!(own(&format!("<x>y</x> {SAID}")), SAID);
        assert_eq!(own(&format!("> quoted\n\n{SAID}")), SAID);
        assert_eq!(own(&format!("```\ncode\n```\n{SAID}")), SAID);
        assert_eq!(
            own("Use a Vec<String> for this.\nDecision: go on."),
            "Use a Vec<String> for this.|Decision: go on."
        );
    }
}
