//! The bytes of a context that is written back.

use std::sync::Arc;

use plimsoll_core::{Block, Message, Role};
use plimsoll_formats::{Compaction, ContextMessage, ReadOptions, Session, WriteError, read, write};
use proptest::prelude::*;

use crate::fixtures;
use crate::reading::{honoured, session};

pub(crate) const WRITABLE: [&str; 5] = [
    fixtures::PI,
    fixtures::PI_FIRST_VERSION,
    fixtures::CLAUDE_CODE,
    fixtures::OPENAI,
    fixtures::ANTHROPIC,
];

pub(crate) fn whole(session: &Session) -> Vec<ContextMessage> {
    let written = |(position, message): (usize, &Arc<Message>)| ContextMessage {
        position: Some(position),
        message: message.clone(),
    };
    session.messages.iter().enumerate().map(written).collect()
}

/// Replaces the text of results and of what users said, as masking does.
pub(crate) fn mask(message: &Message) -> Arc<Message> {
    let mut masked = message.clone();
    for block in &mut masked.blocks {
        match block {
            Block::ToolResult(result) => result.text = "[masked]".into(),
            // pi puts a frame around its summaries, which would come back.
            Block::Text(text) if message.role == Role::User && !text.contains("<summary>") => {
                *text = "[masked]".into();
            }
            Block::ToolCall(call) => call.arguments = r#"{"cut":true}"#.into(),
            _ => {}
        }
    }
    Arc::new(masked)
}

pub(crate) fn contents(messages: &[Arc<Message>]) -> Vec<(Role, Vec<Block>)> {
    messages.iter().map(|message| (message.role, message.blocks.clone())).collect()
}

fn expected(context: &[ContextMessage]) -> Vec<(Role, Vec<Block>)> {
    context.iter().map(|written| (written.message.role, written.message.blocks.clone())).collect()
}

fn reread(bytes: &[u8], like: &Session) -> Session {
    let again = read(bytes, &like.options).unwrap();
    assert_eq!(again.format, like.format);
    again
}

#[test]
fn nothing_changed_gives_the_same_bytes() {
    for text in WRITABLE {
        for session in [session(text), honoured(text)] {
            assert_eq!(
                write(&session, text.as_bytes(), &whole(&session)).unwrap(),
                text.as_bytes()
            );
        }
    }
}

#[test]
fn read_only_formats_say_so() {
    for (name, text) in fixtures::ALL {
        let session = session(text);
        let result = write(&session, text.as_bytes(), &whole(&session));
        assert_eq!(result.is_ok(), session.format.is_writable());
        if let Err(error) = result {
            assert!(error.to_string().contains(name), "{error}");
            assert!(error.hint().is_some());
        }
    }
}

#[test]
fn masked_messages_come_back_masked() {
    for text in WRITABLE {
        for session in [session(text), honoured(text)] {
            for position in 0..session.messages.len() {
                let mut context = whole(&session);
                context[position].message = mask(&session.messages[position]);
                let bytes = write(&session, text.as_bytes(), &context).unwrap();
                let again = reread(&bytes, &session);
                assert_eq!(contents(&again.messages), expected(&context), "{position}");
                if !text.ends_with('\n') || text.starts_with("{\n") {
                    continue;
                }
                // Lines that do not hold the message stay as they are, but for the links to what was left out and the
                // prompt sizes behind it.
                let out = String::from_utf8(bytes).unwrap();
                let kept = text.lines().filter(|line| {
                    line.contains("\"usage\"") || out.lines().any(|other| other == *line)
                });
                assert!(kept.count() + 5 >= text.lines().count());
            }
        }
    }
}

#[test]
fn prompt_sizes_behind_a_change_are_no_longer_told() {
    for text in [fixtures::PI, fixtures::CLAUDE_CODE] {
        let session = session(text);
        let told = |session: &Session, from: usize| {
            let sizes = session.messages[from..].iter().filter_map(|message| message.usage);
            sizes.filter(|usage| usage.prompt_tokens > 0).count()
        };
        let first = session.messages.iter().position(|m| m.role == Role::User).unwrap();
        assert!(told(&session, first) > 0, "the fixture tells some");
        let mut context = whole(&session);
        context[first].message = mask(&session.messages[first]);
        let bytes = write(&session, text.as_bytes(), &context).unwrap();
        assert_eq!(told(&reread(&bytes, &session), first), 0);
    }
}

#[test]
fn nothing_hides_behind_a_summary_whose_boundary_was_left_out() {
    let session = session(fixtures::CLAUDE_CODE);
    let mut context = whole(&session);
    context[0].message = mask(&session.messages[0]);
    let bytes = write(&session, fixtures::CLAUDE_CODE.as_bytes(), &context).unwrap();
    let honoured =
        read(&bytes, &ReadOptions { compaction: Compaction::Honour, ..ReadOptions::default() })
            .unwrap();
    assert_eq!(honoured.messages.len(), reread(&bytes, &session).messages.len());
}

