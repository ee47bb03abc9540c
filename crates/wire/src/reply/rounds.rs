//! Rounds: the provider's answers of one reply, each with the blocks that the client sees and those that it does not.

use std::sync::Arc;

use plimsoll_core::render::NO_RESULT;
use plimsoll_core::{Block, Message, Role, ToolResult};

use crate::Wire;
use crate::answer::{ProviderAnswer, request_of};
use crate::request::ProviderRequest;
use crate::rewrite::{Continuation, OwnCall, WithheldCall, WithheldCalls};

/// An answer of the provider.
#[derive(Debug)]
pub(super) struct Round {
    items: Vec<Arc<str>>,
    said: Vec<AnswerBlock>,
}

/// A block of an answer.
#[derive(Debug)]
struct AnswerBlock {
    block: Block,
    raw: Arc<str>,
    is_own: bool,
    result: Option<ToolResult>,
}

impl Round {
    /// Reads an answer by the way of requests, in which every block has its bytes.
    pub(super) fn of(wire: Wire, answer: &ProviderAnswer, own: &[String]) -> Self {
        let items = answer.items.clone();
        let said = request_of(wire, &items).map_or_else(Vec::new, |request| read(&request, own));
        Self { items, said }
    }

    /// Adds the results of our calls; a call without one gets a result that says so.
    pub(super) fn with_results(mut self, results: &[ToolResult]) -> Self {
        for said in &mut self.said {
            let Block::ToolCall(call) = &said.block else { continue };
            if said.is_own {
                let given = results.iter().find(|result| result.call_id == call.id).cloned();
                said.result = Some(given.unwrap_or_else(|| ToolResult {
                    call_id: call.id.clone(),
                    text: Arc::from(NO_RESULT),
                    images: Vec::new(),
                    is_error: true,
                }));
            }
        }
        self
    }

    /// Adds the results of our calls; a call without one stays so.
    pub(super) fn with_given(mut self, results: &[ToolResult]) -> Self {
        for said in &mut self.said {
            if let Block::ToolCall(call) = &said.block {
                said.result = results.iter().find(|result| result.call_id == call.id).cloned();
            }
        }
        self
    }

    pub(super) fn continuation(&self) -> Continuation {
        let calls = self.said.iter().filter_map(AnswerBlock::own_call).collect();
        Continuation { items: self.items.clone(), calls }
    }

    /// Returns the blocks that the client sees.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Arc<str>> {
        self.said.iter().filter(|said| !said.is_own).map(|said| &said.raw)
    }

    /// Returns the elements of the list of messages that are not calls of ours.
    pub(super) fn shown_items(&self) -> impl Iterator<Item = &Arc<str>> {
        let own = |item: &Arc<str>| self.said.iter().any(|said| said.is_own && said.raw == *item);
        self.items.iter().filter(move |item| !own(item))
    }

    /// Returns the texts that the client was shown.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.said.iter().filter_map(|said| match &said.block {
            Block::Text(text) => Some(&**text),
            _ => None,
        })
    }
}

impl AnswerBlock {
    fn own_call(&self) -> Option<OwnCall> {
        let (Block::ToolCall(call), Some(result)) = (&self.block, &self.result) else {
            return None;
        };
        self.is_own.then(|| OwnCall {
            raw: self.raw.clone(),
            name: call.name.clone(),
            result: result.clone(),
        })
    }
}

fn read(request: &ProviderRequest, own: &[String]) -> Vec<AnswerBlock> {
    let mut all = Vec::new();
    for (message, source) in request.messages().iter().zip(request.sources()) {
        for (block, node) in message.blocks.iter().zip(&source.blocks) {
            let is_own =
                matches!(block, Block::ToolCall(call) if own.iter().any(|one| **one == *call.name));
            let raw = Arc::from(request.document().value(*node).raw());
            all.push(AnswerBlock { block: block.clone(), raw, is_own, result: None });
        }
    }
    all
}

/// Returns the calls that the client does not see, if there are any.
pub(super) fn withheld(wire: Wire, before: &[Round], last: &Round) -> Option<WithheldCalls> {
    let mut shown: Vec<Block> = Vec::new();
    let mut calls = Vec::new();
    for (number, round) in before.iter().chain([last]).enumerate() {
        for said in &round.said {
            if let Some(call) = said.own_call() {
                calls.push(WithheldCall { before: shown.len(), round: number, call });
            } else if !said.is_own {
                match (wire, &said.block, shown.last_mut()) {
                    // A client has one string for all that is said.
                    (Wire::ChatCompletions, Block::Text(more), Some(Block::Text(text))) => {
                        *text = Arc::from(format!("{text}{more}"));
                    }
                    _ => shown.push(said.block.clone()),
                }
            }
        }
    }
    if calls.is_empty() {
        return None;
    }
    let earlier = before.iter().map(|round| round.items.clone()).collect();
    let shown = Arc::new(Message::new(Role::Assistant, shown));
    Some(WithheldCalls { shown, calls, earlier, at: 0 })
}
