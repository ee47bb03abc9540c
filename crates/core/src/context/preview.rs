//! The preview of a large change: which messages would change, and how many tokens that would save.

use std::fmt;

use serde::Serialize;

use super::Receipt;
use crate::transcript::Position;

/// The share of a context from which a change is called large (chosen: below it a reader sees no difference in the bill).
const LARGE: f64 = 0.1;

/// A large change of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// The tokens that the context has less.
    pub tokens: u64,
    /// The messages that change, ascending.
    pub messages: Vec<Position>,
}

impl Receipt {
    /// Returns the preview of the request's changes; `None` where these are small.
    pub fn preview(&self) -> Option<Preview> {
        let sum = |of: &dyn Fn(&crate::plan::Change) -> u32| -> u64 {
            self.changes.iter().map(|change| u64::from(of(change))).sum()
        };
        let before = sum(&|change| change.tokens_before);
        let tokens = before.saturating_sub(sum(&|change| change.tokens_after));
        let mut messages: Vec<Position> =
            self.changes.iter().map(|change| change.position).collect();
        messages.sort_unstable();
        messages.dedup();
        let is_large = tokens > 0 && tokens as f64 >= LARGE * (self.tokens + tokens) as f64;
        is_large.then_some(Preview { tokens, messages })
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tokens={}; messages=", self.tokens)?;
        let mut rest = &self.messages[..];
        while let Some(&first) = rest.first() {
            let run = rest.iter().zip(first..).take_while(|(one, next)| *one == next).count();
            let comma = if rest.len() < self.messages.len() { "," } else { "" };
            match run {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{}", first + run - 1)?,
            }
            rest = &rest[run..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_messages_are_written_short() {
        let preview = Preview { tokens: 12, messages: vec![1, 3, 4, 5, 9, 10] };
        assert_eq!(preview.to_string(), "tokens=12; messages=1,3-5,9-10");
    }
}