#[test]
fn the_second_copy_of_a_result_goes() {
    let session = session(fixtures::CLAUDE_CODE);
    let mut context = whole(&session);
    context[3].message = mask(&session.messages[3]);
    let bytes = write(&session, fixtures::CLAUDE_CODE.as_bytes(), &context).unwrap();
    let out = String::from_utf8(bytes).unwrap();
    assert!(!out.contains("secret original"), "{out}");
    assert!(out.contains(r#""uuid":"u6","timestamp":"2026-01-21T06:24:45.000Z"}"#));
}

/// Drops everything before `first`, puts a summary there, and returns what was written.
fn summarised(text: &str, first: usize) -> (Session, Vec<ContextMessage>, Vec<u8>) {
    let session = session(text);
    let mut context = whole(&session).split_off(first);
    let summary = Message::text(Role::User, "It was about a bug.");
    context.insert(0, ContextMessage { position: None, message: Arc::new(summary) });
    let bytes = write(&session, text.as_bytes(), &context).unwrap();
    (session, context, bytes)
}

#[test]
fn a_leading_summary_is_a_compaction_to_pi() {
    for (text, first) in [(fixtures::PI, 4), (fixtures::PI_FIRST_VERSION, 2)] {
        let (session, context, bytes) = summarised(text, first);
        for compaction in [Compaction::PassOver, Compaction::Honour] {
            let again =
                read(&bytes, &ReadOptions { compaction, ..ReadOptions::default() }).unwrap();
            assert!(
                again.messages[0].shown().contains("<summary>\nIt was about a bug.\n</summary>")
            );
            assert_eq!(contents(&again.messages)[1..], expected(&context)[1..]);
            assert!(again.notes.is_empty(), "{:?}", again.notes);
        }
        let (_, _, twice) = summarised(text, first);
        assert_eq!(bytes, twice);
        assert_eq!(session.format.as_str(), "pi");
    }
}

#[test]
fn a_leading_summary_is_a_user_message_elsewhere() {
    for (text, first) in
        [(fixtures::CLAUDE_CODE, 6), (fixtures::OPENAI, 5), (fixtures::ANTHROPIC, 5)]
    {
        let (session, context, bytes) = summarised(text, first);
        let again = reread(&bytes, &session);
        assert_eq!(contents(&again.messages), expected(&context));
    }
}

#[test]
fn links_lead_to_what_is_left() {
    let (_, _, bytes) = summarised(fixtures::CLAUDE_CODE, 6);
    let out = String::from_utf8(bytes).unwrap();
    let last: Vec<&str> = out.lines().filter(|line| line.contains("msg_2")).collect();
    let summary: Vec<&str> = out.lines().filter(|line| line.contains("about a bug")).collect();
    let field = |line: &str, key: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        value[key].as_str().map(str::to_owned)
    };
    let compacted: Vec<&str> = out.lines().filter(|line| line.contains("\"u7\"")).collect();
    assert_eq!(field(summary[0], "parentUuid"), None);
    assert_eq!(field(summary[0], "sessionId").as_deref(), Some("s"));
    assert_eq!(field(compacted[0], "parentUuid"), field(summary[0], "uuid"));
    assert_eq!(field(last[0], "parentUuid").as_deref(), Some("u7"));
    assert!(!out.contains("compact_boundary"));
}

#[test]
fn an_answer_cannot_stand_first_for_anthropic() {
    let session = session(fixtures::ANTHROPIC);
    let context = whole(&session).split_off(1);
    let bytes = write(&session, fixtures::ANTHROPIC.as_bytes(), &context).unwrap();
    let again = reread(&bytes, &session);
    assert_eq!(again.messages[0].role, Role::User);
    assert_eq!(contents(&again.messages)[1..], expected(&context));
}

#[test]
fn a_result_without_its_call_is_refused() {
    let session = session(fixtures::PI);
    let mut context = whole(&session);
    context.remove(1);
    let error = write(&session, fixtures::PI.as_bytes(), &context).unwrap_err();
    assert!(matches!(error, WriteError::ResultWithoutCall { .. }));
    let mut context = whole(&session);
    context.swap(0, 5);
    let error = write(&session, fixtures::PI.as_bytes(), &context).unwrap_err();
    assert!(matches!(error, WriteError::Position { position: 1 }));
}

/// Makes a valid context of decisions: for each exchange or single message 0 keep, 1 mask, 2 drop.
pub(crate) fn decided(session: &Session, decisions: &[u8]) -> Vec<ContextMessage> {
    let mut context = Vec::new();
    let mut decision = 0;
    let mut decisions = decisions.iter().copied().cycle();
    for (position, message) in session.messages.iter().enumerate() {
        if message.role != Role::Tool {
            decision = decisions.next().unwrap_or(0);
        }
        let message = match decision {
            2 => continue,
            // A message that a repair made has no record, so a change of it cannot be written.
            1 if !session.origins[position].repaired => mask(message),
            _ => message.clone(),
        };
        context.push(ContextMessage { position: Some(position), message });
    }
    context
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(
        fixture in 0..WRITABLE.len(),
        decisions in proptest::collection::vec(0u8..3, 12),
    ) {
        let text = WRITABLE[fixture];
        for session in [session(text), honoured(text)] {
            let context = decided(&session, &decisions);
            let bytes = write(&session, text.as_bytes(), &context).unwrap();
            // Without any message of the main conversation, those of sub-agents are read.
            if context.is_empty() {
                continue;
            }
            let again = reread(&bytes, &session);
            let mut found = contents(&again.messages);
            if found.len() > context.len() && text == fixtures::ANTHROPIC {
                found.remove(0);
            }
            prop_assert_eq!(found, expected(&context));
        }
    }
}
