//! Content of messages: text, images, calls, results and thinking, in the spellings of all formats.

use std::sync::Arc;

use plimsoll_core::{Block, Image, Opaque, Thinking, ToolCall, ToolResult};
use serde_json::value::RawValue;

use crate::json::unquoted;
use crate::object::Object;

/// Returns the blocks of a message's content with their indexes; the text of a plain string has no index.
///
/// An empty string and any other type have no block.
pub(crate) fn blocks(content: Option<&str>) -> Vec<(Option<u32>, Block)> {
    let content = content.unwrap_or_default();
    if content.starts_with('"') {
        let text = unquoted(content);
        return if text.is_empty() { Vec::new() } else { vec![(None, Block::Text(text.into()))] };
    }
    let elements: Vec<&RawValue> = serde_json::from_str(content).unwrap_or_default();
    let blocks = (0..).zip(elements).map(|(index, raw)| Some((Some(index), block(raw.get())?)));
    blocks.flatten().collect()
}

/// Returns whether a value is a string or a list, as content is.
pub(crate) fn is_content(content: Option<&str>) -> bool {
    content.is_some_and(|content| content.starts_with(['"', '[']))
}

/// Returns the text of a message's content, with the parts of a list joined by a line break, and its images.
pub(crate) fn text_and_images(content: Option<&str>) -> (Arc<str>, Vec<Image>) {
    let mut texts: Vec<Arc<str>> = Vec::new();
    let mut images = Vec::new();
    for (_, block) in blocks(content) {
        match block {
            Block::Text(text) => texts.push(text),
            Block::Image(image) => images.push(image),
            Block::ToolResult(result) => {
                texts.push(result.text);
                images.extend(result.images);
            }
            Block::ToolCall(_) | Block::Thinking(_) | Block::Opaque(_) => {}
        }
    }
    (joined(&texts), images)
}

/// Joins texts by a line break.
pub(crate) fn joined(texts: &[Arc<str>]) -> Arc<str> {
    match texts {
        [only] => only.clone(),
        _ => texts.join("\n").into(),
    }
}

/// Reads one element of a content list. A string is text; an element of an unknown kind keeps its bytes.
pub(crate) fn block(raw: &str) -> Option<Block> {
    if raw.starts_with('"') {
        return Some(Block::Text(unquoted(raw).into()));
    }
    if !raw.starts_with('{') {
        return None;
    }
    let Some(object) = Object::parse(raw) else { return Some(opaque("unreadable", raw)) };
    let kind = object.text("type").unwrap_or_default();
    Some(match &*kind {
        "text" | "input_text" | "output_text" => Block::Text(object.shared("text")),
        "" if object.has("text") => Block::Text(object.shared("text")),
        "thinking" => Block::Thinking(Thinking {
            text: object.shared("thinking"),
            signature: object.shared(either(&object, "signature", "thinkingSignature")),
        }),
        "toolCall" | "tool_use" => Block::ToolCall(ToolCall {
            id: object.shared("id"),
            name: object.shared("name"),
            arguments: object.arguments(either(&object, "input", "arguments")),
        }),
        "tool_result" => {
            let (text, images) = text_and_images(object.get("content"));
            Block::ToolResult(ToolResult {
                call_id: object.shared("tool_use_id"),
                text,
                images,
                is_error: object.is_true("is_error"),
            })
        }
        "image" | "image_url" | "input_image" => Block::Image(image(&object)),
        _ => opaque(&kind, raw),
    })
}

/// Returns `first` if the object has a value under it, else `second`.
pub(crate) fn either<'k>(object: &Object<'_>, first: &'k str, second: &'k str) -> &'k str {
    if object.has(first) { first } else { second }
}

fn image(object: &Object<'_>) -> Image {
    let source = object.object("source").unwrap_or_default();
    let url = match object.object("image_url") {
        Some(inner) => inner.owned("url"),
        None => object.owned("image_url"),
    };
    let data = url.or_else(|| object.owned("data"));
    let data = data.or_else(|| source.owned(either(&source, "data", "url")));
    let media_type = object.owned("mimeType").or_else(|| source.owned("media_type"));
    Image {
        media_type: media_type.unwrap_or_default().into(),
        data: data.unwrap_or_default().into(),
    }
}

pub(crate) fn opaque(kind: &str, raw: &str) -> Block {
    Block::Opaque(Opaque { kind: Arc::from(kind), raw: Arc::from(raw) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_both_dialects_are_one() {
        let pi = block(r#"{"type":"toolCall","id":"a","name":"read","arguments":{"p": 1}}"#);
        let anthropic = block(r#"{"type":"tool_use","id":"a","name":"read","input":{"p":1}}"#);
        assert_eq!(pi, anthropic);
        assert!(matches!(pi, Some(Block::ToolCall(call)) if &*call.arguments == r#"{"p":1}"#));
    }

    #[test]
    fn results_join_their_parts() {
        let raw = r#"{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"x"},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}},{"type":"text","text":"y"}]}"#;
        let Some(Block::ToolResult(result)) = block(raw) else { panic!() };
        assert_eq!(&*result.text, "x\ny");
        assert!(result.is_error);
        assert_eq!(&*result.images[0].data, "AA");
    }

    #[test]
    fn the_unknown_is_passed_on() {
        let raw = r#"{"type":"redacted_thinking","data":"x"}"#;
        assert!(matches!(block(raw), Some(Block::Opaque(opaque)) if &*opaque.raw == raw));
        assert_eq!(block("3"), None);
    }
}
