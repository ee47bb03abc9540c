//! The reading of a question: its words without the differences that change no question. Equal readings ask the same.
//!
//! Every rule removes or replaces only the words that it names. The others keep their order, so no figure, name, negation or
//! direction is lost unless a rule lists it.

use super::lexicon::{
    ARTICLES, ASKED_OF_YOU, BEGINNINGS, CONTRACTIONS, ENDINGS, ENGLISH, FILLERS, LETTERED,
    NO_PLURAL, ONLY_ISE, OTHER_WITH_A_CAPITAL, PHRASE_ENDS, QUESTIONS, SPELLINGS, STATES,
    TAKES_A_PREPOSITION,
};
use super::settings::EquivalenceRules;
use super::split::{Token, split};

/// A question as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    words: Vec<String>,
    names: Vec<String>,
    is_english: bool,
}

/// Replaces every form of `how do I`; no token has a space.
const HOW_TO: &str = "how to";
/// Replace `my` and `myself` if they mean the person who asks.
const OWN: &str = "own";
const ONESELF: &str = "oneself";

impl Reading {
    /// Reads a question.
    pub fn of(question: &str, alike: &EquivalenceRules) -> Self {
        let mut tokens: Vec<Token> = split(question).into_iter().flat_map(expanded).collect();
        let is_name = |token: &&Token| token.capital && token.text != "i";
        let names = tokens.iter().filter(is_name).map(|token| token.text.clone()).collect();
        let is_english = is_english(&tokens);
        for token in &mut tokens {
            if token.capital && OTHER_WITH_A_CAPITAL.contains(&&*token.text) {
                token.text.insert(0, '^');
            } else if alike.spelling && !token.quoted {
                token.text = spelt(&token.text);
            }
        }
        if alike.fillers {
            without_fillers(&mut tokens);
        }
        if alike.articles {
            without_articles(&mut tokens);
        }
        let read = |at: usize| {
            let word = &*tokens[at].text;
            match word {
                _ if is_spoken_of(&tokens, at) => word.to_owned(),
                "which" if alike.which => "what".to_owned(),
                _ if alike.plurals => singular(word),
                _ => word.to_owned(),
            }
        };
        let mut words: Vec<String> = (0..tokens.len()).map(read).collect();
        if alike.fillers {
            without_some(&mut words);
        }
        if alike.how_to {
            how_to(&mut words, alike.possessives);
        }
        if alike.prepositions {
            one_preposition(&mut words);
        }
        Self { words, names, is_english }
    }

    /// Returns the compared words, in order.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the words as one text for an embedder: questions with equal readings have equal vectors.
    pub fn text(&self) -> String {
        self.words.join(" ")
    }

    /// Returns the words that a capital inside the sentence makes names, in lower case.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether the question is in English, the one language of the rules.
    pub(super) fn is_english(&self) -> bool {
        self.is_english
    }
}

/// Takes contractions apart.
fn expanded(token: Token) -> Vec<Token> {
    let part = |text: &str| Token { text: text.to_owned(), ..token.clone() };
    // Only the first word has the capital: `I'm`.
    let behind = |text: &str| Token { capital: false, ..part(text) };
    if let Some((_, words)) = CONTRACTIONS.iter().find(|(short, _)| *short == token.text) {
        let (first, rest) = words.split_at(1);
        let rest = rest.iter().map(|word| behind(word));
        return first.iter().map(|word| part(word)).chain(rest).collect();
    }
    for (ending, word) in ENDINGS {
        if let Some(rest) = token.text.strip_suffix(ending).filter(|rest| !rest.is_empty()) {
            return vec![part(rest), behind(word)];
        }
    }
    vec![token]
}

/// Returns whether a text is English: it has only Latin letters, and a question word, a usual beginning, or two function words.
fn is_english(tokens: &[Token]) -> bool {
    let is_latin =
        |c: char| !c.is_alphabetic() || c.is_ascii() || ('\u{c0}'..='\u{24f}').contains(&c);
    let mut known = ENGLISH.iter().filter(|word| tokens.iter().any(|token| token.text == **word));
    tokens.iter().all(|token| token.text.chars().all(is_latin))
        && (tokens.iter().any(|token| QUESTIONS.contains(&&*token.text))
            || tokens.first().is_some_and(|first| BEGINNINGS.contains(&&*first.text))
            || known.by_ref().take(2).count() == 2)
}

fn spelt(word: &str) -> String {
    let (stem, plural) = match word.strip_suffix('s') {
        Some(stem) if SPELLINGS.iter().any(|(from, _)| from == &stem) => (stem, "s"),
        _ => (word, ""),
    };
    if let Some((_, to)) = SPELLINGS.iter().find(|(from, _)| *from == stem) {
        return format!("{to}{plural}");
    }
    for (ending, instead) in [
        ("isation", "ization"),
        ("isations", "izations"),
        ("ise", "ize"),
        ("ises", "izes"),
        ("ised", "ized"),
    ] {
        // Chosen: shorter words on these endings (`rise`, `noise`) have no other spelling.
        if let Some(begin) = word.strip_suffix(ending).filter(|begin| begin.len() >= 4)
            && !ONLY_ISE.contains(&&*format!("{begin}ise"))
        {
            return format!("{begin}{instead}");
        }
    }
    word.to_owned()
}

