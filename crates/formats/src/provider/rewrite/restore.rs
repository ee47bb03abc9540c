//! Restoring: our calls that a client did not see, back in the history that it sends.

use std::ops::Range;

use plimsoll_core::{Block, Message, Role};

use super::further::{result, results};
use super::{OwnCall, Rewrite, Withheld, WithheldCall};
use crate::provider::Wire;
use crate::provider::document::Value;
use crate::provider::request::Place;

/// An answer in the request from which something was withheld.
struct Found {
    index: usize,
    items: Range<usize>,
    /// It has the blocks that the client was shown, so places in it are known by counting.
    is_exact: bool,
}

impl<'a> Rewrite<'a> {
    /// Puts calls and results back where they stood; what cannot be placed stays away, and the history is valid without it.
    pub(super) fn restore(&mut self, withheld: &Withheld) {
        let Some(items) = self.request.items() else { return };
        let Some(found) = self.find(&withheld.shown) else { return };
        match self.request.wire() {
            Wire::AnthropicMessages | Wire::Gemini => self.restore_blocks(items, &found, withheld),
            Wire::ChatCompletions => self.restore_calls(items, &found, withheld),
            Wire::Responses => self.restore_items(items, &found, withheld),
        }
    }

    /// Finds an answer by the calls in it, or by its text where it has none.
    fn find(&self, shown: &Message) -> Option<Found> {
        let calls: Vec<&str> = shown.calls().map(|call| &*call.id).collect();
        let is_it = |message: &Message| match calls.is_empty() {
            true => message.calls().next().is_none() && message.shown() == shown.shown(),
            false => message.calls().any(|call| calls.contains(&&*call.id)),
        };
        let all = self.request.messages().iter().enumerate().rev();
        let mut answers = all.filter(|(_, message)| message.role == Role::Assistant);
        let (index, message) = answers.find(|(_, message)| is_it(message))?;
        let Place::Items(items) = self.request.sources()[index].place.clone() else { return None };
        let is_exact =
            message.blocks.len() == shown.blocks.len()
                && message.blocks.iter().zip(&shown.blocks).all(|(one, other)| {
                    std::mem::discriminant(one) == std::mem::discriminant(other)
                });
        (!self.omitted[index]).then_some(Found { index, items, is_exact })
    }

    /// Content is a list of blocks. An answer that we answered ourselves becomes a message of its own again.
    fn restore_blocks(&mut self, items: Value<'a>, found: &Found, withheld: &Withheld) {
        let is_gemini = self.request.wire() == Wire::Gemini;
        let key = if is_gemini { "parts" } else { "content" };
        let Some(item) = items.elements().nth(found.items.start) else { return };
        let Some(list) = item.get(key).filter(|list| list.is_list()) else { return };
        // Everything that a split repeats stands before the content.
        let can_split = item.get("role").is_some_and(|role| role.span().end < list.span().start);
        if found.is_exact && can_split {
            self.split(list, found, withheld, is_gemini);
        }
        let beside: Vec<&WithheldCall> = beside(withheld).collect();
        if beside.is_empty() {
            return;
        }
        let answers = items.elements().nth(found.items.start + 1);
        let Some(answers) = answers.and_then(|next| next.get(key)).filter(|list| list.is_list())
        else {
            return;
        };
        let result_places: Vec<usize> = answers
            .elements()
            .enumerate()
            .filter(|(_, part)| {
                part.has("type", "tool_result")
                    || part.any(&["functionResponse", "function_response"]).is_some()
            })
            .map(|(place, _)| place)
            .collect();
        let Some(behind_results) = result_places.last().map(|last| last + 1) else { return };
        for call in beside {
            let Some(place) = self.place_in(list, found, withheld, call) else { return };
            self.patch.insert(list, place, call.call.raw.to_string());
            let rank = rank(withheld, call);
            let place = result_places.get(rank).copied().unwrap_or(behind_results);
            self.patch.insert(answers, place, result(self.request.wire(), &call.call));
        }
    }

