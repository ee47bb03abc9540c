//! The summary that replaces the dropped turns of a trimmed session.

use crate::message::Role;
use crate::priority::ScoredTurn;
use crate::text::{Limit, head, push_shortened, tail};
use crate::tokens::{MESSAGE_OVERHEAD, Tokenizer};

/// The first line of a summary made of sentences of the turns.
pub const HEURISTIC_HEADER: &str = "[Earlier conversation summary — compressed to save context]";

/// The first line of a summary that a model wrote, so that nobody takes it for the user's or the agent's words.
pub const MODEL_HEADER: &str = "[Earlier conversation summary — written by a model]";

/// The most lines of a heuristic summary, without the header.
const MOST_LINES: usize = 30;
/// Shorter first sentences ("Done.") say nothing.
const SHORTEST_SENTENCE: usize = 10;

/// Characters of the turns in a prompt for a summary (chosen: about 15,000 tokens, which fit every model), and the fewest of
/// one turn (chosen: a sentence).
const PROMPT_TURNS: usize = 60_000;
const PROMPT_TURN: usize = 120;

patterns! {
    FIRST_SENTENCE r"^[^.!?\n]+[.!?]?";
}

/// Returns the header and the first sentence of each of the first thirty turns that have one; nothing for no turns.
///
/// Line breaks before the first sentence are skipped; the document's pattern finds nothing behind them.
/// Source: `context-window.md`, step 4, `heuristicSummarize`.
pub fn heuristic_summary<'a>(turns: impl IntoIterator<Item = &'a ScoredTurn>) -> String {
    let mut turns = turns.into_iter().peekable();
    if turns.peek().is_none() {
        return String::new();
    }
    let lines = turns.filter_map(|turn| {
        let sentence = FIRST_SENTENCE.find(turn.content.trim_start())?.as_str();
        let speaker = if turn.role == Role::User { "User" } else { "Agent" };
        (sentence.chars().count() > SHORTEST_SENTENCE)
            .then(|| format!("\n[{speaker}] {}", sentence.trim()))
    });
    HEURISTIC_HEADER.to_owned() + &lines.take(MOST_LINES).collect::<String>()
}

/// Returns the prompt that asks a model to summarise `turns` in at most `room` tokens.
///
/// Shape: instructions, then each turn, all shortened alike so that they fit; of too many turns the newest.
pub(crate) fn summary_prompt(turns: &[&ScoredTurn], room: u64) -> String {
    let each = (PROMPT_TURNS / turns.len().max(1)).max(PROMPT_TURN);
    let mut shown = String::new();
    for turn in turns {
        shown.push_str(if turn.role == Role::User { "\n[User] " } else { "\n[Agent] " });
        push_shortened(&mut shown, turn.content.trim(), each);
        shown.push('\n');
    }
    // Three words in four tokens, as in English text.
    let words = room * 3 / 4;
    format!(
        "Summarise these earlier turns of a conversation between a user and an agent in at most {words} words. Keep decisions with their reasons, open tasks, errors, and the exact names of files, functions and commands. Answer with the summary alone.\n{}",
        tail(&shown, Limit::Characters(PROMPT_TURNS + PROMPT_TURNS / 10))
    )
}

/// Returns the beginning of `summary` that costs at most `room` tokens as a message, [`MESSAGE_OVERHEAD`] included.
///
/// Returns nothing if `header` does not fit whole: half a header would be noise.
/// Source: `context-window.md`, step 4, which cuts once by ratio; this cuts until it fits.
pub(crate) fn fit_summary<'a>(
    summary: &'a str,
    header: &str,
    tokenizer: Tokenizer,
    room: u64,
) -> &'a str {
    let text =
        head(summary, Limit::Tokens(tokenizer, room.saturating_sub(u64::from(MESSAGE_OVERHEAD))));
    if text.len() < header.len() { "" } else { text }
}

/// Counts the tokens of a summary as a message; an empty one costs nothing.
pub(crate) fn summary_tokens(summary: &str, tokenizer: Tokenizer) -> u64 {
    match summary {
        "" => 0,
        _ => u64::from(tokenizer.count(summary)) + u64::from(MESSAGE_OVERHEAD),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::priority::score_turns;
    use crate::transcript::Transcript;

    fn turns(said: &[(Role, &str)]) -> Vec<ScoredTurn> {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        for (role, text) in said {
            transcript.push(Message::text(*role, *text));
        }
        score_turns(&transcript)
    }

    fn check(said: &[(Role, &str)], expected: &[&str]) {
        let summary = heuristic_summary(&turns(said));
        assert_eq!(summary.lines().skip(1).collect::<Vec<_>>(), expected, "{said:?}");
    }

    #[test]
    fn first_sentences_longer_than_ten_characters() {
        check(&[(Role::User, "Refactor auth. Then test.")], &["[User] Refactor auth."]);
        check(&[(Role::Assistant, "I have read it")], &["[Agent] I have read it"]);
        check(&[(Role::Assistant, "I wonder why? Because.")], &["[Agent] I wonder why?"]);
        check(&[(Role::System, "\n\n Two lines here\nmore")], &["[Agent] Two lines here"]);
        check(&[(Role::User, "0123456789")], &[]);
        check(&[(Role::User, "0123456789.")], &["[User] 0123456789."]);
        check(&[(Role::User, "Done. And much more of it")], &[]);
        check(&[(Role::User, "äöüäöüäöü.")], &[]);
        check(&[(Role::User, "")], &[]);
        check(&[(Role::User, "... dots first, so no sentence")], &[]);
    }

    #[test]
    fn the_header_is_the_documents_and_thirty_lines_are_the_most() {
        assert_eq!(heuristic_summary(&[]), "");
        let summary = heuristic_summary(&turns(&[(Role::User, "A sentence of some length"); 40]));
        assert_eq!(summary.lines().count(), 31);
        assert!(summary.starts_with(
            "[Earlier conversation summary — compressed to save context]\n[User] A sentence"
        ));
    }

    #[test]
    fn a_summary_fits_or_keeps_at_least_its_header() {
        let summary = heuristic_summary(&turns(&[(Role::User, "A sentence of some length"); 9]));
        let tokenizer = Tokenizer::Estimate;
        let whole = summary_tokens(&summary, tokenizer);
        for room in 0..whole + 5 {
            let fitted = fit_summary(&summary, HEURISTIC_HEADER, tokenizer, room);
            assert!(summary_tokens(fitted, tokenizer) <= room, "{room}");
            assert!(fitted.is_empty() || fitted.starts_with(HEURISTIC_HEADER), "{room}");
            assert_eq!(fitted == summary, room >= whole, "{room}");
        }
    }
}
