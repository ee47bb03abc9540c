//! The form in which a recorded conversation goes to another model: with calls, or in plain text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::step::{NextStep, StepCall};
use crate::message::{Block, Message, Role, ToolCall};
use crate::transcript::Transcript;

/// A tool as a session's calls show it; its definition is in no session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedTool {
    pub name: Arc<str>,
    /// A JSON schema with the arguments that were used, of any type.
    pub schema: Arc<str>,
    /// Whether no call has arguments: agents without tools write their command into a fence of the text.
    pub in_fence: bool,
}

/// The argument that holds a call's free text, for models whose calls take JSON only.
const FREE_TEXT: &str = "input";

/// Returns the tools that the transcripts' calls name, by name.
pub fn observed_tools<'a>(
    transcripts: impl IntoIterator<Item = &'a Transcript>,
) -> Vec<ObservedTool> {
    let mut tools: BTreeMap<Arc<str>, BTreeSet<String>> = BTreeMap::new();
    let entries = transcripts.into_iter().flat_map(Transcript::entries);
    for call in entries.flat_map(|entry| entry.message.calls()) {
        let known = tools.entry(call.name.clone()).or_default();
        known.extend(fields(&call.arguments).into_iter().map(|(name, _)| name));
    }
    let tool = |(name, arguments): (Arc<str>, BTreeSet<String>)| {
        let in_fence = arguments.is_empty();
        let properties: Map<String, Value> =
            arguments.into_iter().map(|argument| (argument, json!({}))).collect();
        let schema = json!({"type": "object", "properties": properties}).to_string();
        ObservedTool { name, schema: schema.into(), in_fence }
    };
    tools.into_iter().map(tool).collect()
}

fn fields(arguments: &str) -> Map<String, Value> {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(fields)) => fields,
        _ if arguments.trim().is_empty() => Map::new(),
        _ => Map::from_iter([(FREE_TEXT.to_owned(), Value::from(arguments))]),
    }
}

/// Returns the messages with their calls, for a model that calls tools.
///
/// Thinking and opaque blocks are left out: they are bound to the model that wrote them. Free text of a call becomes an argument.
pub fn in_calls<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Message> {
    let block = |block: &Block| match block {
        Block::Thinking(_) | Block::Opaque(_) => None,
        Block::ToolCall(call) => {
            let arguments = Value::Object(fields(&call.arguments)).to_string().into();
            Some(Block::ToolCall(ToolCall { arguments, ..call.clone() }))
        }
        other => Some(other.clone()),
    };
    messages
        .into_iter()
        .map(|message| {
            Message::new(message.role, message.blocks.iter().filter_map(block).collect())
        })
        .filter(|message| !message.blocks.is_empty())
        .collect()
}

/// Returns the messages as text, for a model that calls no tools: a call is a line `NAME ARGUMENTS`, a result the user's text.
///
/// Neighbours of one role become one message, since templates of small models take turns only.
pub fn in_plain<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Message> {
    let mut plain: Vec<(Role, String)> = Vec::new();
    for message in messages {
        let role = if message.role == Role::Tool { Role::User } else { message.role };
        let shown = without_bare_calls(message).shown();
        let text = shown.trim_matches('\n');
        match plain.last_mut() {
            _ if text.is_empty() => {}
            Some((last, known)) if *last == role => {
                known.push_str("\n\n");
                known.push_str(text);
            }
            _ => plain.push((role, text.to_owned())),
        }
    }
    plain.into_iter().map(|(role, text)| Message::text(role, text)).collect()
}

/// Returns the message without calls that have no arguments: their command stands in the text.
fn without_bare_calls(message: &Message) -> Message {
    let is_bare =
        |block: &&Block| matches!(block, Block::ToolCall(call) if call.arguments.trim().is_empty());
    let blocks = message.blocks.iter().filter(|block| !is_bare(block)).cloned().collect();
    Message::new(message.role, blocks)
}

