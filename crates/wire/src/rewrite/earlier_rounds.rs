//! Earlier answers: those that the gateway answered itself stand again before the last one, in the bytes that the provider saw.
//!
//! A client has all answers of a reply as one, and repeats it in its own way: it joins or trims texts and drops reasoning. So its
//! version of the earlier answers is removed, and they are inserted whole.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plimsoll_core::{Block, Message};

use super::continuation::results;
use super::restore::AnswerPlace;
use super::{OwnCall, Rewrite, WithheldCalls};
use crate::Wire;
use crate::answer::request_of;
use crate::document::{NodeId, Value, quoted};

/// The change of a block that repeats a part of an earlier answer.
#[derive(Debug, PartialEq, Eq)]
enum BlockChange {
    Gone,
    /// This text is left of it.
    To(String),
}

impl<'a> Rewrite<'a> {
    /// Inserts the earlier answers and their results before the rest of the client's; returns whether that was possible.
    pub(super) fn restore_earlier(
        &mut self,
        items: Value<'a>,
        found: &AnswerPlace,
        withheld: &WithheldCalls,
    ) -> bool {
        let wire = self.request.wire();
        let said = withheld.earlier.iter().flatten().cloned().collect::<Vec<_>>();
        let Some(said) = request_of(wire, &said) else { return false };
        let said: Vec<&Block> =
            said.messages().iter().flat_map(|message| &message.blocks).collect();
        let message = &self.request.messages()[found.index];
        let Some(cuts) = cuts(wire, &said, &withheld.shown, message) else { return false };
        let nodes = &self.request.sources()[found.index].blocks;
        let cuts: HashMap<NodeId, BlockChange> =
            cuts.into_iter().map(|(block, cut)| (nodes[block], cut)).collect();
        // A text that has another form now does not repeat the earlier answers.
        if cuts.keys().any(|node| self.texts.contains_key(&self.slot(*node).id())) {
            return false;
        }
        for place in found.items.clone() {
            let Some(item) = items.elements().nth(place) else { continue };
            let (start, end) = (item.span().start, item.span().end);
            let inside = |node: &&NodeId| (start..end).contains(&self.value(**node).span().start);
            let inside: Vec<NodeId> = nodes.iter().filter(inside).copied().collect();
            let goes = |node: &NodeId| cuts.get(node) == Some(&BlockChange::Gone);
            if !inside.is_empty() && inside.iter().all(goes) {
                self.patch.remove(items, place);
            } else {
                self.cut(item, &inside, &cuts);
            }
        }
        for (round, answer) in withheld.earlier.iter().enumerate() {
            let calls = withheld.calls.iter().filter(|call| call.round == round);
            let calls: Vec<OwnCall> = calls.map(|one| one.call.clone()).collect();
            let answer = answer.iter().filter(|item| !self.is_lost(item));
            let answer: Vec<String> = answer.map(ToString::to_string).collect();
            for raw in answer.into_iter().chain(results(wire, &calls)) {
                self.patch.insert(items, found.items.start, raw);
            }
        }
        true
    }

    /// Takes blocks, or the beginning of them, out of an element of which something stays.
    fn cut(&mut self, item: Value<'a>, inside: &[NodeId], cuts: &HashMap<NodeId, BlockChange>) {
        let list = item.any(&["content", "parts"]).filter(|list| list.is_list());
        let mut left = list.map_or(0, |list| list.elements().count());
        let mut gone = Vec::new();
        for node in inside {
            let place = list.and_then(|list| list.elements().position(|one| one.id() == *node));
            match (cuts.get(node), place) {
                (None, _) => {}
                (Some(BlockChange::To(text)), _) => {
                    self.patch.replace(self.slot(*node), quoted(text))
                }
                (Some(BlockChange::Gone), Some(place)) => {
                    gone.push(place);
                    left -= 1;
                }
                (Some(BlockChange::Gone), None) => self.remove_text(item, *node),
            }
        }
        let Some(list) = list else { return };
        if left == 0 && !gone.is_empty() {
            // Calls stand beside it, and then it need not be there.
            self.patch.replace(list, "null".to_owned());
            return;
        }
        for place in gone {
            self.patch.remove(list, place);
        }
    }

    /// Takes out a text that is a field: only Chat Completions has such a one beside something that stays.
    fn remove_text(&mut self, item: Value<'a>, node: NodeId) {
        match item.get("content") {
            Some(content) if content.id() == node => {
                self.patch.replace(content, "null".to_owned());
            }
            _ => {
                let field = item.fields().find(|(_, value)| value.id() == node);
                if let Some(key) = field.and_then(|(key, _)| key.text()) {
                    self.patch.remove_field(item, &key);
                }
            }
        }
    }

