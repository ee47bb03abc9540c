//! A message as it is sent, and its tokens by role.

use std::sync::Arc;

use crate::hash::ContentHash;
use crate::message::{Block, Message, Role};
use crate::tokens::Tokenizer;
use crate::transcript::{Entry, Position};

/// A message in the form in which it is sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The place of its original; `None` for a text that the renderer added.
    pub position: Option<Position>,
    pub message: Arc<Message>,
    pub hash: ContentHash,
    pub tokens: u32,
    /// The message's role and its number of blocks, which every request asks of every message.
    pub(crate) role: Role,
    pub(crate) blocks: u32,
    /// Of the tokens, the share of its calls.
    call_tokens: u32,
}

impl Sent {
    /// Makes the form of an entry as it was said.
    pub fn whole(position: Position, entry: &Entry) -> Self {
        Self::new(Some(position), entry.message.clone(), entry.hash, entry.tokens)
    }

    /// Makes a changed form of the message at `position`, or a new text.
    pub fn rendered(position: Option<Position>, message: Message, tokenizer: Tokenizer) -> Self {
        let tokens = tokenizer.count_message(&message);
        let hash = ContentHash::of(&message);
        Self::new(position, Arc::new(message), hash, tokens)
    }

    fn new(
        position: Option<Position>,
        message: Arc<Message>,
        hash: ContentHash,
        tokens: u32,
    ) -> Self {
        let (role, blocks) = (message.role, message.blocks.len() as u32);
        let call_tokens =
            if role == Role::Assistant { share_of_calls(&message, tokens) } else { 0 };
        Self { position, message, hash, tokens, role, blocks, call_tokens }
    }
}

/// Returns the tokens of a message's calls: its texts and calls share its tokens by their length.
fn share_of_calls(message: &Message, tokens: u32) -> u32 {
    let (mut text, mut calls) = (0, 0);
    for block in &message.blocks {
        match block {
            Block::Text(one) => text += one.len(),
            Block::ToolCall(call) => calls += call.name.len() + call.arguments.len(),
            _ => {}
        }
    }
    (u64::from(tokens) * calls as u64 / (text + calls).max(1) as u64) as u32
}

/// The tokens of the messages that are sent, by role; those of an assistant's message are shared by its texts and calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RoleTokens {
    pub(crate) system: u64,
    pub(crate) user: u64,
    pub(crate) assistant: u64,
    pub(crate) tool_call: u64,
    pub(crate) tool_result: u64,
}

impl RoleTokens {
    /// Returns the tokens of one form.
    pub(super) fn of(form: &Sent) -> Self {
        let (tokens, calls) = (u64::from(form.tokens), u64::from(form.call_tokens));
        let none = Self::default();
        match form.role {
            Role::System => Self { system: tokens, ..none },
            Role::User => Self { user: tokens, ..none },
            Role::Tool => Self { tool_result: tokens, ..none },
            Role::Assistant => Self { tool_call: calls, assistant: tokens - calls, ..none },
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.system += other.system;
        self.user += other.user;
        self.assistant += other.assistant;
        self.tool_call += other.tool_call;
        self.tool_result += other.tool_result;
    }

    pub(super) fn subtract(&mut self, other: Self) {
        self.system -= other.system;
        self.user -= other.user;
        self.assistant -= other.assistant;
        self.tool_call -= other.tool_call;
        self.tool_result -= other.tool_result;
    }

    pub(crate) fn total(&self) -> u64 {
        self.system + self.user + self.assistant + self.tool_call + self.tool_result
    }
}
