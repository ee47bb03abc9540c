//! Stop words: words of every sentence, which say nothing about its subject.

/// Function words of English and the halves that an apostrophe leaves of them. Common words of other languages weigh little
/// anyway, because many messages hold them.
///
/// Measured: without them a question finds .03 more of its evidence than with them.
const STOP_WORDS: &[&str] = &[
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "being", "but", "by", "can",
    "could", "d", "did", "do", "does", "done", "for", "from", "had", "has", "have", "having", "he",
    "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "ll", "m", "may", "me",
    "might", "my", "no", "not", "of", "on", "or", "our", "re", "s", "she", "should", "so", "t",
    "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "to", "us", "ve", "was", "we", "were", "what", "when", "where", "which", "who", "whom",
    "whose", "why", "will", "with", "would", "you", "your", "am",
];

/// Returns whether a word in lower case is a stop word.
pub(crate) fn is_stop_word(word: &str) -> bool {
    word.len() <= 6 && STOP_WORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_that_is_looked_at_holds_them_all() {
        assert!(STOP_WORDS.iter().all(|word| is_stop_word(word)));
        assert!(!is_stop_word("harbour") && !is_stop_word("ship"));
    }
}