    /// Returns the string in which a block's text stands.
    fn slot(&self, node: NodeId) -> Value<'a> {
        let value = self.value(node);
        value.any(&["text", "refusal"]).unwrap_or(value)
    }
}

/// Finds the parts of earlier answers that a client repeats; `None` where they cannot be told from the rest.
fn cuts(
    wire: Wire,
    said: &[&Block],
    shown: &Message,
    message: &Message,
) -> Option<BTreeMap<usize, BlockChange>> {
    let mut cuts = BTreeMap::new();
    let text = |block: &Block| match block {
        Block::Text(text) => Some(text.clone()),
        _ => None,
    };
    cut_texts(said, message, text, &mut cuts).then_some(())?;
    if matches!(wire, Wire::ChatCompletions | Wire::Gemini) {
        let thought = |block: &Block| match block {
            Block::Thinking(thinking) => Some(thinking.text.clone()),
            _ => None,
        };
        // Thoughts that a client does not repeat need not be removed.
        let mut thoughts = BTreeMap::new();
        if cut_texts(said, message, thought, &mut thoughts) {
            cuts.append(&mut thoughts);
        }
    }
    cut_others(said, shown, message, &mut cuts);
    Some(cuts)
}

/// Removes the texts of a kind from the beginning of the client's texts of that kind; returns whether they are there.
fn cut_texts(
    said: &[&Block],
    message: &Message,
    text: impl Fn(&Block) -> Option<Arc<str>>,
    cuts: &mut BTreeMap<usize, BlockChange>,
) -> bool {
    let all: String =
        said.iter().filter_map(|block| text(block)).map(|text| text.to_string()).collect();
    let mut left = &*all;
    for (place, block) in message.blocks.iter().enumerate() {
        if left.trim().is_empty() {
            break;
        }
        let Some(whole) = text(block) else { continue };
        let Some((taken, used)) = common(left, &whole) else { return false };
        left = &left[taken..];
        let rest = &whole[used..];
        let cut = if rest.trim().is_empty() {
            BlockChange::Gone
        } else {
            BlockChange::To(rest.to_owned())
        };
        cuts.insert(place, cut);
    }
    left.trim().is_empty()
}

/// Returns how many bytes of both say the same, white space apart; `None` where they differ before one ends.
fn common(one: &str, other: &str) -> Option<(usize, usize)> {
    let (mut at, mut there) = (0, 0);
    loop {
        let (Some(a), Some(b)) = (one[at..].chars().next(), other[there..].chars().next()) else {
            return Some((at, there));
        };
        if a == b {
            at += a.len_utf8();
            there += b.len_utf8();
        } else if a.is_whitespace() {
            at += a.len_utf8();
        } else if b.is_whitespace() {
            there += b.len_utf8();
        } else {
            return None;
        }
    }
}

/// Removes blocks that are neither text nor call: by their place where the client repeats all of their kind, else by their content.
fn cut_others(
    said: &[&Block],
    shown: &Message,
    message: &Message,
    cuts: &mut BTreeMap<usize, BlockChange>,
) {
    for (number, block) in said.iter().enumerate() {
        let Some(kind) = kind_of(block) else { continue };
        let of_kind = |message: &Message| -> Vec<usize> {
            let blocks = message.blocks.iter().enumerate();
            blocks.filter(|(_, one)| kind_of(one) == Some(kind)).map(|(place, _)| place).collect()
        };
        let places = of_kind(message);
        let place = if places.len() == of_kind(shown).len() {
            let before = said[..number].iter().filter(|one| kind_of(one) == Some(kind)).count();
            places.get(before).copied()
        } else {
            let is_it = |place: &&usize| message.blocks[**place] == **block;
            places.iter().find(|place| is_it(place) && !cuts.contains_key(place)).copied()
        };
        if let Some(place) = place {
            cuts.entry(place).or_insert(BlockChange::Gone);
        }
    }
}

fn kind_of(block: &Block) -> Option<&str> {
    match block {
        Block::Thinking(_) => Some("thinking"),
        Block::Image(_) => Some("image"),
        Block::Opaque(opaque) => Some(&opaque.kind),
        Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_without_white_space() {
        assert_eq!(common("ab", "ab c"), Some((2, 2)));
        assert_eq!(common("a\n", "a"), Some((1, 1)));
        assert_eq!(common("a\n", "a b"), Some((2, 1)));
        assert_eq!(common("a b", "ab"), Some((3, 2)));
        assert_eq!(common("ab", "ac"), None);
    }
}
