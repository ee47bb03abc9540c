//! Gemini's `generateContent`.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_core::json_text::compact;
use plimsoll_core::{Block, Image, Role, Thinking, ToolResult};

use super::{MessageList, Place, RequestError, list_at};
use crate::content::{self, LocatedBlock};
use crate::document::Value;

pub(super) fn read(root: Value<'_>, out: &mut MessageList) -> Result<(), RequestError> {
    let mut names = Names::default();
    let system = root.any(&["systemInstruction", "system_instruction"]);
    out.push(
        Role::System,
        Place::Field,
        system.map_or_else(Vec::new, |system| parts(system, &mut names)),
    );
    let list = list_at(root, "contents", "it has no list of contents")?;
    for (index, content) in list.elements().enumerate() {
        let place = Place::Items(index..index + 1);
        let found = parts(content, &mut names);
        if content.has("role", "model") {
            out.push(Role::Assistant, place, found);
        } else {
            out.push_user(place, found);
        }
    }
    Ok(())
}

/// Calls and responses without ids: the first response under a name answers the first call under it.
#[derive(Debug, Default)]
pub(crate) struct Names {
    called: HashMap<Arc<str>, u32>,
    answered: HashMap<Arc<str>, u32>,
}

fn numbered(counts: &mut HashMap<Arc<str>, u32>, name: &Arc<str>) -> Arc<str> {
    let count = counts.entry(name.clone()).or_default();
    *count += 1;
    Arc::from(format!("{name}-{count}"))
}

/// Reads the parts of a content.
pub(crate) fn parts(content: Value<'_>, names: &mut Names) -> Vec<LocatedBlock> {
    let list = content.get("parts");
    content::parts(list, |value| part(value, names))
}

/// Reads a part of a content.
pub(crate) fn part(value: Value<'_>, names: &mut Names) -> Option<Block> {
    let object = |keys| value.any(keys).filter(|value| value.is_object());
    if let Some(call) = object(&["functionCall", "function_call"]) {
        let name = call.shared_at("name");
        let id = given_id(call).unwrap_or_else(|| numbered(&mut names.called, &name));
        return Some(content::call(id, name, call.get("args")));
    }
    if let Some(response) = object(&["functionResponse", "function_response"]) {
        let name = response.shared_at("name");
        let call_id = given_id(response).unwrap_or_else(|| numbered(&mut names.answered, &name));
        let told = response.get("response");
        let is_error = told.is_some_and(|told| told.get("error").is_some());
        let text = match (told.and_then(spoken), told) {
            (Some(text), _) => text.shared().unwrap_or_else(|| Arc::from("")),
            (None, Some(told)) => compact(told.raw()),
            (None, None) => Arc::from(""),
        };
        let images = response.elements_at("parts").filter_map(image).collect();
        return Some(Block::ToolResult(ToolResult { call_id, text, images, is_error }));
    }
    if let Some(text) = value.get("text").filter(|text| text.is_text()) {
        let text = text.shared().unwrap_or_else(|| Arc::from(""));
        let signature = value.shared_any(&["thoughtSignature", "thought_signature"]);
        if value.is_true_at("thought") {
            return Some(Block::Thinking(Thinking { text, signature }));
        }
        // An empty text may carry the signature of what came before.
        return match (text.is_empty(), signature.is_empty()) {
            (true, true) => None,
            (true, false) => Some(content::opaque("text", value)),
            (false, _) => Some(Block::Text(text)),
        };
    }
    if let Some(image) = image(value) {
        return Some(Block::Image(image));
    }
    let kind = value.fields().next().and_then(|(key, _)| key.text()).unwrap_or_default();
    Some(content::opaque(&kind, value))
}

fn given_id(value: Value<'_>) -> Option<Arc<str>> {
    value.get("id").and_then(Value::shared).filter(|id| !id.is_empty())
}

/// Returns the one text of a response that says nothing else, under whatever key clients put it.
pub(crate) fn spoken(response: Value<'_>) -> Option<Value<'_>> {
    let mut fields = response.fields();
    let (_, only) = fields.next()?;
    (fields.next().is_none() && only.is_text()).then_some(only)
}

fn image(value: Value<'_>) -> Option<Image> {
    let inline = value.any(&["inlineData", "inline_data"]);
    let data = inline.or_else(|| value.any(&["fileData", "file_data"]))?;
    Some(Image {
        media_type: data.shared_any(&["mimeType", "mime_type"]),
        data: data.shared_any(&["data", "fileUri", "file_uri"]),
    })
}
