//! An answer that is known beforehand, given piece by piece.

use std::collections::VecDeque;

use async_trait::async_trait;
use plimsoll_core::Block;
use plimsoll_engine::{ChatEvent, ChatReply, ChatStream, ModelError};

/// Plays pieces to their end: `Done`, or an error.
#[derive(Debug)]
pub(crate) struct ReplyPieces {
    pieces: VecDeque<ChatEvent>,
    error: Option<ModelError>,
}

impl ReplyPieces {
    /// Plays a whole reply.
    pub(crate) fn reply(reply: ChatReply) -> Self {
        let mut pieces = pieces(&reply);
        pieces.push(ChatEvent::Done(Box::new(reply)));
        Self::new(pieces, None)
    }

    /// Plays pieces, and `error` behind them.
    pub(crate) fn new(pieces: Vec<ChatEvent>, error: Option<ModelError>) -> Self {
        Self { pieces: pieces.into(), error }
    }
}

#[async_trait]
impl ChatStream for ReplyPieces {
    async fn next(&mut self) -> Option<Result<ChatEvent, ModelError>> {
        match self.pieces.pop_front() {
            Some(piece) => Some(Ok(piece)),
            None => self.error.take().map(Err),
        }
    }
}

/// Returns the pieces in which a provider would send a reply: a text word by word, a call in three.
pub(crate) fn pieces(reply: &ChatReply) -> Vec<ChatEvent> {
    let mut pieces = Vec::new();
    let mut index = 0;
    for block in &reply.message.blocks {
        match block {
            Block::Text(text) => pieces.extend(words(text).map(ChatEvent::Text)),
            Block::Thinking(thinking) => {
                pieces.extend(words(&thinking.text).map(ChatEvent::Reasoning));
            }
            Block::ToolCall(call) => {
                let (id, name) = (call.id.clone(), call.name.clone());
                pieces.push(ChatEvent::CallBegun { index, id, name });
                let text = call.arguments.to_string();
                pieces.push(ChatEvent::CallArguments { index, text });
                pieces.push(ChatEvent::Call { index, call: call.clone() });
                index += 1;
            }
            Block::Image(_) | Block::ToolResult(_) | Block::Opaque(_) => {}
        }
    }
    pieces
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_inclusive(' ').map(str::to_owned)
}
