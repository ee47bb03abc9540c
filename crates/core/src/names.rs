//! Names: the paths, symbols, numbers, URLs and hashes in a text, and its runs of eight words.
//!
//! A model copies them from its context into its next step. So they show what an excerpt must not lose and what a context
//! was missing. The grammar of a name and the length of a run are those of the scorer in use.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use regex::Regex;

mod ascii;

/// A name or a run of words, hashed; equal text gives equal keys in every process.
pub type Key = u64;

/// A set of keys; keys are hashes already, so the set does not hash them again.
pub type KeySet = HashSet<Key, BuildHasherDefault<KeyHasher>>;

/// A map by keys, as [`KeySet`].
pub(crate) type KeyMap<T> = HashMap<Key, T, BuildHasherDefault<KeyHasher>>;

/// Passes a [`Key`] through as its own hash.
#[derive(Debug, Default, Clone, Copy)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = key_of_bytes(bytes);
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// Words in a run that counts as copied.
pub const RUN_WORDS: usize = 8;

/// Names shorter than this are too common to mean anything.
const SHORTEST_NAME: usize = 4;

/// The alternatives in order: URL, path, hash, dotted name, snake case, constant, camel case, Pascal case, number.
///
/// An automaton for it takes ten times as long as [`ascii`], which finds the same where no letter is beyond ASCII.
const GRAMMAR: &str = r#"https?://[^\s"'<>)\]]+|[\w.~-]*(?:/[\w.@+-]+)+|\b[0-9a-f]{7,40}\b|\b[A-Za-z_]\w*(?:\.\w+)+\b|\b[a-z]+(?:_[a-z0-9]+)+\b|\b[A-Z_]{2,}[A-Z0-9_]+\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b(?:[A-Z][a-z0-9]+){2,}\b|\b\d{3,}\b"#;

static UNICODE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(GRAMMAR).expect("the grammar of names is a valid expression"));
/// Letters and white space beyond ASCII.
static BEYOND_ASCII: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\w\s--\x00-\x7F]").expect("a valid expression"));

/// Calls `found` with every name in `text`, in order, repeats included.
pub fn each_name<'a>(text: &'a str, mut found: impl FnMut(&'a str)) {
    let mut long = |name: &'a str| {
        if name.len() >= SHORTEST_NAME && (name.is_ascii() || name.chars().count() >= SHORTEST_NAME)
        {
            found(name.trim_end_matches(['.', ',', ':', ';']));
        }
    };
    if is_like_ascii(text) {
        return ascii::each_match(text, long);
    }
    // No name contains white space, so a text can be cut there without changing what is found.
    for line in text.split('\n') {
        if is_like_ascii(line) {
            ascii::each_match(line, &mut long);
            continue;
        }
        for part in line.split(|character: char| character.is_ascii_whitespace()) {
            if is_like_ascii(part) {
                ascii::each_match(part, &mut long);
            } else {
                UNICODE.find_iter(part).for_each(|name| long(name.as_str()));
            }
        }
    }
}

/// Returns whether no letter and no white space is beyond ASCII; other signs, as arrows and frames, end every name but a URL.
fn is_like_ascii(text: &str) -> bool {
    text.is_ascii() || !BEYOND_ASCII.is_match(text)
}

/// Returns the names of `text` as keys.
pub fn names(text: &str) -> KeySet {
    let mut keys = KeySet::default();
    each_name(text, |name| {
        keys.insert(key(name));
    });
    keys
}

/// Returns the runs of [`RUN_WORDS`] words of `text` as keys; white space and punctuation between words do not count.
pub fn runs(text: &str) -> KeySet {
    let mut keys = KeySet::default();
    each_run(text, |key, _, _| {
        keys.insert(key);
    });
    keys
}

/// Calls `found` with each run of [`RUN_WORDS`] words: its key, and the bytes where it begins and ends.
pub fn each_run(text: &str, mut found: impl FnMut(Key, usize, usize)) {
    // A ring of the last words' hashes; the run's key mixes them in order.
    let mut ring = [(0_u64, 0_usize); RUN_WORDS];
    let mut words = 0;
    each_word(text, |word, start, end| {
        ring[words % RUN_WORDS] = (key(word), start);
        words += 1;
        if words >= RUN_WORDS {
            let mut mixed = 0x9E37_79B9_7F4A_7C15_u64;
            for offset in 0..RUN_WORDS {
                mixed = (mixed ^ ring[(words + offset) % RUN_WORDS].0)
                    .wrapping_mul(0xFF51_AFD7_ED55_8CCD)
                    .rotate_left(29);
            }
            found(mixed, ring[words % RUN_WORDS].1, end);
        }
    });
}

/// Calls `found` with each word and the bytes where it begins and ends.
fn each_word<'a>(text: &'a str, mut found: impl FnMut(&'a str, usize, usize)) {
    if text.is_ascii() {
        return ascii::each_word(text, found);
    }
    let mut start = None;
    for (at, character) in text.char_indices() {
        let in_word = character == '_' || character.is_alphanumeric();
        match (in_word, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                found(&text[from..at], from, at);
                start = None;
            }
            _ => {}
        }
    }
    if let Some(from) = start {
        found(&text[from..], from, text.len());
    }
}

