//! Counts the tokens of a transcript by role, by type, by message and by tool.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use crate::message::{Block, IMAGE, Message, Role};
use crate::tokens::Tokenizer;
use crate::transcript::{Position, Transcript};

/// How many messages [`Statistics::largest_messages`] names; chosen to fit a screen.
const LARGEST: usize = 10;

/// Token counts of a transcript.
///
/// `total` is the sum over `by_role` and the sum over `by_type`; `overhead` is apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statistics {
    pub total: u64,
    pub by_role: TokensByRole,
    pub by_type: TokensByType,
    /// Messages of the user, which the document calls turns here.
    pub turn_count: u32,
    pub message_count: u32,
    /// Tokens beside the blocks: roles, delimiters, names of called tools. Not in `total`.
    pub overhead: u64,
    /// Blocks that are passed on unread, whose tokens are unknown. Not in `total`.
    pub opaque_blocks: u32,
    /// The size of those blocks as recorded.
    pub opaque_bytes: u64,
    /// At most ten, largest first, the earlier first of equals.
    pub largest_messages: Vec<MessageTokens>,
    /// All tools with calls or results, most tokens first, then by name.
    pub tools: Vec<ToolTokens>,
}

/// Tokens by the role of their message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TokensByRole {
    pub system: u64,
    pub user: u64,
    pub assistant: u64,
    pub tool: u64,
}

/// Tokens by the type of their block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TokensByType {
    pub text: u64,
    /// Arguments only, as in the document.
    pub tool_call: u64,
    pub tool_result: u64,
    pub thinking: u64,
    /// Each image as the word `[image]`, as [`Message::shown`] has it: providers count images by size, each in its own way.
    pub image: u64,
}

/// A message with its tokens, thinking included and overhead not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MessageTokens {
    pub position: Position,
    pub role: Role,
    /// Line or element of the file that it was read from.
    pub source: Option<u32>,
    pub tokens: u64,
}

/// The tokens of a tool's calls and results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ToolTokens {
    /// `None` stands for results whose call is not in the transcript.
    pub name: Option<Arc<str>>,
    pub calls: u32,
    pub results: u32,
    pub call_tokens: u64,
    pub result_tokens: u64,
}

/// Counts the tokens of `transcript` by its own tokenizer.
///
/// Source: `context-window.md`, step 1.
pub fn statistics(transcript: &Transcript) -> Statistics {
    let tokenizer = transcript.tokenizer();
    let mut by_role = TokensByRole::default();
    let mut by_type = TokensByType::default();
    let mut largest_messages = Vec::with_capacity(transcript.entries().len());
    let mut tools: BTreeMap<Option<Arc<str>>, ToolTokens> = BTreeMap::new();
    let mut names: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    let (mut turn_count, mut opaque_blocks, mut opaque_bytes, mut counted) = (0, 0, 0, 0);
    for (position, entry) in transcript.entries().iter().enumerate() {
        let message = &entry.message;
        let mut types = TokensByType::default();
        for block in &message.blocks {
            match block {
                Block::Text(text) => types.text += tokens(tokenizer, text),
                Block::Image(_) => types.image += tokens(tokenizer, IMAGE),
                Block::ToolCall(call) => {
                    let cost = tokens(tokenizer, &call.arguments);
                    types.tool_call += cost;
                    names.insert(call.id.clone(), call.name.clone());
                    let tool = tool(&mut tools, Some(call.name.clone()));
                    tool.calls += 1;
                    tool.call_tokens += cost;
                }
                Block::ToolResult(result) => {
                    let cost = tokens(tokenizer, &result.text);
                    types.tool_result += cost;
                    types.image += tokens(tokenizer, IMAGE) * result.images.len() as u64;
                    let tool = tool(&mut tools, names.get(&result.call_id).cloned());
                    tool.results += 1;
                    tool.result_tokens += cost;
                }
                Block::Thinking(thinking) => types.thinking += tokens(tokenizer, &thinking.text),
                Block::Opaque(opaque) => {
                    opaque_blocks += 1;
                    opaque_bytes += opaque.raw.len() as u64;
                }
            }
        }
        let sum = types.sum();
        by_type.add(types);
        *by_role.of(message.role) += sum;
        turn_count += u32::from(message.role == Role::User);
        counted += sum - types.thinking;
        largest_messages.push(MessageTokens {
            position,
            role: message.role,
            source: message.source,
            tokens: sum,
        });
    }
    largest_messages.sort_by_key(|message| Reverse(message.tokens));
    largest_messages.truncate(LARGEST);
    let mut tools: Vec<ToolTokens> = tools.into_values().collect();
    tools.sort_by_key(|tool| Reverse(tool.call_tokens + tool.result_tokens));
    Statistics {
        total: by_type.sum(),
        by_role,
        by_type,
        turn_count,
        message_count: transcript.entries().len() as u32,
        overhead: transcript.tokens().saturating_sub(counted),
        opaque_blocks,
        opaque_bytes,
        largest_messages,
        tools,
    }
}

