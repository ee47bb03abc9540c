//! The question that memory is asked before a model call.

use std::sync::Arc;

use crate::text::{Limit, tail_at_word, words};
use crate::{Message, Role};

/// The words of an answer that only agrees (chosen: "yes, please go ahead and do that" has seven).
const ASSENT_WORDS: usize = 8;
/// The characters of a proposal that are searched for, from its end, where it says what comes next (chosen: some twenty sentences).
const PROPOSAL: usize = 2_000;
/// Beginnings of answers that agree.
const ASSENTS: [&[&str]; 20] = [
    &["yes"],
    &["yep"],
    &["yeah"],
    &["ok"],
    &["okay"],
    &["sure"],
    &["agreed"],
    &["approved"],
    &["lgtm"],
    &["perfect"],
    &["proceed"],
    &["go", "ahead"],
    &["go", "for", "it"],
    &["go", "on"],
    &["do", "it"],
    &["do", "that"],
    &["do", "so"],
    &["please", "do"],
    &["sounds", "good"],
    &["looks", "good"],
];

/// A question to memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryQuestion {
    pub text: String,
    /// Whether the agent acts next on something that was decided just now.
    pub is_decision_point: bool,
}

impl MemoryQuestion {
    /// Returns the question of a request; `None` if it goes on with a task, for then nothing new is asked.
    ///
    /// The user's newest words are the question. Words that only agree name nothing to search for: then the proposal that they
    /// agree to is the question, and the request is a decision point (`memory-context.md`, Context Refresh).
    pub fn of(messages: &[Arc<Message>]) -> Option<Self> {
        let (newest, earlier) = messages.split_last()?;
        if newest.role != Role::User {
            return None;
        }
        let text = newest.shown();
        let proposal = earlier.iter().rev().find(|message| message.role != Role::Tool);
        let proposal = proposal.filter(|message| message.role == Role::Assistant);
        let agreed = proposal.filter(|_| is_assent(&text)).map(|message| message.shown());
        let agreed = agreed.filter(|proposal| !proposal.trim().is_empty());
        Some(match agreed {
            Some(proposal) => {
                let proposal = tail_at_word(proposal.trim_end(), Limit::Characters(PROPOSAL));
                Self { text: format!("{proposal}\n{text}"), is_decision_point: true }
            }
            None => Self { text, is_decision_point: false },
        })
    }
}

/// Returns whether a text does nothing but agree.
fn is_assent(text: &str) -> bool {
    if text.contains('?') {
        return false;
    }
    let said: Vec<String> = words(text).take(ASSENT_WORDS + 1).collect();
    let begins = |assent: &&[&str]| {
        said.len() >= assent.len() && said.iter().zip(*assent).all(|(word, known)| word == known)
    };
    said.len() <= ASSENT_WORDS && ASSENTS.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: Role, text: &str) -> Arc<Message> {
        Arc::new(Message::text(role, text))
    }

    #[test]
    fn only_the_users_words_ask() {
        let talk = [said(Role::User, "Where do boats moor?"), said(Role::Assistant, "I look.")];
        assert_eq!(MemoryQuestion::of(&talk), None);
        assert_eq!(MemoryQuestion::of(&[]), None);
        let asked = MemoryQuestion::of(&talk[..1]).expect("it is asked");
        assert_eq!((&*asked.text, asked.is_decision_point), ("Where do boats moor?", false));
    }

    #[test]
    fn who_agrees_asks_about_the_proposal() {
        for (answer, is_decision_point) in [
            ("Yes, do it.", true),
            ("ok", true),
            ("Go ahead!", true),
            ("Sounds good, please proceed with that", true),
            ("Yes? Are you sure?", false),
            ("Yesterday it failed.", false),
            ("Okay, but the second berth is too short for the ferry, so take another", false),
            ("No.", false),
        ] {
            let talk = [
                said(Role::User, "Which store?"),
                said(Role::Assistant, "I would move the sessions to Redis."),
                said(Role::User, answer),
            ];
            let asked = MemoryQuestion::of(&talk).expect("it is asked");
            assert_eq!(asked.is_decision_point, is_decision_point, "{answer}");
            assert_eq!(asked.text.contains("Redis"), is_decision_point, "{answer}");
        }
    }

    #[test]
    fn a_long_proposal_is_asked_by_its_end() {
        let long = format!("First {}. Last: Redis.", "word ".repeat(2_000));
        let talk = [said(Role::Assistant, &long), said(Role::User, "yes")];
        let asked = MemoryQuestion::of(&talk).expect("it is asked");
        assert!(asked.text.chars().count() <= PROPOSAL + 5, "{}", asked.text.len());
        assert!(asked.text.contains("Redis") && !asked.text.contains("First"));
    }
}
