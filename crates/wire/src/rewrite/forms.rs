//! Forms: a message's changed texts, arguments and results, each in the shape that it had.

use plimsoll_core::{Block, Message, ToolCall, ToolResult};

use super::{Rewrite, RewriteError};
use crate::Wire;
use crate::content;
use crate::document::{DEFAULT_DEPTH, Document, NodeId, Value, quoted};
use crate::request::spoken;

impl<'a> Rewrite<'a> {
    /// Gives the message `index` its form.
    pub(super) fn put_form(&mut self, index: usize, form: &Message) -> Result<(), RewriteError> {
        let wrong = |what| RewriteError::Form { index, what };
        let original = &self.request.messages()[index];
        let nodes = &self.request.sources()[index].blocks;
        if form.role != original.role || form.blocks.len() != original.blocks.len() {
            return Err(wrong("its role or the number of its blocks differs"));
        }
        for ((was, now), node) in original.blocks.iter().zip(&form.blocks).zip(nodes) {
            if was == now {
                continue;
            }
            match (was, now) {
                (Block::Text(_), Block::Text(text)) => self.put_text(*node, text),
                (Block::ToolCall(was), Block::ToolCall(now)) => self.put_call(*node, was, now),
                (Block::ToolResult(was), Block::ToolResult(now)) => {
                    self.put_result(*node, was, now)
                }
                _ => Err("a block that is not to be touched differs"),
            }
            .map_err(wrong)?;
        }
        Ok(())
    }

    fn put_text(&mut self, node: NodeId, text: &str) -> Result<(), &'static str> {
        if text.trim().is_empty() {
            return Err("a text is empty");
        }
        let value = self.value(node);
        let slot = if value.is_text() { Some(value) } else { value.any(&["text", "refusal"]) };
        let slot = slot.ok_or("a text has no place")?;
        self.texts.insert(slot.id(), text.to_owned());
        Ok(())
    }

    fn put_call(
        &mut self,
        node: NodeId,
        was: &ToolCall,
        now: &ToolCall,
    ) -> Result<(), &'static str> {
        if was.id != now.id || was.name != now.name {
            return Err("a call's id or name differs");
        }
        let slot = self.arguments(node).ok_or("a call's arguments have no place")?;
        if slot.is_text() {
            self.patch.replace(slot, quoted(&now.arguments));
            return Ok(());
        }
        let object = Document::scan(now.arguments.clone(), DEFAULT_DEPTH);
        if !object.is_ok_and(|document| document.root().is_object()) {
            return Err("a call's arguments are no object");
        }
        self.patch.replace(slot, now.arguments.to_string());
        Ok(())
    }

    fn arguments(&self, node: NodeId) -> Option<Value<'a>> {
        let call = self.value(node);
        match self.request.wire() {
            Wire::AnthropicMessages => call.get("input"),
            Wire::ChatCompletions => match (call.get("function"), call.get("custom")) {
                (Some(function), _) => function.get("arguments"),
                (None, Some(custom)) => custom.get("input"),
                (None, None) => call.get("arguments"),
            },
            Wire::Responses => call.any(&["arguments", "input", "action", "operation"]),
            Wire::Gemini => call.any(&["functionCall", "function_call"])?.get("args"),
        }
    }

    fn put_result(
        &mut self,
        node: NodeId,
        was: &ToolResult,
        now: &ToolResult,
    ) -> Result<(), &'static str> {
        if was.call_id != now.call_id || was.is_error != now.is_error {
            return Err("a result's id or error flag differs");
        }
        if now.images != was.images && !now.images.is_empty() {
            return Err("a result's images differ");
        }
        let result = self.value(node);
        if result.is_text() || result.get("text").is_some() {
            // An agent wrote the result as its user's text.
            return self.put_text(node, &now.text);
        }
        let (holder, key) = match self.request.wire() {
            Wire::AnthropicMessages | Wire::ChatCompletions => (result, "content"),
            Wire::Responses => (result, "output"),
            Wire::Gemini => {
                let response = result.any(&["functionResponse", "function_response"]);
                self.put_response(response.ok_or("a result has no place")?, now);
                return Ok(());
            }
        };
        match holder.get(key) {
            Some(list) if list.is_list() => self.put_parts(list, now),
            // A string, nothing, or an object that was read as its JSON.
            _ => {
                self.patch.set(holder, key, quoted(&now.text));
                Ok(())
            }
        }
    }

    /// The text stands in one part, the first with a mark of the cache if there is one; further texts go.
    fn put_parts(&mut self, list: Value<'a>, now: &ToolResult) -> Result<(), &'static str> {
        let parts: Vec<Value<'a>> = list.elements().collect();
        let is_text = |index: &usize| parts[*index].is_text() || content::is_text(parts[*index]);
        let texts: Vec<usize> = (0..parts.len()).filter(is_text).collect();
        let marked = |index: &&usize| parts[**index].get("cache_control").is_some();
        let holder = texts.iter().find(marked).or(texts.first()).copied();
        if now.text.trim().is_empty() {
            return Err("a result is empty");
        }
        match holder.map(|holder| parts[holder]) {
            Some(part) if part.is_text() => self.patch.replace(part, quoted(&now.text)),
            Some(part) => self.patch.set(part, "text", quoted(&now.text)),
            None => {
                let kind =
                    if self.request.wire() == Wire::Responses { "input_text" } else { "text" };
                let text = quoted(&now.text);
                self.patch.insert(list, 0, format!(r#"{{"type":"{kind}","text":{text}}}"#));
            }
        }
        for index in texts.into_iter().filter(|index| Some(*index) != holder) {
            self.patch.remove(list, index);
        }
        if now.images.is_empty() {
            for (index, part) in parts.iter().enumerate() {
                if content::is_image(*part) {
                    self.patch.remove(list, index);
                }
            }
        }
        Ok(())
    }

    fn put_response(&mut self, response: Value<'a>, now: &ToolResult) {
        let told = response.get("response");
        if let Some(text) = told.and_then(spoken) {
            self.patch.replace(text, quoted(&now.text));
        } else {
            let key = if now.is_error { "error" } else { "output" };
            self.patch.set(response, "response", format!("{{\"{key}\":{}}}", quoted(&now.text)));
        }
        if let Some(parts) = response.get("parts").filter(|_| now.images.is_empty()) {
            for index in 0..parts.elements().count() {
                self.patch.remove(parts, index);
            }
        }
    }
}
