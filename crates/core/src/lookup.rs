//! The tools with which a model looks up omitted content: their names, descriptions and answers.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::hash::Ref;
use crate::recall::{IndexedMessage, RecallIndex, RecallSettings};
use crate::safety::{Handling, redact};
use crate::text::words;
use crate::text::{Limit, head, left_out, push_shortened};
use crate::tokens::Tokenizer;
use crate::transcript::{Entry, Position, Transcript};

/// A tool as it is described to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    pub name: &'static str,
    pub description: &'static str,
    /// A JSON Schema of an object.
    pub parameters: &'static str,
}

/// Returns the original behind a ref.
pub const EXPAND_REF: Lookup = Lookup {
    name: "expand_ref",
    description: "Returns the original text behind a reference such as ref:message:0123456789abcdef, which stands where earlier content of this conversation was shortened. Use it when the shortened text is not enough. Give `lines` or `search` to get only a part.",
    parameters: r#"{"type":"object","properties":{"ref":{"type":"string","description":"The reference, as it is shown"},"lines":{"type":"string","description":"Only these lines, FIRST-LAST, counted from 1"},"search":{"type":"string","description":"Only lines that hold this text"}},"required":["ref"]}"#,
};

/// Finds earlier messages by words.
pub const SEARCH_CONTEXT: Lookup = Lookup {
    name: "search_context",
    description: "Searches everything said earlier in this conversation, shortened parts included, and returns the lines that match best with the references of their messages.",
    parameters: r#"{"type":"object","properties":{"query":{"type":"string","description":"Words to look for"}},"required":["query"]}"#,
};

/// Gives up a message.
pub const DROP_FROM_CONTEXT: Lookup = Lookup {
    name: "drop_from_context",
    description: "Gives up an earlier message of this conversation that is no longer needed, so that it no longer takes room. Give the reference that is shown for it, such as ref:message:0123456789abcdef, and the reason. The text stays available to expand_ref.",
    parameters: r#"{"type":"object","properties":{"ref":{"type":"string","description":"The reference, as it is shown"},"reason":{"type":"string","description":"Why it is no longer needed"}},"required":["ref","reason"]}"#,
};

/// The lookups, in the order in which they are offered.
pub const LOOKUPS: [Lookup; 2] = [EXPAND_REF, SEARCH_CONTEXT];

/// Characters of one answer (chosen: some 25,000 tokens; a model asks for further lines if it needs them).
pub const LONGEST_ANSWER: usize = 100_000;
/// Messages that a search returns, lines of each, and characters of a line (chosen: about 2,000 tokens in all).
const HITS: usize = 8;
const LINES: usize = 4;
const WIDTH: usize = 240;

/// Cuts an answer that is too long after a whole line, and says where to continue; `first` is the number of its first line.
pub fn cut_answer(text: &str, first: usize) -> String {
    let shown = head(text, Limit::Characters(LONGEST_ANSWER));
    if shown.len() == text.len() {
        return text.to_owned();
    }
    let shown = shown.rfind('\n').map_or(shown, |line| &shown[..=line]);
    let left = text[shown.len()..].lines().count();
    let way = format!("go on with lines \"{}-\"", first + shown.lines().count());
    format!("{shown}{}", left_out(left, "line", Some(&way)))
}

/// Returns the answer to a lookup of a reference that does not exist.
pub fn not_found(reference: &str) -> String {
    let mut out = String::from("There is nothing behind `");
    push_shortened(&mut out, reference, 80);
    out.push_str("`. References are shown as ref:message: and 16 hexadecimal digits.");
    out
}

/// The answer to a lookup above the limit of a turn.
pub const NO_MORE: &str = "No more lookups are answered in this turn. Go on with what you have; ask again later if need be.";

/// The answer to a lookup for which the context has no room.
pub const NO_ROOM: &str = "The context has no room for this lookup. Go on with the shortened text, or ask for fewer lines.";

/// Tokens below which an answer is not cut but refused (chosen: a few lines and the note behind them).
const LEAST_ROOM: u64 = 60;

