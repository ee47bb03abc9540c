//! Splits a question into words, figures and symbols, without the characters that only separate them.

use std::iter::Peekable;
use std::str::CharIndices;

/// A word, figure or symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// In lower case.
    pub(super) text: String,
    /// Its first letter is a capital that means something: it does not begin a sentence, and not all words have capitals.
    pub(super) capital: bool,
    /// It stands in quotation marks: it is mentioned, not used.
    pub(super) quoted: bool,
}

/// Splits a text.
///
/// A figure keeps the marks inside it (`3.5`, `1,000`, `10:30`) and a minus before it, a word its apostrophe and a dot before a
/// small letter (`node.js`). Every other character but white space and the marks of a sentence is a token by itself, so that
/// `C++` and `C#` differ.
pub(super) fn split(text: &str) -> Vec<Token> {
    let text: String = text.chars().map(straight).collect();
    let mut tokens = Vec::new();
    let mut starts = true;
    let mut quoted = false;
    let mut before = ' ';
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        let behind = rest.peek().map_or(' ', |(_, next)| *next);
        let is_minus = character == '-'
            && (behind.is_numeric() && !before.is_alphanumeric()
                || behind == ' ' && before == ' ' && is_figure(tokens.last()));
        if is_word(character) || is_minus && behind.is_numeric() {
            let end = end_of_word(&text, character, &mut rest);
            let written = &text[at..end];
            let capital = written.starts_with(char::is_uppercase) && !starts;
            tokens.push(Token { text: written.to_lowercase(), capital, quoted });
            starts = false;
            before = written.chars().next_back().unwrap_or(' ');
            continue;
        }
        match character {
            '"' => quoted = !quoted,
            '.' | '?' | '!' => starts = true,
            ',' | ';' | ':' | '(' | ')' | '\'' | '–' | '—' | '…' => {}
            '-' if !is_minus => {}
            space if space.is_whitespace() => {}
            symbol => tokens.push(Token { text: symbol.to_string(), capital: false, quoted }),
        }
        before = if character.is_whitespace() { ' ' } else { character };
    }
    forget_capitals(&text, &mut tokens);
    tokens
}

fn straight(character: char) -> char {
    match character {
        '\u{2018}' | '\u{2019}' | '\u{2bc}' | '`' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{ab}' | '\u{bb}' => '"',
        other => other,
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_figure(token: Option<&Token>) -> bool {
    token.is_some_and(|token| token.text.ends_with(char::is_numeric))
}

/// Takes the rest of a word and returns where it ends.
fn end_of_word(text: &str, first: char, rest: &mut Peekable<CharIndices<'_>>) -> usize {
    let mut last = first;
    while let Some(&(at, character)) = rest.peek() {
        let next = text[at + character.len_utf8()..].chars().next().unwrap_or(' ');
        let joins = match character {
            '\'' => last.is_alphabetic() && next.is_alphabetic(),
            '.' => {
                last.is_numeric() && next.is_numeric()
                    || last.is_alphanumeric() && next.is_lowercase()
            }
            ',' | ':' | '-' | '/' => last.is_numeric() && next.is_numeric(),
            _ => is_word(character),
        };
        if !joins {
            return at;
        }
        last = character;
        rest.next();
    }
    text.len()
}

/// Ignores capitals if nearly every word has one: in a title, or in a text in capitals.
fn forget_capitals(text: &str, tokens: &mut [Token]) {
    let words = tokens.iter().filter(|token| token.text.starts_with(char::is_alphabetic)).count();
    let capitals = tokens.iter().filter(|token| token.capital).count();
    // Chosen: two thirds; a title leaves its small words small.
    if !text.contains(char::is_lowercase) || words > 3 && capitals * 3 >= words * 2 {
        for token in tokens {
            token.capital = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found = split(text);
        assert_eq!(found.iter().map(|token| &*token.text).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn figures_and_symbols_are_kept_and_marks_are_not() {
        check("What's 3.5% of -1,000?", &["what's", "3.5", "%", "of", "-1,000"]);
        check("7 - 5 or 7 5", &["7", "-", "5", "or", "7", "5"]);
        check("C++ vs. C#, (or node.js)", &["c", "+", "+", "vs", "c", "#", "or", "node.js"]);
        check("a 15-year-old: covid-19…", &["a", "15", "year", "old", "covid", "19"]);
        check("It ended.What now? at 10:30", &["it", "ended", "what", "now", "at", "10:30"]);
        check("l’été 日本 snake_case", &["l'été", "日本", "snake_case"]);
        check("", &[]);
    }

    #[test]
    fn capitals_count_inside_a_sentence_only() {
        let capitals = |text: &str| {
            let tokens = split(text).into_iter().filter(|token| token.capital);
            tokens.map(|token| token.text).collect::<Vec<_>>()
        };
        assert_eq!(capitals("Why did Apple buy it? Ask Will."), ["apple", "will"]);
        assert_eq!(capitals("WHY DID APPLE BUY IT?"), [""; 0]);
        assert_eq!(capitals("Why Apple Did Buy It for Money"), [""; 0]);
    }

    #[test]
    fn quotes_are_known() {
        let quoted: Vec<bool> = split("is “a” a b").iter().map(|token| token.quoted).collect();
        assert_eq!(quoted, [false, true, false, false]);
    }
}