/// Returns whether a word is mentioned, not used: it is quoted, or a function word beside `and`, as in `between is and are`.
fn is_spoken_of(tokens: &[Token], at: usize) -> bool {
    const FUNCTION: &[&str] = &["am", "are", "do", "does", "is", "was", "were", "which"];
    const JOINS: &[&str] = &["and", "between", "or", "versus", "vs"];
    let joins = |at: Option<usize>| {
        at.and_then(|at| tokens.get(at)).is_some_and(|token| JOINS.contains(&&*token.text))
    };
    tokens[at].quoted
        || FUNCTION.contains(&&*tokens[at].text)
            && (joins(at.checked_sub(1)) || joins(Some(at + 1)))
}

fn without_fillers(tokens: &mut Vec<Token>) {
    tokens.retain(|token| token.quoted || !FILLERS.contains(&&*token.text));
    // Between other words it may be a verb.
    for at in [tokens.len().checked_sub(1), Some(0)].into_iter().flatten() {
        if tokens.len() > 1 && tokens.get(at).is_some_and(|token| token.text == "please") {
            tokens.remove(at);
        }
    }
}

/// Returns whether `the` changes the question: `what is the time`, `what is time`.
fn is_bare(tokens: &[Token], at: usize) -> bool {
    let rest = &tokens[at + 1..];
    let is_degree = |word: &str| word.ends_with("est") || ["first", "most", "only"].contains(&word);
    at == 2
        && tokens[at].text == "the"
        && ["what", "who", "where", "when", "which"].contains(&&*tokens[0].text)
        && ["is", "are", "was", "were"].contains(&&*tokens[1].text)
        && rest.len() <= 2
        && rest.first().is_none_or(|first| !is_degree(&first.text))
}

/// Removes articles before a word, unless the article is quoted, part of a name, or before another function word.
fn without_articles(tokens: &mut Vec<Token>) {
    let is_article = |at: usize| {
        let token: &Token = &tokens[at];
        let before = at.checked_sub(1).map_or("", |before| &*tokens[before].text);
        let is_letter = token.text == "a" && LETTERED.contains(&before);
        let is_spoken_of = token.quoted || token.capital || is_bare(tokens, at) || is_letter;
        ARTICLES.contains(&&*token.text)
            && !is_spoken_of
            && tokens.get(at + 1).is_some_and(|next| {
                next.text.chars().all(char::is_alphanumeric)
                    && !ARTICLES.contains(&&*next.text)
                    && (next.capital || !PHRASE_ENDS.contains(&&*next.text))
            })
    };
    let kept: Vec<Token> =
        (0..tokens.len()).filter(|&at| !is_article(at)).map(|at| tokens[at].clone()).collect();
    *tokens = kept;
}

/// Returns a noun's singular, and one form of `be`, `was` and `do`; tokens other than plain words stay.
fn singular(word: &str) -> String {
    match word {
        "is" | "are" | "am" => return "be".to_owned(),
        "does" => return "do".to_owned(),
        "were" => return "was".to_owned(),
        _ => {}
    }
    let is_plain = word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    if !is_plain || NO_PLURAL.contains(&word) {
        return word.to_owned();
    }
    if let Some(begin) = word.strip_suffix("ies").filter(|begin| begin.len() > 1) {
        return format!("{begin}y");
    }
    if ["sses", "shes", "ches", "xes", "zes"].iter().any(|ending| word.ends_with(ending)) {
        return word[..word.len() - 2].to_owned();
    }
    match word.strip_suffix('s') {
        // `-ics` is a science, `-ss`, `-us` and `-is` are no plurals.
        Some(begin) if !["s", "u", "i", "ic"].iter().any(|end| begin.ends_with(end)) => {
            begin.to_owned()
        }
        _ => word.to_owned(),
    }
}

/// Reads `what are some of` as `what are`.
fn without_some(words: &mut Vec<String>) {
    let begins = matches!(words.first(), Some(word) if word == "what")
        && words.get(1).is_some_and(|word| ["be", "is", "are"].contains(&&**word));
    if begins && words.get(2).is_some_and(|word| word == "some") && words.len() > 3 {
        let of = words[3] == "of" && words.len() > 4;
        words.drain(2..if of { 4 } else { 3 });
    }
}

