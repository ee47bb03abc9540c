//! Searching: by text, by vector, and both fused.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

/// A vector with the model that made it; vectors of different models never meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Embedding {
    pub model: String,
    /// Of length 1.
    pub vector: Vec<f32>,
}

/// What to search for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchQuery {
    /// Words, each taken literally; operators of the backend's query language have no meaning here.
    pub text: Option<String>,
    pub embedding: Option<Embedding>,
    /// The most hits to return.
    pub limit: usize,
}

/// A hit, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit<T> {
    pub item: T,
    /// Higher is better; of one search comparable, of two not.
    pub score: f64,
}

/// Splits text into the words that are searched by, in lower case and in order.
///
/// A word is a run of letters and digits; scripts written without spaces (Han, kana, Hangul, Thai) give each letter as a
/// word, so that a part of a sentence is found. Every backend indexes and asks by these words.
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut rest = text.chars().flat_map(char::to_lowercase).filter(|c| *c != '\u{307}').peekable();
    std::iter::from_fn(move || {
        while rest.next_if(|character| !character.is_alphanumeric()).is_some() {}
        let first = rest.next()?;
        let mut word = String::from(first);
        if !stands_alone(first) {
            while let Some(next) = rest.next_if(|c| c.is_alphanumeric() && !stands_alone(*c)) {
                word.push(next);
            }
        }
        Some(word)
    })
}

fn stands_alone(character: char) -> bool {
    matches!(character,
        '\u{0E00}'..='\u{0EFF}' | '\u{1100}'..='\u{11FF}' | '\u{3040}'..='\u{30FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// Reciprocal rank fusion: ranks of several searches to one.
///
/// Each list adds 1 / (60 + rank) to its items. Source: Cormack, Clarke and Büttcher, SIGIR 2009, with their constant.
/// Shape: best first; equal scores in the order of first appearance.
pub fn fuse<T: Clone + Eq + Hash>(lists: &[Vec<T>], limit: usize) -> Vec<Hit<T>> {
    const CONSTANT: f64 = 60.0;
    let mut place: HashMap<T, usize> = HashMap::new();
    let mut hits: Vec<Hit<T>> = Vec::new();
    for list in lists {
        for (rank, item) in list.iter().enumerate() {
            let score = 1.0 / (CONSTANT + rank as f64 + 1.0);
            if let Some(&at) = place.get(item) {
                hits[at].score += score;
            } else {
                place.insert(item.clone(), hits.len());
                hits.push(Hit { item: item.clone(), score });
            }
        }
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits.truncate(limit);
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        let found: Vec<String> = words("fn foo_bar(x2) -> \u{c4}pfel 日本, c'est\0%").collect();
        assert_eq!(found, ["fn", "foo", "bar", "x2", "\u{e4}pfel", "日", "本", "c", "est"]);
    }

    #[test]
    fn what_both_searches_find_comes_first() {
        let fused = fuse(&[vec!["a", "b"], vec!["b", "c"]], 2);
        let items: Vec<&str> = fused.iter().map(|hit| hit.item).collect();
        assert_eq!(items, ["b", "a"]);
    }
}
