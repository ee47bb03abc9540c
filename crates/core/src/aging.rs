//! Shrinks messages as they get older (`context-strategy.md` 6.2).

use std::fmt::Write as _;

use crate::text::{
    Limit, head, head_at_word, left_out, push_shortened, tail_at_word, with_error_lines,
};

/// Ages at which a message is shortened or becomes one line, and how long it may then be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Aging {
    /// The age in messages at which a message is cut in its middle.
    pub light_from: u32,
    /// The age in messages at which a message becomes one line.
    pub heavy_from: u32,
    /// The most characters of a message that is cut in its middle.
    pub light_characters: usize,
    /// The most characters of the line; chosen to fit a sentence.
    pub line_characters: usize,
}

impl Default for Aging {
    fn default() -> Self {
        Self { light_from: 2, heavy_from: 5, light_characters: 300, line_characters: 120 }
    }
}

/// Returns the form of `text` for a message of `age`; the newest message has age 0.
///
/// Lines that report errors stay at every age, behind the rest of the text.
pub fn at_age(text: &str, age: u32, aging: &Aging) -> String {
    let shown = if age < aging.light_from {
        return text.to_owned();
    } else if age < aging.heavy_from {
        truncate_middle(text, aging.light_characters)
    } else {
        one_line_summary(text, aging.line_characters)
    };
    with_error_lines(shown, text)
}

/// Returns the beginning and the end of `text`, `most` characters in all, with a mark between that counts the rest.
///
/// Shape: never more than `most` characters; a shorter text is returned as it is. If there is no room for the mark, only the
/// beginning is returned.
pub fn truncate_middle(text: &str, most: usize) -> String {
    let all = text.chars().count();
    if all <= most {
        return text.to_owned();
    }
    // No mark is longer than that for `all`; it stands between two blanks.
    let mark = left_out(all, "character", None).chars().count() + 2;
    let Some(room) = most.checked_sub(mark).filter(|room| *room > 0) else {
        return head(text, Limit::Characters(most)).to_owned();
    };
    let head = head_at_word(text, Limit::Characters(room - room / 2));
    let tail = tail_at_word(text, Limit::Characters(room / 2));
    let hidden = all - head.chars().count() - tail.chars().count();
    format!("{head} {} {tail}", left_out(hidden, "character", None))
}

/// Returns the first line of `text` with words, at most `most` characters of it, and the length of the text.
pub fn one_line_summary(text: &str, most: usize) -> String {
    let line = text.lines().find(|line| line.chars().any(char::is_alphanumeric));
    let line = line.or_else(|| text.lines().next()).unwrap_or("").trim();
    let mut out = String::new();
    push_shortened(&mut out, line, most);
    let all = text.chars().count();
    if all > line.chars().count() + 1 || out.len() < line.len() {
        let _ = write!(out, " [{all} characters in all]");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_messages_get_smaller() {
        let text = format!("the task\n{}\nthe end", "word ".repeat(200));
        let aging = Aging::default();
        assert_eq!(at_age(&text, 1, &aging), text);
        let light = at_age(&text, 2, &aging);
        assert!(light.starts_with("the task") && light.ends_with("the end"), "{light}");
        assert!(light.chars().count() <= 300 && light.contains("characters]"));
        assert_eq!(at_age(&text, 5, &aging), "the task [1017 characters in all]");
        assert_eq!(at_age("short", 9, &aging), "short");
    }

    #[test]
    fn errors_have_no_age() {
        let text =
            format!("running\n{}\nerror: it broke\n{}", "a\n".repeat(300), "b\n".repeat(300));
        for age in [3, 9] {
            assert!(at_age(&text, age, &Aging::default()).ends_with("\nerror: it broke"));
        }
    }

    #[test]
    fn every_setting_changes_something() {
        let text = "one two three ".repeat(60);
        let Aging { light_from, heavy_from, light_characters, line_characters } = Aging::default();
        let base = Aging::default();
        for (age, changed) in [
            (light_from, Aging { light_from: light_from + 1, ..base }),
            (heavy_from, Aging { heavy_from: heavy_from + 1, ..base }),
            (light_from, Aging { light_characters: light_characters + 9, ..base }),
            (heavy_from, Aging { line_characters: line_characters + 9, ..base }),
        ] {
            assert_ne!(at_age(&text, age, &base), at_age(&text, age, &changed), "{changed:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_cut_middle_is_never_longer(text in "\\PC{0,200}", most in 0_usize..120) {
            proptest::prop_assert!(truncate_middle(&text, most).chars().count() <= most.max(text.chars().count().min(most)));
        }
    }
}
