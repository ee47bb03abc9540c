//! Beginnings and ends of texts within a limit.

use std::borrow::Cow;

use crate::tokens::Tokenizer;

/// How much of a text to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Bytes of UTF-8; a cut goes back to a character.
    Bytes(usize),
    Characters(usize),
    /// Lines; each keeps its line break.
    Lines(usize),
    Tokens(Tokenizer, u64),
}

/// Returns the longest beginning of `text` within `limit`, cut between characters.
pub fn head(text: &str, limit: Limit) -> &str {
    let end = match limit {
        Limit::Bytes(bytes) => text.floor_char_boundary(bytes),
        Limit::Characters(most) => nth(text, most),
        Limit::Lines(most) => {
            let mut ends = text.match_indices('\n').map(|(at, _)| at + 1);
            match most.checked_sub(1) {
                None => 0,
                Some(last) => ends.nth(last).unwrap_or(text.len()),
            }
        }
        Limit::Tokens(tokenizer, budget) => return within_tokens(text, tokenizer, budget, head),
    };
    &text[..end]
}

/// Returns the longest end of `text` within `limit`, cut between characters.
pub fn tail(text: &str, limit: Limit) -> &str {
    let start = match limit {
        Limit::Bytes(bytes) => text.ceil_char_boundary(text.len().saturating_sub(bytes)),
        Limit::Characters(most) => nth_back(text, most),
        Limit::Lines(most) => {
            // A line break at the very end ends the last line.
            let within = text.strip_suffix('\n').unwrap_or(text);
            let mut breaks = within.rmatch_indices('\n').map(|(at, _)| at + 1);
            match most.checked_sub(1) {
                None => text.len(),
                Some(last) => breaks.nth(last).unwrap_or(0),
            }
        }
        Limit::Tokens(tokenizer, budget) => return within_tokens(text, tokenizer, budget, tail),
    };
    &text[start..]
}

/// Returns a beginning of `text` within `limit` that leaves out a word which would be cut: half a URL or id is useless.
pub fn head_at_word(text: &str, limit: Limit) -> &str {
    let cut = head(text, limit);
    if cut.len() == text.len() || text[cut.len()..].starts_with(char::is_whitespace) {
        return cut;
    }
    cut.rfind(char::is_whitespace).map_or("", |end| cut[..end].trim_end())
}

/// Returns an end of `text` within `limit` that leaves out a word which would be cut.
pub fn tail_at_word(text: &str, limit: Limit) -> &str {
    let cut = tail(text, limit);
    let before = &text[..text.len() - cut.len()];
    if before.is_empty() || before.ends_with(char::is_whitespace) {
        return cut;
    }
    cut.find(char::is_whitespace).map_or("", |start| cut[start..].trim_start())
}

/// Returns `text`, or its first `most` characters and an ellipsis behind them.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match head(text, Limit::Characters(most)) {
        kept if kept.len() == text.len() => Cow::Borrowed(text),
        kept => Cow::Owned(format!("{kept}…")),
    }
}

/// Appends [`shortened`] to `out`.
pub fn push_shortened(out: &mut String, text: &str, most: usize) {
    out.push_str(&shortened(text, most));
}

/// Returns `text` with each run of white space as one blank, and none at its ends.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first `most` characters of [`one_line`], an ellipsis included.
pub fn line(text: &str, most: usize) -> String {
    // Eight times the line, so that a giant text is not read whole and blanks rarely leave the line short.
    let line = one_line(head(text, Limit::Characters(most.saturating_mul(8))));
    if head(&line, Limit::Characters(most)).len() == line.len() {
        return line;
    }
    shortened(&line, most.saturating_sub(1)).into_owned()
}

/// Returns where the character numbered `most` begins, or the end.
fn nth(text: &str, most: usize) -> usize {
    text.char_indices().nth(most).map_or(text.len(), |(at, _)| at)
}

/// Returns where the last `most` characters begin.
fn nth_back(text: &str, most: usize) -> usize {
    match most.checked_sub(1) {
        None => text.len(),
        Some(last) => text.char_indices().nth_back(last).map_or(0, |(at, _)| at),
    }
}

/// Cuts `text` with `cut` until it has at most `budget` tokens.
///
/// Each step keeps characters in the ratio of `budget` to the tokens that are left. The specification takes one step; tokens
/// are not spread evenly, so it may take more. Each takes at least one character away, so they end.
fn within_tokens<'a>(
    mut text: &'a str,
    tokenizer: Tokenizer,
    budget: u64,
    cut: fn(&'a str, Limit) -> &'a str,
) -> &'a str {
    loop {
        let tokens = u64::from(tokenizer.count(text));
        if tokens <= budget || text.is_empty() {
            return text;
        }
        let characters = text.chars().count();
        let by_ratio = u128::from(budget) * characters as u128 / u128::from(tokens);
        text = cut(text, Limit::Characters((by_ratio as usize).min(characters - 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Tokenizer = Tokenizer::Characters { per_token: 1.0 };

    #[test]
    fn cuts_fall_between_characters() {
        for limit in [Limit::Tokens(PLAIN, 2), Limit::Characters(2), Limit::Bytes(5)] {
            assert_eq!(head("äöü", limit), "äö");
            assert_eq!(tail("äöü", limit), "öü");
        }
        for cut in [head, tail] {
            for (limit, expected) in [
                (Limit::Tokens(PLAIN, 3), "äöü"),
                (Limit::Tokens(PLAIN, 0), ""),
                (Limit::Characters(0), ""),
                (Limit::Bytes(1), ""),
                (Limit::Lines(1), "äöü"),
                (Limit::Lines(0), ""),
            ] {
                assert_eq!(cut("äöü", limit), expected, "{limit:?}");
                assert_eq!(cut("", limit), "");
            }
        }
    }

    #[test]
    fn lines_keep_their_breaks() {
        assert_eq!(head("a\nb\nc\n", Limit::Lines(2)), "a\nb\n");
        assert_eq!(tail("a\nb\nc\n", Limit::Lines(2)), "b\nc\n");
        assert_eq!(tail("a\nb\nc", Limit::Lines(1)), "c");
        assert_eq!(head("a\nb", Limit::Lines(5)), "a\nb");
    }

    #[test]
    fn words_stay_whole() {
        assert_eq!(head_at_word("one two three", Limit::Characters(9)), "one two");
        assert_eq!(head_at_word("one two three", Limit::Characters(7)), "one two");
        assert_eq!(tail_at_word("one two three", Limit::Characters(7)), "three");
        assert_eq!(tail_at_word("one two three", Limit::Characters(5)), "three");
        assert_eq!(head_at_word("onetwothree", Limit::Characters(5)), "");
        assert_eq!(head_at_word("one", Limit::Characters(5)), "one");
    }

    #[test]
    fn an_ellipsis_tells_of_a_cut() {
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("abcd", 3), "abc…");
        assert_eq!(line("a\n\tb  c", 80), "a b c");
        assert_eq!(line("123456", 6), "123456");
        assert_eq!(line("1234567", 6), "12345…");
    }

    #[test]
    fn uneven_tokens_still_fit() {
        let tokenizer = Tokenizer::O200k { factor: 1.0 };
        let dense = "ᚠᛇᚻ᛫ᛒᛦ".repeat(50);
        let text = dense.clone() + &"hello world ".repeat(400) + &dense;
        for budget in [0, 1, 7, 100, 300] {
            let limit = Limit::Tokens(tokenizer, budget);
            assert!(u64::from(tokenizer.count(head(&text, limit))) <= budget);
            assert!(u64::from(tokenizer.count(tail(&text, limit))) <= budget);
        }
    }
}
