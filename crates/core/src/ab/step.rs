//! A next step, and the comparison of two.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{Block, Message};
use crate::text::each_word;

/// The next step of a model: its text and its calls, without reasoning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStep {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<StepCall>,
}

/// A call in a next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCall {
    pub name: String,
    pub arguments: String,
}

impl From<&Message> for NextStep {
    fn from(message: &Message) -> Self {
        let texts = message.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(&**text),
            _ => None,
        });
        let call = |call: &crate::message::ToolCall| StepCall {
            name: call.name.to_string(),
            arguments: call.arguments.to_string(),
        };
        Self {
            text: texts.collect::<Vec<_>>().join("\n"),
            calls: message.calls().map(call).collect(),
        }
    }
}

impl NextStep {
    /// Returns the step as one text: its text, then a line `NAME ARGUMENTS` for each call.
    pub fn shown(&self) -> String {
        let calls = self.calls.iter().map(|call| format!("{} {}", call.name, call.arguments));
        let text = Some(self.text.trim().to_owned()).filter(|text| !text.is_empty());
        text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
    }

    fn tools(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|call| call.name.as_str())
    }
}

/// The comparison of two next steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepComparison {
    /// Whether both call the same tools in the same order; two steps without a call do.
    pub same_tools: bool,
    /// The share of arguments with equal values; `None` if neither step calls a tool.
    pub arguments: Option<f64>,
    /// The likeness of the whole steps as texts, 0 to 1.
    pub similarity: f64,
}

impl StepComparison {
    /// Compares two steps whose texts are alike by `similarity`; equal texts are alike by 1 in any case.
    pub fn of(one: &NextStep, other: &NextStep, similarity: f64) -> Self {
        let is_equal = one.shown() == other.shown();
        let similarity = if similarity.is_nan() { 0.0 } else { similarity.clamp(0.0, 1.0) };
        Self {
            same_tools: one.tools().eq(other.tools()),
            arguments: argument_agreement(&one.calls, &other.calls),
            similarity: if is_equal { 1.0 } else { similarity },
        }
    }
}

/// Returns the share of arguments with equal values, each call against the one at its place in the other step.
///
/// A call of another tool, or without a counterpart, agrees in nothing. `None` if there is no call.
pub fn argument_agreement(one: &[StepCall], other: &[StepCall]) -> Option<f64> {
    let most = one.len().max(other.len());
    let pairs = one.iter().zip(other).filter(|(one, other)| one.name == other.name);
    let sum =
        pairs.fold(0.0, |sum, (one, other)| sum + agreement(&one.arguments, &other.arguments));
    (most > 0).then(|| sum / most as f64)
}

fn agreement(one: &str, other: &str) -> f64 {
    let (Some(one), Some(other)) = (fields(one), fields(other)) else {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        return f64::from(u8::from(words(one) == words(other)));
    };
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    if names.is_empty() {
        return 1.0;
    }
    let equal = names.iter().filter(|name| one.get(**name) == other.get(**name)).count();
    equal as f64 / names.len() as f64
}

fn fields(arguments: &str) -> Option<serde_json::Map<String, Value>> {
    match serde_json::from_str(arguments).ok()? {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

/// Returns the lexical likeness of two texts: the words in common, each as often as it stands in both, twice over all words.
///
/// Dice's coefficient. Order and punctuation do not count, so it is no measure of meaning; two empty texts are alike.
pub fn shared_words(one: &str, other: &str) -> f64 {
    let mut counts: HashMap<String, i64> = HashMap::new();
    let mut words = 0_u64;
    each_word(one, |word| {
        *counts.entry(word.to_owned()).or_default() += 1;
        words += 1;
    });
    let mut shared = 0_u64;
    each_word(other, |word| {
        words += 1;
        if let Some(count) = counts.get_mut(word).filter(|count| **count > 0) {
            *count -= 1;
            shared += 1;
        }
    });
    if words == 0 {
        return f64::from(u8::from(one.trim() == other.trim()));
    }
    (2 * shared) as f64 / words as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str, calls: &[(&str, &str)]) -> NextStep {
        let call = |(name, arguments): &(&str, &str)| StepCall {
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        };
        NextStep { text: text.to_owned(), calls: calls.iter().map(call).collect() }
    }

    fn compared(one: &NextStep, other: &NextStep) -> StepComparison {
        StepComparison::of(one, other, shared_words(&one.shown(), &other.shown()))
    }

    #[test]
    fn arguments_agree_by_value_and_not_by_spelling() {
        let read = step("", &[("read", r#"{"path":"a.rs","limit":5}"#)]);
        let spaced = step("", &[("read", r#"{ "limit": 5, "path": "a.rs" }"#)]);
        assert_eq!(compared(&read, &spaced).arguments, Some(1.0));
        let other = step("", &[("read", r#"{"path":"b.rs","limit":5}"#)]);
        assert_eq!(compared(&read, &other).arguments, Some(0.5));
        let none = step("done", &[]);
        let found = compared(&read, &none);
        assert_eq!((found.same_tools, found.arguments), (false, Some(0.0)));
        assert_eq!(
            found.arguments.map(f64::is_sign_positive),
            Some(true),
            "it is not printed as -0"
        );
        let found = compared(&none, &step("finished", &[]));
        assert_eq!((found.same_tools, found.arguments), (true, None));
        let patch = step("", &[("apply_patch", "*** Begin\n+a")]);
        assert_eq!(compared(&patch, &patch).arguments, Some(1.0));
    }

    #[test]
    fn another_tool_agrees_in_no_argument() {
        let read = step("", &[("read", r#"{"path":"a"}"#), ("grep", r#"{"pattern":"x"}"#)]);
        let other = step("", &[("read", r#"{"path":"a"}"#), ("glob", r#"{"pattern":"x"}"#)]);
        let found = compared(&read, &other);
        assert_eq!((found.same_tools, found.arguments), (false, Some(0.5)));
    }

    #[test]
    fn shared_words_are_from_0_to_1_and_symmetric() {
        let same = |one, other| {
            let found = shared_words(one, other);
            assert!((found - shared_words(other, one)).abs() < 1e-12);
            found
        };
        assert!((same("a b c d", "a b c x") - 0.75).abs() < 1e-12);
        assert!((same("a a", "a") - 2.0 / 3.0).abs() < 1e-12);
        assert!(same("", "words") < 1e-12);
        assert!((same("", "") - 1.0).abs() < 1e-12);
        assert!((same("{}", "{}") - 1.0).abs() < 1e-12);
    }

    #[test]
    fn equal_steps_are_alike_whatever_a_vector_says() {
        let one = step("???", &[]);
        assert!((StepComparison::of(&one, &one, 0.0).similarity - 1.0).abs() < 1e-12);
        assert!(StepComparison::of(&one, &step("b", &[]), f64::NAN).similarity < 1e-12);
    }
}
