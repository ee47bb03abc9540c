//! The surroundings of a question, as a signature: equal surroundings have equal signatures, and no others.

use crate::hash::ContentHash;

/// Everything that an answer depends on besides its question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerScope<'a> {
    pub tenant: &'a str,
    /// The user or team that shares answers; not empty if answers depend on the person who asks.
    pub user: &'a str,
    pub model: &'a str,
    pub system_prompt: &'a str,
    /// The tools' definitions, as they are sent.
    pub tools: &'a str,
    /// Sampling, length, form of the answer.
    pub parameters: &'a str,
    /// Hash of the messages before the question.
    pub context_hash: &'a str,
    pub policy_version: u32,
}

impl AnswerScope<'_> {
    /// Returns the hash of all fields, 64 hex digits: only questions with equal signatures are compared.
    pub fn signature(&self) -> String {
        let version = self.policy_version.to_string();
        let hash = ContentHash::of_texts(&[
            "plimsoll answer scope",
            self.tenant,
            self.user,
            self.model,
            self.system_prompt,
            self.tools,
            self.parameters,
            self.context_hash,
            &version,
        ]);
        hash.full()
    }
}

/// Returns the key of a question within a signature, 64 hex digits; white space around the question makes no difference.
pub fn cache_key(question: &str, signature: &str) -> String {
    ContentHash::of_texts(&["plimsoll answer", signature, question.trim()]).full()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_makes_another_signature() {
        let base = AnswerScope::default();
        let mut seen = vec![base.signature()];
        for changed in [
            AnswerScope { tenant: "x", ..base },
            AnswerScope { user: "x", ..base },
            AnswerScope { model: "x", ..base },
            AnswerScope { system_prompt: "x", ..base },
            AnswerScope { tools: "x", ..base },
            AnswerScope { parameters: "x", ..base },
            AnswerScope { context_hash: "x", ..base },
            AnswerScope { policy_version: 1, ..base },
        ] {
            let signature = changed.signature();
            assert!(!seen.contains(&signature), "{changed:?}");
            assert_ne!(cache_key("q", &signature), cache_key("q", &seen[0]));
            seen.push(signature);
        }
    }

    #[test]
    fn a_key_is_that_of_the_question_as_it_stands() {
        assert_eq!(cache_key(" why?\n", "s"), cache_key("why?", "s"));
        assert_ne!(cache_key("why", "s"), cache_key("why?", "s"));
        assert_ne!(cache_key("Why?", "s"), cache_key("why?", "s"));
        assert_ne!(cache_key("a  b", "s"), cache_key("a b", "s"), "spaces may be code");
    }
}
