//! Stems: `hikes`, `hiked` and `hiking` match each other.

/// Endings and their replacements; the first that fits is replaced.
///
/// Chosen: the families of the usual English stemmers without those that change the meaning (`-al`, `-er`, `-ist`).
/// Measured: the longer list of Porter finds no more here.
const ENDINGS: &[(&str, &str)] = &[
    ("fulness", ""),
    ("ness", ""),
    ("ment", ""),
    ("ful", ""),
    ("ly", ""),
    ("ation", "ate"),
    ("tion", "t"),
];

/// The fewest letters of a stem.
const SHORTEST: usize = 3;

/// Returns the stem of a word in lower case.
///
/// Only words of at least four letters a–z are stemmed; other scripts, names with digits and short words stay.
pub(crate) fn stem(word: &str) -> String {
    let mut stem = word.to_owned();
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return stem;
    }
    plural(&mut stem);
    past_or_progressive(&mut stem);
    for (ending, instead) in ENDINGS {
        if stem.len() >= ending.len() + SHORTEST && stem.ends_with(ending) {
            stem.truncate(stem.len() - ending.len());
            stem.push_str(instead);
            break;
        }
    }
    if stem.len() > SHORTEST && stem.ends_with('e') {
        stem.pop();
    }
    if stem.len() > SHORTEST && stem.ends_with('y') && !ends_in_vowel(&stem[..stem.len() - 1]) {
        stem.pop();
        stem.push('i');
    }
    stem
}

fn plural(stem: &mut String) {
    if stem.len() > 4 && stem.ends_with("ies") {
        stem.truncate(stem.len() - 3);
        stem.push('y');
    } else if ["sses", "shes", "ches", "xes", "zes"].iter().any(|ending| stem.ends_with(ending)) {
        stem.truncate(stem.len() - 2);
    } else if stem.ends_with('s') && !["ss", "us", "is"].iter().any(|end| stem.ends_with(end)) {
        stem.pop();
    }
}

fn past_or_progressive(stem: &mut String) {
    for ending in ["ing", "ed"] {
        let Some(rest) = stem.strip_suffix(ending) else { continue };
        if rest.len() < SHORTEST || !rest.bytes().any(is_vowel) {
            continue;
        }
        let length = rest.len();
        stem.truncate(length);
        let letters = stem.as_bytes();
        let last = letters[length - 1];
        // `stopped` is `stop`, but `called` is `call`.
        if last == letters[length - 2] && !b"lsz".contains(&last) {
            stem.pop();
        }
        return;
    }
}

fn is_vowel(letter: u8) -> bool {
    b"aeiouy".contains(&letter)
}

fn ends_in_vowel(text: &str) -> bool {
    text.bytes().last().is_some_and(is_vowel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str]) {
        let stems: Vec<String> = words.iter().map(|word| stem(word)).collect();
        assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{words:?} {stems:?}");
    }

    #[test]
    fn forms_of_a_word_meet() {
        check(&["hike", "hikes", "hiked", "hiking"]);
        check(&["party", "parties"]);
        check(&["stop", "stops", "stopped", "stopping"]);
        check(&["call", "called", "calling"]);
        check(&["donate", "donation", "donated", "donating"]);
        check(&["box", "boxes"]);
        check(&["happy", "happiness"]);
        check(&["quick", "quickly"]);
    }

    #[test]
    fn other_words_stay_apart_or_as_they_are() {
        assert_ne!(stem("bus"), stem("but"));
        assert_ne!(stem("sing"), stem("singer"));
        for word in ["", "is", "bus", "x86ed", "naïveness", "ключи", "日", "this", "class"] {
            assert_eq!(stem(word), word, "{word}");
        }
    }
}
