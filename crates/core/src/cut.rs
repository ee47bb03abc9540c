//! The longest beginning or end of a text that costs no more than a number of tokens.

use crate::tokens::Tokenizer;

/// Returns a beginning of `text` that has at most `budget` tokens, cut between characters.
pub(crate) fn head_within(text: &str, tokenizer: Tokenizer, budget: u64) -> &str {
    let mut head = text;
    while let Some(characters) = fewer(head, tokenizer, budget) {
        head = head.char_indices().nth(characters).map_or(head, |(end, _)| &head[..end]);
    }
    head
}

/// Returns an end of `text` that has at most `budget` tokens, cut between characters.
pub(crate) fn tail_within(text: &str, tokenizer: Tokenizer, budget: u64) -> &str {
    let mut tail = text;
    while let Some(characters) = fewer(tail, tokenizer, budget) {
        let start = match characters {
            0 => tail.len(),
            _ => tail.char_indices().nth_back(characters - 1).map_or(0, |(start, _)| start),
        };
        tail = &tail[start..];
    }
    tail
}

/// Returns how many characters to try next, by ratio; `None` once `text` fits.
///
/// One step by ratio is what the document does; tokens are not spread evenly, so it may take more. Each takes at least one
/// character away, and no text has no tokens, so they end.
fn fewer(text: &str, tokenizer: Tokenizer, budget: u64) -> Option<usize> {
    let tokens = u64::from(tokenizer.count(text));
    if tokens <= budget || text.is_empty() {
        return None;
    }
    let characters = text.chars().count();
    let by_ratio = u128::from(budget) * characters as u128 / u128::from(tokens);
    Some((by_ratio as usize).min(characters - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Tokenizer = Tokenizer::Characters { per_token: 1.0 };

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(head_within("äöü", PLAIN, 2), "äö");
        assert_eq!(tail_within("äöü", PLAIN, 2), "öü");
        for cut in [head_within, tail_within] {
            assert_eq!(cut("äöü", PLAIN, 3), "äöü");
            assert_eq!(cut("äöü", PLAIN, 0), "");
            assert_eq!(cut("", PLAIN, 0), "");
        }
    }

    #[test]
    fn uneven_tokens_still_fit() {
        let tokenizer = Tokenizer::O200k { factor: 1.0 };
        let dense = "ᚠᛇᚻ᛫ᛒᛦ".repeat(50);
        let text = dense.clone() + &"hello world ".repeat(400) + &dense;
        for budget in [0, 1, 7, 100, 300] {
            assert!(u64::from(tokenizer.count(head_within(&text, tokenizer, budget))) <= budget);
            assert!(u64::from(tokenizer.count(tail_within(&text, tokenizer, budget))) <= budget);
        }
    }
}
