//! What providers answer, as replies and their pieces.

use std::collections::VecDeque;

use plimsoll_core::{Block, ToolCall};
use plimsoll_engine::{ChatEvent, ChatReply, ChatUsage, StopReason};
use plimsoll_wire::{
    AnswerPiece, AnswerUsage, Ending, Failure, Moment, ProviderAnswer, StreamEvent, Watch, Wire,
};
use serde::de::IgnoredAny;

/// What is wrong with an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum ReplyError {
    /// The provider tells of a failure.
    Told(Failure),
    /// It is not of the API's shape.
    Shape(String),
    /// It ends before its end.
    Cut,
}

/// Reads a whole answer.
pub(crate) fn reply(wire: Wire, body: &[u8]) -> Result<ChatReply, ReplyError> {
    let answer = ProviderAnswer::of_body(wire, body);
    match &answer.ending {
        Ending::Complete => Ok(reply_of(wire, &answer, &[])),
        Ending::Failed(failure) => Err(ReplyError::Told(failure.clone())),
        Ending::Cut => Err(ReplyError::Shape(match serde_json::from_slice::<IgnoredAny>(body) {
            Ok(_) => "it holds no whole answer".to_owned(),
            Err(error) => format!("it is no JSON: {error}"),
        })),
    }
}

/// Puts an answer together from the events of a stream.
#[derive(Debug)]
pub(crate) struct Assembly {
    wire: Wire,
    watch: Watch,
    /// The calls that are whole, as their pieces told them.
    calls: Vec<(u32, ToolCall)>,
    is_done: bool,
}

impl Assembly {
    pub(crate) fn new(wire: Wire) -> Self {
        Self { wire, watch: Watch::in_pieces(wire), calls: Vec::new(), is_done: false }
    }

    /// Takes an event and appends the pieces that it brings, [`ChatEvent::Done`] last.
    pub(crate) fn take(
        &mut self,
        event: &StreamEvent,
        pieces: &mut VecDeque<ChatEvent>,
    ) -> Result<(), ReplyError> {
        if !event.is_whole {
            return Err(ReplyError::Shape("an event is too long".to_owned()));
        }
        let moment = self.watch.see(event);
        for piece in self.watch.pieces() {
            pieces.push_back(self.piece(piece));
        }
        match moment {
            Moment::Middle => Ok(()),
            Moment::Unreadable => Err(ReplyError::Shape("an event is no JSON object".to_owned())),
            Moment::End | Moment::Failure => self.end(pieces),
        }
    }

    /// Takes the end of the stream, which not every API announces.
    pub(crate) fn end(&mut self, pieces: &mut VecDeque<ChatEvent>) -> Result<(), ReplyError> {
        if self.is_done {
            return Ok(());
        }
        match self.watch.ending() {
            Ending::Failed(failure) => return Err(ReplyError::Told(failure)),
            Ending::Cut => return Err(ReplyError::Cut),
            Ending::Complete => self.is_done = true,
        }
        let reply = reply_of(self.wire, self.watch.answer(), &self.calls);
        for (index, call) in (0..).zip(reply.message.calls()) {
            if !self.calls.iter().any(|(told, _)| *told == index) {
                pieces.push_back(ChatEvent::Call { index, call: call.clone() });
            }
        }
        pieces.push_back(ChatEvent::Done(Box::new(reply)));
        Ok(())
    }

    fn piece(&mut self, piece: AnswerPiece) -> ChatEvent {
        match piece {
            AnswerPiece::Text(text) => ChatEvent::Text(text),
            AnswerPiece::Reasoning(text) => ChatEvent::Reasoning(text),
            AnswerPiece::CallBegun { index, id, name } => {
                let ToolCall { id, name, .. } =
                    usable(index, ToolCall { id, name, arguments: "".into() });
                ChatEvent::CallBegun { index, id, name }
            }
            AnswerPiece::CallArguments { index, text } => ChatEvent::CallArguments { index, text },
            AnswerPiece::Call { index, call } => {
                let call = usable(index, call);
                self.calls.push((index, call.clone()));
                ChatEvent::Call { index, call }
            }
        }
    }
}

/// Makes a reply of an answer; calls that were told keep the arguments in which they were told.
fn reply_of(wire: Wire, answer: &ProviderAnswer, told: &[(u32, ToolCall)]) -> ChatReply {
    let mut calls = 0..;
    let blocks = answer.blocks(wire).into_iter().map(|block| match (block, calls.start) {
        (Block::ToolCall(call), index) => {
            calls.start += 1;
            let call = usable(index, call);
            let told = told.iter().find(|(at, told)| *at == index && told.id == call.id);
            Block::ToolCall(told.map_or(call, |(_, told)| told.clone()))
        }
        (block, _) => block,
    });
    let blocks: Vec<Block> = blocks.collect();
    let stop = stop_reason(wire, answer, &blocks);
    let usage = answer.usage.map(usage_of).unwrap_or_default();
    ChatReply::new(blocks, usage, stop, answer.model.clone().unwrap_or_default())
}

/// Gives a call what some servers leave out: an id by which it is answered, and arguments that are JSON.
fn usable(index: u32, mut call: ToolCall) -> ToolCall {
    if call.id.is_empty() {
        call.id = format!("call_{index}").into();
    }
    if call.arguments.trim().is_empty() {
        call.arguments = "{}".into();
    }
    call
}

fn usage_of(usage: AnswerUsage) -> ChatUsage {
    ChatUsage {
        input: usage.tokens.prompt_tokens,
        cached: usage.tokens.cached_tokens,
        cache_written: usage.tokens.written_tokens,
        output: usage.tokens.output_tokens,
    }
}

fn stop_reason(wire: Wire, answer: &ProviderAnswer, blocks: &[Block]) -> StopReason {
    let word = answer.stop.as_deref().unwrap_or_default();
    let has_calls = blocks.iter().any(|block| matches!(block, Block::ToolCall(_)));
    match (wire, word) {
        _ if answer.is_refusal() => StopReason::Refused,
        (Wire::AnthropicMessages, "max_tokens" | "model_context_window_exceeded")
        | (Wire::ChatCompletions, "length")
        | (Wire::Responses, "max_output_tokens")
        | (Wire::Gemini, "MAX_TOKENS") => StopReason::Length,
        (Wire::AnthropicMessages, "tool_use") => StopReason::Calls,
        // Some servers say `stop` for calls too.
        (Wire::ChatCompletions, _) | (Wire::Responses, "completed" | "incomplete" | "")
            if has_calls =>
        {
            StopReason::Calls
        }
        (Wire::Gemini, "STOP" | "") if has_calls => StopReason::Calls,
        (Wire::AnthropicMessages, "end_turn" | "stop_sequence" | "")
        | (Wire::ChatCompletions, "stop" | "")
        | (Wire::Responses, "completed" | "")
        | (Wire::Gemini, "STOP" | "") => StopReason::End,
        (_, other) => StopReason::Other(other.to_owned()),
    }
}
