//! Restoring: calls of our tools that a client did not see are put back into the history that it sends.

use std::collections::HashSet;
use std::ops::Range;

use plimsoll_core::{Block, Message, Role, ToolCall};

use super::continuation::result;
use super::{Rewrite, WithheldCall, WithheldCalls};
use crate::Wire;
use crate::document::Value;
use crate::request::Place;

/// The place of an answer in the request from which calls were withheld.
pub(super) struct AnswerPlace {
    pub(super) index: usize,
    pub(super) items: Range<usize>,
    /// It has the blocks that the client was shown, so places in it are known by counting.
    is_exact: bool,
}

impl<'a> Rewrite<'a> {
    /// Puts calls and results back where they stood; returns those without a place, without which the history is valid too.
    pub(super) fn restore_all(&mut self, all: &[WithheldCalls]) -> Vec<usize> {
        let mut taken = HashSet::new();
        let mut unplaced = Vec::new();
        // Where one request was answered twice, the later answer is what the client has.
        for (number, withheld) in all.iter().enumerate().rev() {
            let found = self.find(withheld).filter(|found| taken.insert(found.index));
            if !found.is_some_and(|found| self.restore(&found, withheld)) {
                unplaced.push(number);
            }
        }
        unplaced.reverse();
        unplaced
    }

    fn restore(&mut self, found: &AnswerPlace, withheld: &WithheldCalls) -> bool {
        let Some(items) = self.request.items() else { return false };
        if !withheld.earlier.is_empty() && !self.restore_earlier(items, found, withheld) {
            return false;
        }
        if beside(withheld).next().is_none() {
            return true;
        }
        match self.request.wire() {
            Wire::AnthropicMessages | Wire::Gemini => self.restore_blocks(items, found, withheld),
            Wire::ChatCompletions => self.restore_calls(items, found, withheld),
            Wire::Responses => self.restore_items(items, found, withheld),
        }
    }

    /// Finds an answer by the calls in it, or by its text where it has none: where it was, else behind, else before.
    fn find(&self, withheld: &WithheldCalls) -> Option<AnswerPlace> {
        let shown = &withheld.shown;
        let has_calls = shown.calls().next().is_some();
        let messages = self.request.messages();
        let is_it = |index: &usize| {
            let message = &messages[*index];
            message.role == Role::Assistant
                && if has_calls {
                    shown.calls().any(|one| message.calls().any(|other| self.is_same(one, other)))
                } else {
                    message.calls().next().is_none() && words(shown).eq(words(message))
                }
        };
        let at = withheld.at.min(messages.len());
        if words(shown).next().is_none() && !has_calls {
            return None;
        }
        let index = (at..messages.len()).find(is_it).or_else(|| (0..at).rev().find(is_it))?;
        let Place::Items(items) = self.request.sources()[index].place.clone() else { return None };
        let message = &messages[index];
        let is_exact =
            message.blocks.len() == shown.blocks.len()
                && message.blocks.iter().zip(&shown.blocks).all(|(one, other)| {
                    std::mem::discriminant(one) == std::mem::discriminant(other)
                });
        (!self.omitted[index]).then_some(AnswerPlace { index, items, is_exact })
    }

    /// Content is a list of blocks, and results stand in the one behind.
    fn restore_blocks(
        &mut self,
        items: Value<'a>,
        found: &AnswerPlace,
        withheld: &WithheldCalls,
    ) -> bool {
        let key = self.request.wire().content_key();
        let list_in = |place: usize| {
            items.elements().nth(place)?.get(key).filter(|content| content.is_list())
        };
        let lists = (list_in(found.items.start), list_in(found.items.start + 1));
        let (Some(list), Some(answers)) = lists else { return false };
        let result_places: Vec<usize> = answers
            .elements()
            .enumerate()
            .filter(|(_, part)| {
                part.has("type", "tool_result")
                    || part.any(&["functionResponse", "function_response"]).is_some()
            })
            .map(|(place, _)| place)
            .collect();
        let Some(behind_results) = result_places.last().map(|last| last + 1) else { return false };
        let places = beside(withheld).map(|call| self.place_in(list, found, withheld, call));
        let Some(places) = places.collect::<Option<Vec<usize>>>() else { return false };
        for (call, place) in beside(withheld).zip(places) {
            self.patch.insert(list, place, call.call.raw.to_string());
            // Without exact places it stands before the first of the client's.
            let rank = if found.is_exact { rank(withheld, call) } else { 0 };
            let place = result_places.get(rank).copied().unwrap_or(behind_results);
            self.patch.insert(answers, place, result(self.request.wire(), &call.call));
        }
        true
    }