/// Returns an answer of at most `room` tokens: whole, or its first lines with a note; `None` if not even these fit.
pub fn fit_answer(text: &str, tokenizer: Tokenizer, room: u64) -> Option<String> {
    if u64::from(tokenizer.count(text)) <= room {
        return Some(text.to_owned());
    }
    let note = |left| left_out(left, "line", Some(&"the context has no room for more"));
    let reserved = u64::from(tokenizer.count(&note(text.lines().count()))) + 2;
    let most = room.checked_sub(reserved).filter(|_| room >= LEAST_ROOM)?;
    let shown = head(text, Limit::Tokens(tokenizer, most));
    let shown = shown.rfind('\n').map_or(shown, |line| &shown[..=line]);
    let left = text[shown.len()..].lines().count();
    Some(format!("{}\n{}", shown.trim_end(), note(left)))
}

/// Answers a search in the messages before `end`.
///
/// The messages are searched as `handling` leaves them: a line alone no longer shows that it is a part of a key.
pub fn search(
    transcript: &Transcript,
    end: Position,
    query: &str,
    handling: Option<Handling>,
) -> String {
    let entries = &transcript.entries()[..end.min(transcript.entries().len())];
    let shown = |entry: &Entry| {
        let text = entry.message.shown();
        handling.map_or_else(|| text.clone(), |handling| redact(&text, handling).0.into_owned())
    };
    let texts: Vec<String> = entries.iter().map(shown).collect();
    let mut index = RecallIndex::new(RecallSettings::default(), None);
    index.add(entries.iter().zip(&texts).map(|(entry, text)| IndexedMessage {
        session: "",
        role: entry.message.role,
        speaker: None,
        time: None,
        text,
    }));
    index.embed();
    let wanted: HashSet<String> = words(query).collect();
    let mut out = String::new();
    // Recall also ranks the neighbours of a matching message; a search for words returns only messages that hold one.
    let found = index.search(query).into_iter();
    let found = found.filter(|found| !index.matches(query, found.message).is_empty());
    for found in found.take(HITS) {
        let (entry, text) = (&entries[found.message], &texts[found.message]);
        let mut lines: Vec<(usize, &str)> = text
            .lines()
            .map(|line| (words(line).filter(|word| wanted.contains(word)).count(), line))
            .filter(|(hits, _)| *hits > 0)
            .collect();
        lines.sort_by_key(|(hits, _)| std::cmp::Reverse(*hits));
        // A message may match by another form of a word, which no line holds as it was written in the query.
        lines.extend(text.lines().next().filter(|_| lines.is_empty()).map(|line| (0, line)));
        let role = entry.message.role.as_str();
        let _ = writeln!(out, "{} ({role}, message {})", Ref::message(entry.hash), found.message);
        for (_, line) in lines.into_iter().take(LINES) {
            out.push_str("  ");
            push_shortened(&mut out, line.trim(), WIDTH);
            out.push('\n');
        }
    }
    if out.is_empty() { "Nothing said earlier holds these words.".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, Role};

    #[test]
    fn a_search_tells_lines_and_refs() {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(Message::text(Role::User, "please look\ninto the harbour\nand elsewhere"));
        transcript.push(Message::text(Role::Assistant, "I saw nothing"));
        transcript.push(Message::text(Role::User, "harbour again, but too late to be found"));
        let hash = transcript.entries()[0].hash;
        assert_eq!(
            search(&transcript, 2, "the harbour", None),
            format!("ref:message:{hash} (user, message 0)\n  into the harbour\n")
        );
        assert!(search(&transcript, 3, "zebra", None).starts_with("Nothing"));
    }

    #[test]
    fn an_answer_fits_the_room_or_is_refused() {
        let text = "a line of the file\n".repeat(200);
        for room in [0, 30, 60, 100, 500, 10_000] {
            let answer = fit_answer(&text, Tokenizer::Estimate, room);
            assert_eq!(answer.is_some(), room >= LEAST_ROOM, "{room}");
            let Some(answer) = answer else { continue };
            assert!(u64::from(Tokenizer::Estimate.count(&answer)) <= room, "{room}: {answer}");
            let shown = answer.lines().filter(|line| *line == "a line of the file").count();
            assert_eq!(answer.contains(&format!("{} lines", 200 - shown)), shown < 200, "{answer}");
        }
    }

    #[test]
    fn long_answers_say_where_to_go_on() {
        let text = "0123456789\n".repeat(20_000);
        let cut = cut_answer(&text, 1);
        assert!(cut.chars().count() < LONGEST_ANSWER + 100);
        let shown = cut.lines().count() - 1;
        assert!(cut.ends_with(&format!(
            "[… {} lines; go on with lines \"{}-\"]",
            20_000 - shown,
            shown + 1
        )));
        assert_eq!(cut_answer("short", 1), "short");
    }
}
