//! Names that become folders.

use std::fmt;

use serde_json::{Value, json};

use crate::decode::{Decode, Decoder, Definitions};
use crate::node::Node;
use crate::problem::Kind;

/// The name of a cascade or a phase: a single, visible part of a path.
///
/// 1 to 100 characters, no `/`, `\`, control or direction mark, not beginning with `.` or a space, nor ending with one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// The most characters (chosen: of 4 bytes each they fill less than twice the 255 bytes of a file name; see `new`).
const LONGEST: usize = 100;
/// The most bytes: 255 for a file name on Linux, less what a suffix may need.
const MOST_BYTES: usize = 200;

impl Name {
    /// Checks a name; says what is wrong with it otherwise.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let hidden = |c: char| {
            c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        };
        if text.is_empty() {
            Err("it is empty")
        } else if text.chars().count() > LONGEST || text.len() > MOST_BYTES {
            Err("it is longer than 100 characters")
        } else if text.contains(['/', '\\']) {
            Err("it holds a slash")
        } else if text.contains(hidden) {
            Err("it holds a control character")
        } else if text.starts_with('.') {
            Err("it begins with a dot")
        } else if text != text.trim() {
            Err("it begins or ends with a space")
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// Returns the name as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Decode for Name {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let text = String::decode(node, decoder)?;
        match Self::new(&text) {
            Ok(name) => Some(name),
            Err(why) => {
                let said = format!("{text:?} cannot be a name, which becomes a folder: {why}");
                let hint = "letters, digits, `_` and `-` always can".to_owned();
                decoder.tell(
                    crate::problem::Severity::Error,
                    node.place,
                    Kind::Name,
                    said,
                    Some(hint),
                );
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": ["string", "number", "boolean"], "minLength": 1, "maxLength": LONGEST, "pattern": r"^[^./\\\s]([^/\\]*[^/\\\s])?$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_parts_of_a_path() {
        for good in ["a", "draft_1", "Étape 2: revue", "a..b", "v1.2"] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        let long = "x".repeat(101);
        for bad in
            ["", ".", "..", "../a", "a/b", "a\\b", "a\0", " a", "a ", ".git", "a\u{202e}b", &long]
        {
            assert!(Name::new(bad).is_err(), "{bad:?}");
        }
    }
}
