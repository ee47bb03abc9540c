//! Token counts against those of another implementation of the same vocabularies.

use plimsoll_core::Tokenizer;

/// Generated texts of mixed content (words, code, numbers, white space, scripts, emoji, control characters) with the counts of
/// `bpe-openai` 0.3 for `o200k` and `cl100k`. The fuzz target `tokens` compares the two on any text.
const COUNTED: &str = include_str!("token_counts.jsonl");

#[test]
fn counts_are_those_of_another_implementation() {
    for line in COUNTED.lines() {
        let (text, o200k, cl100k): (String, u32, u32) = serde_json::from_str(line).unwrap();
        assert_eq!(Tokenizer::O200k { factor: 1.0 }.count(&text), o200k, "o200k: {text:?}");
        assert_eq!(Tokenizer::Cl100k.count(&text), cl100k, "cl100k: {text:?}");
    }
    assert_eq!(COUNTED.lines().count(), 300);
}