/// Reads the calls out of an answer in plain text: lines that begin with a tool's name and an object behind it, else the first
/// fence, if a tool of the session is called that way.
pub fn answered_in_plain(text: &str, tools: &[ObservedTool]) -> NextStep {
    let mut step = NextStep::default();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        let called = line.trim().split_once(' ').filter(|(name, arguments)| {
            arguments.trim_start().starts_with('{') && tools.iter().any(|tool| *tool.name == **name)
        });
        match called {
            Some((name, arguments)) => step
                .calls
                .push(StepCall { name: name.to_owned(), arguments: arguments.trim().to_owned() }),
            None => lines.push(line),
        }
    }
    lines.join("\n").trim().clone_into(&mut step.text);
    let fenced = tools.iter().find(|tool| tool.in_fence).filter(|_| step.calls.is_empty());
    if let Some((tool, command)) = fenced.zip(fence(text)) {
        step.calls.push(StepCall { name: tool.name.to_string(), arguments: command });
    }
    step
}

/// Returns the content of the first fence, without the language behind its beginning.
fn fence(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("```")?;
    let (_, rest) = rest.split_once('\n')?;
    let content = rest.split_once("```").map_or(rest, |(content, _)| content);
    Some(content.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Thinking, ToolCall};
    use crate::tokens::Tokenizer;

    fn call(name: &str, arguments: &str) -> Message {
        let thinking = Thinking { text: "hidden".into(), signature: "s".into() };
        let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() };
        let blocks = vec![Block::Thinking(thinking), Block::Text("I look.".into())];
        let blocks = blocks.into_iter().chain([Block::ToolCall(call)]).collect();
        Message::new(Role::Assistant, blocks)
    }

    fn session() -> Vec<Message> {
        vec![
            Message::text(Role::User, "go"),
            call("read", r#"{"path":"a.rs"}"#),
            Message::result("1", "fn main() {}"),
            Message::text(Role::User, "on"),
            call("apply_patch", "*** Begin"),
        ]
    }

    #[test]
    fn tools_are_those_that_were_called_with_the_arguments_that_were_used() {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        for message in session() {
            transcript.push(message);
        }
        let tools = observed_tools([&transcript]);
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["apply_patch", "read"]);
        let schema: Value = serde_json::from_str(&tools[0].schema).expect("JSON");
        assert_eq!(schema, json!({"type": "object", "properties": {"input": {}}}));
        assert!(tools[1].schema.contains("path"));
    }

    #[test]
    fn no_model_gets_the_thinking_of_another() {
        let sent = in_calls(&session());
        let thinks = |message: &Message| {
            message.blocks.iter().any(|block| matches!(block, Block::Thinking(_)))
        };
        assert!(!sent.iter().any(thinks));
        let last = sent[4].calls().next().expect("a call");
        assert_eq!(&*last.arguments, r#"{"input":"*** Begin"}"#);
        let only = Message::new(
            Role::Assistant,
            vec![Block::Thinking(Thinking { text: "a".into(), signature: "".into() })],
        );
        assert!(in_calls([&only]).is_empty());
    }

    #[test]
    fn plain_text_takes_turns_and_is_read_back() {
        let plain = in_plain(&session());
        let roles: Vec<Role> = plain.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
        assert_eq!(plain[2].shown(), "fn main() {}\n\non");
        assert!(plain.iter().all(|message| message.calls().next().is_none()));
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(session()[1].clone());
        let tools = observed_tools([&transcript]);
        let step = answered_in_plain(&plain[1].shown(), &tools);
        assert_eq!(step, NextStep::from(&session()[1]));
        assert!(!tools[0].in_fence);
        let prose = answered_in_plain("read the file {a}\nbash {\"a\":1}", &tools);
        assert!(prose.calls.is_empty(), "{prose:?}");
    }

    #[test]
    fn a_command_in_a_fence_is_a_call_and_no_name_stands_behind_it() {
        let bare = ToolCall { id: "1".into(), name: "bash".into(), arguments: "".into() };
        let said = "I look.\n```bash\nls -la\n```";
        let blocks = vec![Block::Text(said.into()), Block::ToolCall(bare)];
        let message = Message::new(Role::Assistant, blocks);
        let plain = in_plain([&message]);
        assert_eq!(plain[0].shown(), said);
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(message);
        let step = answered_in_plain(said, &observed_tools([&transcript]));
        let call = StepCall { name: "bash".into(), arguments: "ls -la".into() };
        assert_eq!((step.text.as_str(), step.calls), (said, vec![call]));
        assert_eq!(fence("no fence"), None);
        assert_eq!(fence("```\ncut").as_deref(), Some("cut"));
    }
}
