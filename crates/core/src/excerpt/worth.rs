//! Which names of what is left out are worth their place.
//!
//! A name that is listed costs its tokens, once written and then read at every call; a name that is not listed costs a
//! fetch if it is needed. How often names are needed again was counted on recorded sessions of four agents.

use std::sync::LazyLock;

use regex::Regex;

use crate::message::{Message, ToolCall};
use crate::names;
use crate::reading::{Named, Reading, source};
use crate::visible::Visible;

/// What a name looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Symbol,
    Path,
    Url,
    Number,
    Hash,
}

/// What decides whether a name is listed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Worth {
    /// Price of fetching the original back, in plain input tokens.
    pub(crate) fetch: f64,
    /// Price of a listed token over the calls still expected.
    pub(crate) token: f64,
    /// Whether the result is read for what is in it, as a file is, and not searched or listed.
    pub(crate) rich: bool,
    /// Whether it is a list of names.
    pub(crate) listing: bool,
}

/// Names that one need typically has in common: a fetch brings all of them back, so each bears its share.
///
/// Measured: 2, 3, 4 and 6 give a mean work of .591, .579, .575 and .586 on the development sessions.
const NAMES_IN_A_NEED: f64 = 4.0;
/// Of a short list of names about this many are used, of a long one too.
const USED_OF_A_LISTING: f64 = 8.0;
/// So many names are listed whatever they are worth, so that identifiers survive in all but long results.
///
/// Measured: 0, 24, 40 and 100 give a mean work of .572, .570, .571 and .579.
const ALWAYS_LISTED: usize = 24;
/// A name of more bytes is data (a minified line, base64) and must earn its place; three times as much for a URL.
const LONGEST_FREE: usize = 100;
/// Characters of a token in a list of names.
const CHARACTERS: f64 = 3.3;

impl Worth {
    /// Returns the price of a listed token when `calls` are expected.
    pub(crate) fn token_price(write: f64, read: f64, calls: f64) -> f64 {
        NAMES_IN_A_NEED * (write + read * calls)
    }

    /// Returns the names of `left_out` that nothing else shows and that are worth listing, in the order of the text.
    pub(crate) fn names<'t>(
        &self,
        left_out: &'t str,
        kept: &Message,
        visible: &Visible,
    ) -> Vec<&'t str> {
        let mut seen = names::names(&kept.shown());
        let mut hidden = Vec::new();
        names::each_name(left_out, |name| {
            let key = names::key(name);
            // The message itself is counted as showing it.
            if visible.shows_key(key) <= 1 && seen.insert(key) {
                hidden.push(name);
            }
        });
        self.keep_worthy(&mut hidden);
        hidden
    }

    /// As [`Worth::names`], from what was read of the message; `counts` stand in the markers of its gaps.
    pub(crate) fn names_known<'m>(
        &self,
        message: &'m Message,
        reading: &Reading,
        named: &[Named],
        dropped: &[bool],
        counts: &[usize],
        visible: &Visible,
    ) -> Vec<&'m str> {
        let left_out = |name: &Named| dropped[name.line as usize];
        let mut seen = vec![false; reading.names.len()];
        for name in named.iter().filter(|name| !left_out(name)) {
            seen[name.name as usize] = true;
        }
        let mut hidden = Vec::new();
        for name in named.iter().filter(|name| left_out(name)) {
            let order = name.name as usize;
            if !seen[order] && visible.shows_name(reading.names[order]) <= 1 {
                seen[order] = true;
                let block = reading.lines[name.line as usize].block;
                hidden.push(&source(message, block)[name.start as usize..name.end as usize]);
            }
        }
        // A count of four digits is a name that the excerpt shows.
        for count in counts.iter().filter(|&&count| count >= 1000) {
            let count = count.to_string();
            hidden.retain(|name| *name != count);
        }
        self.keep_worthy(&mut hidden);
        hidden
    }

    /// Keeps of the hidden names those that are worth their place.
    fn keep_worthy(&self, hidden: &mut Vec<&str>) {
        let of_listing = (USED_OF_A_LISTING / hidden.len().max(1) as f64).min(0.5);
        let mut room = ALWAYS_LISTED;
        hidden.retain(|name| {
            let shape = shape(name);
            if shape == Shape::Url {
                return name.len() <= LONGEST_FREE * 3;
            }
            if shape != Shape::Number && room > 0 && name.len() <= LONGEST_FREE {
                room -= 1;
                return true;
            }
            let mut chance = self.chance(shape);
            if self.listing && matches!(shape, Shape::Path | Shape::Symbol) {
                chance = chance.max(of_listing);
            }
            let price = self.token * (name.len() + 1) as f64 / CHARACTERS;
            chance * self.fetch > price
        });
    }

    /// Returns how often something of the names that are listed is needed again.
    pub(crate) fn need(&self, listed: &[&str]) -> f64 {
        listed.iter().map(|name| self.chance(shape(name))).sum::<f64>() / NAMES_IN_A_NEED
    }

    /// Returns how often a hidden name of this shape is needed again.
    ///
    /// Counted on the development sessions, for results above 60 tokens and needs two or more turns later: symbols of
    /// read files 866 of 8,704, of searched or listed ones 130 of 4,398, and so on; rounded.
    fn chance(&self, shape: Shape) -> f64 {
        match (shape, self.rich) {
            (Shape::Symbol, true) => 0.12,
            (Shape::Symbol, false) => 0.03,
            (Shape::Path | Shape::Url, true) => 0.04,
            (Shape::Path | Shape::Url, false) | (Shape::Number, true) => 0.02,
            (Shape::Hash, true) => 0.01,
            (Shape::Hash, false) => 0.004,
            (Shape::Number, false) => 0.001,
        }
    }
}

/// Tells whether a call is made to read content, and not to search, list or test.
pub(crate) fn reads_content(call: Option<&ToolCall>) -> bool {
    static SEARCH: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b(?:grep|rg|ls|find|tree|git|pytest|test)\b")
            .expect("program names are valid")
    });
    call.is_none_or(|call| {
        !matches!(call.name.to_ascii_lowercase().as_str(), "grep" | "glob" | "ls" | "find")
            && !SEARCH.is_match(&call.arguments)
    })
}

fn shape(name: &str) -> Shape {
    if name.starts_with("http") && name.contains("://") {
        Shape::Url
    } else if name.contains('/') {
        Shape::Path
    } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
        Shape::Number
    } else if name.len() >= 7
        && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    {
        Shape::Hash
    } else {
        Shape::Symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_told_apart() {
        assert_eq!(shape("https://a.example/x"), Shape::Url);
        assert_eq!(shape("src/lib.rs"), Shape::Path);
        assert_eq!(shape("1234"), Shape::Number);
        assert_eq!(shape("3fa9c1d2"), Shape::Hash);
        assert_eq!(shape("parse_header"), Shape::Symbol);
    }

    #[test]
    fn likely_names_of_dear_originals_are_listed() {
        let early = (0..24).fold(String::new(), |text, n| text + &format!("early_{n} "));
        let text = format!("{early} fn parse_header at 12345 in https://a.example/b");
        let kept = Message::text(crate::message::Role::User, "");
        let listed = |fetch| {
            let worth = Worth { fetch, token: 17.0, rich: true, listing: false };
            worth.names(&text, &kept, &Visible::default()).split_off(24).join(" ")
        };
        assert_eq!(listed(1e6), "parse_header 12345 https://a.example/b");
        assert_eq!(listed(1e3), "parse_header https://a.example/b");
        assert_eq!(listed(0.0), "https://a.example/b");
    }
}