/// Hashes a name.
pub fn key(name: &str) -> Key {
    key_of_bytes(name.as_bytes())
}

fn key_of_bytes(bytes: &[u8]) -> Key {
    // Multiply and fold, eight bytes a step: names are short, and an attacker who chooses colliding names only slows
    // the lookups of their own session.
    let mut hash = 0x2545_F491_4F6C_DD1D_u64 ^ bytes.len() as u64;
    for part in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        let wide = u128::from(hash ^ u64::from_le_bytes(word)) * 0x9E37_79B9_7F4A_7C15_u128;
        hash = (wide as u64) ^ ((wide >> 64) as u64).rotate_left(23);
    }
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        each_name(text, |name| found.push(name));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn finds_each_kind() {
        check("see https://a.example/x?y=1) and", &["https://a.example/x?y=1"]);
        check("in src/lib.rs:12", &["src/lib.rs"]);
        check("./a/b.", &["./a/b"]);
        check("commit 3fa9c1d2", &["3fa9c1d2"]);
        check("os.path.join(x)", &["os.path.join"]);
        check(
            "snake_case camelCase PascalCase CONST_A HTTP",
            &["snake_case", "camelCase", "PascalCase", "CONST_A", "HTTP"],
        );
        check("12 123 12345", &["12345"]);
        check("a bc word", &[]);
    }

    #[test]
    fn text_beyond_ascii_gives_the_same_names() {
        check("    12→src/lib.rs uses snake_case", &["src/lib.rs", "snake_case"]);
        check("größe.wert straße/öl", &["größe.wert", "straße/öl"]);
    }

    #[test]
    fn runs_need_eight_words_and_ignore_punctuation() {
        assert!(runs("one two three four five six seven").is_empty());
        let plain = runs("one two three four five six seven eight");
        assert_eq!(plain.len(), 1);
        assert_eq!(plain, runs("one, two; three\nfour five (six) seven eight!"));
        assert_ne!(plain, runs("two one three four five six seven eight"));
    }

    proptest::proptest! {
        #[test]
        fn cutting_at_white_space_changes_nothing(text in "[ a-zA-Z0-9_./:→ö\\n-]{0,80}") {
            check_against_the_grammar(&text)?;
        }

        #[test]
        fn ascii_text_gives_what_the_grammar_gives(
            parts in proptest::collection::vec(
                proptest::sample::select(PARTS.as_slice()),
                0..24,
            )
        ) {
            check_against_the_grammar(&parts.concat())?;
        }

        #[test]
        fn signs_beyond_ascii_give_what_the_grammar_gives(
            parts in proptest::collection::vec(
                proptest::sample::select([PARTS.as_slice(), &BEYOND].concat()),
                0..24,
            )
        ) {
            check_against_the_grammar(&parts.concat())?;
        }

        #[test]
        fn words_of_ascii_are_those_of_any_text(text in "[a-zA-Z0-9_ .,\\n-]{0,40}") {
            let (mut all, mut own) = (Vec::new(), Vec::new());
            each_word(&text, |word, start, end| own.push((word.to_owned(), start, end)));
            // A word beyond ASCII takes the other way.
            let longer = format!("{text} ö");
            each_word(&longer, |word, start, end| all.push((word.to_owned(), start, end)));
            all.pop();
            proptest::prop_assert_eq!(own, all);
        }

        #[test]
        fn any_ascii_gives_what_the_grammar_gives(text in "[\\x00-\\x7F]{0,60}") {
            check_against_the_grammar(&text)?;
        }
    }

    /// Parts of names, and characters that end one.
    const PARTS: [&str; 40] = [
        "http",
        "https",
        "://",
        ":",
        "/",
        "//",
        ".",
        "..",
        "~",
        "-",
        "@",
        "+",
        "_",
        "__",
        "a",
        "f",
        "g",
        "deadbee",
        "0123456",
        "abcdef0123456789abcdef0123456789abcdef01",
        "12",
        "345",
        "7",
        "A",
        "AB",
        "Ab",
        "aB",
        "word",
        "Word",
        "WORD",
        "snake_case",
        "camelCase",
        "lib.rs",
        " ",
        "\n",
        "\"",
        "(",
        ")",
        ",",
        ";",
    ];

    /// Arrows, frames, dots, blanks, and letters, marks and signs that join words.
    const BEYOND: [&str; 14] = [
        "→", "│", "…", "–", "✓", "\u{a0}", "\u{3000}", "\u{2028}", "ö", "ß", "\u{301}", "‿",
        "\u{200d}", "٣",
    ];

    fn check_against_the_grammar(text: &str) -> Result<(), proptest::test_runner::TestCaseError> {
        let mut whole = Vec::new();
        for name in UNICODE.find_iter(text) {
            if name.as_str().chars().count() >= SHORTEST_NAME {
                whole.push(name.as_str().trim_end_matches(['.', ',', ':', ';']));
            }
        }
        let mut parts = Vec::new();
        each_name(text, |name| parts.push(name));
        proptest::prop_assert_eq!(whole, parts, "{:?}", text);
        Ok(())
    }
}
