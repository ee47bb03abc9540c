//! A text behind a message of the user: memory and facts, at a place that breaks no cached prefix.

use plimsoll_core::Role;

use super::{Rewrite, RewriteError, marks};
use crate::Wire;
use crate::document::{Value, quoted};
use crate::request::Place;

impl<'a> Rewrite<'a> {
    /// Appends a text to the user's message `index`; does nothing where that is left out.
    pub(super) fn append(&mut self, index: usize, text: &str) -> Result<(), RewriteError> {
        let no_place = RewriteError::NoPlace { what: "a text of the user" };
        if text.trim().is_empty() {
            return Err(RewriteError::NoPlace { what: "an empty text" });
        }
        let wire = self.request.wire();
        let message = self.request.messages().get(index);
        let source = self.request.sources().get(index);
        let (message, source) = message.zip(source).ok_or(RewriteError::Position { index })?;
        if message.role != Role::User {
            return Err(no_place);
        }
        if self.omitted.get(index).is_some_and(|omitted| *omitted) {
            return Ok(());
        }
        let last = match &source.place {
            Place::Items(items) => items.end.checked_sub(1),
            Place::Field => None,
        };
        let items = self.request.items();
        let Some(item) = items.zip(last).and_then(|(items, last)| items.elements().nth(last))
        else {
            let input = self.request.root().get("input").filter(|input| input.is_text());
            return input.map(|input| self.extend(input, text)).ok_or(no_place);
        };
        let part = match wire {
            Wire::AnthropicMessages | Wire::ChatCompletions => {
                format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
            }
            Wire::Responses => format!(r#"{{"type":"input_text","text":{}}}"#, quoted(text)),
            Wire::Gemini => format!(r#"{{"text":{}}}"#, quoted(text)),
        };
        let content = item.get(wire.content_key()).ok_or(no_place.clone())?;
        if content.is_list() {
            self.patch.push(content, part);
        } else if !content.is_text() {
            return Err(no_place);
        } else if wire == Wire::AnthropicMessages {
            // The string becomes a block of its own, so that what a cache holds ends where it ended.
            let said = match self.texts.remove(&content.id()) {
                Some(changed) => quoted(&changed),
                None => content.raw().to_owned(),
            };
            let mark = self.marked.remove(&content.id());
            let blocks = if content.text().is_none_or(|text| text.trim().is_empty()) {
                format!("[{part}]")
            } else {
                format!("[{},{part}]", marks::text(&said, mark))
            };
            self.patch.replace(content, blocks);
        } else {
            self.extend(content, text);
        }
        Ok(())
    }

    /// Appends a paragraph to a string.
    fn extend(&mut self, string: Value<'a>, text: &str) {
        let empty = string.text().is_none_or(|said| said.is_empty());
        let added = if empty { text.to_owned() } else { format!("\n\n{text}") };
        if let Some(changed) = self.texts.get_mut(&string.id()) {
            changed.push_str(&added);
        } else {
            let escaped = quoted(&added);
            self.patch.extend_text(string, &escaped[1..escaped.len() - 1]);
        }
    }
}
