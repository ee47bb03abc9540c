//! Settings that are a value or one word, such as a number or `"auto"`.

use serde::{Deserialize, Serialize};

/// A setting as it is written: a value or a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ValueOrWord<T> {
    Value(T),
    Word(String),
    /// Anything else; it is read so that the error can say what is expected.
    Other(serde_json::Value),
}

impl<T> ValueOrWord<T> {
    /// Returns the value, or `None` for the one `word` that is allowed.
    ///
    /// Errors: a text that begins with `what`, such as "`budget` is a number of tokens", for anything else.
    pub fn value_unless(self, word: &str, what: &str) -> Result<Option<T>, String> {
        match self {
            Self::Value(value) => Ok(Some(value)),
            Self::Word(other) if other == word => Ok(None),
            Self::Word(other) => Err(format!("{what} or \"{word}\", not \"{other}\"")),
            Self::Other(other) => Err(format!("{what} or \"{word}\", not {other}")),
        }
    }
}

impl<T> From<&str> for ValueOrWord<T> {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_one_that_is_allowed() {
        let read = |json| serde_json::from_str::<ValueOrWord<u64>>(json).expect("either");
        let value = |json| read(json).value_unless("auto", "`budget` is a number of tokens");
        assert_eq!(value("7"), Ok(Some(7)));
        assert_eq!(value("\"auto\""), Ok(None));
        let refused = "`budget` is a number of tokens or \"auto\", not \"lots\"";
        assert_eq!(value("\"lots\""), Err(refused.to_owned()));
        let refused = "`budget` is a number of tokens or \"auto\", not -7";
        assert_eq!(value("-7"), Err(refused.to_owned()));
    }
}
