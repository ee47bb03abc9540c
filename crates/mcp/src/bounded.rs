//! Results within a budget of tokens, with the way to read on.

use plimsoll_core::Tokenizer;
use plimsoll_core::text::{Limit, head, left_out};

/// The vocabulary by which results are counted: clients name no model, and most models count by it within a tenth.
pub(crate) const TOKENIZER: Tokenizer = Tokenizer::O200k { factor: 1.0 };

/// Tokens of a result if the client names no budget (chosen: well below the 25,000 at which Claude Code refuses a result).
pub(crate) const USUAL_BUDGET: u64 = 4000;

/// The largest budget that a client may name.
pub(crate) const LARGEST_BUDGET: u64 = 20_000;

/// Tokens that the note about the rest may take (chosen: a sentence with a number).
const NOTE: u64 = 40;

/// Returns `text`, or its beginning and a note by `way`, which gets the characters that are shown.
pub(crate) fn characters(text: &str, budget: u64, way: impl FnOnce(usize) -> String) -> String {
    if u64::from(TOKENIZER.count(text)) <= budget {
        return text.to_owned();
    }
    let shown = head(text, Limit::Tokens(TOKENIZER, budget.saturating_sub(NOTE)));
    // Whole lines where there are several; a part of one line where there is none.
    let shown = shown.rfind('\n').map_or(shown, |end| &shown[..=end]);
    let rest = text[shown.len()..].chars().count();
    let way = way(shown.chars().count());
    format!("{}\n{}", shown.trim_end_matches('\n'), left_out(rest, "character", Some(&way)))
}

/// Returns the entries that fit, and a note by `way`, which gets the number of entries that are shown.
pub(crate) fn entries(
    entries: &[String],
    budget: u64,
    unit: &str,
    way: impl FnOnce(usize) -> String,
) -> String {
    let mut room = budget.saturating_sub(NOTE);
    let mut out = String::new();
    for (shown, entry) in entries.iter().enumerate() {
        let tokens = u64::from(TOKENIZER.count(entry)) + 1;
        if tokens > room && shown > 0 {
            out.push_str(&left_out(entries.len() - shown, unit, Some(&way(shown))));
            return out;
        }
        out.push_str(head(entry, Limit::Tokens(TOKENIZER, room)));
        out.push('\n');
        room = room.saturating_sub(tokens);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_result_fits_and_says_where_to_go_on() {
        let text = "one more line of text\n".repeat(500);
        let shown = characters(&text, 200, |at| format!("go on with offset {at}"));
        assert!(u64::from(TOKENIZER.count(&shown)) <= 200, "{}", TOKENIZER.count(&shown));
        assert!(shown.contains("go on with offset"), "{shown}");
        assert_eq!(characters("short", 200, |_| String::new()), "short");
        let list = vec!["an entry of some words".to_owned(); 100];
        let shown = entries(&list, 200, "message", |at| format!("go on with from {at}"));
        assert!(u64::from(TOKENIZER.count(&shown)) <= 200);
        assert!(shown.contains("go on with from"), "{shown}");
    }
}
