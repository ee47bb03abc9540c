//! Marks of our own, where a change leaves the client's behind nothing that a cache holds.

use plimsoll_core::cost::Life;

use super::omit::bears_marks;
use super::{Rewrite, RewriteError};
use crate::provider::Wire;
use crate::provider::document::Value;

impl Rewrite<'_> {
    /// Puts a mark at the end of each of these messages; one that has a mark already, or can bear none, stays as it is.
    pub(super) fn mark(&mut self, marks: &[(usize, Life)]) -> Result<(), RewriteError> {
        if self.request.wire() != Wire::AnthropicMessages {
            return Ok(());
        }
        for &(index, life) in marks {
            let source =
                self.request.sources().get(index).ok_or(RewriteError::Position { index })?;
            let mark = match life {
                Life::Short => r#"{"type":"ephemeral"}"#,
                Life::Long => r#"{"type":"ephemeral","ttl":"1h"}"#,
            };
            let blocks: Vec<Value<'_>> =
                source.blocks.iter().map(|block| self.request.document().value(*block)).collect();
            if blocks.iter().any(|block| block.get("cache_control").is_some()) {
                continue;
            }
            let bearer = blocks.iter().rev().find(|block| block.is_text() || bears_marks(**block));
            match bearer {
                Some(text) if text.is_text() => {
                    // A string bears none: it becomes a list of one text, which says the same.
                    let is_said = !text.raw().trim_matches('"').trim().is_empty();
                    if is_said && !self.texts.contains_key(&text.id()) {
                        let list = format!(
                            r#"[{{"type":"text","text":{},"cache_control":{mark}}}]"#,
                            text.raw()
                        );
                        self.patch.replace(*text, list);
                    }
                }
                Some(block) => self.patch.set(*block, "cache_control", mark.to_owned()),
                None => {}
            }
        }
        Ok(())
    }
}
