//! Leaving out messages: whole elements where no other message stands in them, else their blocks.

use std::collections::BTreeMap;

use plimsoll_core::text::EARLIER_LEFT_OUT;

use super::{Rewrite, RewriteError};
use crate::Wire;
use crate::document::{NodeId, Value};
use crate::request::Place;

impl<'a> Rewrite<'a> {
    /// Removes the messages that are left out.
    pub(super) fn omit(&mut self) -> Result<(), RewriteError> {
        if !self.omitted.contains(&true) {
            return Ok(());
        }
        let no_list =
            RewriteError::NoPlace { what: "a conversation of which something is left out" };
        let items = self.request.items().ok_or(no_list)?;
        // For each element the blocks that go, and whether something stays.
        let mut touched: BTreeMap<usize, (Vec<NodeId>, bool)> = BTreeMap::new();
        for (index, source) in self.request.sources().iter().enumerate() {
            let omitted = self.omitted[index];
            let Place::Items(places) = &source.place else {
                if omitted {
                    return Err(RewriteError::Form { index, what: "it cannot be left out" });
                }
                continue;
            };
            for item in places.clone() {
                let (gone, stays) = touched.entry(item).or_default();
                if omitted {
                    gone.extend(&source.blocks);
                } else {
                    *stays = true;
                }
            }
        }
        for (item, value) in items.elements().enumerate() {
            match touched.get(&item) {
                Some((gone, false)) if !gone.is_empty() => self.patch.remove(items, item),
                Some((gone, true)) if !gone.is_empty() => {
                    let Some(list) = value.any(&["content", "parts"]) else { continue };
                    for (index, block) in list.elements().enumerate() {
                        if gone.contains(&block.id()) {
                            self.patch.remove(list, index);
                        }
                    }
                }
                _ => {}
            }
        }
        if self.request.wire() == Wire::AnthropicMessages {
            self.move_marks(items);
        }
        self.begin_with_the_user(items);
        Ok(())
    }

    /// Puts the marks of blocks that go on the nearest block before them that can bear one.
    fn move_marks(&mut self, items: Value<'a>) {
        let mut before: Option<Value<'a>> = None;
        for (item, value) in items.elements().enumerate() {
            let Some(content) = value.get("content") else { continue };
            let item_goes = self.patch.is_removed(items, item);
            for (index, block) in content.elements().enumerate() {
                let mark = block.get("cache_control");
                if !item_goes && !self.patch.is_removed(content, index) {
                    before = match mark {
                        Some(_) => None,
                        None if bears_marks(block) => Some(block),
                        None => before,
                    };
                } else if let Some(mark) = mark
                    && let Some(bearer) = before.take()
                {
                    self.patch.set(bearer, "cache_control", mark.raw().to_owned());
                }
            }
        }
    }

    fn begin_with_the_user(&mut self, items: Value<'a>) {
        let (role, first) = match self.request.wire() {
            Wire::AnthropicMessages => {
                ("assistant", format!(r#"{{"role":"user","content":"{EARLIER_LEFT_OUT}"}}"#))
            }
            Wire::Gemini => {
                ("model", format!(r#"{{"role":"user","parts":[{{"text":"{EARLIER_LEFT_OUT}"}}]}}"#))
            }
            Wire::ChatCompletions | Wire::Responses => return,
        };
        if self.kept_items().first().is_none_or(|(_, value)| value.has("role", role)) {
            self.patch.insert(items, 0, first);
        }
    }
}

/// Returns whether a block may bear a mark of the cache: thinking and empty texts may not.
pub(super) fn bears_marks(block: Value<'_>) -> bool {
    let kind = block.kind();
    let empty = kind == "text"
        && block.get("text").and_then(Value::text).is_none_or(|text| text.trim().is_empty());
    block.is_object() && !kind.ends_with("thinking") && !empty
}