    /// Splits a message where the provider's answers ended.
    fn split(&mut self, list: Value<'a>, found: &Found, withheld: &Withheld, is_gemini: bool) {
        let blocks = &self.request.sources()[found.index].blocks;
        let wire = self.request.wire();
        let begin = match is_gemini {
            true => r#"{"role":"model","parts":["#,
            false => r#"{"role":"assistant","content":["#,
        };
        // Several answers may end at the same place: all but the last showed nothing.
        let mut ends: Vec<(usize, String)> = Vec::new();
        for (round, end) in withheld.rounds.iter().enumerate() {
            let Some(place) = blocks.get(*end).and_then(|node| position(list, *node)) else {
                return;
            };
            let calls: Vec<OwnCall> =
                of_round(withheld, round).map(|one| one.call.clone()).collect();
            if calls.is_empty() {
                return;
            }
            let raws: Vec<&str> = calls.iter().map(|call| &*call.raw).collect();
            let mut raw = raws.join(",");
            raw.push_str("]},");
            raw.push_str(&results(wire, &calls).join(","));
            raw.push(',');
            raw.push_str(begin);
            match ends.last_mut() {
                Some((last, all)) if *last == place => all.push_str(&raw),
                _ => {
                    if place > 0 {
                        raw.insert(0, ',');
                    }
                    ends.push((place, raw));
                }
            }
        }
        for (place, raw) in ends {
            self.patch.replace_gap(list, place, raw);
        }
    }

    /// Calls are a list beside the text, and results follow the message.
    fn restore_calls(&mut self, items: Value<'a>, found: &Found, withheld: &Withheld) {
        let item = items.elements().nth(found.items.start);
        let Some(calls) = item.and_then(|item| item.get("tool_calls")) else { return };
        for call in beside(withheld) {
            let rank = rank(withheld, call).min(calls.elements().count());
            self.patch.insert(calls, rank, call.call.raw.to_string());
            let place = found.items.start + 1 + rank;
            self.patch.insert(items, place, result(Wire::ChatCompletions, &call.call));
        }
    }

    /// Everything is an item of one list.
    fn restore_items(&mut self, items: Value<'a>, found: &Found, withheld: &Withheld) {
        let nodes = &self.request.sources()[found.index].blocks;
        let elements: Vec<Value<'a>> = items.elements().collect();
        let item_of = |block: usize| {
            let Some(node) = nodes.get(block) else { return found.items.end };
            let at = self.value(*node).span().start;
            elements.iter().rposition(|item| item.span().start <= at).unwrap_or(found.items.end)
        };
        let mut added: Vec<(usize, String)> = Vec::new();
        if found.is_exact {
            for (round, end) in withheld.rounds.iter().enumerate() {
                let of_round: Vec<&WithheldCall> = of_round(withheld, round).collect();
                added.extend(
                    of_round.iter().map(|one| (item_of(one.before), one.call.raw.to_string())),
                );
                added.extend(
                    of_round.iter().map(|one| (item_of(*end), result(Wire::Responses, &one.call))),
                );
            }
        }
        for call in beside(withheld) {
            let place = match found.is_exact {
                true => Some(call.before),
                false => self.first_shown_call(found, &withheld.shown),
            };
            let Some(place) = place else { continue };
            added.push((item_of(place), call.call.raw.to_string()));
            added.push((found.items.end, result(Wire::Responses, &call.call)));
        }
        for (place, raw) in added {
            self.patch.insert(items, place, raw);
        }
    }

    /// Returns before which element of a content a call stood, or else before which call of the client's it may stand.
    fn place_in(
        &self,
        list: Value<'a>,
        found: &Found,
        withheld: &Withheld,
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
    fn first_shown_call(&self, found: &Found, shown: &Message) -> Option<usize> {
        self.request.messages()[found.index].blocks.iter().position(|block| match block {
            Block::ToolCall(call) => shown.calls().any(|one| one.id == call.id),
            _ => false,
        })
    }
}

/// Returns the number of the answer in which the client was handed its own calls.
fn last_round(withheld: &Withheld) -> usize {
    withheld.rounds.len()
}

fn of_round(withheld: &Withheld, round: usize) -> impl Iterator<Item = &WithheldCall> {
    withheld.calls.iter().filter(move |call| call.round == round)
}

/// Returns the calls that stood beside the client's.
fn beside(withheld: &Withheld) -> impl Iterator<Item = &WithheldCall> {
    of_round(withheld, last_round(withheld))
}

/// Returns how many of the client's calls stood before a call, in the answer in which it stood.
fn rank(withheld: &Withheld, call: &WithheldCall) -> usize {
    let begin = withheld.rounds.last().copied().unwrap_or(0);
    let before = withheld.shown.blocks.get(begin..call.before).unwrap_or_default();
    before.iter().filter(|block| matches!(block, Block::ToolCall(_))).count()
}

fn position(list: Value<'_>, node: u32) -> Option<usize> {
    list.elements().position(|element| element.id() == node)
}