/// Reads the ways to ask how something is done as one.
fn how_to(words: &mut Vec<String>, without_own: bool) {
    let Some((taken, subject)) = asked_how(words) else { return };
    let rest = &words[taken..];
    let Some(first) = rest.first() else { return };
    let asks_of_you = subject == "you" && ASKED_OF_YOU.contains(&&**first);
    if asks_of_you || STATES.contains(&&**first) {
        return;
    }
    let own = match subject {
        "i" => Some("my"),
        "you" => Some("your"),
        "we" => Some("our"),
        // Without a subject, a single possessive shows who asks.
        _ => {
            let mut owners =
                ["my", "your", "our"].into_iter().filter(|own| rest.iter().any(|word| word == own));
            owners.next().filter(|_| owners.next().is_none())
        }
    };
    let oneself = own.map(|own| match own {
        "my" => "myself",
        "your" => "yourself",
        _ => "ourselves",
    });
    let mut read = vec![HOW_TO.to_owned()];
    for (at, word) in rest.iter().enumerate() {
        if Some(&**word) == own {
            if !without_own || at + 1 == rest.len() {
                read.push(OWN.to_owned());
            }
        } else if Some(&**word) == oneself {
            read.push(ONESELF.to_owned());
        } else {
            read.push(word.clone());
        }
    }
    *words = read;
}

/// Returns how many words ask how to do something, and the subject.
fn asked_how(words: &[String]) -> Option<(usize, &str)> {
    const WHO: &[&str] = &["i", "we", "you", "one"];
    let is = |at: usize, any: &[&str]| words.get(at).is_some_and(|word| any.contains(&&**word));
    let may = |who: usize, can: usize| is(who, WHO) && is(can, &["can"]);
    if is(0, &["how"]) {
        if is(1, &["to"]) {
            return Some((2, ""));
        }
        if is(1, &["do"]) && is(2, WHO) || may(2, 1) {
            return Some((3, &words[2]));
        }
        return may(1, 2).then(|| (3, &*words[1]));
    }
    let way = if is(2, &["best", "good"]) { 3 } else { 2 };
    if !is(0, &["what"]) || !is(1, &["be", "is", "are"]) || !is(way, &["way", "ways"]) {
        return None;
    }
    if is(way + 1, &["to"]) {
        return Some((way + 2, ""));
    }
    may(way + 1, way + 2).then(|| (way + 3, &*words[way + 1]))
}

/// Reads `what is NOUN for` as `what is NOUN of`; behind a verb, `for` would be part of the verb.
fn one_preposition(words: &mut [String]) {
    const ANY: &[&str] = &["of", "for", "in", "on", "at"];
    let begins =
        words.first().is_some_and(|word| ["what", "who", "when", "where"].contains(&&**word))
            && words.get(1).is_some_and(|word| ["be", "is", "are"].contains(&&**word));
    if !begins {
        return;
    }
    for at in 3..words.len().saturating_sub(1) {
        if PHRASE_ENDS.contains(&&*words[at - 1]) || PHRASE_ENDS.contains(&&*words[2]) {
            return;
        }
        if ANY.contains(&&*words[at]) {
            let noun = &words[at - 1];
            let is_verb = noun.ends_with("ing") || noun.ends_with("ed");
            if words[at] == "for" && !is_verb && !TAKES_A_PREPOSITION.contains(&&**noun) {
                "of".clone_into(&mut words[at]);
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(question: &str, expected: &str) {
        let found = Reading::of(question, &EquivalenceRules::default());
        assert_eq!(found.words().join(" "), expected, "{question}");
    }

    #[test]
    fn what_changes_nothing_is_taken_out() {
        check("What's the colour of an apple?", "what be color of apple");
        check("Which are some of the best web-series?", "what be best web series");
        check("How can I really organise my photos?", "how to organize photo");
        check("How do you organize your photos?", "how to organize photo");
        check("What is the best way to organize photos", "how to organize photo");
        check("What are the rules for success in life?", "what be rule of success in life");
    }

    #[test]
    fn what_may_matter_stays() {
        check("What is the difference between a and an?", "what be difference between a and an");
        check("What does “the” mean?", "what do the mean");
        check("Is vitamin a good?", "be vitamin a good");
        check("How do you sleep at night?", "how do you sleep at night");
        check("How do I find your house?", "how to find your house");
        check("What are securities?", "what be securities");
        check("What is John looking for in life?", "what be john looking for in life");
        check("What is it good for in there?", "what be it good for in there");
        check("Who is US president?", "who be ^us president");
        check("How do I?", "how do i");
    }

    #[test]
    fn english_is_known_by_its_small_words() {
        let english = |text: &str| Reading::of(text, &EquivalenceRules::default()).is_english();
        for text in ["why?", "Is the café open", "Do you know it"] {
            assert!(english(text), "{text}");
        }
        for text in
            ["", "Wie alt ist er?", "¿Qué es esto?", "何ですか", "What does 何 mean", "Où est-il"]
        {
            assert!(!english(text), "{text}");
        }
    }
}
