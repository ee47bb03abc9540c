//! Words: the units by which every backend indexes and searches texts.

/// Splits text into words for search, in lower case and in order.
///
/// A word is a run of letters and digits; scripts written without spaces (Han, kana, Hangul, Thai) give each letter as a
/// word, so that a part of a sentence is found.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.to_owned()));
    words.into_iter()
}

fn stands_alone(character: char) -> bool {
    matches!(character,
        '\u{0E00}'..='\u{0EFF}' | '\u{1100}'..='\u{11FF}' | '\u{3040}'..='\u{30FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// Calls `take` with each word of [`words`], without allocating a string for each.
pub(crate) fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let mut word = String::new();
    let mut end = |word: &mut String| {
        if !word.is_empty() {
            take(word);
            word.clear();
        }
    };
    for character in text.chars() {
        if character.is_ascii() {
            if character.is_ascii_alphanumeric() {
                word.push(character.to_ascii_lowercase());
            } else {
                end(&mut word);
            }
            continue;
        }
        for lower in character.to_lowercase().filter(|lower| *lower != '\u{307}') {
            let alone = stands_alone(lower);
            if alone || !lower.is_alphanumeric() {
                end(&mut word);
            }
            if lower.is_alphanumeric() {
                word.push(lower);
            }
            if alone {
                end(&mut word);
            }
        }
    }
    end(&mut word);
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
    fn case_and_scripts_without_spaces_are_told() {
        for (text, expected) in [
            ("", ""),
            ("Don't STOP 日本語 text", "don|t|stop|日|本|語|text"),
            ("İstanbul e\u{301}te\u{301}", "istanbul|e|te"),
            ("x1_y2--z", "x1|y2|z"),
            ("ไทย 한글 ok\0", "ไ|ท|ย|한|글|ok"),
            ("ﬁ ǅ ẞ ΑΣ", "ﬁ|ǆ|ß|ασ"),
        ] {
            assert_eq!(words(text).collect::<Vec<_>>().join("|"), expected, "{text:?}");
        }
    }
}
