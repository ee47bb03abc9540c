//! Keywords of cards and of tasks, by the expressions and stop words of `auto-context.md`.

use std::collections::{BTreeSet, HashSet};

use regex::Regex;

/// Keywords on one card.
const MOST: usize = 20;

patterns! {
    CARD_WORD r"\b[a-zA-Z_][a-zA-Z0-9_]{3,}\b";
    TASK_WORD r"\b[a-zA-Z_][a-zA-Z0-9_]{2,}\b";
}

const CARD_STOP_WORDS: &[&str] = &[
    "the", "and", "for", "are", "but", "not", "you", "all", "this", "that", "with", "have", "from",
    "been", "would",
];
const TASK_STOP_WORDS: &[&str] = &[
    "the", "and", "for", "are", "but", "not", "you", "all", "can", "had", "her", "was", "one",
    "our", "out", "has", "have", "been", "would", "could", "should", "this", "that", "with",
    "they", "from", "what", "which", "when", "where", "will", "make", "like", "just", "know",
    "take", "into", "some", "than", "them", "then", "only", "come", "over",
];

/// Returns the keywords of a summary, each once and in order: words of four letters or more, at most twenty.
pub fn card_keywords(summary: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let words = keywords(summary, &CARD_WORD, CARD_STOP_WORDS);
    words.into_iter().filter(|word| seen.insert(word.clone())).take(MOST).collect()
}

/// Returns the keywords of a task: words of three letters or more.
pub fn task_keywords(task: &str) -> BTreeSet<String> {
    keywords(task, &TASK_WORD, TASK_STOP_WORDS).into_iter().collect()
}

fn keywords(text: &str, word: &Regex, stop_words: &[&str]) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = word.find_iter(&lower).map(|word| word.as_str());
    words.filter(|word| !stop_words.contains(word)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_have_words_of_four_letters() {
        let words =
            card_keywords("The Cache for parse_config and the cache; API v2 with x1234 would");
        assert_eq!(words, ["cache", "parse_config", "x1234"]);
        let many: String = (0..40).fold(String::new(), |text, n| text + &format!("word_{n} "));
        assert_eq!(card_keywords(&many).len(), 20);
    }

    #[test]
    fn tasks_have_words_of_three() {
        let words: Vec<String> =
            task_keywords("Fix the API: what should it take?").into_iter().collect();
        assert_eq!(words, ["api", "fix"]);
    }
}
