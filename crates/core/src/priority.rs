//! Scores how much each turn of a session is worth keeping, by its text, role and place.
//!
//! A turn of `context-window.md` is one message; elsewhere in this crate a turn is an assistant message and what follows it.

use serde::Serialize;

use crate::message::{Block, Role};
use crate::statistics::thinking_tokens;
use crate::text::{Limit, head};
use crate::transcript::{Position, Transcript};

/// The last turns: they show the current state and are always worth keeping.
pub(crate) const LAST_TURNS: usize = 5;

const BASE: u64 = 50;
const FROM_USER: u64 = 15;
const INSTRUCTS: u64 = 10;
const CONCLUDES: u64 = 10;
const ONLY_TOOLS: u64 = 20;
/// More tool blocks than this, without text, are a chain of low information density.
const TOOL_CHAIN: usize = 3;
const RECENCY: u64 = 30;
const FIRST: u64 = 90;
const LAST: u64 = 85;
const MOST: u64 = 100;
/// Characters of the text that a score carries.
const CONTENT_CHARACTERS: usize = 500;

patterns! {
    /// Words that give an instruction, as in the document: without word boundaries, so that "address" holds "add".
    INSTRUCTION "(?i)(?:please|could you|I want|let's|we should|change|update|fix|add|remove|create|delete)";
    /// Words that state a conclusion, as in the document.
    CONCLUSION "(?i)(?:decided|conclusion|result|summary|answer|the .+ is)";
}

/// The kind of a turn.
///
/// The document also names `analysis` and `clarification` without a rule for them; they are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnType {
    Instruction,
    ToolUse,
    Response,
}

/// A message with its score.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScoredTurn {
    pub position: Position,
    pub role: Role,
    /// Tokens of the message, thinking and overhead included.
    pub tokens: u64,
    /// 0 to 100, higher is more worth keeping.
    pub priority: u8,
    #[serde(rename = "type")]
    pub turn_type: TurnType,
    /// The first 500 characters of its text blocks.
    pub content: String,
}

/// Scores every message of `transcript`.
///
/// Shape: one score for each message, in order.
/// The first turn is the first message that is not the system's, and leading system messages count as first with it. The
/// document's sessions have no system messages, and its rule keeps the definition of the task.
/// Source: `context-window.md`, step 3.
pub fn score_turns(transcript: &Transcript) -> Vec<ScoredTurn> {
    let tokenizer = transcript.tokenizer();
    let total = transcript.entries().len();
    let first = first_turn(transcript);
    let score = |(position, entry): (Position, &crate::transcript::Entry)| {
        let message = &entry.message;
        let texts: Vec<&str> = message
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) => Some(&**text),
                _ => None,
            })
            .collect();
        let tool_blocks = message.calls().count() + message.results().count();
        let content = texts.join("\n");

        let mut priority = BASE;
        if message.role == Role::User {
            priority += FROM_USER;
        }
        if INSTRUCTION.is_match(&content) {
            priority += INSTRUCTS;
        }
        if CONCLUSION.is_match(&content) {
            priority += CONCLUDES;
        }
        if tool_blocks > TOOL_CHAIN && texts.is_empty() {
            priority -= ONLY_TOOLS;
        }
        // Whole numbers divide as the document's floor does.
        priority += position as u64 * RECENCY / total as u64;
        if position <= first {
            priority = priority.max(FIRST);
        }
        if position + LAST_TURNS >= total {
            priority = priority.max(LAST);
        }
        ScoredTurn {
            position,
            role: message.role,
            tokens: u64::from(entry.tokens) + thinking_tokens(tokenizer, message),
            priority: priority.min(MOST) as u8,
            turn_type: if message.role == Role::User {
                TurnType::Instruction
            } else if tool_blocks > 0 {
                TurnType::ToolUse
            } else {
                TurnType::Response
            },
            content: head(&content, Limit::Characters(CONTENT_CHARACTERS)).to_owned(),
        }
    };
    transcript.entries().iter().enumerate().map(score).collect()
}

/// Returns the position of the turn that defines the task; 0 if there are only system messages.
pub(crate) fn first_turn(transcript: &Transcript) -> Position {
    transcript
        .entries()
        .iter()
        .position(|entry| entry.message.role != Role::System)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, ToolCall};
    use crate::tokens::Tokenizer;

    const FILLER: &str = "nothing of note";

    fn calls(count: usize, text: Option<&str>) -> Message {
        let call = |n| {
            Block::ToolCall(ToolCall {
                id: format!("c{n}").into(),
                name: "read".into(),
                arguments: "{}".into(),
            })
        };
        let text = text.map(|text| Block::Text(text.into()));
        Message::new(Role::Assistant, text.into_iter().chain((0..count).map(call)).collect())
    }

    /// Scores `message` as the second of twenty, where recency adds 1.
    fn check(message: Message, expected: u8, turn_type: TurnType) {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(Message::text(Role::User, FILLER));
        let shown = message.shown();
        transcript.push(message);
        for _ in 2..20 {
            transcript.push(Message::text(Role::Assistant, FILLER));
        }
        let found = &score_turns(&transcript)[1];
        assert_eq!((found.priority, found.turn_type), (expected, turn_type), "{shown}");
    }

    #[test]
    fn each_signal_has_the_documents_weight() {
        use TurnType::{Instruction, Response, ToolUse};
        let said = |role, text: &str| Message::text(role, text);
        check(said(Role::Assistant, FILLER), 51, Response);
        check(said(Role::System, FILLER), 51, Response);
        check(said(Role::User, FILLER), 66, Instruction);
        for word in [
            "Please",
            "could you",
            "i WANT",
            "let's",
            "we should",
            "change",
            "update",
            "fix",
            "add",
            "remove",
            "create",
            "delete",
            "address",
        ] {
            check(said(Role::Assistant, word), 61, Response);
        }
        for word in ["decided", "Conclusion", "result", "summary", "answer", "the cause is"] {
            check(said(Role::Assistant, word), 61, Response);
        }
        check(said(Role::Assistant, "the cause\nis"), 51, Response);
        check(said(Role::User, "fix it, the answer is"), 86, Instruction);
        check(calls(3, None), 51, ToolUse);
        check(calls(4, None), 31, ToolUse);
        check(calls(4, Some(FILLER)), 51, ToolUse);
        check(Message::result("x", "please fix: results count as tool blocks"), 51, ToolUse);
    }

    #[test]
    fn first_and_last_turns_are_lifted_and_recency_grows() {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        for n in 0..20 {
            let role = if n == 0 { Role::System } else { Role::Assistant };
            transcript.push(Message::text(role, FILLER));
        }
        let found: Vec<u8> = score_turns(&transcript).iter().map(|turn| turn.priority).collect();
        assert_eq!(
            found,
            [90, 90, 53, 54, 56, 57, 59, 60, 62, 63, 65, 66, 68, 69, 71, 85, 85, 85, 85, 85]
        );
    }

    #[test]
    fn priority_is_capped_and_content_is_cut_at_a_character() {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        for _ in 0..100 {
            transcript.push(Message::text(Role::User, "fix ä".repeat(200) + "the result is"));
        }
        let found = score_turns(&transcript);
        assert_eq!(found[99].priority, 100);
        assert_eq!(found[50].priority, 100);
        assert_eq!(found[1].priority, 85);
        assert_eq!(found[1].content.chars().count(), 500);
    }
}
