//! Messages: a role and blocks of text, image, tool call, tool result, thinking, and blocks that only a provider understands.
//!
//! `formats` and `wire` translate foreign shapes; a message here is what the model read or wrote, and where and when.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    /// Returns the role's name as every interface prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MillisSinceEpoch(pub i64);

/// A call of a tool, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// The arguments as recorded: JSON for most tools, free text for some. Never re-ordered.
    pub arguments: Arc<str>,
}

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call that it answers.
    pub call_id: Arc<str>,
    /// The text that the model read; parts of a list joined by a line break.
    pub text: Arc<str>,
    /// Images that came with the text.
    pub images: Vec<Image>,
    /// Whether the tool reported a failure; exit statuses inside the text do not count.
    pub is_error: bool,
}

/// An image, known by its media type and its encoded data or address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    pub media_type: Arc<str>,
    /// Base64 data, or a URL, as recorded.
    pub data: Arc<str>,
}

/// Reasoning that the provider returned beside the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    pub text: Arc<str>,
    /// The provider's signature of the text, or empty.
    pub signature: Arc<str>,
}

/// A provider's own block, which is passed on unread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// The foreign block's own type name.
    pub kind: Arc<str>,
    /// The block as recorded.
    pub raw: Arc<str>,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    Text(Arc<str>),
    Image(Image),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    Thinking(Thinking),
    Opaque(Opaque),
}

/// The prompt and answer size that a provider reported beside an assistant message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// All input tokens of the request: plain, read from the cache and written to it.
    pub prompt_tokens: u64,
    /// The part of `prompt_tokens` that was read from the cache.
    pub cached_tokens: u64,
    /// The part of `prompt_tokens` that was written to the cache, where the provider reports it.
    #[serde(default)]
    pub written_tokens: u64,
    /// The part of `written_tokens` that was written for the provider's longer life.
    #[serde(default)]
    pub written_long_tokens: u64,
    pub output_tokens: u64,
}

/// A message: role, blocks, and where and when it was recorded.
///
/// Only role and blocks are its identity ([`crate::ContentHash`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub blocks: Vec<Block>,
    pub time: Option<MillisSinceEpoch>,
    /// Line (JSON Lines) or element (JSON array) of the file that it was read from, counted from 1.
    pub source: Option<u32>,
    /// The cascade phase that it belongs to.
    pub phase: Option<Arc<str>>,
    /// The id that its source gives it, unique within the session at best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// The name of the speaker, where several share a role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<Arc<str>>,
    /// The name under which somebody marked it as important.
    pub callout: Option<Arc<str>>,
    /// Assistant messages only: the usage that the provider reported.
    pub usage: Option<Usage>,
    /// Assistant messages only: the model that wrote it, where that is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
}

/// The text of an image in [`Message::shown`].
pub(crate) const IMAGE: &str = "[image]";

impl Message {
    /// Makes a message of `role`; all other fields are empty.
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self {
            role,
            blocks,
            time: None,
            source: None,
            phase: None,
            id: None,
            speaker: None,
            callout: None,
            usage: None,
            model: None,
        }
    }

    /// Makes a message of one text block.
    pub fn text(role: Role, text: impl Into<Arc<str>>) -> Self {
        Self::new(role, vec![Block::Text(text.into())])
    }

    /// Makes a tool message that answers the call `call_id`.
    pub fn result(call_id: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self::new(
            Role::Tool,
            vec![Block::ToolResult(ToolResult {
                call_id: call_id.into(),
                text: text.into(),
                images: Vec::new(),
                is_error: false,
            })],
        )
    }

    /// Returns the tool calls in it, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the tool results in it, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// Returns the message with the blocks that `replacement` returns in place of its own; `None` if it returns none.
    pub fn with_blocks(
        &self,
        mut replacement: impl FnMut(usize, &Block) -> Option<Block>,
    ) -> Option<Self> {
        let new: Vec<Option<Block>> =
            self.blocks.iter().enumerate().map(|(at, block)| replacement(at, block)).collect();
        new.iter().any(Option::is_some).then(|| {
            let blocks = new.into_iter().zip(&self.blocks);
            let blocks = blocks.map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect();
            Self { blocks, ..self.clone() }
        })
    }

    /// Returns the text that a model reads: text blocks, results, and for each tool call a line `NAME ARGUMENTS`.
    ///
    /// An image is `[image]`. Thinking and opaque blocks are left out: providers drop, hide or re-encode them, and nothing
    /// in this crate changes them.
    pub fn shown(&self) -> String {
        let mut texts: Vec<&str> = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            match block {
                Block::Text(text) => texts.push(text),
                Block::Image(_) => texts.push(IMAGE),
                Block::ToolResult(result) => {
                    texts.push(&result.text);
                    texts.extend(result.images.iter().map(|_| IMAGE));
                }
                Block::ToolCall(_) | Block::Thinking(_) | Block::Opaque(_) => {}
            }
        }
        let mut out = texts.join("\n");
        for call in self.calls() {
            out.push('\n');
            out.push_str(&call.name);
            out.push(' ');
            out.push_str(&call.arguments);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_version_wrote_is_read_and_written_alike() {
        let kept = r#"{"role":"user","blocks":[{"text":"a"}],"time":5,"source":null,"phase":null,"callout":null,"usage":null}"#;
        let message: Message = serde_json::from_str(kept).expect("readable");
        assert_eq!((message.id.as_ref(), message.speaker.as_ref()), (None, None));
        assert_eq!(serde_json::to_string(&message).expect("writable"), kept);
        let named = Message { id: Some("7".into()), speaker: Some("Ann".into()), ..message };
        let written = serde_json::to_string(&named).expect("writable");
        assert_eq!(serde_json::from_str::<Message>(&written).expect("readable"), named);
    }

    #[test]
    fn shown_is_text_then_a_line_for_each_call() {
        let call = ToolCall { id: "1".into(), name: "read".into(), arguments: "{}".into() };
        let message = Message::new(
            Role::Assistant,
            vec![
                Block::Text("a".into()),
                Block::ToolCall(call),
                Block::Thinking(Thinking { text: "hidden".into(), signature: "".into() }),
                Block::Text("b".into()),
            ],
        );
        assert_eq!(message.shown(), "a\nb\nread {}");
    }
}