    /// Calls are a list beside the text, and results follow the message.
    fn restore_calls(
        &mut self,
        items: Value<'a>,
        found: &AnswerPlace,
        withheld: &WithheldCalls,
    ) -> bool {
        let item = items.elements().nth(found.items.start);
        let Some(calls) = item.and_then(|item| item.get("tool_calls")) else { return false };
        for call in beside(withheld) {
            let rank = rank(withheld, call).min(calls.elements().count());
            self.patch.insert(calls, rank, call.call.raw.to_string());
            let place = found.items.start + 1 + rank;
            self.patch.insert(items, place, result(Wire::ChatCompletions, &call.call));
        }
        true
    }

    /// Everything is an item of one list.
    fn restore_items(
        &mut self,
        items: Value<'a>,
        found: &AnswerPlace,
        withheld: &WithheldCalls,
    ) -> bool {
        let nodes = &self.request.sources()[found.index].blocks;
        let elements: Vec<Value<'a>> = items.elements().collect();
        let item_of = |block: usize| {
            let Some(node) = nodes.get(block) else { return found.items.end };
            let at = self.value(*node).span().start;
            elements.iter().rposition(|item| item.span().start <= at).unwrap_or(found.items.end)
        };
        let mut added: Vec<(usize, String)> = Vec::new();
        for call in beside(withheld) {
            let place = if found.is_exact {
                Some(call.before)
            } else {
                self.first_shown_call(found, &withheld.shown)
            };
            let Some(place) = place else { return false };
            added.push((item_of(place), call.call.raw.to_string()));
            added.push((found.items.end, result(Wire::Responses, &call.call)));
        }
        for (place, raw) in added {
            self.patch.insert(items, place, raw);
        }
        true
    }

    /// Returns before which element of a content a call stood, or else before which call of the client's it may stand.
    fn place_in(
        &self,
        list: Value<'a>,
        found: &AnswerPlace,
        withheld: &WithheldCalls,
        call: &WithheldCall,
    ) -> Option<usize> {
        let nodes = &self.request.sources()[found.index].blocks;
        if !found.is_exact {
            let block = self.first_shown_call(found, &withheld.shown)?;
            return position(list, *nodes.get(block)?);
        }
        match nodes.get(call.before) {
            Some(node) => position(list, *node),
            None => position(list, *nodes.last()?).map(|last| last + 1),
        }
    }

    /// Returns the first block of an answer that is a call which the client was shown.
    fn first_shown_call(&self, found: &AnswerPlace, shown: &Message) -> Option<usize> {
        self.request.messages()[found.index].blocks.iter().position(|block| match block {
            Block::ToolCall(call) => shown.calls().any(|one| self.is_same(one, call)),
            _ => false,
        })
    }

    /// Returns whether two calls are one. Gemini gives few of them ids, and our ids count from the request's beginning.
    fn is_same(&self, one: &ToolCall, other: &ToolCall) -> bool {
        match self.request.wire() {
            Wire::Gemini => (&one.name, &one.arguments) == (&other.name, &other.arguments),
            _ => one.id == other.id,
        }
    }
}

/// Returns the calls that stood beside the client's.
fn beside(withheld: &WithheldCalls) -> impl Iterator<Item = &WithheldCall> {
    withheld.calls.iter().filter(|call| call.round == withheld.earlier.len())
}

/// Returns how many of the client's calls stood before a call; answers before the last had none.
fn rank(withheld: &WithheldCalls, call: &WithheldCall) -> usize {
    let before = withheld.shown.blocks.get(..call.before).unwrap_or_default();
    before.iter().filter(|block| matches!(block, Block::ToolCall(_))).count()
}

/// Returns the text of a message without white space, since clients join and trim texts.
fn words(message: &Message) -> impl Iterator<Item = char> {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    texts.flat_map(|text| text.chars()).filter(|letter| !letter.is_whitespace())
}

fn position(list: Value<'_>, node: u32) -> Option<usize> {
    list.elements().position(|element| element.id() == node)
}
