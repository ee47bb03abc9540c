//! The guard: whether a cached answer of one question may be served for another.

use super::lexicon::{COMPARED, DIRECTIONS, NEGATIONS, PERSONS, QUANTITIES, QUESTIONS, TENSES};
use super::reading::Reading;
use super::settings::AnswerSettings;

/// Whether a cached answer may be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Serve,
    Refuse(Refusal),
}

/// Why another question's answer is not served: the first reason that holds, in this order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    #[error("the questions are not similar enough")]
    Similarity,
    #[error("a question is too long, or holds code")]
    Form,
    #[error("a question is not English")]
    Language,
    #[error("figures or symbols differ")]
    Numbers,
    #[error("names differ")]
    Names,
    #[error("one of them negates")]
    Negation,
    #[error("they ask for different things")]
    Question,
    #[error("what is compared differs")]
    Comparison,
    #[error("quantities differ")]
    Quantity,
    #[error("different persons are meant")]
    Person,
    #[error("tenses differ")]
    Tense,
    #[error("the order differs")]
    Order,
    #[error("words differ")]
    Words,
}

/// Decides whether the cached answer to `cached` may be served for `asked`; `similarity` is the cosine of the two readings.
///
/// The verdict is deterministic, and the same in both directions.
pub fn same_question(
    asked: &str,
    cached: &str,
    similarity: f64,
    settings: &AnswerSettings,
) -> Verdict {
    // NaN is not similar.
    if similarity.is_nan() || similarity < settings.similarity_threshold {
        return Verdict::Refuse(Refusal::Similarity);
    }
    if [asked, cached].into_iter().any(|question| has_other_form(question, settings.most_words)) {
        return Verdict::Refuse(Refusal::Form);
    }
    let a = Reading::of(asked, &settings.alike);
    let b = Reading::of(cached, &settings.alike);
    let agree = &settings.agree;
    let differ = |words: &[&str]| {
        count(&a, |word| words.contains(&word)) != count(&b, |word| words.contains(&word))
    };
    let rules: [(bool, &dyn Fn() -> bool, Refusal); 11] = [
        (agree.language, &|| !a.is_english() || !b.is_english(), Refusal::Language),
        (agree.numbers, &|| count(&a, is_figure) != count(&b, is_figure), Refusal::Numbers),
        (agree.names, &|| names_missing(&a, &b) || names_missing(&b, &a), Refusal::Names),
        (agree.negation, &|| differ(NEGATIONS), Refusal::Negation),
        (agree.question, &|| asked_for(&a) != asked_for(&b), Refusal::Question),
        (agree.comparison, &|| differ(COMPARED), Refusal::Comparison),
        (agree.quantity, &|| differ(QUANTITIES), Refusal::Quantity),
        (agree.person, &|| differ(PERSONS), Refusal::Person),
        (agree.tense, &|| differ(TENSES), Refusal::Tense),
        (agree.order, &|| differ(DIRECTIONS) || shared(&a, &b) != shared(&b, &a), Refusal::Order),
        (agree.words, &|| a.words() != b.words() || a.words().is_empty(), Refusal::Words),
    ];
    let refused = rules.iter().find(|(is_on, differs, _)| *is_on && differs());
    refused.map_or(Verdict::Serve, |(_, _, why)| Verdict::Refuse(*why))
}

/// Returns whether spaces and marks may mean something: in several lines, in code, in more than a question.
fn has_other_form(question: &str, most_words: usize) -> bool {
    question.trim().contains(['\n', '\r', '\t', '`', '{', '}', ';', '='])
        || question.split_whitespace().count() > most_words
}

/// Returns the words of a kind, sorted.
fn count(reading: &Reading, is_meant: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut found: Vec<&str> =
        reading.words().iter().map(|word| &**word).filter(|word| is_meant(word)).collect();
    found.sort_unstable();
    found
}

fn is_figure(word: &str) -> bool {
    word.contains(char::is_numeric) || !word.contains(char::is_alphabetic)
}

/// Returns whether a name of `from` is missing in `other`, or is written differently there.
fn names_missing(from: &Reading, other: &Reading) -> bool {
    let is_marked = |word: &str| word.starts_with('^') || word.contains('_') || word.contains('.');
    count(from, is_marked) != count(other, is_marked)
        || from.names().iter().any(|name| {
            let stands = |reading: &Reading| reading.words().iter().any(|word| word == name);
            stands(from) && !stands(other)
        })
}

/// Returns the question word, else the first word.
fn asked_for(reading: &Reading) -> Option<&str> {
    let mut words = reading.words().iter().map(|word| &**word);
    let first = reading.words().first().map(|word| &**word);
    words.find(|word| QUESTIONS.contains(word) || word.starts_with("how ")).or(first)
}

/// Returns the words of `reading` that stand once in both, in its order.
fn shared<'a>(reading: &'a Reading, other: &Reading) -> Vec<&'a str> {
    let once = |reading: &Reading, word: &str| {
        reading.words().iter().filter(|found| **found == word).count() == 1
    };
    let words = reading.words().iter().map(|word| &**word);
    words.filter(|word| once(reading, word) && once(other, word)).collect()
}

#[cfg(test)]
mod tests;
