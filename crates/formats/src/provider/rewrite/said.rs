//! A text behind all that was said: memory and facts, where a cached prefix does not notice them.

use super::{Rewrite, RewriteError, marks};
use crate::provider::Wire;
use crate::provider::document::{Value, quoted};

impl<'a> Rewrite<'a> {
    /// Appends a text to what the user said last, or says it for the user behind the results of tools.
    pub(super) fn append_user_text(&mut self, text: &str) -> Result<(), RewriteError> {
        let no_place = RewriteError::NoPlace { what: "a text of the user" };
        if text.trim().is_empty() {
            return Err(RewriteError::NoPlace { what: "an empty text" });
        }
        let wire = self.request.wire();
        let Some(items) = self.request.items() else {
            let input = self.request.root().get("input").filter(|input| input.is_text());
            return input.map(|input| self.extend(input, text)).ok_or(no_place);
        };
        let kept = self.kept_items();
        let Some((_, last)) = kept.last() else { return Err(no_place) };
        let says = |item: &Value<'_>| item.has("role", "user");
        let is_answer = match wire {
            Wire::AnthropicMessages => !says(last),
            Wire::ChatCompletions => last.has("role", "assistant"),
            Wire::Responses => {
                last.has("role", "assistant") || last.any(&["role", "output"]).is_none()
            }
            Wire::Gemini => last.has("role", "model"),
        };
        let last_of_user = || kept.iter().rev().map(|(_, item)| *item).find(says);
        let target = if says(last) || wire == Wire::Gemini && !is_answer {
            Some(*last)
        } else if is_answer {
            Some(last_of_user().ok_or(no_place.clone())?)
        } else {
            None
        };
        let Some(item) = target else {
            self.patch.push(items, format!(r#"{{"role":"user","content":{}}}"#, quoted(text)));
            return Ok(());
        };
        let part = match wire {
            Wire::AnthropicMessages | Wire::ChatCompletions => {
                format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
            }
            Wire::Responses => format!(r#"{{"type":"input_text","text":{}}}"#, quoted(text)),
            Wire::Gemini => format!(r#"{{"text":{}}}"#, quoted(text)),
        };
        let key = if wire == Wire::Gemini { "parts" } else { "content" };
        let content = item.get(key).ok_or(no_place.clone())?;
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
