//! The kind of a request, which decides whether it is bounded or must stay untouched.

use plimsoll_core::{Block, Message, Role};

use super::ProviderRequest;
use crate::Wire;
use crate::document::Value;

/// The purpose of a request. Only a [`RequestKind::Turn`] may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// The next turn of a conversation.
    Turn,
    /// The client asks for a summary of its history, in whose place it will go on; the plan begins anew then.
    Compaction,
    /// A question beside the conversation, such as for a title: no tools, and nothing answered yet.
    Aside,
    /// The provider holds the history, so there is none here to bound.
    ServerHistory,
    /// A request that is passed on since it is not supported.
    Unsupported(&'static str),
}

impl RequestKind {
    /// Returns the kind's name as every interface prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Compaction => "compaction",
            Self::Aside => "aside",
            Self::ServerHistory => "server-history",
            Self::Unsupported(_) => "unsupported",
        }
    }
}

/// The words by which Codex asks for a summary.
const CHECKPOINT: &str = "CONTEXT CHECKPOINT COMPACTION";

/// The words with which clients begin the summary that stands for their history: Claude Code and Codex.
const SUMMARIES: [&str; 2] = [
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem",
];

impl ProviderRequest {
    /// Returns whether a message of the user holds the summary of a conversation that the client compacted.
    pub fn goes_on_behind_a_summary(&self) -> bool {
        let asked = self.messages.iter().filter(|message| message.role == Role::User);
        let mut asked = asked.map(|message| &**message);
        asked.any(|message| SUMMARIES.iter().any(|words| says(message, words)))
    }

    /// Returns the purpose of the request.
    pub fn kind(&self) -> RequestKind {
        let root = self.root();
        let held: &[&str] = match self.wire {
            Wire::AnthropicMessages | Wire::ChatCompletions => &[],
            Wire::Responses => &["previous_response_id", "conversation"],
            Wire::Gemini => &["cachedContent", "cached_content"],
        };
        if root.any(held).is_some() {
            return RequestKind::ServerHistory;
        }
        if let Some(what) = self.unsupported() {
            return RequestKind::Unsupported(what);
        }
        if self.asks_for_summary() {
            return RequestKind::Compaction;
        }
        let answered = self.messages.iter().any(|message| message.role == Role::Assistant);
        if !answered && self.tools().is_empty() {
            return RequestKind::Aside;
        }
        RequestKind::Turn
    }

    fn unsupported(&self) -> Option<&'static str> {
        let root = self.root();
        if self.messages.is_empty() {
            return Some("it says nothing");
        }
        match self.wire {
            Wire::ChatCompletions => {
                let choices = root.get("n").and_then(Value::number).unwrap_or(1);
                let older = ["functions", "function_call"];
                if choices != 1 {
                    Some("it asks for several answers")
                } else if root.any(&older).is_some() {
                    Some("its tools are functions of the older kind")
                } else {
                    None
                }
            }
            Wire::Responses if root.is_true_at("background") => {
                Some("it is answered in the background")
            }
            Wire::Responses if root.any(&["prompt"]).is_some() => {
                Some("its prompt is held by the server")
            }
            Wire::Gemini if self.streams_a_list => Some("its stream is no stream of events"),
            Wire::AnthropicMessages | Wire::Responses | Wire::Gemini => None,
        }
    }

    /// Claude Code asks for an analysis and a summary in tags, behind the whole history; Codex offers no tools and says so.
    fn asks_for_summary(&self) -> bool {
        let Some(last) = self.messages.last().filter(|message| message.role == Role::User) else {
            return false;
        };
        match self.wire {
            Wire::AnthropicMessages => says(last, "<analysis>") && says(last, "<summary>"),
            Wire::Responses => {
                let offers =
                    self.root().get("tools").is_some_and(|tools| tools.elements().next().is_some());
                !offers && says(last, CHECKPOINT)
            }
            Wire::ChatCompletions | Wire::Gemini => false,
        }
    }
}

fn says(message: &Message, words: &str) -> bool {
    message.blocks.iter().any(|block| matches!(block, Block::Text(text) if text.contains(words)))
}
