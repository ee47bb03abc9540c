//! Results within a budget of tokens, with the way to read on.

use plimsoll_core::Tokenizer;
use plimsoll_core::choose::{Candidate, Room, Whole, pack};
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

/// A part of a list: the entries from `from` on, and the length of the whole list as far as it is known.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) entries: &'a [String],
    pub(crate) from: usize,
    pub(crate) total: usize,
    /// The noun of one entry.
    pub(crate) unit: &'a str,
}

impl Page<'_> {
    /// Returns the entries that fit, and a note about the rest that names the `from` to go on with.
    pub(crate) fn text(&self, budget: u64) -> String {
        let room = budget.saturating_sub(NOTE);
        let whole = |entry: &String| {
            let tokens = u64::from(TOKENIZER.count(entry)) + 1;
            Candidate::in_order(Whole { source: (), tokens })
        };
        let fitting = pack(self.entries.iter().map(whole), &Room::until_full(room)).picks.len();
        let mut out: String =
            self.entries[..fitting].iter().flat_map(|entry| [entry.as_str(), "\n"]).collect();
        let mut shown = fitting;
        // A list always goes on: of an entry larger than the budget the beginning is shown.
        if let (0, Some(first)) = (fitting, self.entries.first()) {
            out = format!("{}\n", head(first, Limit::Tokens(TOKENIZER, room)));
            shown = 1;
        }
        let rest = self.total.saturating_sub(self.from + shown);
        if rest > 0 {
            let way = format!("go on with from {}", self.from + shown);
            out.push_str(&left_out(rest, self.unit, Some(&way)));
        }
        out
    }
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
        let page = Page { entries: &list[10..], from: 10, total: 100, unit: "message" };
        let shown = page.text(200);
        assert!(u64::from(TOKENIZER.count(&shown)) <= 200);
        let lines = shown.matches("an entry").count();
        assert!(shown.contains(&format!("go on with from {}", 10 + lines)), "{shown}");
        let last = Page { entries: &list[99..], from: 99, total: 100, unit: "message" };
        assert_eq!(last.text(200), "an entry of some words\n");
    }
}