/// Counts the reasoning in `message`, which [`crate::Entry::tokens`] leaves out.
pub(crate) fn thinking_tokens(tokenizer: Tokenizer, message: &Message) -> u64 {
    let thinking = message.blocks.iter().map(|block| match block {
        Block::Thinking(thinking) => tokens(tokenizer, &thinking.text),
        _ => 0,
    });
    thinking.sum()
}

fn tokens(tokenizer: Tokenizer, text: &str) -> u64 {
    u64::from(tokenizer.count(text))
}

fn tool(
    tools: &mut BTreeMap<Option<Arc<str>>, ToolTokens>,
    name: Option<Arc<str>>,
) -> &mut ToolTokens {
    tools.entry(name.clone()).or_insert_with(|| ToolTokens { name, ..ToolTokens::default() })
}

impl TokensByRole {
    fn of(&mut self, role: Role) -> &mut u64 {
        match role {
            Role::System => &mut self.system,
            Role::User => &mut self.user,
            Role::Assistant => &mut self.assistant,
            Role::Tool => &mut self.tool,
        }
    }
}

impl TokensByType {
    fn sum(self) -> u64 {
        self.text + self.tool_call + self.tool_result + self.thinking + self.image
    }

    fn add(&mut self, other: Self) {
        self.text += other.text;
        self.tool_call += other.tool_call;
        self.tool_result += other.tool_result;
        self.thinking += other.thinking;
        self.image += other.image;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Image, Opaque, Thinking, ToolCall};

    fn sample() -> Transcript {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(Message::text(Role::System, "12345678"));
        transcript.push(Message::text(Role::User, "1234"));
        let call = |id: &str, name: &str, arguments: &str| {
            Block::ToolCall(ToolCall {
                id: id.into(),
                name: name.into(),
                arguments: arguments.into(),
            })
        };
        transcript.push(Message::new(
            Role::Assistant,
            vec![
                Block::Thinking(Thinking { text: "123456781234".into(), signature: "x".into() }),
                call("1", "read", "{}"),
                call("2", "bash", r#"{"a":"bcdefghij"}"#),
            ],
        ));
        transcript.push(Message::result("1", "12345678123456781234"));
        transcript.push(Message::result("2", "1234"));
        transcript.push(Message::result("gone", "1234"));
        let image = Image { media_type: "image/png".into(), data: "aGVsbG8=".into() };
        let opaque = Opaque { kind: "redacted".into(), raw: "0123456789".into() };
        transcript.push(Message::new(Role::User, vec![Block::Image(image), Block::Opaque(opaque)]));
        transcript
    }

    #[test]
    fn tokens_are_counted_by_role_type_message_and_tool() {
        let mut found = serde_json::to_value(statistics(&sample())).expect("plain data");
        let fields = found.as_object_mut().expect("a record");
        fields["largest_messages"].as_array_mut().expect("a list").truncate(3);
        let lines: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        total: 21
        by_role: {"system":2,"user":3,"assistant":9,"tool":7}
        by_type: {"text":3,"tool_call":6,"tool_result":7,"thinking":3,"image":2}
        turn_count: 2
        message_count: 7
        overhead: 30
        opaque_blocks: 1
        opaque_bytes: 10
        largest_messages: [{"position":2,"role":"assistant","source":null,"tokens":9},{"position":3,"role":"tool","source":null,"tokens":5},{"position":0,"role":"system","source":null,"tokens":2}]
        tools: [{"name":"bash","calls":1,"results":1,"call_tokens":5,"result_tokens":1},{"name":"read","calls":1,"results":1,"call_tokens":1,"result_tokens":5},{"name":null,"calls":0,"results":1,"call_tokens":0,"result_tokens":1}]
        "#);
    }

    #[test]
    fn sums_agree() {
        let transcript = sample();
        let found = statistics(&transcript);
        let roles = found.by_role;
        assert_eq!(found.total, roles.system + roles.user + roles.assistant + roles.tool);
        assert_eq!(found.total, found.by_type.sum());
        let entries = transcript.tokens() + found.by_type.thinking;
        assert_eq!(found.total + found.overhead, entries);
        assert_eq!(
            thinking_tokens(Tokenizer::Estimate, &transcript.entries()[2].message),
            found.by_type.thinking
        );
    }

    #[test]
    fn nothing_is_nothing() {
        let found = statistics(&Transcript::new(Tokenizer::Estimate));
        assert_eq!((found.total, found.turn_count, found.tools.len()), (0, 0, 0));
    }
}
